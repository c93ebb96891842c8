"""Taking elements of an end away: LPOP, RPOP, LMPOP."""

from __future__ import annotations

from headrace.compat.errors import NOT_POSITIVE, CommandError, wrong_arity
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.commands.lists.values import Pop, limits, list_to_change, report_pop
from headrace.server.dispatch.call import Call


def lpop(call: Call) -> object:
    """Reply: the element, or with a count a list; nil without a key."""
    return _pop(call, False)


def rpop(call: Call) -> object:
    """Reply: the element, or with a count a list, the last one first; nil without a key."""
    return _pop(call, True)


def _pop(call: Call, right: bool) -> object:
    argv = call.argv
    key = argv[1]
    if len(argv) > 2:
        return _pop_some(call, right)
    value = list_to_change(call, key)
    if value is None:
        return None
    string = value.pop(right, call.server.data.list_limits)
    report_pop(call, key, value, right, argv, 1)
    return string


def _pop_some(call: Call, right: bool) -> object:
    """Source: t_list.c, popGenericCommand: the count is read before the key is looked at."""
    argv = call.argv
    if len(argv) > 3:
        raise CommandError(wrong_arity(call.name()))
    count = parse_integer(argv[2])
    if count is None or count < 0:
        raise CommandError(NOT_POSITIVE)
    value = list_to_change(call, argv[1])
    if value is None:
        return NULL_ARRAY
    count = min(count, value.size())
    if not count:
        return []
    strings = value.pop_some(count, right, limits(call))
    report_pop(call, argv[1], value, right, argv, count)
    return strings


def lmpop(call: Call) -> object:
    """Recorded as LPOP or RPOP of the key.

    Reply: [key, [element, ...]] of the first list there is, or nil.
    """
    popped = Pop(call.argv, 1).run(call)
    return NULL_ARRAY if popped is None else popped
