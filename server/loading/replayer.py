"""Recorded commands are run again, by a session that nothing is refused and nothing asked."""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat.errors import CommandError
from headrace.compat.scripting_errors import UNKNOWN_COMMAND
from headrace.protocol.replies import ErrorReply
from headrace.server.clients.session import REPLAY, Peer, Session
from headrace.server.dispatch.admission import changes_nothing, find_recorded_row, runs_again
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.invoke import invoke
from headrace.server.dispatch.rows import WRITE, Command
from headrace.server.durability.durability import Durability
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

_LOGGED: Final = 10  # scripts that fail


class Replayer:
    """Runs recorded commands.

    Attributes:
        passed: how many were not run, by name, because they act on the server and not on its data.
    """

    def __init__(self, server: Server, durability: Durability) -> None:
        session = Session(0, server.data.dbs[0], server.clock.now_ns // 1_000_000, Peer())
        session.special = REPLAY
        self._server: Final = server
        self._session: Final = session
        self._call: Final = Call(server, durability, session)
        self._call.may_block = False
        self._call.replaying = True
        self._rows: Final[dict[bytes, Command]] = {}  # by name as it stands in the files
        self.passed: dict[bytes, int] = {}
        self._failed = 0  # scripts

    def select_first(self) -> None:
        """Forget the database that was selected."""
        self._session.db = self._server.data.dbs[0]

    def run(self, argv: list[bytes], stamp_s: int = 0) -> bytes:
        """Run one command; the line of the error it failed with, else empty.

        Args:
            stamp_s: the second in which it ran first; 0 where the file does not say.
        """
        server = self._server
        call = self._call
        call.stamp_s = stamp_s
        row = self._rows.get(argv[0])
        if row is None or row.run is None or not row.arity_fits(len(argv)):
            try:
                row = find_recorded_row(self._rows, argv)
            except CommandError as error:
                return error.line
        if not row.flags & WRITE and not runs_again(row):
            if not changes_nothing(row):
                self.passed[row.name] = self.passed.get(row.name, 0) + 1
            return b""
        call.db = self._session.db
        call.now_ms = server.clock.now_ns // 1_000_000
        runs = self._runs()
        reply = invoke(call, row, argv)
        server.changes.end_command()
        if not isinstance(reply, ErrorReply):
            return b""
        line = reply.text
        if self._runs() == runs or UNKNOWN_COMMAND in line:
            return line
        self._note_failure(line)
        return b""

    def _runs(self) -> int:
        scripting = self._server.scripting
        return 0 if scripting is None else scripting.runs

    def _note_failure(self, line: bytes) -> None:
        """A script has ended with an error; it was recorded for what it wrote before."""
        self._failed += 1
        if self._failed <= _LOGGED:
            if self._server.config.hide_user_data_from_log:
                line = line.partition(b" ")[0]
            text = line.decode("utf-8", "backslashreplace")
            log.warning("A recorded script ended with an error, after what it had done: %s", text)
