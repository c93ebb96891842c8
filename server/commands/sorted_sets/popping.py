"""Members that are taken from either end: ZPOPMIN, ZPOPMAX, ZMPOP, and those that wait for them."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    COUNT_BELOW_ONE,
    NOT_POSITIVE,
    NUMKEYS_BELOW_ONE,
    SYNTAX,
    CommandError,
)
from headrace.compat.numbers import parse_integer
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NULL_ARRAY, Packed
from headrace.server.commands.shared import drop_empty
from headrace.server.commands.sorted_sets.ranges import (
    GREATEST_POPPED,
    LEAST_POPPED,
    add_members,
    members_reply,
)
from headrace.server.commands.typed_keys import sorted_set_to_change
from headrace.server.dispatch.args import Args, deadline_of_seconds
from headrace.server.dispatch.call import Call
from headrace.server.waiting import ElementOf, Parked
from headrace.storage.sorted_set.runs import span_of
from headrace.storage.sorted_set.sorted_set import SORTED_SET, SortedSet, pairs_of

_ELEMENT: Final = ElementOf(SORTED_SET, SortedSet)


class Popping:
    """Takes members of a key, the least or the greatest first."""

    def __init__(self, call: Call, greatest: bool) -> None:
        self._call: Final = call
        self.greatest: Final = greatest
        self.count = 0

    def take(
        self, key: bytes, value: SortedSet, most: int, counted: bool, verbatim: bool = False
    ) -> list[bytes]:
        """Take up to ``most`` members of a set, and report it; runs of them.

        Args:
            counted: the record has their number, because more than one was asked for.
            verbatim: the record is the request.
        """
        size = value.size()
        self.count = count = min(most, size)
        first = size - count if self.greatest else 0
        taken = value.take(first, first + count)
        call = self._call
        record = call.argv
        if not verbatim:
            record = [b"ZPOPMAX" if self.greatest else b"ZPOPMIN", key]
            if counted:
                record.append(b"%d" % count)
        call.changed(key, GREATEST_POPPED if self.greatest else LEAST_POPPED, record, count)
        drop_empty(call, key, value)
        return taken


def zpopmin(call: Call) -> object:
    """Reply: the members with their scores, the least first."""
    return _pop(call, False)


def zpopmax(call: Call) -> object:
    """Reply: the members with their scores, the greatest first."""
    return _pop(call, True)


def _pop(call: Call, greatest: bool) -> object:
    argv = call.argv
    most = 1
    counted = len(argv) > 2
    if counted:
        if len(argv) > 3:
            raise CommandError(SYNTAX)
        number = parse_integer(argv[2])
        if number is None or number < 0:
            raise CommandError(NOT_POSITIVE)
        most = number
    key = argv[1]
    value = sorted_set_to_change(call, key)
    if value is None or not most:
        return []
    popping = Popping(call, greatest)
    runs = popping.take(key, value, most, counted, verbatim=True)
    resp3 = call.session.resp3
    if counted:
        return members_reply(resp3, span_of(runs), greatest, True)
    out = Packer(resp3)
    add_members(out, span_of(runs), greatest, True, False)
    return out.packed()


class _Wanted:
    """What ZMPOP and BZMPOP ask for: ``numkeys key [key ...] MIN|MAX [COUNT count]``."""

    def __init__(self, argv: list[bytes], at: int) -> None:
        args = Args(argv, at)
        numkeys = parse_integer(args.word())
        if numkeys is None or numkeys < 1:
            raise CommandError(NUMKEYS_BELOW_ONE)
        if args.left <= numkeys:
            raise CommandError(SYNTAX)
        self.keys: Final = [args.word() for _ in range(numkeys)]
        end = args.option()
        if end not in (b"MIN", b"MAX"):
            raise CommandError(SYNTAX)
        self.greatest: Final = end == b"MAX"
        self.most = 0
        while args.left:
            if self.most or args.option() != b"COUNT" or not args.left:
                raise CommandError(SYNTAX)
            most = parse_integer(args.word())
            if most is None or most < 1:
                raise CommandError(COUNT_BELOW_ONE)
            self.most = most
        self.most = self.most or 1

    def pop(self, call: Call) -> Packed | None:
        """Take members of the first key that holds a sorted set; None where none does."""
        for key in self.keys:
            value = sorted_set_to_change(call, key)
            if value is not None:
                popping = Popping(call, self.greatest)
                runs = popping.take(key, value, self.most, True)
                resp3 = call.session.resp3
                out = Packer(resp3)
                out.array(2)
                out.text(key)
                add_members(out, span_of(runs), self.greatest, True, True)
                return out.packed()
        return None


def zmpop(call: Call) -> object:
    """Reply: a key, and members with their scores; nil where there is no such key."""
    reply = _Wanted(call.argv, 1).pop(call)
    return NULL_ARRAY if reply is None else reply


def bzmpop(call: Call) -> object:
    """As ZMPOP, once there is such a key."""
    wanted = _Wanted(call.argv, 2)
    deadline_ms = deadline_of_seconds(call.argv[1], call.now_ms)  # the last that Redis looks at
    reply = wanted.pop(call)
    return _wait(call, wanted.keys, deadline_ms) if reply is None else reply


def bzpopmin(call: Call) -> object:
    """Reply: the key, the member and its score; nil in the end."""
    return _pop_or_wait(call, False)


def bzpopmax(call: Call) -> object:
    """Reply: the key, the member and its score; nil in the end."""
    return _pop_or_wait(call, True)


def _pop_or_wait(call: Call, greatest: bool) -> object:
    keys = call.argv[1:-1]
    deadline_ms = deadline_of_seconds(call.argv[-1], call.now_ms)
    for key in keys:
        value = sorted_set_to_change(call, key)
        if value is not None:
            run = Popping(call, greatest).take(key, value, 1, False)[0]
            member, score = pairs_of(run)[0]
            return [key, member, score]
    return _wait(call, keys, deadline_ms)


def _wait(call: Call, keys: list[bytes], deadline_ms: int) -> object:
    if not call.may_block:
        return NULL_ARRAY
    return Parked(keys, deadline_ms, call.argv, NULL_ARRAY, _ELEMENT)
