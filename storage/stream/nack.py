"""A pending entry, and some of them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    from storage.stream.groups import Consumer

CHUNK: Final = 128
COUNT_MAX: Final = 2**63 - 1
_SPARSE: Final = 8  # slots to an entry, above which holes are closed


@mypyc_attr(acyclic=True)  # its consumer knows it, but lets go: see ``Group.delete_consumer``
class Nack:
    """One pending entry.

    Attributes:
        ms, seq: the entry's ID.
        consumer: who holds it; None when it was released.
        delivery_ms: when it was delivered last, in milliseconds since 1970; 0 when released.
        count: how often it was delivered.
        order_ms, ticket: its place in the order by time; ``order_ms`` is ``IN_ZONE`` when released,
            ``GONE`` when the stream's entry was found deleted.
    """

    def __init__(self, ms: int, seq: int, consumer: Consumer | None, delivery_ms: i64) -> None:
        self.ms: Final = ms
        self.seq: Final = seq
        self.consumer = consumer
        self.delivery_ms: i64 = delivery_ms
        self.count = 1
        self.order_ms: i64 = delivery_ms
        self.ticket: i64 = 0

    def count_up(self) -> None:
        """Delivered once more."""
        if self.count != COUNT_MAX:  # with a smaller number it would have to be boxed
            self.count += 1


@mypyc_attr(acyclic=True)
class Chunk:
    """Pending entries in an order, at least one of them, in up to ``2 * CHUNK`` slots.

    What is taken out leaves a hole, so that nothing moves; where few entries are left, holes are
    closed.

    Attributes:
        slots: entries, the last slot's is one, and holes.
        start: where the first entry is.
        size: how many entries there are.
    """

    def __init__(self, slots: list[Nack | None]) -> None:
        self.slots = slots
        self.start: i64 = 0
        self.size: i64 = len(slots)

    def first(self) -> Nack:
        """The entry that comes first."""
        return self.at(self.start)

    def last(self) -> Nack:
        """The entry that comes last."""
        return self.at(len(self.slots) - 1)

    def at(self, place: i64) -> Nack:
        """The entry at a place that has one."""
        nack = self.slots[place]
        assert nack is not None
        return nack

    def holds(self, place: i64, nack: Nack) -> bool:
        """Whether an entry is at a place, which may be behind the last."""
        return place < len(self.slots) and self.slots[place] is nack

    def entry_from(self, place: i64) -> i64:
        """The first place from this one on that has an entry, or how many places there are."""
        slots = self.slots
        while place < len(slots) and slots[place] is None:
            place += 1
        return place

    def live(self) -> list[Nack]:
        """The entries without the holes."""
        return [nack for nack in self.slots if nack is not None]

    def copy(self) -> Chunk:
        """Another one with the same in each place."""
        chunk = Chunk(self.slots.copy())
        chunk.start = self.start
        chunk.size = self.size
        return chunk

    def append(self, nack: Nack) -> None:
        """Put an entry behind all others."""
        self.slots.append(nack)
        self.size += 1

    def pop(self, place: i64) -> i64:
        """Take the entry at a place out; where the one behind it is then, or a hole before it.

        When it was the only one, the chunk is of no use any more.
        """
        slots = self.slots
        self.size -= 1
        if not self.size:
            return len(slots)
        if place == len(slots) - 1:
            slots.pop()
            while slots[-1] is None:
                slots.pop()
        else:
            slots[place] = None
            place += 1
            if place == self.start + 1:
                while slots[place] is None:
                    place += 1
                self.start = place
        if len(slots) - self.start > _SPARSE * self.size:
            return self._close(place)
        return place

    def _close(self, place: i64) -> i64:
        """Close the holes; where what was at a place or behind it is then."""
        slots = self.slots
        kept: list[Nack | None] = []
        found: i64 = self.size
        for number in range(self.start, len(slots)):
            if number == place:
                found = len(kept)
            if slots[number] is not None:
                kept.append(slots[number])
        self.slots = kept
        self.start = 0
        return found

    def insert(self, place: i64, nack: Nack) -> Chunk | None:
        """Put an entry before all from a place on; the rear half, when this makes it too large."""
        slots = self.slots
        self.size += 1
        for hole in (place, place - 1):
            if 0 <= hole < len(slots) and slots[hole] is None:
                slots[hole] = nack
                self.start = min(self.start, hole)
                return None
        slots.insert(place, nack)
        if len(slots) <= 2 * CHUNK:
            return None
        self._close(place)
        if self.size <= CHUNK:
            return None
        half = self.size >> 1
        rear = Chunk(self.slots[half:])
        del self.slots[half:]
        self.size = half
        return rear
