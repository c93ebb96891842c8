"""Several sets: SINTER, SUNION, SDIFF, what stores their results, and what counts them."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import SYNTAX, CommandError
from headrace.compat.numbers import INT64_MAX, parse_integer
from headrace.compat.set_errors import LIMIT_NEGATIVE, NUMKEYS_NOT_POSITIVE, TOO_MANY_KEYS
from headrace.server.changes.events import Event
from headrace.server.commands.collections import store_result
from headrace.server.commands.sets.events import (
    DIFFERENCE_STORED,
    INTERSECTION_STORED,
    UNION_STORED,
)
from headrace.server.commands.sets.values import all_members, members_reply, set_at, set_limits
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.packed.strings import unpack
from headrace.storage.set.combining import (
    difference,
    intersection,
    present,
    stored_difference,
    union,
)
from headrace.storage.set.set import Set, set_of
from headrace.storage.string.hyperloglog.sketch import Union

_ALL: Final = INT64_MAX


def _sets(call: Call, keys: list[bytes]) -> list[Set | None]:
    """The sets of these keys; raises WRONGTYPE if any holds something else."""
    return [set_at(call, key) for key in keys]


def sinter(call: Call) -> object:
    """Reply: the members that all sets have."""
    sets = _sets(call, call.argv[1:])
    if len(sets) == 1:
        return all_members(call, sets[0])
    return members_reply(call, intersection(sets, _ALL))


def sunion(call: Call) -> object:
    """Reply: the members that any of the sets has."""
    sets = _sets(call, call.argv[1:])
    there = present(sets)
    if len(there) < 2:
        return all_members(call, there[0] if there else None)
    return members_reply(call, union(sets, _ALL))


def sdiff(call: Call) -> object:
    """Reply: the members of the first set that no other one has."""
    return members_reply(call, difference(_sets(call, call.argv[1:])))


def sinterstore(call: Call) -> object:
    """Reply: how many members the result has; without any the destination is deleted."""
    members = intersection(_sets(call, call.argv[2:]), _ALL)
    return _store(call, set_of(members, set_limits(call.server.config)), INTERSECTION_STORED)


def sunionstore(call: Call) -> object:
    """Reply: how many members the result has; without any the destination is deleted."""
    made = Set()
    limits = set_limits(call.server.config)
    for each in present(_sets(call, call.argv[2:])):
        for member in each.members():
            made.add(member, limits)
    return _store(call, made, UNION_STORED)


def sdiffstore(call: Call) -> object:
    """Reply: how many members the result has; without any the destination is deleted."""
    sets = _sets(call, call.argv[2:])
    made = stored_difference(sets, set_limits(call.server.config))
    return _store(call, made, DIFFERENCE_STORED)


def _store(call: Call, made: Set, event: Event) -> int:
    store_result(call, call.argv[1], made, event, call.argv)
    return made.size()


def sintercard(call: Call) -> object:
    """Reply: how many members all sets have, up to the limit."""
    request = _CountRequest(call, False)
    sets = _sets(call, request.keys)
    if len(sets) == 1:
        return 0 if sets[0] is None else min(sets[0].size(), request.limit)
    return len(intersection(sets, request.limit))


def sunioncard(call: Call) -> object:
    """With APPROX, PFCOUNT's estimate.

    Reply: how many members any of the sets has, up to the limit.
    """
    request = _CountRequest(call, True)
    sets = _sets(call, request.keys)
    there = present(sets)
    if request.approx:
        count = _estimate(there)
    elif len(there) == 1:
        count = there[0].size()
    else:
        count = len(union(sets, request.limit))
    return min(count, request.limit)


def _estimate(sets: list[Set]) -> int:
    """About how many members the sets have, which takes as much memory however many it is."""
    seen = Union()
    for each in sets:
        for piece in each.pieces():
            seen.see(unpack(piece))
    return seen.estimate()


def sdiffcard(call: Call) -> object:
    """Reply: how many members of the first set no other one has, up to the limit."""
    request = _CountRequest(call, False)
    return min(len(difference(_sets(call, request.keys))), request.limit)


class _CountRequest:
    """``numkeys key [key ...] [APPROX] [LIMIT limit]``.

    Args:
        approx: the command knows APPROX.
    """

    def __init__(self, call: Call, approx: bool) -> None:
        args = Args(call.argv)
        count = parse_integer(args.word())
        if count is None or count < 1:
            raise CommandError(NUMKEYS_NOT_POSITIVE)
        if count > args.left:
            raise CommandError(TOO_MANY_KEYS)
        self.keys: Final = call.argv[2 : 2 + count]
        self.approx = False
        self.limit = _ALL
        args.at += count
        while args.left:
            option = args.option()
            if option == b"LIMIT" and args.left:
                self.limit = args.integer(LIMIT_NEGATIVE)
                if self.limit < 0:
                    raise CommandError(LIMIT_NEGATIVE)
                self.limit = self.limit or _ALL
            elif option == b"APPROX" and approx:
                self.approx = True
            else:
                raise CommandError(SYNTAX)
