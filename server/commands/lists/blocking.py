"""Pops and moves that wait for elements: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH, BLMOVEM.

Each is recorded as what it did, by the command that does not wait.
"""

from __future__ import annotations

from typing import Final

from headrace.protocol.replies import NULL_ARRAY
from headrace.server.commands.lists.moving import Batch, move, move_some
from headrace.server.commands.lists.values import Pop, is_right, limits, list_to_change, report_pop
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.timeouts import deadline_of_seconds
from headrace.server.waiting.elements import ElementOf
from headrace.server.waiting.waiters import Parked
from headrace.storage.list.list import LIST, List


class ElementsOfList(ElementOf):
    """So many elements of a list at least."""

    def __init__(self, least: int) -> None:
        super().__init__(LIST, List, least)

    def how_many(self, value: object) -> int:
        """How long the list is."""
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
