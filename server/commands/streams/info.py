"""XINFO: figures of a stream, its groups and their consumers.

Source: t_stream.c, xinfoCommand; what differs from the public pages is decided by the code. A
group's lag is always a number, and ``max-pending`` is shown for groups that have a limit.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import group_dialect
from headrace.compat.errors import CommandError, bad_subcommand, no_such_group
from headrace.protocol.packing import Constant, Packer
from headrace.server.commands.streams.args import add_entries, add_entries_array, there
from headrace.server.commands.streams.reading import GREATEST, LEAST
from headrace.server.commands.streams.shared import (
    LANE_FIGURES,
    POLICY_FIGURES,
    policies,
    shared_streams,
)
from headrace.server.commands.typed_keys import stream_at
from headrace.server.dispatch.args import integer
from headrace.server.dispatch.call import Call
from headrace.storage.sharing import Replicated
from headrace.storage.stream.groups import NEVER, UNKNOWN, Consumer, Group, by_name, lag
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.stream import Stream

FULL_ENTRIES: Final = 10
FIGURES: Final = 13  # pairs that every stream has
POSITION: Final = 3  # pairs that say how far a group has come
# The names of the figures.
_GROUPS: Final = Constant(b"groups")
_FIRST_ENTRY: Final = Constant(b"first-entry")
_LAST_ENTRY: Final = Constant(b"last-entry")
_LENGTH: Final = Constant(b"length")
_RADIX_TREE_KEYS: Final = Constant(b"radix-tree-keys")
_RADIX_TREE_NODES: Final = Constant(b"radix-tree-nodes")
_LAST_GENERATED_ID: Final = Constant(b"last-generated-id")
_MAX_DELETED_ENTRY_ID: Final = Constant(b"max-deleted-entry-id")
_ENTRIES_ADDED: Final = Constant(b"entries-added")
_RECORDED_FIRST_ENTRY_ID: Final = Constant(b"recorded-first-entry-id")
_IDMP_DURATION: Final = Constant(b"idmp-duration")
_IDMP_MAXSIZE: Final = Constant(b"idmp-maxsize")
_PIDS_TRACKED: Final = Constant(b"pids-tracked")
_IIDS_TRACKED: Final = Constant(b"iids-tracked")
_IIDS_ADDED: Final = Constant(b"iids-added")
_IIDS_DUPLICATES: Final = Constant(b"iids-duplicates")
_LAST_DELIVERED_ID: Final = Constant(b"last-delivered-id")
_LAG: Final = Constant(b"lag")
_MAX_PENDING: Final = Constant(b"max-pending")
_NAME: Final = Constant(b"name")
_PEL_COUNT: Final = Constant(b"pel-count")
_NACKED_COUNT: Final = Constant(b"nacked-count")
_SEEN_TIME: Final = Constant(b"seen-time")
_ACTIVE_TIME: Final = Constant(b"active-time")
_CONSUMERS: Final = Constant(b"consumers")
_PENDING: Final = Constant(b"pending")
_IDLE: Final = Constant(b"idle")
_INACTIVE: Final = Constant(b"inactive")
_ENTRIES: Final = Constant(b"entries")
_ENTRIES_READ: Final = Constant(b"entries-read")


def xinfo_stream(call: Call) -> object:
    """Reply: a map of figures, and entries. Source: xinfoReplyWithStreamInfo."""
    argv = call.argv
    stream = there(stream_at(call, call.argv[2]))
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
    out = Packer(call.session.resp3)
    is_shared = isinstance(stream, Replicated)
    out.map(FIGURES + (2 if full else 3) + (LANE_FIGURES if is_shared else 0))
    _add_figures(out, stream)
    if is_shared:
        shared_streams().add_lanes(out, call.server, stream)
    if full:
        out.constant(_ENTRIES)
        add_entries_array(out, stream.parts(LEAST, GREATEST, count, False), False)
        out.constant(_GROUPS)
        out.array(len(stream.groups))
        for group in _attended(call, stream, True):
            _add_full_group(out, call, stream, group, count)
    else:
        _add_number(out, _GROUPS, len(stream.groups))
        ms, seq = stream.first_id()
        _add_entry(out, _FIRST_ENTRY, stream.one(ms, seq))
        ms, seq = stream.last_entry_id()
        _add_entry(out, _LAST_ENTRY, stream.one(ms, seq))
    return out.packed()


def _add_figures(out: Packer, stream: Stream) -> None:
    nodes = stream.node_count()
    first_ms, first_seq = stream.first_id()
    idmp = stream.idmp
    _add_number(out, _LENGTH, stream.length)
    _add_number(out, _RADIX_TREE_KEYS, nodes)
    _add_number(out, _RADIX_TREE_NODES, nodes + 1)
    _add_id(out, _LAST_GENERATED_ID, stream.last_ms, stream.last_seq)
    _add_id(out, _MAX_DELETED_ENTRY_ID, stream.max_deleted_ms, stream.max_deleted_seq)
    _add_number(out, _ENTRIES_ADDED, stream.entries_added)
    _add_id(out, _RECORDED_FIRST_ENTRY_ID, first_ms, first_seq)
    _add_number(out, _IDMP_DURATION, stream.idmp_duration_s)
    _add_number(out, _IDMP_MAXSIZE, stream.idmp_maxsize)
    _add_number(out, _PIDS_TRACKED, 0 if idmp is None else len(idmp.producers))
    _add_number(out, _IIDS_TRACKED, 0 if idmp is None else idmp.count)
    _add_number(out, _IIDS_ADDED, stream.iids_added)
    _add_number(out, _IIDS_DUPLICATES, stream.iids_duplicates)


def _add_number(out: Packer, name: Constant, number: int) -> None:
    out.constant(name)
    out.number(number)


def _add_id(out: Packer, name: Constant, ms: int, seq: int) -> None:
    out.constant(name)
    out.id(ms, seq)


def _add_text(out: Packer, name: Constant, text: bytes) -> None:
    out.constant(name)
    out.text(text)


def _add_entry(out: Packer, name: Constant, part: Part | None) -> None:
    out.constant(name)
    if part is None:
        out.null()
    else:
        add_entries(out, [part], False)


def _add_position(out: Packer, stream: Stream, group: Group) -> None:
    _add_id(out, _LAST_DELIVERED_ID, group.last_ms, group.last_seq)
    out.constant(_ENTRIES_READ)
    if group.entries_read == UNKNOWN:
        out.null()
    else:
        out.number(group.entries_read)
    undelivered = 0 if group.rules is None else group.rules.undelivered
    _add_number(out, _LAG, lag(stream, group) + undelivered)


def _modes(group: Group) -> int:
    modes = (1 if group.max_pending else 0) + (2 if group.places is not None else 0)
    return modes if group.rules is None else modes + POLICY_FIGURES


def _add_mode(out: Packer, call: Call, stream: Stream, group: Group) -> None:
    if group.max_pending:
        _add_number(out, _MAX_PENDING, group.max_pending)
    if group.places is not None:
        shared_streams().add_places(out, group)
    if group.rules is not None:
        policies().add_figures(out, stream, group, call.now_ms)


def _attended(call: Call, stream: Stream, full: bool) -> list[Group]:
    """Return the groups in byte order of their names, with the rules that hold now."""
    groups = by_name(stream.groups)
    if call.server.policies is not None:
        for group in groups:
            policies().attend(call, call.argv[2], stream, group)
            if full:
                policies().list_consumers(call, call.argv[2], group)
    return groups


def _add_full_group(out: Packer, call: Call, stream: Stream, group: Group, count: int) -> None:
    out.map(5 + POSITION + _modes(group))
    _add_text(out, _NAME, group.name)
    _add_position(out, stream, group)
    _add_number(out, _PEL_COUNT, group.pel.size)
    _add_number(out, _NACKED_COUNT, group.zone)
    _add_pending(out, group.pel.from_id(0, 0, count), True)
    out.constant(_CONSUMERS)
    out.array(len(group.consumers))
    for consumer in by_name(group.consumers):
        _add_full_consumer(out, consumer, count)
    _add_mode(out, call, stream, group)


def _add_full_consumer(out: Packer, consumer: Consumer, count: int) -> None:
    out.map(5)
    _add_text(out, _NAME, consumer.name)
    _add_number(out, _SEEN_TIME, consumer.seen_ms)
    _add_number(out, _ACTIVE_TIME, consumer.active_ms)
    _add_number(out, _PEL_COUNT, consumer.pel.size)
    _add_pending(out, consumer.pel.from_id(0, 0, count), False)


def _add_pending(out: Packer, nacks: list[Nack], with_owner: bool) -> None:
    out.constant(_PENDING)
    out.array(len(nacks))
    for nack in nacks:
        out.array(4 if with_owner else 3)
        out.id(nack.ms, nack.seq)
        if with_owner:
            out.text(b"" if nack.consumer is None else nack.consumer.name)
        out.number(0 if nack.consumer is None else nack.delivery_ms)
        out.number(nack.count)


def xinfo_groups(call: Call) -> object:
    """Reply: a map for each group, in byte order of their names."""
    stream = there(stream_at(call, call.argv[2]))
    out = Packer(call.session.resp3)
    out.array(len(stream.groups))
    for group in _attended(call, stream, False):
        undelivered = 0 if group.rules is None else group.rules.undelivered
        out.map(3 + POSITION + _modes(group))
        _add_text(out, _NAME, group.name)
        _add_number(out, _CONSUMERS, len(group.consumers))
        _add_number(out, _PENDING, group.pel.size - undelivered)
        _add_position(out, stream, group)
        _add_mode(out, call, stream, group)
    return out.packed()


def xinfo_consumers(call: Call) -> object:
    """Reply: a map for each, in byte order of their names."""
    key = call.argv[2]
    stream = there(stream_at(call, call.argv[2]))
    group = stream.groups.get(call.argv[3])
    if group is None:
        raise CommandError(no_such_group(call.argv[3], key))
    if call.server.policies is not None:
        policies().list_consumers(call, key, group)
    out = Packer(call.session.resp3)
    out.array(len(group.consumers))
    for consumer in by_name(group.consumers):
        inactive_ms = NEVER
        if consumer.active_ms != NEVER:
            inactive_ms = max(0, call.now_ms - consumer.active_ms)
        out.map(4)
        _add_text(out, _NAME, consumer.name)
        _add_number(out, _PENDING, consumer.pel.size)
        _add_number(out, _IDLE, max(0, call.now_ms - consumer.seen_ms))
        _add_number(out, _INACTIVE, inactive_ms)
    return out.packed()


def xgroup_consumers(call: Call) -> object:
    """Reply: that of XINFO CONSUMERS."""
    call.argv = group_dialect.consumers(call.argv)
    return xinfo_consumers(call)
