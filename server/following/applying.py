"""The stream of a master: its commands are run here as they were there.

A transaction is kept back until its EXEC has come, and runs as one unit. An offset counts the bytes
that have been run. So after a break the master is asked for the next byte, and nothing is run twice
or left out, wherever the link was cut.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat.errors import CommandError
from headrace.compat.server_errors import NO_SCRIPT
from headrace.persistence.log import RECORD
from headrace.protocol.client import request
from headrace.protocol.replies import ErrorReply
from headrace.protocol.requests import RequestParser
from headrace.server.changes.changes import FILES, REPLICAS
from headrace.server.clients.session import FROM_MASTER, PAUSED, REPLAY, Peer, Session
from headrace.server.clock import MS
from headrace.server.dispatch.admission import changes_nothing, find_recorded_row, runs_again
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import count_call, invoke, lap, show_monitors
from headrace.server.dispatch.rows import WRITE, Command
from headrace.server.dispatch.serving import serve_ready
from headrace.server.gate import MONITORED, NEWCOMERS, PAUSED_ALL, PAUSED_WRITES
from headrace.server.replication.replicas import AllReplicas
from headrace.server.state import StandbyInput

log: Final = logging.getLogger("headrace")

_MULTI: Final = b"multi"
_EXEC: Final = b"exec"
_REPLCONF: Final = b"replconf"
_NO_WRITES: Final = (b"ping", b"replconf", b"select", b"multi")
_MAY_BE_LONG: Final = (b"eval", b"evalsha", b"fcall", b"exec")
_HOLDS: Final = PAUSED_ALL | PAUSED_WRITES | NEWCOMERS
_MOST_WORD_BYTES: Final = 1 << 40  # a master sends what it holds
_LOGGED: Final = 10  # commands that fail, in full


class Applier:
    """Runs the commands of a stream; ``relay`` gets their bytes, ``peer`` closes the link.

    ``of_region`` takes a region's records, and keeps all of it in the file as it came.

    Attributes:
        session: stands for the master in CLIENT LIST.
        asked: the master asks for our offset.
        lacks_scripts: the master has called a script that is not known here.
        held_bytes: how many received bytes are not run yet; failed: how many commands have failed.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        relay: AllReplicas,
        db: int,
        peer: Peer,
        of_region: StandbyInput | None,
    ) -> None:
        server = dispatcher.server
        now_ms = server.clock.now_ns // MS
        session = Session(server.clients.new_id(), server.data.dbs[db], now_ms, peer)
        session.special = REPLAY | FROM_MASTER
        self.asked = False
        self.lacks_scripts = False
        self.held_bytes = 0
        self.failed = 0
        self._of_region: Final = of_region
        self._passed: Final[set[bytes]] = set()  # the names of commands that were not run
        self._dispatcher: Final = dispatcher
        self._server: Final = server
        self._relay: Final = relay
        self.session: Final = session
        self._call: Final = Call(server, dispatcher.durability, session)
        self._call.may_block = False
        self._call.replaying = True
        self._rows: Final[dict[bytes, Command]] = {}
        self._parser: Final = RequestParser(_MOST_WORD_BYTES)
        self._requests: list[list[bytes]] = []  # that have come
        self._at = 0  # the next one of them
        self._queue: list[list[bytes]] | None = None  # of a transaction
        self._queued: list[bytes] = []  # its bytes

    @property
    def db(self) -> int:
        """Return the number of the database that the stream is in."""
        return self.session.db.index

    def take(self, data: bytes) -> None:
        """Run received commands up to those that CLIENT PAUSE holds back. Raises ProtocolError."""
        data_of = self._server.data
        self._parser.feed(data)
        session = self.session
        session.active_ms = self._server.clock.refresh()
        session.bytes_in += len(data)
        session.reads += 1
        self.held_bytes += len(data)
        data_of.enable_expiry(False)
        if self._of_region is not None:
            self._server.changes.hold_back(FILES | REPLICAS)
        try:
            while not session.special & PAUSED and self._has_more():
                argv = self._requests[self._at]
                if self._server.gate.reasons & _HOLDS and self._holds(argv[0].lower()):
                    session.special |= PAUSED
                else:
                    self._at += 1
                    self._take(argv)
        finally:
            if self._of_region is not None:
                self._server.changes.hold_back(0)
            data_of.enable_expiry(True)
        if self._server.blocking.ready:
            serve_ready(self._dispatcher)

    def _has_more(self) -> bool:
        if self._at == len(self._requests):
            self._at = 0
            self._requests = self._parser.take()
            session = self.session
            if not self._requests:
                return False
            session.batches += 1
            session.requests += len(self._requests)
        return True

    def _holds(self, name: bytes) -> bool:
        reasons = self._server.gate.reasons
        if reasons & PAUSED_ALL:
            return True
        if reasons & NEWCOMERS and name in _MAY_BE_LONG:  # they have sessions in the next turn
            self.session.peer.resume_soon()
            return True
        if not reasons & PAUSED_WRITES or name in _NO_WRITES:
            return False
        return self._queue is None or name == _EXEC

    def _take(self, argv: list[bytes]) -> None:
        name = argv[0].lower()
        wire = request(argv)
        queue = self._queue
        if name == _MULTI:
            self._queue = []
            self._queued = [wire]
            self._run(name, argv)
        elif queue is None:
            self._run(name, argv)
            self._end_unit(wire)
        elif name == _EXEC:
            self._queue = None
            for queued in queue:
                self._run(queued[0].lower(), queued)
            self._run(name, argv)
            self._queued.append(wire)
            self._end_unit(b"".join(self._queued))
            self._queued = []
        else:
            queue.append(argv)
            self._queued.append(wire)

    def _end_unit(self, wire: bytes) -> None:
        self._server.changes.end_command()
        if self._of_region is not None:
            self._of_region.end_unit()
        self.held_bytes -= len(wire)
        self._relay.relay(wire)

    def _run(self, name: bytes, argv: list[bytes]) -> None:
        if name == _REPLCONF:
            wrapped = _wrapped(argv)
            if wrapped:
                self._run(wrapped[0].lower(), wrapped)
                return
            self.asked = True
        if self._of_region is not None and self._of_region.take(argv):
            return
        server = self._server
        row = self._rows.get(argv[0])
        try:
            if row is None or row.run is None or not row.arity_fits(len(argv)):
                row = find_recorded_row(self._rows, argv)
        except CommandError as error:
            server.statistics.counters.count_error(error.line)
            self._note_failure(name, error.line)
            return
        self.session.last_row = row
        self.session.commands += 1
        call = self._call
        call.argv = argv
        if name not in (_MULTI, _EXEC) and (row.flags & WRITE or runs_again(row)):
            call.db = self.session.db
            call.now_ms = server.clock.now_ns // MS
            reply = invoke(call, row, argv)
            if self._of_region is not None and row.flags & WRITE:  # not what only publishes
                self._of_region.keep(argv)
            if isinstance(reply, ErrorReply):
                self._note_failure(name, reply.text)
                if reply.text == NO_SCRIPT:
                    self.lacks_scripts = True
        elif not changes_nothing(row):
            self._note_passed(row)
            return
        count_call(server, call, row, lap(server))
        if server.gate.reasons & MONITORED:
            show_monitors(server, self.session, row, argv)

    def _note_passed(self, row: Command) -> None:
        if row.name not in self._passed:
            self._passed.add(row.name)
            log.warning("The master sends %r, which acts on a server: it is not run here", row.name)

    def _note_failure(self, name: bytes, line: bytes) -> None:
        """Note that a command of the master fails here: the data may differ from now on."""
        self.failed += 1
        if self.failed <= _LOGGED:
            if self._server.config.hide_user_data_from_log:
                line = line.partition(b" ")[0]
            log.warning("A command of the master, %r, failed here: %r", name, line)


def _wrapped(argv: list[bytes]) -> list[bytes]:
    """Return the record that a REPLCONF holds; none, if it holds none. See ``CommandStream``."""
    if len(argv) != 3 or not argv[2].startswith(RECORD):
        return []
    parser = RequestParser(_MOST_WORD_BYTES)
    parser.feed(argv[2][len(RECORD) :])
    requests = parser.take()
    return requests[0] if len(requests) == 1 else []
