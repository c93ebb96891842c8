"""The dispatcher of requests: the call, the rows by name, and pauses.

Requests are held back for a time, all of them or those that write, because of CLIENT PAUSE, or
because something waits for replicas to have all there is.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from headrace.server.clients.session import NOBODY, PAUSED, Session
from headrace.server.data import HELD_BY_PAUSE
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import Command
from headrace.server.durability.durability import Durability
from headrace.server.gate import PAUSED_ALL, PAUSED_WRITES, Work
from headrace.server.state import Server
from headrace.server.waiting import Queue

HELD_BY_END: Final = 1  # the server is about to end
HELD_BY_FAILOVER: Final = 2  # a replica is about to be the master


def pause(server: Server, for_ms: int, writes_only: bool) -> None:
    """Hold requests back, or only writes, for so long or until an end set before; 0 is no pause."""
    clients = server.clients
    end_ms = max(clients.pause_end_ms, server.clock.monotonic_ms() + for_ms if for_ms else 0)
    unpause(server)  # what is held back now may be free to run under the new rule
    if end_ms:
        clients.pause_end_ms = end_ms
        server.gate.set(PAUSED_WRITES if writes_only else PAUSED_ALL, True)
        server.data.hold_expiry(HELD_BY_PAUSE, True)
        server.host.wake_at(end_ms)


def hold_writes(server: Server, reason: int) -> None:
    """Hold requests that write back until ``release_writes``; CLIENT PAUSE goes on beside that."""
    server.clients.writes_held |= reason
    server.gate.set(PAUSED_WRITES, True)
    server.data.hold_expiry(HELD_BY_PAUSE, True)


def release_writes(server: Server, reason: int) -> None:
    """Stop holding them back for this reason."""
    clients = server.clients
    clients.writes_held &= ~reason
    if not clients.writes_held:
        if not clients.pause_end_ms:
            unpause(server)
        elif server.gate.reasons & PAUSED_ALL:
            server.gate.set(PAUSED_WRITES, False)


def unpause(server: Server) -> None:
    """Let the requests run that CLIENT PAUSE holds back."""
    held = bool(server.clients.writes_held)
    server.clients.pause_end_ms = 0
    server.gate.set(PAUSED_ALL | PAUSED_WRITES, False)
    server.gate.set(PAUSED_WRITES, held)
    server.data.hold_expiry(HELD_BY_PAUSE, held)
    resume_held(server)
    if server.blocking.next_alarm_ms():
        server.host.wake_at(server.clock.monotonic_ms())


def resume_held(server: Server) -> None:
    """Offer all requests again that are held back."""
    for session in server.clients.everybody():
        if session.special & PAUSED:
            session.special &= ~PAUSED
            session.peer.resume_soon()


class Slicing(Work):
    """A request that is being run in slices; see ``server.dispatch.slicing``."""

    @abstractmethod
    def holds_back(self, session: Session, row: Command, argv: list[bytes]) -> bool:
        """Return whether an admitted request has to wait until this one is done."""

    @abstractmethod
    def postpones(self, queue: Queue) -> bool:
        """Return whether clients that wait for a ready key have to wait until this is done."""


class Dispatcher:
    """Runs requests, one at a time.

    Attributes:
        call: the current command.
        rows: by name as typed; filled as names are met.
        last_name: the name met last, because the next is often the same; last_row: its row. The
            name before that is kept as well, because two often take turns.
    """

    def __init__(self, server: Server, durability: Durability) -> None:
        self.server: Final = server
        self.durability: Final = durability
        nobody = Session(0, server.data.dbs[0], server.clock.started_ms, NOBODY)
        self.call: Final = Call(server, durability, nobody)
        self.rows: Final[dict[bytes, Command]] = {}
        self.last_name = b""
        self.last_row: Command | None = None
        self.slicing: Slicing | None = None
        self._other_name = b""
        self._other_row: Command | None = None

    def turn_to(self, name: bytes) -> Command | None:
        """Make a name the last one; return its row, or None where it was not met yet."""
        row = self._other_row
        if row is None or name != self._other_name:
            row = self.rows.get(name)
        self._other_name = self.last_name
        self._other_row = self.last_row
        self.last_name = name
        self.last_row = row
        return row
