"""Changes in the middle of a list: LSET, LINSERT, LREM, LTRIM."""

from __future__ import annotations

from headrace.compat.errors import NO_SUCH_KEY, NOT_AN_INTEGER, SYNTAX, CommandError, not_between
from headrace.compat.list_errors import NO_SUCH_INDEX
from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_integer
from headrace.protocol.replies import OK
from headrace.server.commands.collections import drop_empty
from headrace.server.commands.lists.events import INSERTED, REMOVED, SET, TRIMMED
from headrace.server.commands.lists.values import limits, list_to_change
from headrace.server.dispatch.call import Call


def lset(call: Call) -> object:
    """Reply: OK. Source: t_list.c: the index is read behind the key."""
    argv = call.argv
    value = list_to_change(call, argv[1])
    if value is None:
        raise CommandError(NO_SUCH_KEY)
    index = parse_integer(argv[2])
    if index is None:
        raise CommandError(NOT_AN_INTEGER)
    value.expect(argv[3], limits(call))
    size = value.size()
    if index < 0:
        index += size
    if not 0 <= index < size:
        raise CommandError(NO_SUCH_INDEX)
    value.set(index, argv[3], limits(call))
    call.changed(argv[1], SET, argv)
    return OK


def linsert(call: Call) -> object:
    """Reply: how many elements there are; -1 without the pivot, 0 without a key."""
    argv = call.argv
    where = argv[2].upper()
    if where not in (b"BEFORE", b"AFTER"):
        raise CommandError(SYNTAX)
    value = list_to_change(call, argv[1])
    if value is None:
        return 0
    value.expect(argv[4], limits(call))
    found = value.positions(argv[3], value.size(), True, 1, 1)
    if not found:
        return -1
    value.insert(found[0], argv[4], where == b"AFTER", limits(call))
    call.changed(argv[1], INSERTED, argv)
    return value.size()


def lrem(call: Call) -> object:
    """Reply: how many were removed."""
    argv = call.argv
    count = parse_integer(argv[2])
    if count is None:
        raise CommandError(NOT_AN_INTEGER)
    if count == INT64_MIN:
        raise CommandError(not_between(-INT64_MAX, INT64_MAX))
    value = list_to_change(call, argv[1])
    if value is None:
        return 0
    most = min(abs(count), value.size())
    removed = value.remove(argv[3], most, count >= 0, limits(call))
    if removed:
        call.changed(argv[1], REMOVED, argv, removed)
        if value.is_empty():
            drop_empty(call, argv[1], value)
    return removed


def ltrim(call: Call) -> object:
    """Recorded if anything was removed, reported in any case.

    Reply: OK.
    """
    argv = call.argv
    first = parse_integer(argv[2])
    last = parse_integer(argv[3])
    if first is None or last is None:
        raise CommandError(NOT_AN_INTEGER)
    value = list_to_change(call, argv[1])
    if value is None:
        return OK
    size = value.size()
    if first < 0:
        first = max(0, first + size)
    if last < 0:
        last += size
    last = min(last, size - 1)
    kept = max(0, last - first + 1)
    if not kept:
        value.cut(size, 0, limits(call))
    elif kept < size:
        value.cut(first, size - 1 - last, limits(call))
    call.changed(argv[1], TRIMMED, argv if kept < size else None, size - kept)
    if not kept:
        drop_empty(call, argv[1], value)
    return OK
