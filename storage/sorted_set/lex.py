"""Ranges of members by their names, which mean something where all scores are equal."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.storage.packed.strings import next_at
from headrace.storage.sorted_set.runs import compare_at, first_place, size_of
from headrace.storage.sorted_set.tree import Tree

LOWEST: Final = -1  # kinds of bounds
MEMBER: Final = 0
HIGHEST: Final = 1


class LexBound:
    """One end of a range.

    Args:
        kind: below all members, at one, or above all.
        member: at which one; it need not be there.
        exclusive: that one is not in the range.
    """

    def __init__(self, kind: i64, member: bytes, exclusive: bool) -> None:
        self.kind: Final[i64] = kind
        self.member: Final = member
        self.exclusive: Final = exclusive


class LexRange:
    """A range between two bounds, both at most once among all members."""

    def __init__(self, low: LexBound, high: LexBound) -> None:
        self.low: Final = low
        self.high: Final = high

    def is_empty(self) -> bool:
        """Whether nothing can be in it."""
        low = self.low
        high = self.high
        if low.kind != high.kind:
            return low.kind > high.kind
        if low.kind != MEMBER:
            return True
        exclusive = low.exclusive or high.exclusive
        return low.member > high.member or (low.member == high.member and exclusive)

    def of_run(self, run: bytes, reverse: bool, skipped: i64) -> tuple[i64, i64]:
        """The first number in the range and the one behind its last, walked from either end.

        Members that are not in order, because their scores differ, end the range or do not begin
        it, as in Redis's walk; those that are skipped are not compared.
        """
        size = size_of(run)
        if self.is_empty() or not size:
            return 0, 0
        above_low: list[bool] = []
        below_high: list[bool] = []
        place = first_place(run)
        end: i64 = len(run)
        while place < end:
            above_low.append(self._is_above_low(run, place))
            below_high.append(self._is_below_high(run, place))
            place = next_at(run, place)
        if not above_low[-1] or not below_high[0]:
            return 0, 0
        if reverse:
            last: i64 = size - 1
            while last >= 0 and not below_high[last]:
                last -= 1
            if last < 0 or not above_low[last]:
                return 0, 0
            last = max(-1, last - skipped)
            first = last
            while first >= 0 and above_low[first]:
                first -= 1
            return first + 1, last + 1
        first = 0
        while first < size and not above_low[first]:
            first += 1
        if first == size or not below_high[first]:
            return 0, 0
        first = min(size, first + skipped)
        last = first
        while last < size and below_high[last]:
            last += 1
        return first, last

    def of_tree(self, tree: Tree, reverse: bool, skipped: i64) -> tuple[i64, i64]:
        """The first rank in the range and the one behind its last, without those skipped."""
        if self.is_empty():
            return 0, 0
        low = self.low
        high = self.high
        first: i64 = 0
        end = tree.size
        if low.kind == HIGHEST:
            first = end
        elif low.kind == MEMBER:
            first = tree.below_member(low.member, low.exclusive)
        if high.kind == LOWEST:
            end = 0
        elif high.kind == MEMBER:
            end = tree.below_member(high.member, not high.exclusive)
        if reverse:
            end -= min(skipped, max(0, end - first))
        else:
            first += min(skipped, max(0, end - first))
        return first, max(first, end)

    def _is_above_low(self, run: bytes, place: i64) -> bool:
        low = self.low
        if low.kind != MEMBER:
            return low.kind == LOWEST
        order = compare_at(run, place, low.member)
        return order > 0 or (order == 0 and not low.exclusive)

    def _is_below_high(self, run: bytes, place: i64) -> bool:
        high = self.high
        if high.kind != MEMBER:
            return high.kind == HIGHEST
        order = compare_at(run, place, high.member)
        return order < 0 or (order == 0 and not high.exclusive)
