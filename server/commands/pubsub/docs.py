"""Documentation of the commands for channels."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_PUBSUB: Final = "pubsub"
_SUBSCRIPTIONS: Final = "O(N) for N subscriptions named"
_ACTIVE: Final = "O(N) for N channels in use, as long as names and pattern are short"

DOCS: Final[dict[str, Doc]] = {
    "psubscribe": Doc(
        _PUBSUB,
        "2.0.0",
        _SUBSCRIPTIONS,
        "Listens to every channel whose name matches a pattern.",
        "pattern...",
    ),
    "publish": Doc(
        _PUBSUB,
        "2.0.0",
        "O(N+M) for N listeners of the channel and M patterns of all clients",
        "Sends a message to a channel.",
        "channel message",
    ),
    "pubsub": Doc(
        _PUBSUB, "2.8.0", "Depends on subcommand.", "Holds the commands about subscriptions."
    ),
    "pubsub|channels": Doc(
        _PUBSUB, "2.8.0", _ACTIVE, "Lists the channels that have listeners.", "[pattern]"
    ),
    "pubsub|help": Doc(_PUBSUB, "6.2.0", "O(1)", "Lists the PUBSUB subcommands."),
    "pubsub|numpat": Doc(_PUBSUB, "2.8.0", "O(1)", "Counts the patterns listened to."),
    "pubsub|numsub": Doc(
        _PUBSUB,
        "2.8.0",
        "O(N) for N channels named",
        "Counts the listeners of channels.",
        "[channel...]",
    ),
    "pubsub|shardchannels": Doc(
        _PUBSUB, "7.0.0", _ACTIVE, "Lists the shard channels that have listeners.", "[pattern]"
    ),
    "pubsub|shardnumsub": Doc(
        _PUBSUB,
        "7.0.0",
        "O(N) for N channels named",
        "Counts the listeners of shard channels.",
        "[shardchannel...]",
    ),
    "punsubscribe": Doc(
        _PUBSUB,
        "2.0.0",
        _SUBSCRIPTIONS,
        "Stops listening to patterns, or to all of them.",
        "[pattern...]",
    ),
    "spublish": Doc(
        _PUBSUB,
        "7.0.0",
        "O(N) for N listeners of the channel",
        "Sends a message to a shard channel.",
        "shardchannel message",
    ),
    "ssubscribe": Doc(
        _PUBSUB, "7.0.0", _SUBSCRIPTIONS, "Listens to shard channels.", "shardchannel..."
    ),
    "subscribe": Doc(_PUBSUB, "2.0.0", _SUBSCRIPTIONS, "Listens to channels.", "channel..."),
    "sunsubscribe": Doc(
        _PUBSUB,
        "7.0.0",
        _SUBSCRIPTIONS,
        "Stops listening to shard channels, or to all of them.",
        "[shardchannel...]",
    ),
    "unsubscribe": Doc(
        _PUBSUB,
        "2.0.0",
        _SUBSCRIPTIONS,
        "Stops listening to channels, or to all of them.",
        "[channel...]",
    ),
}
