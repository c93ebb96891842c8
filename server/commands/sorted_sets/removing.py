"""Members that go: ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX."""

from __future__ import annotations

from headrace.server.changes.events import Event
from headrace.server.commands.sorted_set_keys import drop_if_empty, sorted_set_to_change
from headrace.server.commands.sorted_sets.bounds import BY_NAME, BY_RANK, BY_SCORE, Bounds
from headrace.server.commands.sorted_sets.events import (
    NAMES_REMOVED,
    RANKS_REMOVED,
    REMOVED,
    SCORES_REMOVED,
)
from headrace.server.dispatch.call import Call


def zrem(call: Call) -> object:
    """Reply: how many members were there."""
    argv = call.argv
    key = argv[1]
    value = sorted_set_to_change(call, key)
    if value is None:
        return 0
    removed = 0
    for member in argv[2:]:
        if value.remove(member):
            removed += 1
    if removed:
        call.changed(key, REMOVED, argv, removed)
        drop_if_empty(call, key, value)
    return removed


def zremrangebyrank(call: Call) -> object:
    """Reply: how many members were there."""
    return _remove_range(call, BY_RANK, RANKS_REMOVED)


def zremrangebyscore(call: Call) -> object:
    """Reply: how many members were there."""
    return _remove_range(call, BY_SCORE, SCORES_REMOVED)


def zremrangebylex(call: Call) -> object:
    """Reply: how many members were there."""
    return _remove_range(call, BY_NAME, NAMES_REMOVED)


def _remove_range(call: Call, kind: int, event: Event) -> int:
    argv = call.argv
    key = argv[1]
    bounds = Bounds(kind, argv[2], argv[3], False)
    value = sorted_set_to_change(call, key)
    if value is None:
        return 0
    first, end = bounds.ranks(value)
    if first >= end:
        return 0
    value.take(first, end)
    removed = int(end - first)
    call.changed(key, event, argv, removed)
    drop_if_empty(call, key, value)
    return removed
