"""A heap of ``bytes`` that begin with a number, in rows, none of which grows beyond 512.

The number has eight bytes, the highest first. So the bytes compare as their numbers do, and only
those that are equal have to be compared whole.

One list of them all would be moved in one piece when it grows, and copied in one piece. Rows are
not: a copy shares them, and who is about to write to a row that is not its own copies that one
first. A flag for each says whose it is.
"""

from __future__ import annotations

from heapq import heapify
from typing import Final

from librt.strings import read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

_SHIFT: Final[i64] = 9
_ROW: Final[i64] = 512
_WITHIN: Final[i64] = _ROW - 1


@mypyc_attr(acyclic=True)
class Heap:
    """Items, of which the least is known.

    Attributes:
        size: how many there are.
    """

    def __init__(self) -> None:
        self.size: i64 = 0
        self._rows: list[list[bytes]] = []  # full ones, and one that is not empty
        self._mine = vec[i64]()  # of each row: 1 where it may be written to; of later ones: 0

    def at(self, place: i64) -> bytes:
        """The item at a place; the least one is at 0."""
        return self._rows[place >> _SHIFT][place & _WITHIN]

    def add(self, item: bytes) -> None:
        """Add an item. Complexity: O(log n), and next to nothing if it is among the greatest."""
        place = self.size
        self._append(item)
        self._rise(place, item)

    def take(self, place: i64) -> bytes:
        """Take out the item at a place. Complexity: O(log n)."""
        taken = self.at(place)
        last = self._pop()
        if place < self.size:
            if place > 0 and _is_less(last, self.at((place - 1) >> 1)):
                self._rise(place, last)
            else:
                self._sink(place, last)
        return taken

    def some(self, most: int) -> list[bytes]:
        """Some of the items, among them the least."""
        return [self.at(place) for place in range(min(most, int(self.size)))]

    def copy(self) -> Heap:
        """Another one of the same items. Complexity: O(rows)."""
        twin = Heap()
        twin.size = self.size
        twin._rows = self._rows[:]
        self._mine = vec[i64]()
        return twin

    def free_some(self, most: int) -> bool:
        """Drop so many items of a heap that nobody uses any more; True when none is left."""
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
        """A row that is about to be written to."""
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
    """A heap of items in any order, which are put in order in their list. Complexity: O(n)."""
    heapify(items)
    heap = Heap()
    for item in items:
        heap._append(item)
    return heap


def _is_less(item: bytes, other: bytes) -> bool:
    number = read_i64_be(item, 0)
    than = read_i64_be(other, 0)
    return item < other if number == than else number < than
