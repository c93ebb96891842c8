"""Who listens to which channel, and handing messages to them.

A message is written once for each version of the protocol, however many listen. It is not a reply:
it leaves after the reply of the request at hand, which ``server.net.connection`` sees to, and
CLIENT REPLY does not silence it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.compat.glob import Glob
from headrace.protocol.replies import Push, encode
from headrace.server.clients.session import SUBSCRIBED, Session

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
