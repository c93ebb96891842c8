"""The consumer group commands in the spellings of their first specification.

Each runs today's command on the translated request (``compat.group_dialect``), so that there is
one behaviour, one record of it and one set of errors.
"""

from __future__ import annotations

from headrace.compat import group_dialect
from headrace.compat.stream_ids import format_id
from headrace.protocol.replies import OK
from headrace.server.commands.streams.group_reading import xreadgroup
from headrace.server.commands.streams.groups import group_to_use, xgroup_delconsumer, xgroup_destroy
from headrace.server.commands.streams.info import xinfo_consumers
from headrace.server.commands.streams.pending import idle_ms, pending_range, xclaim
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.key_specs import xread_keys
from headrace.server.dispatch.rows import finds_keys


@finds_keys("XREAD-GROUP")
def _read_group_keys(argv: list[bytes]) -> list[int]:
    """The keys of XREAD-GROUP; what has waited is looked at again in today's words."""
    if group_dialect.is_translated(argv):
        return xread_keys(argv)
    return group_dialect.read_group_keys(argv)


def xread_group(call: Call) -> object:
    """Reply: that of XREADGROUP."""
    if not group_dialect.is_translated(call.argv):  # it is when the request has waited
        call.argv = group_dialect.read_group(call.argv)
    return xreadgroup(call)


def xgroup_pending(call: Call) -> object:
    """Reply: the first and the last ID, and how many."""
    group = group_to_use(call, call.argv[2], call.argv[3])[1]
    first = group.pel.first()
    last = group.pel.last()
    if first is None or last is None:
        return [None, None, 0]
    return [format_id(first.ms, first.seq), format_id(last.ms, last.seq), group.pel.size]


def xgroup_get_pending(call: Call) -> object:
    """Reply: list of (ID, consumer, seconds idle, deliveries), in ID order."""
    call.argv = group_dialect.get_pending(call.argv)
    rows: list[object] = []
    for nack in pending_range(call):
        consumer = b"" if nack.consumer is None else nack.consumer.name
        entry_id = format_id(nack.ms, nack.seq)
        idle = idle_ms(nack, call.now_ms)
        rows.append(group_dialect.pending_row(entry_id, consumer, idle, nack.count))
    return rows


def xgroup_claim(call: Call) -> object:
    """Reply: the IDs claimed."""
    call.argv = group_dialect.claim(call.argv)
    return xclaim(call)


def xgroup_consumers(call: Call) -> object:
    """Reply: that of XINFO CONSUMERS."""
    call.argv = group_dialect.consumers(call.argv)
    return xinfo_consumers(call)


def xgroup_del(call: Call) -> object:
    """Reply: 1 where there was such a group, else 0."""
    call.argv = group_dialect.destroy(call.argv)
    return xgroup_destroy(call)


def xgroup_del_consumer(call: Call) -> object:
    """Reply: how many entries it held."""
    call.argv = group_dialect.delete_consumer(call.argv)
    return xgroup_delconsumer(call)


def xgroup_pel(call: Call) -> object:
    """Set one pending entry.

    Reply: OK, or nil where the stream has no such entry.
    """
    call.argv = group_dialect.set_pending(call.argv)
    return OK if group_dialect.was_set(xclaim(call)) else None
