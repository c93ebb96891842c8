"""Moving elements from one list to another: LMOVE, RPOPLPUSH, LMOVEM."""

from __future__ import annotations

from headrace.compat.errors import SYNTAX, CommandError
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.commands.lists.events import popped, pushed
from headrace.server.commands.lists.values import (
    is_right,
    limits,
    list_to_change,
    positive,
    report_pop,
)
from headrace.server.dispatch.call import Call
from headrace.storage.list.list import List


def lmove(call: Call) -> object:
    """Reply: the element, or nil without a source."""
    argv = call.argv
    from_right = is_right(argv[3])
    to_right = is_right(argv[4])
    source = list_to_change(call, argv[1])
    if source is None:
        return None
    return move(call, source, from_right, to_right, argv)


def rpoplpush(call: Call) -> object:
    """Reply: the element, or nil without a source."""
    source = list_to_change(call, call.argv[1])
    if source is None:
        return None
    return move(call, source, True, False, call.argv)


def move(call: Call, source: List, from_right: bool, to_right: bool, record: list[bytes]) -> object:
    """Move one element from the first key of a request, which holds ``source``, to the second.

    Both may be the same. The push is reported before the pop, as Redis does.

    Reply: the element.
    """
    key, target_key = call.argv[1], call.argv[2]
    target = _target(call, target_key)
    bounds = limits(call)
    string = source.take(from_right)
    target.push([string], 0, to_right, bounds)
    source.shrink(bounds)
    call.changed(target_key, pushed(to_right), record)
    report_pop(call, key, source, from_right, None, 0)
    return string


def _target(call: Call, key: bytes) -> List:
    """The list that elements are moved to, which may be a new one."""
    target = list_to_change(call, key)
    if target is None:
        target = List()
        call.put(key, target)
    return target


class Batch:
    """``[COUNT|EXACTLY count OBO|BULK]``: how many elements are moved, and in which order.

    Args:
        at: where that stands.

    Attributes:
        one_by_one: each is pushed before the next one, so pushes at the left turn them round.

    Raises: CommandError.
    """

    def __init__(self, argv: list[bytes], at: int) -> None:
        self.count = 1
        self.exactly = False
        self.one_by_one = False
        given = len(argv) - at
        if not given:
            return
        if given != 3:
            raise CommandError(SYNTAX)
        option = argv[at].upper()
        if option not in (b"COUNT", b"EXACTLY"):
            raise CommandError(SYNTAX)
        self.count = positive(argv[at + 1])
        self.exactly = option == b"EXACTLY"
        order = argv[at + 2].upper()
        if order not in (b"OBO", b"BULK"):
            raise CommandError(SYNTAX)
        self.one_by_one = order == b"OBO"

    def words(self, count: int) -> list[bytes]:
        """What asks for as many as there were, in the same order."""
        return [b"EXACTLY", b"%d" % count, b"OBO" if self.one_by_one else b"BULK"]

    def how_many(self, source: List | None) -> int:
        """How many elements may be moved now; 0 if that is not enough."""
        there = 0 if source is None else source.size()
        return 0 if self.exactly and there < self.count else min(there, self.count)


def lmovem(call: Call) -> object:
    """Reply: list of the elements in the order of the destination; nil if there are too few."""
    argv = call.argv
    from_right = is_right(argv[3])
    to_right = is_right(argv[4])
    batch = Batch(argv, 5)
    source = list_to_change(call, argv[1])
    count = batch.how_many(source)
    if source is None or not count:
        return NULL_ARRAY
    return move_some(call, source, from_right, to_right, batch, count, argv)


def move_some(
    call: Call,
    source: List,
    from_right: bool,
    to_right: bool,
    batch: Batch,
    count: int,
    record: list[bytes],
) -> object:
    """Move ``count`` elements from the first key, which holds ``source``, to the second.

    The push is reported before the pop, unless both are the same key.

    Reply: list of the elements in the order of the destination.
    """
    key, target_key = call.argv[1], call.argv[2]
    target = _target(call, target_key)
    bounds = limits(call)
    strings = source.take_some(count, from_right)
    if not batch.one_by_one and from_right == to_right:
        strings.reverse()  # they keep their order
    target.push(strings, 0, to_right, bounds)
    source.shrink(bounds)
    if not to_right:
        strings.reverse()
    if target is source:
        call.changed(key, popped(from_right), record, count)
        call.changed(key, pushed(to_right), None, 0)
    else:
        call.changed(target_key, pushed(to_right), record, count)
        report_pop(call, key, source, from_right, None, 0)
    return strings
