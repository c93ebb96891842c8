"""Waiting for an entry after an ID, as readers of streams do.

Readers that want an entry after the same ID stand together, and mostly all do. Where there are many
IDs, they are kept in order. So a stream that has grown yields only the readers whose ID has been
passed. A key without a stream leaves its readers asleep.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from headrace.server.waiting.waiters import Interest, Line, Queue, SharedLine, Waiter
from headrace.storage.stream.ids import is_below
from headrace.storage.stream.stream import Stream

if TYPE_CHECKING:
    from sortedcontainers import SortedList

MANY_IDS: Final = 16  # that are kept in order: fewer are looked at one by one
_NAME: Final = b"entries"


class EntryAfter(Interest):
    """An entry after an ID.

    Args:
        after: beside each key the (ms, seq) that it is to come after.
        name: of the line to stand in.
    """

    def __init__(self, after: list[tuple[int, int]], name: bytes = _NAME) -> None:
        super().__init__(name, False)
        self.after: Final = after

    def new_line(self, queue: Queue) -> Line:
        """A line at a key where nobody waits for this yet."""
        return Readers(queue, self)


class Readers(SharedLine):
    """Those who wait for an entry at one key.

    Attributes:
        by_id: them by the ID after which they want one, and by ticket.
    """

    def __init__(self, queue: Queue, interest: EntryAfter) -> None:
        super().__init__(queue, interest)
        self.by_id: dict[tuple[int, int], dict[int, Waiter]] = {}
        self._order: SortedList[tuple[int, int]] | None = None  # of the IDs, once they are many

    def add(self, waiter: Waiter, number: int) -> None:
        """Let a waiter wait for an entry after the ID that it names beside the key."""
        after = _after(waiter, number)
        same = self.by_id.get(after)
        if same is None:
            same = self.by_id[after] = {}
            if self._order is not None:
                self._order.add(after)
            elif len(self.by_id) >= MANY_IDS:
                from sortedcontainers import SortedList  # late: so many IDs are seldom

                self._order = SortedList(self.by_id)
        same[waiter.ticket] = waiter

    def remove(self, waiter: Waiter, number: int) -> None:
        """Let a waiter go, if it waits for that."""
        after = _after(waiter, number)
        same = self.by_id.get(after)
        if same is None or waiter.ticket not in same:
            return
        del same[waiter.ticket]
        if not same:
            del self.by_id[after]
            if self._order is not None:
                self._order.remove(after)
                if not self.by_id:
                    self._order = None

    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self.by_id

    def waiters(self) -> list[Waiter]:
        """All of them."""
        return [waiter for same in self.by_id.values() for waiter in same.values()]

    def candidates(self, value: object | None) -> list[Waiter]:
        """Who may be served now, first come first. Complexity: O(found)."""
        if not isinstance(value, Stream):
            return []
        found: list[Waiter] = []
        last_ms = value.last_ms
        last_seq = value.last_seq
        order = self._order
        if order is None:
            for after, same in self.by_id.items():
                if is_below(after[0], after[1], last_ms, last_seq):
                    found.extend(same.values())
        else:
            for after in order.irange(maximum=(last_ms, last_seq), inclusive=(True, False)):
                found.extend(self.by_id[after].values())
        if len(found) > 1:
            found.sort(key=attrgetter("ticket"))
        return found


def _after(waiter: Waiter, number: int) -> tuple[int, int]:
    interest = waiter.parked.interest
    assert isinstance(interest, EntryAfter)
    return interest.after[number]
