"""XDELEX and XACKDEL in a region: what they delete is an effect, what they acknowledge is not."""

from __future__ import annotations

from headrace.compat.stream_ids import format_id
from headrace.regions.commands.grouping import note_acknowledged
from headrace.regions.commands.removing import delete_entries, entries_with
from headrace.server.commands.streams.events import PENDING_CHANGED
from headrace.server.dispatch.call import Call
from headrace.storage.stream.groups import Group
from headrace.storage.stream.references import (
    ACKED,
    DELETED,
    DELREF,
    MISSING,
    REFERENCED,
    is_held_back,
    is_referenced,
)
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID


def delete_by_mode(call: Call, key: bytes, stream: Stream, mode: int, ids: list[ID]) -> object:
    """XDELEX of a stream that is there; its reply."""
    reply: list[object] = []
    wanted: list[ID] = []
    for entry_id in ids:
        outcome = _outcome(stream, mode, entry_id, wanted)
        reply.append(outcome)
        if outcome == DELETED:
            wanted.append(entry_id)
    if mode == DELREF:
        _drop_references(call, key, stream, [each for each in ids if each not in wanted])
    if wanted:
        delete_entries(call.server, key, entries_with(stream, wanted), mode == DELREF)
    return reply


def _outcome(stream: Stream, mode: int, entry_id: ID, wanted: list[ID]) -> int:
    """What becomes of an entry; ``wanted`` are to be deleted already."""
    ms, seq = entry_id
    if mode == ACKED and is_referenced(stream, ms, seq):
        return REFERENCED
    return DELETED if entry_id not in wanted and stream.contains(ms, seq) else MISSING


def _drop_references(call: Call, key: bytes, stream: Stream, ids: list[ID]) -> None:
    """Take entries that are not there out of what is pending in any group."""
    for group in stream.groups.values():
        dropped = [format_id(ms, seq) for ms, seq in ids if group.ack(ms, seq)]
        if dropped:
            record = [b"XACK", key, group.name, *dropped]
            call.changed(key, PENDING_CHANGED, record, count=0, wakes=is_held_back(stream))
            note_acknowledged(call, key, stream, group)


def ack_and_delete(
    call: Call, key: bytes, stream: Stream, group: Group, mode: int, ids: list[ID]
) -> object:
    """XACKDEL in a group that is there; its reply."""
    reply: list[object] = []
    acknowledged: list[bytes] = []
    wanted: list[ID] = []
    for entry_id in ids:
        ms, seq = entry_id
        if not group.ack(ms, seq):
            reply.append(MISSING)
            continue
        acknowledged.append(format_id(ms, seq))
        kept = mode == ACKED and is_referenced(stream, ms, seq)
        reply.append(REFERENCED if kept else DELETED)
        if not kept and stream.contains(ms, seq):
            wanted.append(entry_id)
    if acknowledged:
        record = [b"XACK", key, group.name, *acknowledged]
        held_back = is_held_back(stream)
        call.changed(key, PENDING_CHANGED, record, count=len(acknowledged), wakes=held_back)
    if wanted:
        delete_entries(call.server, key, entries_with(stream, wanted), mode == DELREF)
    if acknowledged:
        note_acknowledged(call, key, stream, group)
    return reply
