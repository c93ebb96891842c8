"""Faults on demand: DEBUG FAULT has requests of clients delayed, refused, or their replies lost.

A request meets faults once, when it is admitted: one inside MULTI when it is queued. The first
fault that fits and fires acts alone. DEBUG meets none, so faults can always be cleared. While there
are none, the gate has no reason for them, and requests do not pay.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from headrace.compat.glob import matches
from headrace.server.clients.session import (
    CLOSING,
    DELAYED,
    FROM_MASTER,
    IN_SCRIPT,
    LOST,
    LOST_AND_SILENT,
    MET,
    OF_REGION,
    REPLAY,
    REPLICA,
    Session,
)

DELAY: Final = b"delay"
ERROR: Final = b"error"
CLOSE_BEFORE: Final = b"close-before"
CLOSE_AFTER: Final = b"close-after"
SILENCE: Final = b"silence"
ANY: Final = b"*"
_NO_CLIENT: Final = FROM_MASTER | IN_SCRIPT | OF_REGION | REPLAY | REPLICA


def _no_chance() -> float:
    return 0.0


class Fault:
    """One fault.

    Attributes:
        command: a name such as ``xadd`` or ``config|get``, a container for all of its subcommands,
            or ``ANY``.
        key, client: glob patterns of one of the request's keys, and of the client's name.
        percent: of the requests that fit; times: how often it fires, 0 is without end.
        chance: returns a number from 0 to 1 that chooses among them, which ``seed`` decides.
        action: one of the names above, with ``delay_ms``, or the ``line`` of an error.
        fired: how often it has.
    """

    def __init__(self, command: bytes, action: bytes) -> None:
        self.command: Final = command
        self.action: Final = action
        self.key = ANY
        self.client = ANY
        self.percent = 100.0
        self.times = 0
        self.seed = 0
        self.chance: Callable[[], float] = _no_chance
        self.delay_ms = 0
        self.line = b""
        self.fired = 0

    def fires(self, session: Session, name: bytes, keys: list[bytes]) -> bool:
        """Return whether it acts on a request of a command, and count it then."""
        if self.times and self.fired >= self.times:
            return False
        if not (self._fits(name) and matches(self.client, session.name)):
            return False
        if self.key != ANY and not any(matches(self.key, key) for key in keys):
            return False
        if self.percent < 100 and self.chance() * 100 >= self.percent:
            return False
        self.fired += 1
        return True

    def _fits(self, name: bytes) -> bool:
        return self.command in (ANY, name, name.partition(b"|")[0])


class Faults:
    """The faults of a server, by their IDs, in the order in which they were added."""

    def __init__(self) -> None:
        self.by_id: Final[dict[int, Fault]] = {}
        self.last_id = 0
        self._delayed: list[tuple[int, int, Session]] = []  # until when, by ``monotonic_ms``

    def add(self, fault: Fault) -> int:
        """Add one; return its ID."""
        self.last_id += 1
        self.by_id[self.last_id] = fault
        return self.last_id

    def meet(self, session: Session, name: bytes, keys: list[bytes]) -> Fault | None:
        """Return the fault that keeps a request of a command from being run; None lets it run.

        Those that let it run have marked its session: its reply is lost.
        """
        if session.special & _NO_CLIENT or name == b"debug":
            return None
        if session.special & MET:
            session.special &= ~MET
            return None
        for fault in self.by_id.values():
            if fault.fires(session, name, keys):
                return self._act(session, fault)
        return None

    def _act(self, session: Session, fault: Fault) -> Fault | None:
        if fault.action == CLOSE_AFTER:
            session.special |= LOST
            return None
        if fault.action == SILENCE:
            session.special |= LOST | LOST_AND_SILENT
            return None
        if fault.action == CLOSE_BEFORE:
            session.special |= CLOSING
        return fault

    def delay(self, session: Session, until_ms: int) -> None:
        """Hold back the requests of a session, by ``monotonic_ms``."""
        session.special |= DELAYED
        heappush(self._delayed, (until_ms, session.id, session))

    def resume(self, now_ms: int) -> int:
        """Let requests run whose delay is over; return when the next one is, 0 if there is none."""
        while self._delayed and self._delayed[0][0] <= now_ms:
            _, _, session = heappop(self._delayed)
            session.special &= ~DELAYED
            if self.by_id:
                session.special |= MET
            session.peer.resume_soon()
        return self._delayed[0][0] if self._delayed else 0
