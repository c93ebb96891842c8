"""Which of very many keys weigh most, in a table that does not grow with their number.

Space-Saving (Metwally, Agrawal and El Abbadi, 2005), with many keys dropped at once. The table has
a weight for each of some keys. When it is full, the lighter half is dropped, and the heaviest
weight among these becomes the ``floor``: no key that is not in the table can weigh more than that.
So a key that comes, or comes again, begins at the floor, and never weighs less here than in truth.
What it was given unseen is remembered and subtracted from what is shown, which never is more than
the truth.

With room for N keys, each key that has more than an N-th of all weight is in the table. While
there were never more keys than have room, all is exact.
"""

from __future__ import annotations

from typing import Final


class HeavyKeys:
    """The keys that weigh most.

    Args:
        room: how many keys stay when it is full, which it is with twice as many.

    Attributes:
        total: all weight that was added.
    """

    def __init__(self, room: int) -> None:
        self._room: Final = room
        self._weights: Final[dict[bytes, int]] = {}
        self._unseen: Final[dict[bytes, int]] = {}  # of the weights, where it is not 0
        self._floor = 0
        self.total = 0

    def add(self, key: bytes, weight: int) -> None:
        """Add to the weight of a key. Complexity: O(log N) amortised, for room of N."""
        if not weight:
            return
        self.total += weight
        known = self._weights.get(key)
        if known is None:
            if len(self._weights) >= 2 * self._room:
                self._drop_half()
            known = self._floor
            if known:
                self._unseen[key] = known
        self._weights[key] = known + weight

    def _drop_half(self) -> None:
        weights = self._weights
        lightest_first = sorted(weights, key=lambda key: weights[key])
        for key in lightest_first[: len(weights) - self._room]:
            self._floor = weights.pop(key)
            self._unseen.pop(key, None)

    def heaviest(self, count: int) -> list[tuple[bytes, int]]:
        """At most so many keys, and what they weigh at least; the heaviest first."""
        found = [(key, self._weights[key] - self._unseen.get(key, 0)) for key in self._weights]
        found.sort(key=lambda pair: -pair[1])
        return found[:count]
