"""The number of entries in a range of IDs, and where to cut it: from the sums over the blocks.

An entry's rank is the number of live entries before it. The index finds the block of a rank in
O(log n); inside of it only the IDs are decoded.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.stream.entry_log import EntryLog
from headrace.storage.stream.part import nth_live
from headrace.storage.stream.run import Run, following

ID = tuple[int, int]


class Share:
    """A stretch of a stream: ``count`` live entries from ``first`` to ``last``, both included."""

    def __init__(self, first: ID, last: ID, count: int) -> None:
        self.first: Final = first
        self.last: Final = last
        self.count: Final = count


def count_between(log: EntryLog, start: ID, end: ID) -> int:
    """Return how many live entries lie from ``start`` to ``end``, both included. O(log n)."""
    low, high = _ranks(log, start, end)
    return high - low


def share_by_rows(log: EntryLog, start: ID, end: ID, rows: int, most: int) -> list[Share]:
    """Cut a range into shares of ``rows`` entries, of which the last may have fewer.

    The first ``most`` shares are returned; 0 is all. Complexity: O(log n) for each share.
    """
    low, high = _ranks(log, start, end)
    finder = _Finder(log)
    shares: list[Share] = []
    while low < high and (most == 0 or len(shares) < most):
        next_low = min(low + rows, high)
        shares.append(finder.share(low, next_low))
        low = next_low
    return shares


def share_evenly(log: EntryLog, start: ID, end: ID, parts: int) -> list[Share]:
    """Cut a range into ``parts`` shares that differ by one entry at most; none is empty.

    Complexity: O(log n) for each share.
    """
    low, high = _ranks(log, start, end)
    total = high - low
    parts = min(parts, total)
    finder = _Finder(log)
    shares: list[Share] = []
    for number in range(parts):
        first = low + total * number // parts
        shares.append(finder.share(first, low + total * (number + 1) // parts))
    return shares


def _ranks(log: EntryLog, start: ID, end: ID) -> tuple[int, int]:
    if start > end or not log.length:
        return 0, 0
    low = log.count_before(start[0], start[1])
    if end >= (log.last_ms, log.last_seq):
        return low, log.length
    ms, seq = following(end[0], end[1])
    return low, log.count_before(ms, seq)


def id_of_rank(log: EntryLog, rank: int) -> ID:
    """Return the ID of the entry with ``rank`` live entries before it. Complexity: O(log n)."""
    return _Finder(log).id_at(rank)


class _Finder:
    """Finds IDs by rank; the current block is kept, because the next rank is often in it."""

    def __init__(self, log: EntryLog) -> None:
        self._log: Final = log
        self._run = Run(None)
        self._dead: bytearray | None = None
        self._low = 0  # ranks of the current block: from here
        self._high = 0  # up to and without this one

    def share(self, low: int, high: int) -> Share:
        """Return the share with the ranks from ``low`` up to and without ``high``."""
        return Share(self.id_at(low), self.id_at(high - 1), high - low)

    def id_at(self, rank: int) -> ID:
        """Return the ID of the entry with a rank."""
        if not self._low <= rank < self._high:
            self._turn_to(rank)
        number = rank - self._low
        if self._dead is not None:
            number = nth_live(self._dead, 0, len(self._dead), number + 1) - 1
        return self._run.ms[number], self._run.seq[number]

    def _turn_to(self, rank: int) -> None:
        stretch = self._log.around_rank(rank)
        self._low = stretch.rank
        self._high = stretch.rank + stretch.live
        self._run = stretch.run
        self._dead = stretch.dead
