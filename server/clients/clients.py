"""All clients of one server, their subscriptions and their rights.

A message is encoded once for each version of the protocol, however many listen. It is not a reply:
it leaves after the reply of the current request, which ``server.net.connection`` sees to, and
CLIENT REPLY does not silence it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.compat.glob import Glob
from headrace.protocol.replies import Push, Status, encode
from headrace.protocol.requests import quoted
from headrace.server.acl.users import ChannelPattern, User, Users, fits_any
from headrace.server.clients.session import (
    BLOCKED,
    CACHING,
    CLOSING,
    LIMITED,
    LOST,
    NEEDS_AUTH,
    OF_REGION,
    REPLICA,
    REPLY_SKIP,
    SUBSCRIBED,
    Session,
)
from headrace.server.waiting import Blocking

Sessions = dict["Session", None]  # in order of arrival


class Listeners:
    """The subscribers of one pattern."""

    def __init__(self, pattern: bytes) -> None:
        self.glob: Final = Glob(pattern)
        self.sessions: Final[Sessions] = {}


class PubSub:
    """Subscriptions by channel, by pattern and by shard channel.

    Invariants: a name is in a table as long as a session listens to it; every subscription in a
    session's own three tables is here too; its ``SUBSCRIBED`` bit is set as long as it has any.
    """

    def __init__(self) -> None:
        self.channels: Final[dict[bytes, Sessions]] = {}
        self.patterns: Final[dict[bytes, Listeners]] = {}
        self.shard_channels: Final[dict[bytes, Sessions]] = {}

    # Messages

    def publish(self, channel: bytes, message: bytes) -> int:
        """Send ``message`` to every subscriber; return the number of deliveries.

        Complexity: O(subscribers of the channel + patterns).
        """
        count = 0
        sessions = self.channels.get(channel)
        if sessions:
            _deliver(Push([b"message", channel, message]), sessions)
            count = len(sessions)
        for pattern, listeners in self.patterns.items():
            if listeners.glob.matches(channel):
                _deliver(Push([b"pmessage", pattern, channel, message]), listeners.sessions)
                count += len(listeners.sessions)
        return count

    def publish_shard(self, channel: bytes, message: bytes) -> int:
        """Hand ``message`` to a shard channel's subscribers; return the number of deliveries."""
        sessions = self.shard_channels.get(channel)
        if not sessions:
            return 0
        _deliver(Push([b"smessage", channel, message]), sessions)
        return len(sessions)

    # Subscriptions

    def subscribe(self, session: Session, channel: bytes) -> None:
        """Subscribe to a channel; nothing changes when the session already is."""
        self.channels.setdefault(channel, {})[session] = None
        session.channels[channel] = None
        session.special |= SUBSCRIBED

    def subscribe_pattern(self, session: Session, pattern: bytes) -> None:
        """Subscribe to all channels that match a pattern."""
        listeners = self.patterns.get(pattern)
        if listeners is None:
            listeners = self.patterns[pattern] = Listeners(pattern)
        listeners.sessions[session] = None
        session.patterns[pattern] = None
        session.special |= SUBSCRIBED

    def subscribe_shard(self, session: Session, channel: bytes) -> None:
        """Subscribe to a shard channel."""
        self.shard_channels.setdefault(channel, {})[session] = None
        session.shard_channels[channel] = None
        session.special |= SUBSCRIBED

    def unsubscribe(self, session: Session, channel: bytes) -> None:
        """Unsubscribe from a channel; nothing changes when the session is not subscribed."""
        if channel in session.channels:
            del session.channels[channel]
            _leave(self.channels, channel, session)
            _settle(session)

    def unsubscribe_pattern(self, session: Session, pattern: bytes) -> None:
        """Unsubscribe from a pattern."""
        if pattern in session.patterns:
            del session.patterns[pattern]
            sessions = self.patterns[pattern].sessions
            del sessions[session]
            if not sessions:
                del self.patterns[pattern]
            _settle(session)

    def unsubscribe_shard(self, session: Session, channel: bytes) -> None:
        """Unsubscribe from a shard channel."""
        if channel in session.shard_channels:
            del session.shard_channels[channel]
            _leave(self.shard_channels, channel, session)
            _settle(session)

    def drop_session(self, session: Session) -> None:
        """End all subscriptions of a session; it gets no message about them."""
        for channel in list(session.channels):
            self.unsubscribe(session, channel)
        for pattern in list(session.patterns):
            self.unsubscribe_pattern(session, pattern)
        for channel in list(session.shard_channels):
            self.unsubscribe_shard(session, channel)


def _deliver(push: Push, sessions: Iterable[Session]) -> None:
    wire2 = b""
    wire3 = b""
    for session in sessions:
        if session.resp3:
            wire3 = wire3 or encode(push, True)
            session.deliver_wire(wire3)
        else:
            wire2 = wire2 or encode(push, False)
            session.deliver_wire(wire2)


def _leave(table: dict[bytes, Sessions], name: bytes, session: Session) -> None:
    sessions = table[name]
    del sessions[session]
    if not sessions:
        del table[name]


def _settle(session: Session) -> None:
    if not (session.channels or session.patterns or session.shard_channels):
        session.special &= ~SUBSCRIBED


