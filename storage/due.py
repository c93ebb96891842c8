"""Names in the order in which they are due, in a heap of which no row grows beyond a bound.

A pair is one ``bytes``: eight bytes of a moment, highest first, and the name. So pairs compare as
they are due, those with equal moments as a whole, and no object stands for one besides. They make a
heap, in rows of up to 512. One list of them all would be moved in one piece when it grows, and
copied in one piece. Rows are not: a copy shares them, and a heap copies a row that is not its own
before it writes to it. A flag for each row says whose it is.

Another moment for a name is another pair, and the one before is stale: it is dropped when it comes
up. When most pairs are stale, each new one has a few looked at, from the last to the first and
round again, and the stale ones among them taken out. Nothing is ever done for all in one piece.
"""

from __future__ import annotations

from heapq import heapify
from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

_SHIFT: Final[i64] = 9
_ROW: Final[i64] = 512
_WITHIN: Final[i64] = _ROW - 1


@mypyc_attr(acyclic=True)
class Heap:
    """Items, ``size`` of them, of which the least is known."""

    def __init__(self) -> None:
        self.size: i64 = 0
        self._rows: list[list[bytes]] = []  # full ones, and one that is not empty
        self._mine = vec[i64]()  # of each row: 1 where it may be written to; of later ones: 0

    def at(self, place: i64) -> bytes:
        """Return the item at a place; the least one is at 0."""
        return self._rows[place >> _SHIFT][place & _WITHIN]

    def add(self, item: bytes) -> None:
        """Add an item. Complexity: O(log n), and next to nothing if it is among the greatest."""
        place = self.size
        self._append(item)
        self._rise(place, item)

    def take(self, place: i64) -> bytes:
        """Take out the item at a place and return it. Complexity: O(log n)."""
        taken = self.at(place)
        last = self._pop()
        if place < self.size:
            if place > 0 and _is_less(last, self.at((place - 1) >> 1)):
                self._rise(place, last)
            else:
                self._sink(place, last)
        return taken

    def some(self, most: int) -> list[bytes]:
        """Return some of the items, among them the least."""
        return [self.at(place) for place in range(min(most, int(self.size)))]

    def copy(self) -> Heap:
        """Return another one of the same items. Complexity: O(rows)."""
        twin = Heap()
        twin.size = self.size
        twin._rows = self._rows[:]
        self._mine = vec[i64]()
        return twin

    def free_some(self, most: int) -> bool:
        """Drop so many items of a heap that is no longer used; True when none is left."""
        left: i64 = most
        while left > 0 and self._rows:
            last: i64 = len(self._rows) - 1
            here: i64 = len(self._rows[last])
            if here > left:
                del self._own(last)[int(here - left) :]
                here = left
            else:
                self._rows.pop()
            self.size -= here
            left -= here
        return not self._rows

    def _rise(self, place: i64, item: bytes) -> None:
        """Put an item at a place, or as far above it as it belongs."""
        while place > 0:
            parent = (place - 1) >> 1
            above = self.at(parent)
            if not _is_less(item, above):
                break
            self._put(place, above)
            place = parent
        self._put(place, item)

    def _sink(self, place: i64, item: bytes) -> None:
        """Put an item at a place, or as far below it as it belongs."""
        size = self.size
        number = read_i64_be(item, 0)
        child = 2 * place + 1
        while child < size:
            least = self.at(child)
            lowest = read_i64_be(least, 0)
            if child + 1 < size:
                other = self.at(child + 1)
                beside = read_i64_be(other, 0)
                if beside < lowest or (beside == lowest and other < least):
                    least = other
                    lowest = beside
                    child += 1
            if number < lowest or (number == lowest and item <= least):
                break
            self._put(place, least)
            place = child
            child = 2 * place + 1
        self._put(place, item)

    def _put(self, place: i64, item: bytes) -> None:
        self._own(place >> _SHIFT)[place & _WITHIN] = item

    def _append(self, item: bytes) -> None:
        number = self.size >> _SHIFT
        if number < i64(len(self._rows)):
            self._own(number).append(item)
        else:
            self._rows.append([item])
            self._note_mine(number)
        self.size += 1

    def _pop(self) -> bytes:
        self.size -= 1
        number = self.size >> _SHIFT
        item = self._own(number).pop()
        if not self._rows[number]:
            self._rows.pop()  # its flag says what is true of the next one, too
        return item

    def _own(self, number: i64) -> list[bytes]:
        """Return a row that is about to be written to, copied first if it is shared."""
        row = self._rows[number]
        if number >= i64(len(self._mine)) or not self._mine[number]:
            row = row[:]
            self._rows[number] = row
            self._note_mine(number)
        return row

    def _note_mine(self, number: i64) -> None:
        while number >= i64(len(self._mine)):
            self._mine = append(self._mine, 0)
        self._mine[number] = 1


