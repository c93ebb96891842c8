"""A pending entry, its holder, and chunks of such entries."""

from __future__ import annotations

from typing import Final

from librt.vecs import append, pop, vec
from mypy_extensions import i64, mypyc_attr

CHUNK: Final = 127  # as much as fits where a vector has doubled its size six times
COUNT_MAX: Final = 2**63 - 1
_SPARSE: Final = 8  # slots to an entry, above which holes are closed


class Holder:
    """The holder of pending entries: what an entry knows of its ``groups.Consumer``."""

    def __init__(self, name: bytes) -> None:
        self.name: Final = name


@mypyc_attr(acyclic=True)  # its consumer knows it, but forgets it: see ``Group.delete_consumer``
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

    def __init__(self, ms: int, seq: int, consumer: Holder | None, delivery_ms: i64) -> None:
        self.ms: Final = ms
        self.seq: Final = seq
        self.consumer = consumer
        self.delivery_ms: i64 = delivery_ms
        self.count = 1
        self.order_ms: i64 = delivery_ms
        self.ticket: i64 = 0

    def count_up(self) -> None:
        """Count one more delivery."""
        if self.count != COUNT_MAX:  # with a smaller number it would have to be boxed
            self.count += 1


@mypyc_attr(acyclic=True)
class Chunk:
    """One or more pending entries, in order, in up to ``2 * CHUNK`` slots.

    What is taken out leaves a hole, so that nothing moves; where few entries are left, holes are
    closed.

    Attributes:
        slots: entries, the last slot's is one, and holes.
        start: where the first entry is.
        size: how many entries there are.
    """

    def __init__(self, nacks: list[Nack]) -> None:
        self.slots = vec[Nack | None](nacks)
        self.start: i64 = 0
        self.size: i64 = len(nacks)

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
        while place < len(self.slots) and self.slots[place] is None:
            place += 1
        return place

    def live(self) -> list[Nack]:
        """The entries without the holes."""
        return [nack for nack in self.slots if nack is not None]

    def copy(self) -> Chunk:
        """A copy with the same in each place."""
        chunk = Chunk([])
        chunk.slots = self.slots[:]
        chunk.start = self.start
        chunk.size = self.size
        return chunk

    def append(self, nack: Nack) -> None:
        """Put an entry behind all others."""
        self.slots = append(self.slots, nack)
        self.size += 1

    def pop(self, place: i64) -> i64:
        """Take out the entry at a place; returns where the next one is then, or a hole before it.

        When it was the only one, the chunk is of no use any more.
        """
        self.size -= 1
        if not self.size:
            return len(self.slots)
        self.slots[place] = None
        place += 1
        if place == len(self.slots):
            while self.slots[-1] is None:
                self.slots, _ = pop(self.slots)
            place = len(self.slots)
        elif place == self.start + 1:
            place = self.entry_from(place)
            self.start = place
        if len(self.slots) - self.start > _SPARSE * self.size:
            return self._close(place)
        return place

    def _close(self, place: i64) -> i64:
        """Close the holes; returns where what was at a place, or behind it, is then."""
        kept: list[Nack] = []
        found: i64 = self.size
        for number in range(self.start, len(self.slots)):
            if number == place:
                found = len(kept)
            nack = self.slots[number]
            if nack is not None:
                kept.append(nack)
        self.slots = vec[Nack | None](kept)
        self.start = 0
        return found

    def insert(self, place: i64, nack: Nack) -> Chunk | None:
        """Insert an entry at a place; returns the rear half if the chunk is too large then."""
        self.size += 1
        for hole in (place, place - 1):
            if 0 <= hole < len(self.slots) and self.slots[hole] is None:
                self.slots[hole] = nack
                self.start = min(self.start, hole)
                return None
        self.slots = append(self.slots, nack)
        for number in range(len(self.slots) - 1, place, -1):
            self.slots[number] = self.slots[number - 1]
        self.slots[place] = nack
        if len(self.slots) <= 2 * CHUNK:
            return None
        self._close(place)
        if self.size <= CHUNK:
            return None
        nacks = self.live()
        half = self.size >> 1
        self.slots = vec[Nack | None](nacks[:half])
        self.size = half
        return Chunk(nacks[half:])
