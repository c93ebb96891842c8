"""The cursor of an array: ARINSERT, ARRING, ARSEEK, ARNEXT, ARLASTITEMS."""

from __future__ import annotations

from headrace.compat.array_errors import BAD_COUNT, BAD_SIZE, INSERT_OVERFLOW, SIZE_NOT_POSITIVE
from headrace.compat.errors import SYNTAX, CommandError, wrong_arity
from headrace.compat.numbers import parse_integer
from headrace.server.commands.arrays.events import CURSOR_SET, INSERTED, PUT_IN_RING
from headrace.server.commands.arrays.values import array_at, changing, created, index_of, number
from headrace.server.dispatch.call import Call
from headrace.storage.array.array import EXHAUSTED, GREATEST, Array


def arinsert(call: Call) -> object:
    """Reply: the index of the last one."""
    argv = call.argv
    key = argv[1]
    array = changing(call, key)
    count = len(argv) - 2
    if array is not None and array.cursor + count - 1 > GREATEST:
        raise CommandError(INSERT_OVERFLOW)
    if array is None:
        array = created(call, key)
    for string in argv[2:]:
        array.put(array.cursor, string)
        array.cursor += 1
    call.changed(key, INSERTED, argv, count=count)
    return number(array.cursor - 1)


def arring(call: Call) -> object:
    """The cursor goes round among the first ``size`` indexes; the last elements before it stay.

    Reply: the index of the last one.
    """
    argv = call.argv
    key = argv[1]
    size = parse_integer(argv[2])
    if size is None:
        raise CommandError(BAD_SIZE)
    if size <= 0:
        raise CommandError(SIZE_NOT_POSITIVE)
    array = changing(call, key)
    if array is None:
        array = created(call, key)
    else:
        _fit_ring(array, size)
    index = 0
    for string in argv[3:]:
        index = array.cursor % size
        array.put(index, string)
        array.cursor = index + 1
    call.changed(key, PUT_IN_RING, argv, count=len(argv) - 3)
    return index


def _fit_ring(array: Array, size: int) -> None:
    """Put the elements before the cursor to the front, in order, if the ring changes its size.

    A ring that grows needs that only if it has gone round: its cursor is within. What lies behind
    a gap, as seen from the cursor, is no part of the ring.
    """
    length = array.length()
    if size == length or (size > length and not 0 < array.cursor < length):
        return
    kept: list[bytes] = []
    index = (array.cursor - 1) % length
    for _ in range(min(size, array.size())):
        string = array.get(index)
        if string is None:
            break
        kept.append(string)
        index = (index - 1) % length
    array.remove_range(0, GREATEST)
    for string in kept:
        index = len(kept) - 1 - array.size()
        array.put(index, string)
    array.cursor = len(kept)


def _before_cursor(array: Array, most: int) -> list[int]:
    """The indexes of the last insertions, the latest first; no more than there are elements.

    Before index 0 comes the last one, because the cursor of a ring has gone round.
    """
    count = min(most, array.size())
    index = array.cursor
    found: list[int] = []
    for _ in range(count):
        index = (index if index > 0 else array.length()) - 1
        found.append(index)
    return found


def arseek(call: Call) -> object:
    """Set the cursor. Reply: 1, or 0 without a key."""
    argv = call.argv
    index = index_of(argv[2], EXHAUSTED)
    array = changing(call, argv[1])
    if array is None:
        return 0
    array.cursor = index
    call.changed(argv[1], CURSOR_SET, argv)
    return 1


def arnext(call: Call) -> object:
    """Reply: the cursor; nil where it is behind the greatest index."""
    array = array_at(call, call.argv[1])
    if array is None:
        return 0
    return None if array.cursor == EXHAUSTED else number(array.cursor)


def arlastitems(call: Call) -> object:
    """Reply: the last elements before the cursor, the oldest first, nil for each gap."""
    argv = call.argv
    count = parse_integer(argv[2])
    if count is None:
        raise CommandError(BAD_COUNT)
    if count <= 0:
        return []
    if len(argv) > 4:
        raise CommandError(wrong_arity(call.name()))
    if len(argv) == 4 and argv[3].upper() != b"REV":
        raise CommandError(SYNTAX)
    array = array_at(call, argv[1])
    if array is None:
        return []
    found: list[object] = [array.get(index) for index in _before_cursor(array, count)]
    if len(argv) == 3:
        found.reverse()
    return found
