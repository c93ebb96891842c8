"""Waiting for an element of a collection, each of which goes to one client: the plain kind.

A type of collection has one ``ElementOf``, which all its blocking commands share. An empty
collection leaves the keyspace, so a key that holds one has something to give, and the first in the
line is run. A key without one, or with a value of another type, leaves them waiting. Who wants
several elements at once has an ``ElementOf`` of its own. It keeps its place in the line while there
are too few, and those behind it are served.
"""

from __future__ import annotations

from typing import Final

from headrace.server.waiting.arrivals import Arrivals
from headrace.server.waiting.waiters import ExclusiveLine, Interest, Line, Queue, Waiter


class ElementOf(Interest):
    """An element of a collection.

    Args:
        name: of the line; that of the type.
        type_: the class of its values.
        least: how many elements are wanted at least.
    """

    def __init__(self, name: bytes, type_: type[object], least: int = 1) -> None:
        super().__init__(name, False)
        self.type: Final = type_
        self.least: Final = least

    def how_many(self, value: object) -> int:
        """How many elements a collection has; asked where somebody wants more than one."""
        return 1

    def new_line(self, queue: Queue) -> Line:
        """A line at a key where nobody waits for this yet."""
        return _ElementLine(queue, self)


class _ElementLine(ExclusiveLine):
    """Those who wait for an element of the collection at one key."""

    def __init__(self, queue: Queue, interest: ElementOf) -> None:
        super().__init__(queue, interest)
        self._interest: Final = interest
        self._arrivals: Final = Arrivals()

    def add(self, waiter: Waiter, number: int) -> None:
        """Let a waiter stand at the end."""
        self._arrivals.add(waiter)

    def remove(self, waiter: Waiter, number: int) -> None:
        """Let a waiter go, if it stands here."""
        self._arrivals.remove(waiter)

    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self._arrivals.waiters

    def waiters(self) -> list[Waiter]:
        """All of them."""
        return list(self._arrivals.waiters.values())

    def next(self, value: object | None, now_ms: int) -> Waiter | None:
        """Who came first, of those for whom there is enough."""
        if not isinstance(value, self._interest.type):
            return None
        first = self._arrivals.first()
        if first is None or _least(first) == 1:
            return first
        there = self._interest.how_many(value)
        for waiter in self._arrivals.waiters.values():
            if _least(waiter) <= there:
                return waiter
        return None


def _least(waiter: Waiter) -> int:
    interest = waiter.parked.interest
    assert isinstance(interest, ElementOf)
    return interest.least
