"""Elements by index: ARSET, ARMSET, ARGET, ARMGET, ARDEL, ARDELRANGE."""

from __future__ import annotations

from headrace.compat.array_errors import INDEX_OVERFLOW
from headrace.compat.errors import CommandError, wrong_arity
from headrace.server.commands.arrays.events import RANGE_REMOVED, REMOVED, SET, SEVERAL_SET
from headrace.server.commands.arrays.values import array_at, changing, created, index_of
from headrace.server.commands.collections import drop_empty
from headrace.server.dispatch.call import Call
from headrace.storage.array.array import GREATEST


def arset(call: Call) -> object:
    """Set elements next to each other. Reply: how many there were not before."""
    argv = call.argv
    key = argv[1]
    index = index_of(argv[2])
    if index + len(argv) - 4 > GREATEST:
        raise CommandError(INDEX_OVERFLOW)
    array = changing(call, key)
    if array is None:
        array = created(call, key)
    fresh = 0
    for string in argv[3:]:
        fresh += array.put(index, string)
        index += 1
    call.changed(key, SET, argv, count=len(argv) - 3)
    return fresh


def armset(call: Call) -> object:
    """Set elements anywhere. Reply: how many there were not before."""
    argv = call.argv
    key = argv[1]
    if len(argv) % 2:
        raise CommandError(wrong_arity(call.name()))
    indexes = [index_of(word) for word in argv[2::2]]
    array = changing(call, key)
    if array is None:
        array = created(call, key)
    fresh = 0
    for place, index in enumerate(indexes):
        fresh += array.put(index, argv[3 + 2 * place])
    call.changed(key, SEVERAL_SET, argv, count=len(indexes))
    return fresh


def arget(call: Call) -> object:
    """Reply: the element, or nil."""
    array = array_at(call, call.argv[1])
    index = index_of(call.argv[2])
    return None if array is None else array.get(index)


def armget(call: Call) -> object:
    """Reply: the elements in the order asked for, nil for each that is not there."""
    array = array_at(call, call.argv[1])
    indexes = [index_of(word) for word in call.argv[2:]]
    found: list[object] = [None if array is None else array.get(index) for index in indexes]
    return found


def ardel(call: Call) -> object:
    """Reply: how many were there."""
    argv = call.argv
    key = argv[1]
    indexes = [index_of(word) for word in argv[2:]]
    array = changing(call, key)
    if array is None:
        return 0
    removed = 0
    for index in indexes:
        removed += array.remove(index)
    if removed:
        call.changed(key, REMOVED, argv, count=removed)
        drop_empty(call, key, array)
    return removed


def ardelrange(call: Call) -> object:
    """Both ends of a range go, too, and either may stand first. Reply: how many were there."""
    argv = call.argv
    key = argv[1]
    if len(argv) % 2:
        raise CommandError(wrong_arity(call.name()))
    bounds = [index_of(word) for word in argv[2:]]
    array = changing(call, key)
    if array is None:
        return 0
    removed = 0
    for place in range(0, len(bounds), 2):
        start, end = bounds[place], bounds[place + 1]
        removed += array.remove_range(min(start, end), max(start, end))
    if removed:
        call.changed(key, RANGE_REMOVED, argv, count=removed)
        drop_empty(call, key, array)
    return removed