UNCOUNTED_BYTES: Final = 16 * 1024  # of replies that are about to be sent: any client has so much
_WORD_BYTES: Final = 8  # of a word that waits to be run, beside its own bytes
_INTEREST_BYTES: Final = 250  # of a watched key, a channel, a pattern or a prefix, about


def held_by(session: Session) -> int:
    """Return the bytes that a client holds beyond any client's share, without the current request.

    Complexity: O(1), but for the current replies and the requests that wait.
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
    """Return the sum of their lengths in bytes."""
    size = 0
    for word in words:
        size += len(word)
    return size


class Clients:
    """The sessions, and their subscriptions.

    Attributes:
        sessions: by ID, in order of arrival; next_id: the ID of the next one.
        master: stands for the master of this server while there is a link; no request of it is
            dispatched, so it is not among the sessions.
        monitors: those that called MONITOR.
        flushing: sessions with output to send at the end of this turn of the event loop.
        sender_id: of the session that had replies to send last.
        recent_max_input_bytes, recent_max_output_bytes: of any one client, as seen lately.
        pause_end_ms: when a pause ends, of ``monotonic_ms``; 0 while there is none.
        writes_held: why requests that write are held back beside that; 0: they are not.
        held_bytes: the sum of ``held_by``, as it was seen last.
        http_warned_ms: when the log last reported a client that speaks HTTP; refused_ms: a refused
            region, by host and reason.
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
        """Return an ID that no client has had."""
        number = self.next_id
        self.next_id += 1
        return number

    def everybody(self) -> list[Session]:
        """Return all that CLIENT LIST shows, in order of arrival: the master, too."""
        if self.master is None:
            return list(self.sessions.values())
        everybody = {**self.sessions, self.master.id: self.master}
        return [everybody[number] for number in sorted(everybody)]

    def count(self, special: int) -> int:
        """Return how many of the sessions are of this kind, such as ``REPLICA``."""
        return len([each for each in self.sessions.values() if each.special & special])

    def take_flushing(self) -> list[Session]:
        """Return the sessions with output to send, and remove them from ``flushing``."""
        sessions = self.flushing
        self.flushing = []
        return sessions

    def unread_bytes(self) -> int:
        """Return the bytes of replies that clients have not read, replicas left out."""
        clients = [each for each in self.sessions.values() if not each.special & REPLICA]
        return sum([session.peer.pending_output_bytes() for session in clients])

    def weigh(self, session: Session, argv_bytes: int = 0) -> None:
        """Update what a client holds, with a current request of so many bytes.

        What waits for a replica does not count, because it is made anew for each.
        """
        held_bytes = 0 if session.special & REPLICA else held_by(session) + argv_bytes
        self.held_bytes += held_bytes - session.held_bytes
        session.held_bytes = held_bytes

    def weigh_these(self, sessions: list[Session]) -> None:
        """Update what some clients hold; those that have left are passed over."""
        for session in sessions:
            if not session.closed:
                self.weigh(session)

    def weigh_all(self) -> None:
        """Update what all of them hold."""
        for session in self.sessions.values():
            self.weigh(session)

    def unpark(self, session: Session, reply: object) -> None:
        """End a client's wait with ``reply``, and let its next requests run."""
        if session.waiter is None:
            return
        self._blocking.unpark(session)
        session.special &= ~(BLOCKED | CACHING)
        if session.special & LOST:
            session.lose()
        elif session.special & REPLY_SKIP:
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


def welcome(session: Session, users: Users) -> None:
    """Make a new client, or one that is reset, the default user."""
    session.user = users.default
    session.authenticated = not users.login_needed()
    settle(session, users)


def log_in(session: Session, user: User, users: Users) -> None:
    """Make a client that has the password this user from now on."""
    session.user = user
    session.authenticated = True
    settle(session, users)


def settle(session: Session, users: Users) -> None:
    """Set whether a client's requests are looked at before they run, as its user requires."""
    session.special &= ~(NEEDS_AUTH | LIMITED)
    if users.login_needed() and not session.authenticated:
        session.special |= NEEDS_AUTH
    if session.user.limited:
        session.special |= LIMITED


def settle_all(clients: Clients, users: Users) -> None:
    """As ``settle``, for every client, after users have changed."""
    for session in clients.sessions.values():
        if not session.special & OF_REGION:  # those have a secret of their own
            settle(session, users)


def put_out(session: Session, caller: Session, users: Users) -> bool:
    """Take a client's user away, and close it; False where the caller has to close it.

    A client that does that to itself gets the reply first.
    """
    session.user = users.default
    session.authenticated = False
    if session is caller:
        session.special |= CLOSING
        return True
    return False


def loses_channels(session: Session, channels: list[ChannelPattern]) -> bool:
    """Return whether a client is subscribed to anything that does not match these."""
    return (
        any(not fits_any(channels, pattern, True) for pattern in session.patterns)
        or any(not fits_any(channels, channel, False) for channel in session.channels)
        or any(not fits_any(channels, channel, False) for channel in session.shard_channels)
    )


def channels_left(new: User, old: User) -> list[ChannelPattern] | None:
    """Return a changed user's channels; None if its former ones are among them."""
    if any(each.all_channels for each in new.selectors):
        return None
    left = [pattern for each in new.selectors for pattern in each.channels]
    texts = {pattern.text for pattern in left}
    if any(each.all_channels for each in old.selectors):
        return left
    if any(pattern.text not in texts for each in old.selectors for pattern in each.channels):
        return left
    return None
