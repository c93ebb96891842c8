"""XINFO: what a stream, its groups and their consumers look like.

Source: t_stream.c, xinfoCommand; what differs from the public pages is decided by the code. A
group's lag is always a number, and ``max-pending`` is told of groups that have a limit.
"""

from __future__ import annotations

from typing import Final

from compat import errors
from compat.errors import CommandError, bad_subcommand, no_such_group
from compat.stream_ids import format_id
from protocol.replies import Encoded, Map
from server.call import Call
from server.commands.help import show_help
from server.commands.streams_read import GREATEST, LEAST
from server.entries import entries_reply
from server.idle_consumers import reclaim_listed
from server.registry import LOADING, READONLY, STALE, KeySpec, command, container
from server.stream_args import integer, stream_to_read
from storage.stream.groups import NEVER, UNKNOWN, Consumer, Group, lag
from storage.stream.stream import Stream

FULL_ENTRIES: Final = 10

Pairs = list[tuple[object, object]]

container("XINFO")


@command(
    "XINFO|STREAM",
    arity=-3,
    flags=READONLY,
    keys=(KeySpec("RO ACCESS", begin=2),),
    acl=("stream",),
)
def xinfo_stream(call: Call) -> object:
    """``XINFO STREAM key [FULL [COUNT n]]``. Reply: a map of figures, and entries.

    Complexity: O(1), with FULL O(answer). Source: xinfoReplyWithStreamInfo.
    """
    argv = call.argv
    stream = _stream_of(call)
    full = False
    count = FULL_ENTRIES
    if len(argv) > 3:
        if argv[3].lower() != b"full" or len(argv) not in (4, 6):
            raise CommandError(bad_subcommand(b"xinfo", argv[1]))
        full = True
        if len(argv) == 6:
            if argv[4].lower() != b"count":
                raise CommandError(bad_subcommand(b"xinfo", argv[1]))
            count = integer(argv[5])
            if count < 0:
                count = FULL_ENTRIES
    pairs = _figures(stream)
    if full:
        pairs.append(
            (b"entries", entries_reply(stream.parts(LEAST, GREATEST, count, False), False))
        )
        groups: list[object] = []
        for name in sorted(stream.groups):
            group = stream.groups[name]
            reclaim_listed(call, argv[2], group)
            groups.append(_full_group(stream, group, count))
        pairs.append((b"groups", groups))
    else:
        pairs.append((b"groups", len(stream.groups)))
        pairs.append((b"first-entry", _one_entry(stream, False)))
        pairs.append((b"last-entry", _one_entry(stream, True)))
    return Map(pairs)


def _stream_of(call: Call) -> Stream:
    stream = stream_to_read(call, call.argv[2])
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    return stream


def _figures(stream: Stream) -> Pairs:
    nodes = stream.node_count()
    return [
        (b"length", stream.length),
        (b"radix-tree-keys", nodes),
        (b"radix-tree-nodes", nodes + 1),
        (b"last-generated-id", format_id(stream.last_ms, stream.last_seq)),
        (b"max-deleted-entry-id", format_id(stream.max_deleted_ms, stream.max_deleted_seq)),
        (b"entries-added", stream.entries_added),
        (b"recorded-first-entry-id", format_id(*stream.first_id())),
        (b"idmp-duration", stream.idmp_duration_s),
        (b"idmp-maxsize", stream.idmp_maxsize),
        (b"pids-tracked", 0 if stream.idmp is None else len(stream.idmp.producers)),
        (b"iids-tracked", 0 if stream.idmp is None else stream.idmp.count),
        (b"iids-added", stream.iids_added),
        (b"iids-duplicates", stream.iids_duplicates),
    ]


def _one_entry(stream: Stream, last: bool) -> object:
    parts = stream.parts(LEAST, GREATEST, 1, last)
    if not parts:
        return None
    return Encoded(entries_reply(parts, last).wire[len(b"*1\r\n") :])


def _position(stream: Stream, group: Group) -> Pairs:
    """How far a group has come."""
    entries_read = None if group.entries_read == UNKNOWN else group.entries_read
    return [
        (b"last-delivered-id", format_id(group.last_ms, group.last_seq)),
        (b"entries-read", entries_read),
        (b"lag", lag(stream, group)),
    ]


def _mode(group: Group) -> Pairs:
    """What was set with XGROUP SETMODE; nothing where that is nothing."""
    return [(b"max-pending", group.max_pending)] if group.max_pending else []


def _full_group(stream: Stream, group: Group, count: int) -> Map:
    pending: list[object] = []
    for nack in group.pel.from_id(0, 0, count):
        owner = b"" if nack.consumer is None else nack.consumer.name
        pending.append([format_id(nack.ms, nack.seq), owner, nack.delivery_ms, nack.count])
    consumers: list[object] = []
    for consumer in group.sorted_consumers():
        consumers.append(_full_consumer(consumer, count))
    return Map(
        [
            (b"name", group.name),
            *_position(stream, group),
            (b"pel-count", group.pel.size),
            (b"nacked-count", group.zone),
            (b"pending", pending),
            (b"consumers", consumers),
            *_mode(group),
        ]
    )


def _full_consumer(consumer: Consumer, count: int) -> Map:
    pending: list[object] = []
    for nack in consumer.pel.from_id(0, 0, count):
        pending.append([format_id(nack.ms, nack.seq), nack.delivery_ms, nack.count])
    return Map(
        [
            (b"name", consumer.name),
            (b"seen-time", consumer.seen_ms),
            (b"active-time", consumer.active_ms),
            (b"pel-count", consumer.pel.size),
            (b"pending", pending),
        ]
    )


@command(
    "XINFO|GROUPS",
    arity=3,
    flags=READONLY,
    keys=(KeySpec("RO ACCESS", begin=2),),
    acl=("stream",),
)
def xinfo_groups(call: Call) -> object:
    """``XINFO GROUPS key``. Reply: a map for each group, in byte order of their names.

    Complexity: O(log n) for each group.
    """
    stream = _stream_of(call)
    groups: list[object] = []
    for name in sorted(stream.groups):
        group = stream.groups[name]
        groups.append(
            Map(
                [
                    (b"name", name),
                    (b"consumers", len(group.consumers)),
                    (b"pending", group.pel.size),
                    *_position(stream, group),
                    *_mode(group),
                ]
            )
        )
    return groups


@command(
    "XINFO|CONSUMERS",
    arity=4,
    flags=READONLY,
    keys=(KeySpec("RO ACCESS", begin=2),),
    acl=("stream",),
    tips=("nondeterministic_output",),
)
def xinfo_consumers(call: Call) -> object:
    """``XINFO CONSUMERS key group``. Reply: a map for each, in byte order of their names.

    Complexity: O(consumers).
    """
    key = call.argv[2]
    stream = _stream_of(call)
    group = stream.groups.get(call.argv[3])
    if group is None:
        raise CommandError(no_such_group(call.argv[3], key))
    reclaim_listed(call, key, group)
    consumers: list[object] = []
    for consumer in group.sorted_consumers():
        inactive_ms = NEVER
        if consumer.active_ms != NEVER:
            inactive_ms = max(0, call.now_ms - consumer.active_ms)
        consumers.append(
            Map(
                [
                    (b"name", consumer.name),
                    (b"pending", consumer.pel.size),
                    (b"idle", max(0, call.now_ms - consumer.seen_ms)),
                    (b"inactive", inactive_ms),
                ]
            )
        )
    return consumers


command("XINFO|HELP", arity=2, flags=LOADING | STALE, acl=("stream",))(show_help)
