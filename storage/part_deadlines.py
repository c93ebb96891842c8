"""When parts of values expire: of each key that has some, the first deadline.

Whoever changes a value tells the keyspace, which has one of these. It goes where the keys go, when
databases are swapped or emptied. Deadlines stand in a heap of (deadline, key); a pair that says no
more what the dict says is stale, and dropped when it comes up or when most of them are.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import i64

NO_PART: Final = 0  # instead of a deadline: no part expires
_SMALL_HEAP: Final = 64


class PartDeadlines:
    """The keys of one database with parts that expire.

    Attributes:
        first: the first deadline of each key, in milliseconds since 1970; nobody else changes it.

    Invariant: ``_order`` holds the pair of each key of ``first``.
    """

    def __init__(self) -> None:
        self.first: Final[dict[bytes, int]] = {}
        self._order: list[tuple[int, bytes]] = []

    def watch(self, key: bytes, deadline_ms: int) -> None:
        """Take it that the first part of ``key`` expires then, or none with ``NO_PART``."""
        first = self.first
        if deadline_ms == NO_PART:
            first.pop(key, None)
        elif first.get(key) != deadline_ms:
            first[key] = deadline_ms
            order = self._order
            heappush(order, (deadline_ms, key))
            if len(order) > _SMALL_HEAP and len(order) > 2 * len(first):
                self._order = [(first[each], each) for each in first]
                heapify(self._order)

    def next_due(self, now_ms: i64) -> bytes | None:
        """The key whose parts are to expire next, if the time of one is over; None without one.

        Whoever asks takes out what is due, and says what comes then.
        """
        order = self._order
        while order and order[0][0] < now_ms:
            deadline_ms, key = order[0]
            if self.first.get(key) == deadline_ms:
                return key
            heappop(order)
        return None
