"""A search among things that stand in order and lie scattered in memory.

With half a million of them, each look at one would wait for memory. So one vector holds, side by
side, how far they reach. Only where two are alike in that, one of them is looked at.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

REACH_MAX: Final = 2**62 - 1  # as much of the greater half of a place as is searched by
_SPAN_MAX: Final = 2**40  # 35 years, in milliseconds; the product of the two is an i64
_PLACES_MAX: Final = 2**22


@mypyc_attr(acyclic=True)
class Reach:
    """The reach of each of some things in order.

    What is ordered by has two halves: IDs have milliseconds and a sequence number. ``_reach`` has
    the greater half, or ``REACH_MAX`` if that is less.
    """

    def __init__(self) -> None:
        self._reach = vec[i64]()
        self._near: i64 = 0  # what was found last
        self._seen: i64 = 0  # nothing is done with it: what is added to it has been looked at

    def _find(self, low: i64, major: int, minor: int) -> i64:
        """Return the first number from ``low`` on that reaches up to (major, minor) or beyond.

        If it is behind them all, that is found at once. Else what was found the last time is looked
        at first, and what is beside it. Then comes the place where it would be if all reached
        equally far, and places away from there in growing steps.
        """
        reach = self._reach
        wanted: i64 = min(major, REACH_MAX)
        high: i64 = len(reach)
        if high and reach[high - 1] < wanted:
            return high
        middle = self._near
        if middle < low or middle >= high:
            middle = (low + high) >> 1
        looks: i64 = 0
        step: i64 = 0
        upwards = False
        while low < high:
            looks += 1
            found = reach[middle]
            below = found < wanted or (found == wanted and self._ends_before(middle, major, minor))
            if below:
                low = middle + 1
            else:
                high = middle
            if looks == 2:
                middle = self._guess(low, high, wanted)
                step = 1
            elif looks == 1 or (step and (looks == 3 or below == upwards)):
                ahead = step >> 1  # 0, 1, 2, 4, ...
                if ahead >= high - low:
                    ahead = high - low - 1
                middle = low + ahead if below else high - 1 - ahead
                upwards = below
                step *= 2
            else:
                middle = (low + high) >> 1
                step = 0
        self._near = low
        return low

    def find_all(self, majors: vec[i64]) -> vec[i64]:
        """Return for each of ``majors`` the number of what reaches up to it; the last if none does.

        All guesses are looked at before any search begins, so that memory is waited for once.
        """
        reach = self._reach
        last: i64 = len(reach) - 1
        low = reach[0]
        high = reach[last]
        found = vec[i64]()
        for major in majors:
            found = append(found, evenly(0, last, low, high, major))
        for place in found:
            self._seen += reach[place]
        for number in range(len(found)):
            major = majors[number]
            place = found[number]
            if not place or reach[place - 1] >= major or reach[place] < major:
                found[number] = min(self._find(0, int(major), 0), last)
        return found

    def _guess(self, low: i64, high: i64, wanted: i64) -> i64:
        if low < high:
            return evenly(low, high - 1, self._reach[low], self._reach[high - 1], wanted)
        return low

    # What the things say of themselves: a method that each kind of them has to have.

    def _ends_before(self, number: i64, major: int, minor: int) -> bool:
        """Return whether one, with ``major`` as its greater half, ends before (major, minor)."""
        raise NotImplementedError


def evenly(low: i64, high: i64, first: i64, last: i64, wanted: i64) -> i64:
    """Return where ``wanted`` stands if all from ``first`` to ``last`` have equal distances.

    ``first`` and ``last`` stand at ``low`` and ``high``. Between two places it is what reaches up
    to it; the middle when it is not between ``first`` and ``last``.
    """
    if first < wanted < last and last - first < _SPAN_MAX and high - low < _PLACES_MAX:
        return high - (last - wanted) * (high - low) // (last - first)
    return (low + high) >> 1
