"""All clients of one server."""

from __future__ import annotations

from typing import Final

from headrace.compat.quoting import quoted
from headrace.protocol.replies import Status, encode
from headrace.server.clients.pubsub import PubSub
from headrace.server.clients.session import BLOCKED, CACHING, REPLY_SKIP, Session
from headrace.server.waiting.blocking import Blocking


class Clients:
    """The sessions, and who of them listens to what.

    Args:
        blocking: those that wait for keys.

    Attributes:
        sessions: by ID, in order of arrival; next_id: the ID of the next one.
        pubsub: who listens to which channel.
        monitors: those that called MONITOR.
        flushing: sessions with output to send at the end of this turn of the event loop.
        sender_id: of the session that had replies to send last.
        recent_max_input_bytes, recent_max_output_bytes: of any one client, as seen lately.
        pause_end_ms: when a pause ends, of ``monotonic_ms``; 0 while there is none.
        http_warned_ms: when the log last reported a client that speaks HTTP.
    """

    def __init__(self, blocking: Blocking) -> None:
        self.sessions: Final[dict[int, Session]] = {}
        self.next_id = 1
        self.pubsub: Final = PubSub()
        self.monitors: Final[dict[Session, None]] = {}
        self.flushing: list[Session] = []
        self.sender_id = 0
        self.recent_max_input_bytes = 0
        self.recent_max_output_bytes = 0
        self.pause_end_ms = 0
        self.http_warned_ms = 0
        self._blocking: Final = blocking

    def take_flushing(self) -> list[Session]:
        """The sessions with output to send, which are no longer in ``flushing``."""
        sessions = self.flushing
        self.flushing = []
        return sessions

    def unread_bytes(self) -> int:
        """What all of them have not read of their replies."""
        return sum([session.peer.pending_output_bytes() for session in self.sessions.values()])

    def unpark(self, session: Session, reply: object) -> None:
        """End a client's wait with ``reply``, and let its next requests run."""
        if session.waiter is None:
            return
        self._blocking.unpark(session)
        session.special &= ~(BLOCKED | CACHING)
        if session.special & REPLY_SKIP:
            session.special ^= REPLY_SKIP
        else:
            session.deliver(reply)
        session.peer.resume_soon()

    def feed_monitors(self, session: Session, argv: list[bytes], now_ns: int) -> None:
        """Show a request of this moment to the clients that called MONITOR."""
        usec = now_ns // 1000
        words = b" ".join([quoted(argument) for argument in argv])
        line = b"%d.%06d [%d %b] %b" % (
            usec // 1_000_000,
            usec % 1_000_000,
            session.db.index,
            session.address,
            words,
        )
        wire = encode(Status(line))
        for monitor in self.monitors:
            monitor.deliver_wire(wire)
