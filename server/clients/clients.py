"""All clients of one server."""

from __future__ import annotations

from typing import Final

from headrace.compat.quoting import quoted
from headrace.protocol.replies import Status, encode
from headrace.server.clients.pubsub import PubSub
from headrace.server.clients.session import BLOCKED, CACHING, REPLICA, REPLY_SKIP, Session
from headrace.server.waiting.blocking import Blocking

UNCOUNTED_BYTES: Final = 16 * 1024  # of replies that are about to be sent: any client has so much
_WORD_BYTES: Final = 8  # of a word that waits to be run, beside its own bytes
_INTEREST_BYTES: Final = 250  # of a watched key, a channel, a pattern or a prefix, about


def held_by(session: Session) -> int:
    """What a client holds beside what any client takes, in bytes. The request at hand is not in it.

    Complexity: O(1), but for the replies at hand and the requests that wait.
    """
    held = session.peer.pending_output_bytes() + int(session.waiting_bytes)
    held += session.peer.pending_input_bytes() + session.peer.input_room_bytes()
    if session.out:
        held += max(0, size_of(session.out) - UNCOUNTED_BYTES)
    if session.transaction is not None:
        held += session.transaction.size_bytes
        held += _WORD_BYTES * session.transaction.word_count
    interests = len(session.watched) + len(session.shard_channels) + session.subscriptions
    if session.tracking is not None:
        interests += len(session.tracking.prefixes)
    return held + _INTEREST_BYTES * interests


def size_of(words: list[bytes]) -> int:
    """How many bytes they have together."""
    size = 0
    for word in words:
        size += len(word)
    return size


class Clients:
    """The sessions, and who of them listens to what.

    Args:
        blocking: those that wait for keys.

    Attributes:
        sessions: by ID, in order of arrival; next_id: the ID of the next one.
        master: stands for the master of this server while there is a link; no request of it is
            dispatched, so it is not among the sessions.
        pubsub: who listens to which channel.
        monitors: those that called MONITOR.
        flushing: sessions with output to send at the end of this turn of the event loop.
        sender_id: of the session that had replies to send last.
        recent_max_input_bytes, recent_max_output_bytes: of any one client, as seen lately.
        pause_end_ms: when a pause ends, of ``monotonic_ms``; 0 while there is none.
        writes_held: why requests that write are held back beside that; 0: they are not.
        held_bytes: what all of them hold, beside what any client takes, as it was seen last.
        http_warned_ms: when the log last reported a client that speaks HTTP.
        refused_ms: when it last reported that a region from some host was refused for some reason.
    """

    def __init__(self, blocking: Blocking) -> None:
        self.sessions: Final[dict[int, Session]] = {}
        self.next_id = 1
        self.master: Session | None = None
        self.pubsub: Final = PubSub()
        self.monitors: Final[dict[Session, None]] = {}
        self.flushing: list[Session] = []
        self.sender_id = 0
        self.recent_max_input_bytes = 0
        self.recent_max_output_bytes = 0
        self.pause_end_ms = 0
        self.writes_held = 0
        self.held_bytes = 0
        self.http_warned_ms = 0
        self.refused_ms: Final[dict[str, int]] = {}
        self._blocking: Final = blocking

    def new_id(self) -> int:
        """An ID that nobody has had."""
        number = self.next_id
        self.next_id += 1
        return number

    def everybody(self) -> list[Session]:
        """All that CLIENT LIST shows, in order of arrival: the master, too."""
        if self.master is None:
            return list(self.sessions.values())
        everybody = {**self.sessions, self.master.id: self.master}
        return [everybody[number] for number in sorted(everybody)]

    def count(self, special: int) -> int:
        """How many of the sessions are of this kind, such as ``REPLICA``."""
        return len([each for each in self.sessions.values() if each.special & special])

    def take_flushing(self) -> list[Session]:
        """The sessions with output to send, which are no longer in ``flushing``."""
        sessions = self.flushing
        self.flushing = []
        return sessions

    def unread_bytes(self) -> int:
        """What all of them have not read of their replies, replicas left out."""
        clients = [each for each in self.sessions.values() if not each.special & REPLICA]
        return sum([session.peer.pending_output_bytes() for session in clients])

    def weigh(self, session: Session, argv_bytes: int = 0) -> None:
        """Look at what a client holds now, and count its request at hand as so much.

        What waits for a replica does not count: it is made anew for each.
        """
        held_bytes = 0 if session.special & REPLICA else held_by(session) + argv_bytes
        self.held_bytes += held_bytes - session.held_bytes
        session.held_bytes = held_bytes

    def weigh_these(self, sessions: list[Session]) -> None:
        """Look at what some hold, who were there a moment ago."""
        for session in sessions:
            if not session.closed:
                self.weigh(session)

    def weigh_all(self) -> None:
        """Look at what all of them hold."""
        for session in self.sessions.values():
            self.weigh(session)

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
