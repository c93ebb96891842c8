"""A pending entry, and some of them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    from storage.stream.groups import Consumer

CHUNK: Final = 128
COUNT_MAX: Final = 2**63 - 1


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


HOLE: Final = Nack(-1, -1, None, 0)


@mypyc_attr(acyclic=True)
class Chunk:
    """Pending entries in an order, at least one of them and up to ``2 * CHUNK``.

    What is taken from the front leaves a hole. Most entries are acknowledged in the order in which
    they were delivered, and so nothing moves.

    Attributes:
        slots: holes, then entries.
        start: where the first entry is.
    """

    def __init__(self, slots: list[Nack]) -> None:
        self.slots = slots
        self.start: i64 = 0

    def first(self) -> Nack:
        """The entry that comes first."""
        return self.slots[self.start]

    def last(self) -> Nack:
        """The entry that comes last."""
        return self.slots[-1]

    def size(self) -> int:
        """How many entries there are."""
        return len(self.slots) - self.start

    def is_empty(self) -> bool:
        """Whether nothing is left, so that the chunk has to go."""
        return self.start == len(self.slots)

    def holds(self, place: i64, nack: Nack) -> bool:
        """Whether an entry is at a place, which may be behind the last."""
        return place < len(self.slots) and self.slots[place] is nack

    def live(self) -> list[Nack]:
        """The entries without the holes; not to be changed."""
        return self.slots[self.start :] if self.start else self.slots

    def copy(self) -> Chunk:
        """Another one with the same in each place."""
        chunk = Chunk(self.slots.copy())
        chunk.start = self.start
        return chunk

    def pop(self, place: i64) -> i64:
        """Take the entry at a place out; where the one behind it is then."""
        if place == self.start:
            self.slots[place] = HOLE
            place += 1
            self.start = place
        else:
            self.slots.pop(place)
        return place

    def insert(self, place: i64, nack: Nack) -> Chunk | None:
        """Put an entry at a place; the rear half, when this makes it too large."""
        self.slots.insert(place, nack)
        if len(self.slots) <= 2 * CHUNK:
            return None
        if self.start:
            del self.slots[: self.start]
            self.start = 0
            return None
        rear = Chunk(self.slots[CHUNK:])
        del self.slots[CHUNK:]
        return rear