def heap_of(items: list[bytes]) -> Heap:
    """Return a heap of items in any order, which are put in order in their list. O(n)."""
    heapify(items)
    heap = Heap()
    for item in items:
        heap._append(item)
    return heap


def _is_less(item: bytes, other: bytes) -> bool:
    number = read_i64_be(item, 0)
    than = read_i64_be(other, 0)
    return item < other if number == than else number < than


NOTHING: Final[i64] = -1  # instead of a moment
STALE_AT_ONCE: Final = 64  # pairs that one question may drop
PAIR_BYTES: Final = 33 + 8 + 8  # of a pair beside its name, with its place
_SMALL: Final = 64
_LOOKS: Final = 4  # at pairs of which most are stale, for each new one
_MOMENT_BYTES: Final[i64] = 8


@mypyc_attr(acyclic=True)
class DueOrder:
    """The names of one owner that knows when each of them is due.

    ``pairs`` is the heap; it has at least one for each name that has a moment.
    """

    def __init__(self, pairs: Heap) -> None:
        self.pairs: Final = pairs
        self._looked_at: i64 = 0  # the pair that was looked at last

    def moment_of(self, name: bytes) -> i64:
        """Return when a name is due by now, in milliseconds since 1970; ``NOTHING``: never."""
        raise NotImplementedError

    def add(self, name: bytes, moment_ms: i64, living: i64) -> None:
        """Add a moment that a name has been given; ``living`` names have one. O(log pairs)."""
        pairs = self.pairs
        pairs.add(pair_of(moment_ms, name))
        if pairs.size > _SMALL and pairs.size > 2 * living:
            self._drop_stale(_LOOKS)

    def first_ms(self) -> i64:
        """Return the moment of the first pair, stale or not; ``NOTHING`` where there is none."""
        pairs = self.pairs
        return read_i64_be(pairs.at(0), 0) if pairs.size else NOTHING

    def next_ms(self) -> i64:
        """Return a moment before which nothing is due; ``NOTHING`` where nothing is.

        It is that of a name, unless very many stale pairs are in front.
        """
        self.fresh_first()
        return self.first_ms()

    def fresh_first(self) -> bytes | None:
        """Return the name due first; None where there is none, or very many stale pairs were met.

        Those are dropped, so it pays to ask again.
        """
        pairs = self.pairs
        looks = STALE_AT_ONCE
        while pairs.size and looks:
            first = pairs.at(0)
            if self._is_fresh(first):
                return name_of(first)
            pairs.take(0)
            looks -= 1
        return None

    def take_first(self) -> bytes | None:
        """Take out the first pair, which must be there; return its name, None if it is stale."""
        pair = self.pairs.take(0)
        return name_of(pair) if self._is_fresh(pair) else None

    def some(self, most: int) -> list[bytes]:
        """Return some names that may have a moment, among them the first."""
        return [name_of(pair) for pair in self.pairs.some(most)]

    def fresh(self, most: int) -> list[bytes]:
        """Return some names due soon, the first too; stale ones are dropped, O(log n) for each."""
        pairs = self.pairs
        place = min(i64(most), pairs.size)
        while place > 0:
            place -= 1
            if not self._is_fresh(pairs.at(place)):
                pairs.take(place)
        return self.some(most)

    def free_some(self, most: int) -> bool:
        """Drop so many pairs; True when none is left. The order is of no use then."""
        return self.pairs.free_some(most)

    def _is_fresh(self, pair: bytes) -> bool:
        moment_ms = self.moment_of(name_of(pair))
        return moment_ms != NOTHING and max(moment_ms, 0) == read_i64_be(pair, 0)

    def _drop_stale(self, looks: i64) -> None:
        pairs = self.pairs
        at = self._looked_at
        while looks > 0 and pairs.size:
            looks -= 1
            at = at - 1 if 0 < at <= pairs.size else pairs.size - 1
            if not self._is_fresh(pairs.at(at)):
                pairs.take(at)
        self._looked_at = at


def pair_of(moment_ms: i64, name: bytes) -> bytes:
    """Return a pair; a moment before 1970 is as 1970."""
    out = BytesWriter()
    write_i64_be(out, max(0, moment_ms))
    out.write(name)
    return out.getvalue()


def name_of(pair: bytes) -> bytes:
    """Return the name of a pair."""
    return pair[_MOMENT_BYTES:]
