"""Moves between lists, and waiting for elements: LMOVE, BLPOP, BLMPOP, BLMOVE and their kin.

Pops and moves that wait for elements: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH, BLMOVEM.

Each is recorded as what it did, by the command that does not wait.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import SYNTAX, CommandError
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.commands.lists.lists import (
    Pop,
    is_right,
    limits,
    popped,
    positive,
    pushed,
    report_pop,
)
from headrace.server.commands.typed_keys import list_to_change
from headrace.server.dispatch.args import deadline_of_seconds
from headrace.server.dispatch.call import Call
from headrace.server.waiting import ElementOf, Parked
from headrace.storage.list.list import LIST, List


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
        """Return what asks for as many as there were, in the same order."""
        return [b"EXACTLY", b"%d" % count, b"OBO" if self.one_by_one else b"BULK"]

    def how_many(self, source: List | None) -> int:
        """Return how many elements may be moved now; 0 if that is not enough."""
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


class ElementsOfList(ElementOf):
    """So many elements of a list at least."""

    def __init__(self, least: int) -> None:
        super().__init__(LIST, List, least)

    def how_many(self, value: object) -> int:
        """Return how long the list is."""
        return value.size() if isinstance(value, List) else 0


ELEMENT: Final = ElementsOfList(1)


def blpop(call: Call) -> object:
    """Reply: the key and the element; nil at the timeout."""
    return _pop(call, False)


def brpop(call: Call) -> object:
    """Reply: the key and the element; nil at the timeout."""
    return _pop(call, True)


def _pop(call: Call, right: bool) -> object:
    argv = call.argv
    deadline_ms = deadline_of_seconds(argv[-1], call.now_ms)
    keys = argv[1:-1]
    for key in keys:
        value = list_to_change(call, key)
        if value is not None:
            string = value.pop(right, limits(call))
            report_pop(call, key, value, right, [b"RPOP" if right else b"LPOP", key], 1)
            return [key, string]
    return _wait(call, keys, deadline_ms, NULL_ARRAY, ELEMENT)


def _wait(
    call: Call, keys: list[bytes], deadline_ms: int, at_once: object, interest: ElementOf
) -> object:
    """Wait for elements, or answer ``at_once`` where that may not be."""
    if not call.may_block:
        return at_once
    return Parked(keys, deadline_ms, call.argv, NULL_ARRAY, interest)


def blmpop(call: Call) -> object:
    """Reply: [key, [element, ...]] of the first list there is; nil at the timeout."""
    pop = Pop(call.argv, 2)
    deadline_ms = deadline_of_seconds(call.argv[1], call.now_ms)
    popped = pop.run(call)
    if popped is None:
        return _wait(call, pop.keys, deadline_ms, NULL_ARRAY, ELEMENT)
    return popped


def blmove(call: Call) -> object:
    """Reply: the element; nil at the timeout."""
    argv = call.argv
    from_right = is_right(argv[3])
    to_right = is_right(argv[4])
    deadline_ms = deadline_of_seconds(argv[5], call.now_ms)
    return _move(call, from_right, to_right, deadline_ms, [b"LMOVE", *argv[1:5]])


def brpoplpush(call: Call) -> object:
    """Reply: the element; nil at the timeout."""
    argv = call.argv
    deadline_ms = deadline_of_seconds(argv[3], call.now_ms)
    return _move(call, True, False, deadline_ms, [b"RPOPLPUSH", argv[1], argv[2]])


def _move(
    call: Call, from_right: bool, to_right: bool, deadline_ms: int, record: list[bytes]
) -> object:
    key = call.argv[1]
    source = list_to_change(call, key)
    if source is None:
        return _wait(call, [key], deadline_ms, None, ELEMENT)
    return move(call, source, from_right, to_right, record)


def blmovem(call: Call) -> object:
    """Reply: list of the elements in the order of the destination; nil at the timeout."""
    argv = call.argv
    from_right = is_right(argv[3])
    to_right = is_right(argv[4])
    deadline_ms = deadline_of_seconds(argv[5], call.now_ms)
    batch = Batch(argv, 6)
    source = list_to_change(call, argv[1])
    count = batch.how_many(source)
    if source is None or not count:
        interest = ElementsOfList(batch.count) if batch.exactly else ELEMENT
        return _wait(call, [argv[1]], deadline_ms, NULL_ARRAY, interest)
    record = [b"LMOVEM", *argv[1:5], *batch.words(count)]
    return move_some(call, source, from_right, to_right, batch, count, record)
