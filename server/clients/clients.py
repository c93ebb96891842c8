"""All clients of one server: who listens to which channel, and who may do what.

A message is written once for each version of the protocol, however many listen. It is not a reply:
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

    Invariants: a name is in a table as long as somebody listens to it; whatever a session holds in
    its own three tables is here too; its ``SUBSCRIBED`` bit is set as long as it holds anything.
    """

    def __init__(self) -> None:
        self.channels: Final[dict[bytes, Sessions]] = {}
        self.patterns: Final[dict[bytes, Listeners]] = {}
        self.shard_channels: Final[dict[bytes, Sessions]] = {}

    # Messages

    def publish(self, channel: bytes, message: bytes) -> int:
        """Hand ``message`` to every subscriber; the number of deliveries.

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
        """Hand ``message`` to the subscribers of a shard channel; the number of deliveries."""
        sessions = self.shard_channels.get(channel)
        if not sessions:
            return 0
        _deliver(Push([b"smessage", channel, message]), sessions)
        return len(sessions)

    # Subscriptions

    def subscribe(self, session: Session, channel: bytes) -> None:
        """Listen to a channel; nothing changes when the session does already."""
        self.channels.setdefault(channel, {})[session] = None
        session.channels[channel] = None
        session.special |= SUBSCRIBED

    def subscribe_pattern(self, session: Session, pattern: bytes) -> None:
        """Listen to all channels that fit a pattern."""
        listeners = self.patterns.get(pattern)
        if listeners is None:
            listeners = self.patterns[pattern] = Listeners(pattern)
        listeners.sessions[session] = None
        session.patterns[pattern] = None
        session.special |= SUBSCRIBED

    def subscribe_shard(self, session: Session, channel: bytes) -> None:
        """Listen to a shard channel."""
        self.shard_channels.setdefault(channel, {})[session] = None
        session.shard_channels[channel] = None
        session.special |= SUBSCRIBED

    def unsubscribe(self, session: Session, channel: bytes) -> None:
        """Listen to a channel no more; nothing changes when the session does not."""
        if channel in session.channels:
            del session.channels[channel]
            _leave(self.channels, channel, session)
            _settle(session)

    def unsubscribe_pattern(self, session: Session, pattern: bytes) -> None:
        """Listen to a pattern no more."""
        if pattern in session.patterns:
            del session.patterns[pattern]
            sessions = self.patterns[pattern].sessions
            del sessions[session]
            if not sessions:
                del self.patterns[pattern]
            _settle(session)

    def unsubscribe_shard(self, session: Session, channel: bytes) -> None:
        """Listen to a shard channel no more."""
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
    """What a client holds beside what any client takes, in bytes. The current request is not in it.

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
    """Return how many bytes they have together."""
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
        """Return how many of the sessions are of this kind, such as ``REPLICA``."""
        return len([each for each in self.sessions.values() if each.special & special])

    def take_flushing(self) -> list[Session]:
        """The sessions with output to send, which are no longer in ``flushing``."""
        sessions = self.flushing
        self.flushing = []
        return sessions

    def unread_bytes(self) -> int:
        """Return what all of them have not read of their replies, replicas left out."""
        clients = [each for each in self.sessions.values() if not each.special & REPLICA]
        return sum([session.peer.pending_output_bytes() for session in clients])

    def weigh(self, session: Session, argv_bytes: int = 0) -> None:
        """Look at what a client holds now, and count its current request as so much.

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


def welcome(session: Session, users: Users) -> None:
    """Have a client that is new, or as good as new, be the default user."""
    session.user = users.default
    session.authenticated = not users.login_needed()
    settle(session, users)


def log_in(session: Session, user: User, users: Users) -> None:
    """Have a client that has the password be a user from now on."""
    session.user = user
    session.authenticated = True
    settle(session, users)


def settle(session: Session, users: Users) -> None:
    """Have requests looked at, or not, as a client's user wants it now."""
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
    """Take a client its user, and have it closed; False where the caller has to do that.

    Whoever puts out itself gets the reply first.
    """
    session.user = users.default
    session.authenticated = False
    if session is caller:
        session.special |= CLOSING
        return True
    return False


def loses_channels(session: Session, channels: list[ChannelPattern]) -> bool:
    """Return whether a client listens to anything that does not fit these."""
    return (
        any(not fits_any(channels, pattern, True) for pattern in session.patterns)
        or any(not fits_any(channels, channel, False) for channel in session.channels)
        or any(not fits_any(channels, channel, False) for channel in session.shard_channels)
    )


def channels_left(new: User, old: User) -> list[ChannelPattern] | None:
    """The channels of a user as it will be; None if those that it has are among them."""
    if any(each.all_channels for each in new.selectors):
        return None
    left = [pattern for each in new.selectors for pattern in each.channels]
    texts = {pattern.text for pattern in left}
    if any(each.all_channels for each in old.selectors):
        return left
    if any(pattern.text not in texts for each in old.selectors for pattern in each.channels):
        return left
    return None
