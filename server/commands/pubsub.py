"""Subscribing, publishing, and asking who listens.

A request that subscribes or unsubscribes is answered once for each channel: a message like any
other in form, but in the place of the reply, inside EXEC too.
"""

from __future__ import annotations

from headrace.compat.errors import SSUBSCRIBE_IN_MULTI, CommandError, bad_subcommand
from headrace.compat.glob import Glob
from headrace.protocol.replies import Push, Replies
from headrace.server.clients.session import IN_MULTI, Session
from headrace.server.dispatch.call import Call


def subscribe(call: Call) -> object:
    """Reply: for each channel (subscribe, channel, subscriptions)."""
    replies: list[object] = []
    for channel in call.argv[1:]:
        call.server.clients.pubsub.subscribe(call.session, channel)
        replies.append(Push([b"subscribe", channel, call.session.subscriptions]))
    return Replies(replies)


def psubscribe(call: Call) -> object:
    """Reply: for each pattern (psubscribe, pattern, subscriptions)."""
    replies: list[object] = []
    for pattern in call.argv[1:]:
        call.server.clients.pubsub.subscribe_pattern(call.session, pattern)
        replies.append(Push([b"psubscribe", pattern, call.session.subscriptions]))
    return Replies(replies)


def ssubscribe(call: Call) -> object:
    """Reply: for each (ssubscribe, channel, shard subscriptions).

    It is refused in a transaction, where SUBSCRIBE is not.
    """
    if call.session.special & IN_MULTI:
        raise CommandError(SSUBSCRIBE_IN_MULTI)
    replies: list[object] = []
    for channel in call.argv[1:]:
        call.server.clients.pubsub.subscribe_shard(call.session, channel)
        replies.append(Push([b"ssubscribe", channel, len(call.session.shard_channels)]))
    return Replies(replies)


def unsubscribe(call: Call) -> object:
    """Leave channels, all of them where none is named.

    Reply: for each channel (unsubscribe, channel, subscriptions left); one with a nil channel when
        there was nothing to leave.
    """
    session = call.session
    replies: list[object] = []
    for channel in call.argv[1:] or list(session.channels):
        call.server.clients.pubsub.unsubscribe(session, channel)
        replies.append(Push([b"unsubscribe", channel, session.subscriptions]))
    return Replies(replies or [Push([b"unsubscribe", None, session.subscriptions])])


def punsubscribe(call: Call) -> object:
    """As UNSUBSCRIBE, for patterns."""
    session = call.session
    replies: list[object] = []
    for pattern in call.argv[1:] or list(session.patterns):
        call.server.clients.pubsub.unsubscribe_pattern(session, pattern)
        replies.append(Push([b"punsubscribe", pattern, session.subscriptions]))
    return Replies(replies or [Push([b"punsubscribe", None, session.subscriptions])])


def sunsubscribe(call: Call) -> object:
    """As UNSUBSCRIBE, for shard channels."""
    session = call.session
    replies: list[object] = []
    for channel in call.argv[1:] or list(session.shard_channels):
        call.server.clients.pubsub.unsubscribe_shard(session, channel)
        replies.append(Push([b"sunsubscribe", channel, len(session.shard_channels)]))
    return Replies(replies or [Push([b"sunsubscribe", None, len(session.shard_channels)])])


def publish(call: Call) -> object:
    """Reply: how many times it was delivered."""
    _feed_replicas(call)
    return call.server.clients.pubsub.publish(call.argv[1], call.argv[2])


def spublish(call: Call) -> object:
    """Reply: how many times it was delivered."""
    _feed_replicas(call)
    return call.server.clients.pubsub.publish_shard(call.argv[1], call.argv[2])


def _feed_replicas(call: Call) -> None:
    """Let those who listen at replicas hear it, too."""
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
    """Reply: how many different patterns somebody listens to."""
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
