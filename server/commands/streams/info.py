"""XINFO: what a stream, its groups and their consumers look like.

Source: t_stream.c, xinfoCommand; what differs from the public pages is decided by the code. A
group's lag is always a number, and ``max-pending`` is told of groups that have a limit.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from headrace.compat import errors
from headrace.compat.errors import CommandError, bad_subcommand, no_such_group
from headrace.compat.stream_ids import write_id
from headrace.protocol.replies import (
    Encoded,
    array_header,
    bulk,
    map_header,
    null,
    write_bulk,
    write_integer,
)
from headrace.server.commands.help import show_help
from headrace.server.commands.streams.args import integer, stream_to_read
from headrace.server.commands.streams.entries import entries_reply, write_entries
from headrace.server.commands.streams.idle_consumers import reclaim_listed
from headrace.server.commands.streams.reading import GREATEST, LEAST
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import (
    LOADING,
    READONLY,
    STALE,
    KeySpec,
    command,
    container,
)
from headrace.storage.stream.groups import NEVER, UNKNOWN, Consumer, Group, by_name, lag
from headrace.storage.stream.nack import Nack
from headrace.storage.stream.part import Part
from headrace.storage.stream.stream import Stream

FULL_ENTRIES: Final = 10
FIGURES: Final = 13  # pairs that tell of any stream
POSITION: Final = 3  # pairs that tell how far a group has come
# Names as they are written.
_LENGTH: Final = bulk(b"length")
_RADIX_TREE_KEYS: Final = bulk(b"radix-tree-keys")
_RADIX_TREE_NODES: Final = bulk(b"radix-tree-nodes")
_LAST_GENERATED_ID: Final = bulk(b"last-generated-id")
_MAX_DELETED_ENTRY_ID: Final = bulk(b"max-deleted-entry-id")
_ENTRIES_ADDED: Final = bulk(b"entries-added")
_RECORDED_FIRST_ENTRY_ID: Final = bulk(b"recorded-first-entry-id")
_IDMP_DURATION: Final = bulk(b"idmp-duration")
_IDMP_MAXSIZE: Final = bulk(b"idmp-maxsize")
_PIDS_TRACKED: Final = bulk(b"pids-tracked")
_IIDS_TRACKED: Final = bulk(b"iids-tracked")
_IIDS_ADDED: Final = bulk(b"iids-added")
_IIDS_DUPLICATES: Final = bulk(b"iids-duplicates")
_GROUPS: Final = bulk(b"groups")
_FIRST_ENTRY: Final = bulk(b"first-entry")
_LAST_ENTRY: Final = bulk(b"last-entry")
_ENTRIES: Final = bulk(b"entries")
_NAME: Final = bulk(b"name")
_CONSUMERS: Final = bulk(b"consumers")
_PENDING: Final = bulk(b"pending")
_LAST_DELIVERED_ID: Final = bulk(b"last-delivered-id")
_ENTRIES_READ: Final = bulk(b"entries-read")
_LAG: Final = bulk(b"lag")
_MAX_PENDING: Final = bulk(b"max-pending")
_PEL_COUNT: Final = bulk(b"pel-count")
_NACKED_COUNT: Final = bulk(b"nacked-count")
_SEEN_TIME: Final = bulk(b"seen-time")
_ACTIVE_TIME: Final = bulk(b"active-time")
_IDLE: Final = bulk(b"idle")
_INACTIVE: Final = bulk(b"inactive")
_NO_IIDS: Final = b":0\r\n".join([_PIDS_TRACKED, _IIDS_TRACKED, _IIDS_ADDED, _IIDS_DUPLICATES, b""])

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
    resp3 = call.session.resp3
    out = BytesWriter()
    out.write(map_header(FIGURES + (2 if full else 3), resp3))
    _write_figures(out, stream)
    if full:
        out.write(_ENTRIES)
        out.write(entries_reply(stream.parts(LEAST, GREATEST, count, False), False).wire)
        out.write(_GROUPS)
        out.write(array_header(len(stream.groups)))
        for group in by_name(stream.groups):
            reclaim_listed(call, argv[2], group)
            _write_full_group(out, stream, group, count, resp3)
    else:
        _write_number(out, _GROUPS, len(stream.groups))
        ms, seq = stream.first_id()
        _write_entry(out, _FIRST_ENTRY, stream.one(ms, seq), resp3)
        ms, seq = stream.last_entry_id()
        _write_entry(out, _LAST_ENTRY, stream.one(ms, seq), resp3)
    return Encoded(out.getvalue())


def _stream_of(call: Call) -> Stream:
    stream = stream_to_read(call, call.argv[2])
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    return stream


def _write_figures(out: BytesWriter, stream: Stream) -> None:
    """Append ``FIGURES`` pairs: what is told of every stream."""
    nodes = stream.node_count()
    first_ms, first_seq = stream.first_id()
    idmp = stream.idmp
    _write_number(out, _LENGTH, stream.length)
    _write_number(out, _RADIX_TREE_KEYS, nodes)
    _write_number(out, _RADIX_TREE_NODES, nodes + 1)
    _write_id(out, _LAST_GENERATED_ID, stream.last_ms, stream.last_seq)
    _write_id(out, _MAX_DELETED_ENTRY_ID, stream.max_deleted_ms, stream.max_deleted_seq)
    _write_number(out, _ENTRIES_ADDED, stream.entries_added)
    _write_id(out, _RECORDED_FIRST_ENTRY_ID, first_ms, first_seq)
    _write_number(out, _IDMP_DURATION, stream.idmp_duration_s)
    _write_number(out, _IDMP_MAXSIZE, stream.idmp_maxsize)
    if idmp is None and not stream.iids_added and not stream.iids_duplicates:
        out.write(_NO_IIDS)
    else:
        _write_number(out, _PIDS_TRACKED, 0 if idmp is None else len(idmp.producers))
        _write_number(out, _IIDS_TRACKED, 0 if idmp is None else idmp.count)
        _write_number(out, _IIDS_ADDED, stream.iids_added)
        _write_number(out, _IIDS_DUPLICATES, stream.iids_duplicates)


def _write_number(out: BytesWriter, name: bytes, number: int) -> None:
    out.write(name)
    write_integer(out, number)


def _write_id(out: BytesWriter, name: bytes, ms: int, seq: int) -> None:
    out.write(name)
    write_id(out, ms, seq)


def _write_text(out: BytesWriter, name: bytes, text: bytes) -> None:
    out.write(name)
    write_bulk(out, text)


def _write_entry(out: BytesWriter, name: bytes, part: Part | None, resp3: bool) -> None:
    out.write(name)
    if part is None:
        out.write(null(resp3))
    else:
        write_entries(out, [part], False)


def _write_position(out: BytesWriter, stream: Stream, group: Group, resp3: bool) -> None:
    """Append ``POSITION`` pairs: how far a group has come."""
    _write_id(out, _LAST_DELIVERED_ID, group.last_ms, group.last_seq)
    out.write(_ENTRIES_READ)
    if group.entries_read == UNKNOWN:
        out.write(null(resp3))
    else:
        write_integer(out, group.entries_read)
    _write_number(out, _LAG, lag(stream, group))


def _modes(group: Group) -> int:
    """How many pairs ``_write_mode`` appends."""
    return 1 if group.max_pending else 0


def _write_mode(out: BytesWriter, group: Group) -> None:
    """Append what was set with XGROUP SETMODE; nothing where that is nothing."""
    if group.max_pending:
        _write_number(out, _MAX_PENDING, group.max_pending)


def _write_full_group(
    out: BytesWriter, stream: Stream, group: Group, count: int, resp3: bool
) -> None:
    out.write(map_header(5 + POSITION + _modes(group), resp3))
    _write_text(out, _NAME, group.name)
    _write_position(out, stream, group, resp3)
    _write_number(out, _PEL_COUNT, group.pel.size)
    _write_number(out, _NACKED_COUNT, group.zone)
    _write_pending(out, group.pel.from_id(0, 0, count), True)
    out.write(_CONSUMERS)
    out.write(array_header(len(group.consumers)))
    for consumer in by_name(group.consumers):
        _write_full_consumer(out, consumer, count, resp3)
    _write_mode(out, group)


def _write_full_consumer(out: BytesWriter, consumer: Consumer, count: int, resp3: bool) -> None:
    out.write(map_header(5, resp3))
    _write_text(out, _NAME, consumer.name)
    _write_number(out, _SEEN_TIME, consumer.seen_ms)
    _write_number(out, _ACTIVE_TIME, consumer.active_ms)
    _write_number(out, _PEL_COUNT, consumer.pel.size)
    _write_pending(out, consumer.pel.from_id(0, 0, count), False)


def _write_pending(out: BytesWriter, nacks: list[Nack], with_owner: bool) -> None:
    out.write(_PENDING)
    out.write(array_header(len(nacks)))
    for nack in nacks:
        out.write(array_header(4 if with_owner else 3))
        write_id(out, nack.ms, nack.seq)
        if with_owner:
            write_bulk(out, b"" if nack.consumer is None else nack.consumer.name)
        write_integer(out, nack.delivery_ms)
        write_integer(out, nack.count)


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
    resp3 = call.session.resp3
    out = BytesWriter()
    out.write(array_header(len(stream.groups)))
    for group in by_name(stream.groups):
        out.write(map_header(3 + POSITION + _modes(group), resp3))
        _write_text(out, _NAME, group.name)
        _write_number(out, _CONSUMERS, len(group.consumers))
        _write_number(out, _PENDING, group.pel.size)
        _write_position(out, stream, group, resp3)
        _write_mode(out, group)
    return Encoded(out.getvalue())


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
    resp3 = call.session.resp3
    out = BytesWriter()
    out.write(array_header(len(group.consumers)))
    for consumer in by_name(group.consumers):
        inactive_ms = NEVER
        if consumer.active_ms != NEVER:
            inactive_ms = max(0, call.now_ms - consumer.active_ms)
        out.write(map_header(4, resp3))
        _write_text(out, _NAME, consumer.name)
        _write_number(out, _PENDING, consumer.pel.size)
        _write_number(out, _IDLE, max(0, call.now_ms - consumer.seen_ms))
        _write_number(out, _INACTIVE, inactive_ms)
    return Encoded(out.getvalue())


command("XINFO|HELP", arity=2, flags=LOADING | STALE, acl=("stream",))(show_help)
