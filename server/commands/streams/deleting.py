"""Deleting entries with heed to the groups that refer to them: XDELEX, XACKDEL.

Source: t_stream.c; what differs from the public pages is decided by the code.
"""

from __future__ import annotations

from headrace.server.commands.streams.args import (
    mode_and_ids,
    stream_at,
    stream_to_read,
    strict_ids,
)
from headrace.server.commands.streams.events import PENDING_CHANGED, XDELETED
from headrace.server.commands.streams.group_args import refuse_elsewhere
from headrace.server.commands.streams.shared import shared_streams
from headrace.server.dispatch.call import Call
from headrace.storage.stream.references import (
    DELETED,
    DELREF,
    MISSING,
    REFERENCED,
    delete,
    is_held_back,
    pending_count,
)


def xdelex(call: Call) -> object:
    """Reply: for each ID 1 where it was deleted, -1 where there is no such entry, 2 where a group
        still needs it (ACKED).
    Source: xdelexCommand.
    """
    argv = call.argv
    stream = stream_at(call, argv[1])
    mode, texts = mode_and_ids(argv, 2)
    if stream is None:
        return [MISSING] * len(texts)
    ids = strict_ids(texts)
    if call.server.data.region is not None:
        return shared_streams().delete_by_mode(call, argv[1], stream, mode, ids)
    pending = pending_count(stream) if mode == DELREF else 0
    reply: list[object] = []
    deleted = 0
    for ms, seq in ids:
        outcome = delete(stream, ms, seq, mode)
        reply.append(outcome)
        if outcome == DELETED:
            deleted += 1
    freed = mode == DELREF and pending_count(stream) < pending and is_held_back(stream)
    if deleted:
        call.changed(argv[1], XDELETED, argv, count=deleted, wakes=freed)
    elif mode == DELREF and pending_count(stream) < pending:
        # To Redis this is no change, but it must not come back when the record is repeated.
        call.changed(argv[1], PENDING_CHANGED, argv, count=0, wakes=freed)
    return reply


def xackdel(call: Call) -> object:
    """Reply: for each ID 1 where it was acknowledged and deleted, -1 where it was not pending, 2
        where it was acknowledged but another group still needs it (ACKED).
    Source: xackdelCommand.
    """
    argv = call.argv
    stream = stream_to_read(call, argv[1])
    mode, texts = mode_and_ids(argv, 3)
    group = None if stream is None else stream.groups.get(argv[2])
    if stream is None or group is None:
        return [MISSING] * len(texts)
    ids = strict_ids(texts)
    if group.places is not None:
        refuse_elsewhere(call, stream, group)
        return shared_streams().ack_and_delete(call, argv[1], stream, group, mode, ids)
    reply: list[object] = []
    acknowledged = 0
    length = stream.length
    for ms, seq in ids:
        if not group.ack(ms, seq):
            reply.append(MISSING)
            continue
        acknowledged += 1
        kept = delete(stream, ms, seq, mode) == REFERENCED
        reply.append(REFERENCED if kept else DELETED)
    if acknowledged:
        event = XDELETED if stream.length < length else PENDING_CHANGED
        call.changed(argv[1], event, argv, count=acknowledged, wakes=is_held_back(stream))
    return reply
