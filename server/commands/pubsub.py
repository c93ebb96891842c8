"""Subscribing, publishing, and lists of channels and subscribers.

A request that subscribes or unsubscribes is answered once for each channel: a message like any
other in form, but in the place of the reply, inside EXEC too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.compat.errors import SSUBSCRIBE_IN_MULTI, CommandError, bad_subcommand
from headrace.compat.glob import Glob
from headrace.protocol.replies import Push, Replies
from headrace.server.clients.session import IN_MULTI, Session
from headrace.server.dispatch.call import Call

_OF_SHARDS: Final = (b"ssubscribe", b"sunsubscribe")


def subscribe(call: Call) -> object:
    """Reply: for each channel (subscribe, channel, subscriptions)."""
    return _each(call, b"subscribe", call.argv[1:], call.server.clients.pubsub.subscribe)


def psubscribe(call: Call) -> object:
    """Reply: for each pattern (psubscribe, pattern, subscriptions)."""
    return _each(call, b"psubscribe", call.argv[1:], call.server.clients.pubsub.subscribe_pattern)


def ssubscribe(call: Call) -> object:
    """Refused in MULTI, unlike SUBSCRIBE. Reply: for each (ssubscribe, channel, subscriptions)."""
    if call.session.special & IN_MULTI:
        raise CommandError(SSUBSCRIBE_IN_MULTI)
    return _each(call, b"ssubscribe", call.argv[1:], call.server.clients.pubsub.subscribe_shard)


def unsubscribe(call: Call) -> object:
    """Leave channels, all of them where none is named.

    Reply: for each (unsubscribe, channel, subscriptions left), with a nil channel for none.
    """
    left = call.argv[1:] or list(call.session.channels)
    return _each(call, b"unsubscribe", left, call.server.clients.pubsub.unsubscribe)


def punsubscribe(call: Call) -> object:
    """As UNSUBSCRIBE, for patterns."""
    left = call.argv[1:] or list(call.session.patterns)
    return _each(call, b"punsubscribe", left, call.server.clients.pubsub.unsubscribe_pattern)


def sunsubscribe(call: Call) -> object:
    """As UNSUBSCRIBE, for shard channels."""
    left = call.argv[1:] or list(call.session.shard_channels)
    return _each(call, b"sunsubscribe", left, call.server.clients.pubsub.unsubscribe_shard)


def _each(
    call: Call, kind: bytes, names: list[bytes], change: Callable[[Session, bytes], object]
) -> Replies:
    """Change subscriptions one by one; return a message for each, or one without a name."""
    replies: list[object] = []
    for name in names:
        change(call.session, name)
        replies.append(_message(call.session, kind, name))
    return Replies(replies or [_message(call.session, kind, None)])


def _message(session: Session, kind: bytes, name: bytes | None) -> Push:
    of_shards = kind in _OF_SHARDS
    return Push([kind, name, len(session.shard_channels) if of_shards else session.subscriptions])


def publish(call: Call) -> object:
    """Reply: how many times it was delivered."""
    _feed_replicas(call)
    return call.server.clients.pubsub.publish(call.argv[1], call.argv[2])


def spublish(call: Call) -> object:
    """Reply: how many times it was delivered."""
    _feed_replicas(call)
    return call.server.clients.pubsub.publish_shard(call.argv[1], call.argv[2])


def _feed_replicas(call: Call) -> None:
    """Pass a message on to the subscribers at replicas."""
    replicas = call.server.role.replicas
    if replicas is not None:
        replicas.feed(call.db.index, call.argv)


def pubsub_channels(call: Call) -> object:
    """Reply: list of channels with a subscriber."""
    return _names(call, call.server.clients.pubsub.channels)


def pubsub_shardchannels(call: Call) -> object:
    """Reply: list of shard channels with a subscriber."""
    return _names(call, call.server.clients.pubsub.shard_channels)


def pubsub_numpat(call: Call) -> object:
    """Reply: how many different patterns have a subscriber."""
    return len(call.server.clients.pubsub.patterns)


def pubsub_numsub(call: Call) -> object:
    """Reply: flat list of channels and their subscribers."""
    return _counts(call, call.server.clients.pubsub.channels)


def pubsub_shardnumsub(call: Call) -> object:
    """As NUMSUB, for shard channels."""
    return _counts(call, call.server.clients.pubsub.shard_channels)


def _names(call: Call, table: dict[bytes, dict[Session, None]]) -> object:
    argv = call.argv
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"pubsub", argv[1]))
    if len(argv) == 2:
        return list(table)
    glob = Glob(argv[2])
    return [channel for channel in table if glob.matches(channel)]


def _counts(call: Call, table: dict[bytes, dict[Session, None]]) -> object:
    reply: list[object] = []
    for channel in call.argv[2:]:
        reply.append(channel)
        reply.append(len(table.get(channel, ())))
    return reply
