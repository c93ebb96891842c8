"""Numbers in order: which slices an array has, and where to go on from any place.

They stand in rows of up to 512 in a list. A number goes into the row that it belongs to; a row that
is full is cut in two, and one that is empty goes. A first number alone has no row, because most
arrays have one slice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from mypy_extensions import mypyc_attr

_MOST: Final = 512


@mypyc_attr(acyclic=True)
class Order:
    """Different numbers, from the least to the greatest."""

    def __init__(self) -> None:
        self._rows: list[list[int]] = []
        self._firsts: list[int] = []  # the first number of each row, or the only one of all

    def add(self, number: int) -> None:
        """Add one that is not there. Complexity: O(log n), and what a row and its list take."""
        if not self._rows:
            if not self._firsts:
                self._firsts.append(number)
                return
            self._rows.append([self._firsts[0]])
        at = max(0, bisect_right(self._firsts, number) - 1)
        row = self._rows[at]
        row.insert(bisect_left(row, number), number)
        if len(row) > _MOST:
            # A row that grows at its end stays full.
            cut = _MOST if row[-1] == number else _MOST // 2
            self._rows.insert(at + 1, row[cut:])
            self._firsts.insert(at + 1, row[cut])
            del row[cut:]
        self._firsts[at] = row[0]

    def remove(self, number: int) -> None:
        """Remove one that is there."""
        if not self._rows:
            self._firsts.clear()
            return
        at = bisect_right(self._firsts, number) - 1
        row = self._rows[at]
        del row[bisect_left(row, number)]
        if row:
            self._firsts[at] = row[0]
        else:
            del self._rows[at]
            del self._firsts[at]

    def last(self) -> int:
        """The greatest number; -1 where there is none."""
        if self._rows:
            return self._rows[-1][-1]
        return self._firsts[0] if self._firsts else -1

    def at_or_after(self, number: int) -> int:
        """The least number that is not below this one; -1 where there is none."""
        if not self._rows:
            return self._firsts[0] if self._firsts and self._firsts[0] >= number else -1
        at = max(0, bisect_right(self._firsts, number) - 1)
        while at < len(self._rows):
            row = self._rows[at]
            place = bisect_left(row, number)
            if place < len(row):
                return row[place]
            at += 1
        return -1

    def at_or_before(self, number: int) -> int:
        """The greatest number that is not above this one; -1 where there is none."""
        at = bisect_right(self._firsts, number) - 1
        if at < 0:
            return -1
        if not self._rows:
            return self._firsts[0]
        row = self._rows[at]
        return row[bisect_right(row, number) - 1]

    def numbers(self) -> list[int]:
        """All of them."""
        if not self._rows:
            return self._firsts.copy()
        found: list[int] = []
        for row in self._rows:
            found += row
        return found

    def copy(self) -> Order:
        """Another one of the same numbers."""
        other = Order()
        other._rows = [row.copy() for row in self._rows]
        other._firsts = self._firsts.copy()
        return other
