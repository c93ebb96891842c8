"""Intervals of IDs, as acknowledgements name them: above one ID, up to another and with it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.vectors import ID

GREATEST: ID = (ID_MAX, ID_MAX)


class Intervals:
    """Intervals of one lane that do not touch, in order.

    Attributes:
        afters: the IDs that they begin behind.
        uptos: the IDs that they end with.
    """

    def __init__(self) -> None:
        self.afters: list[ID] = []
        self.uptos: list[ID] = []

    def add(self, after: ID, upto: ID) -> bool:
        """Add an interval; whether that was news. Those that touch become one."""
        if upto <= after or self.covers(after, upto):
            return False
        low = bisect_left(self.uptos, after)
        high = bisect_right(self.afters, upto)
        if low < high:
            after = min(after, self.afters[low])
            upto = max(upto, self.uptos[high - 1])
        self.afters[low:high] = [after]
        self.uptos[low:high] = [upto]
        return True

    def unite(self, other: Intervals) -> None:
        """Add all intervals of another."""
        for number in range(len(other.afters)):
            self.add(other.afters[number], other.uptos[number])

    def holds(self, entry_id: ID) -> bool:
        """Return whether an ID lies in one of them."""
        number = bisect_left(self.uptos, entry_id)
        return number < len(self.uptos) and self.afters[number] < entry_id

    def covers(self, after: ID, upto: ID) -> bool:
        """Return whether one of them has all of an interval."""
        number = bisect_left(self.uptos, upto)
        return number < len(self.uptos) and self.afters[number] <= after

    def gaps(self, floor: ID) -> list[tuple[ID, ID]]:
        """What lies above ``floor`` and in none of them: first and last ID of each stretch."""
        found: list[tuple[ID, ID]] = []
        for number in range(bisect_right(self.uptos, floor), len(self.uptos)):
            after = self.afters[number]
            if floor < after:
                found.append((following(floor[0], floor[1]), after))
            floor = self.uptos[number]
        if floor < GREATEST:
            found.append((following(floor[0], floor[1]), GREATEST))
        return found

    def pairs(self) -> list[tuple[ID, ID]]:
        """After which ID each of them begins, and with which it ends."""
        return list(zip(self.afters, self.uptos, strict=True))

    def copy(self) -> Intervals:
        """Equal ones."""
        twin = Intervals()
        twin.afters = self.afters.copy()
        twin.uptos = self.uptos.copy()
        return twin
