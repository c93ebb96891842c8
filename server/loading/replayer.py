"""Recorded commands are run again, by a session that nothing is refused and nothing asked."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import CommandError
from headrace.protocol.replies import ErrorReply
from headrace.server.clients.session import REPLAY, Peer, Session
from headrace.server.dispatch.admission import find_recorded_row
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.invoke import invoke
from headrace.server.dispatch.rows import WRITE, Command
from headrace.server.durability.durability import Durability
from headrace.server.state import Server

# What is run besides writes. PFCOUNT may keep its estimate. EXEC and DISCARD have no business here.
_RUN_AS_WELL: Final = (b"select", b"pfcount", b"exec", b"discard")


class Replayer:
    """Runs recorded commands."""

    def __init__(self, server: Server, durability: Durability) -> None:
        session = Session(0, server.data.dbs[0], server.clock.now_ns // 1_000_000, Peer())
        session.special = REPLAY
        self._server: Final = server
        self._session: Final = session
        self._call: Final = Call(server, durability, session)
        self._call.may_block = False
        self._call.replaying = True
        self._rows: Final[dict[bytes, Command]] = {}  # by name as it stands in the files

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
        if not row.flags & WRITE and row.name not in _RUN_AS_WELL:
            return b""  # such as SAVE: it has no part in what the data is
        call.db = self._session.db
        call.now_ms = server.clock.now_ns // 1_000_000
        reply = invoke(call, row, argv)
        server.changes.end_command()
        return reply.text if isinstance(reply, ErrorReply) else b""
