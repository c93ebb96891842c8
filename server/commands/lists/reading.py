"""Reading lists: LLEN, LINDEX, LRANGE, LPOS."""

from __future__ import annotations

from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, CommandError, not_between
from headrace.compat.list_errors import COUNT_BELOW_ZERO, MAXLEN_BELOW_ZERO, RANK_ZERO
from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_integer
from headrace.protocol.packing import packed_strings
from headrace.server.commands.lists.values import list_at, range_of
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call


def llen(call: Call) -> object:
    """Reply: how many elements there are; 0 without a key."""
    value = list_at(call, call.argv[1])
    return 0 if value is None else value.size()


def lindex(call: Call) -> object:
    """Reply: the element, or nil. Source: t_list.c: the index is read behind the key."""
    value = list_at(call, call.argv[1])
    if value is None:
        return None
    index = parse_integer(call.argv[2])
    if index is None:
        raise CommandError(NOT_AN_INTEGER)
    size = value.size()
    if index < 0:
        index += size
    return value.get(index) if 0 <= index < size else None


def lrange(call: Call) -> object:
    """Both ends are included, negative ones are counted from the end of the list.

    Reply: list of the elements.
    """
    first = parse_integer(call.argv[2])
    last = parse_integer(call.argv[3])
    if first is None or last is None:
        raise CommandError(NOT_AN_INTEGER)
    value = list_at(call, call.argv[1])
    if value is None:
        return []
    start, count = range_of(first, last, value.length())
    return packed_strings(int(count), value.packed(start, count)) if count else []


def lpos(call: Call) -> object:
    """Reply: the index of an equal element or nil; with COUNT a list of indexes."""
    argv = call.argv
    rank = 1
    count = -1
    limit = 0
    args = Args(argv, 3)
    while args.left:
        option = args.option()
        if not args.left:
            raise CommandError(SYNTAX)
        if option == b"RANK":
            rank = args.integer()
            if rank == INT64_MIN:
                raise CommandError(not_between(-INT64_MAX, INT64_MAX))
            if not rank:
                raise CommandError(RANK_ZERO)
        elif option == b"COUNT":
            count = _not_negative(args, COUNT_BELOW_ZERO)
        elif option == b"MAXLEN":
            limit = _not_negative(args, MAXLEN_BELOW_ZERO)
        else:
            raise CommandError(SYNTAX)
    value = list_at(call, argv[1])
    if value is None:
        return None if count < 0 else []
    size = value.size()
    limit = min(limit, size) if limit else size
    most = 1 if count < 0 else min(count, size)
    found = value.positions(argv[2], limit, rank > 0, min(abs(rank), size + 1), most)
    if count >= 0:
        return found
    return found[0] if found else None


def _not_negative(args: Args, error: bytes) -> int:
    number = args.integer(error)
    if number < 0:
        raise CommandError(error)
    return number
