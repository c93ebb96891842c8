"""A large hash of which fields expire: two tables, and the order in which fields are due.

The second table has the deadlines, as scores. The order is a heap of (deadline, field). A pair
whose field has gone, or has another deadline by now, is stale, and dropped when it comes up. When
most of them are stale, the heap is made anew.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from librt.strings import BytesWriter, read_f64_le
from mypy_extensions import i64, mypyc_attr

from headrace.storage.hash.cutting import Reading, cut, read_table
from headrace.storage.hash.timed import NEVER, Timed, has_passed
from headrace.storage.packed.hashing import new_seed
from headrace.storage.packed.strings import next_at, string_at
from headrace.storage.packed.table import SCORE_BYTES, SCORES, Table

_SMALL_HEAP: Final = 64
_PAIR_BYTES: Final = 56 + 32 + 33 + 8  # of the heap: tuple, int, bytes and a place


@mypyc_attr(acyclic=True)
class TimedTable(Timed):
    """Fields with values and deadlines.

    Attributes:
        table: the fields and their values.
        times: the deadlines of those that have one.
    """

    def __init__(self, table: Table, times: Table, order: list[tuple[int, bytes]]) -> None:
        self.table: Final = table
        self.times: Final = times
        self._order = order

    def count(self) -> i64:
        """See ``Timed``."""
        return self.table.count

    def get(self, field: bytes) -> bytes | None:
        """See ``Timed``."""
        return self.table.get(field)

    def put(self, field: bytes, value: bytes, keeps: bool) -> bool:
        """See ``Timed``."""
        if not keeps:
            self.times.remove(field)
        return self.table.put(field, value)

    def remove(self, field: bytes) -> bool:
        """See ``Timed``."""
        self.times.remove(field)
        return self.table.remove(field)

    def deadline_ms(self, field: bytes) -> i64:
        """See ``Timed``."""
        deadline_ms = self.times.score(field)
        return i64(int(deadline_ms)) if deadline_ms == deadline_ms else NEVER

    def expire_at(self, field: bytes, deadline_ms: i64) -> None:
        """See ``Timed``."""
        if deadline_ms == NEVER:
            self.times.remove(field)
            return
        self.times.put_score(field, float(deadline_ms))
        order = self._order
        heappush(order, (int(deadline_ms), field))
        if len(order) > _SMALL_HEAP and len(order) > 2 * self.times.count:
            self._order = [pair for pair in order if self._is_fresh(pair)]
            heapify(self._order)

    def first_ms(self) -> i64:
        """See ``Timed``."""
        order = self._order
        while order:
            if self._is_fresh(order[0]):
                return order[0][0]
            heappop(order)
        return NEVER

    def has_deadlines(self) -> bool:
        """See ``Timed``."""
        return self.times.count > 0

    def take_due(self, now_ms: i64, most: i64) -> list[bytes]:
        """See ``Timed``."""
        found: list[bytes] = []
        order = self._order
        while order and order[0][0] < now_ms and len(found) < most:
            pair = heappop(order)
            if self._is_fresh(pair):
                self.remove(pair[1])
                found.append(pair[1])
        return found

    def read(self, what: i64, now_ms: i64) -> Reading:
        """See ``Timed``."""
        first_ms = self.first_ms()
        if not has_passed(first_ms, now_ms):
            return read_table(self.table, what)
        pieces: list[bytes] = []
        count: i64 = 0
        for directory in self.table.directories:
            for bucket in directory:
                living = self.living(bucket, now_ms)
                at: i64 = 0
                while at < len(living):
                    at = next_at(living, at, 2)
                    count += 1
                pieces.append(cut(living, 0, what))
        return Reading(count, pieces)

    def living(self, bucket: bytes, now_ms: i64) -> bytes:
        """The pairs of a bucket whose fields have not expired."""
        out = BytesWriter()
        at: i64 = 0
        end: i64 = len(bucket)
        while at < end:
            stop = next_at(bucket, at, 2)
            if not has_passed(self.deadline_ms(string_at(bucket, at)), now_ms):
                out.write(bucket[at:stop])
            at = stop
        return out.getvalue()

    def copy(self) -> TimedTable:
        """See ``Timed``."""
        return TimedTable(self.table.copy(), self.times.copy(), self._order[:])

    def without_order(self) -> TimedTable:
        """A copy of which nobody asks what is due. Complexity: O(directories)."""
        return TimedTable(self.table.copy(), self.times.copy(), [])

    def used_bytes(self) -> int:
        """See ``Timed``."""
        return self.table.used_bytes() + self.times.used_bytes() + _PAIR_BYTES * len(self._order)

    def _is_fresh(self, pair: tuple[int, bytes]) -> bool:
        return self.deadline_ms(pair[1]) == pair[0]


def timed_table(table: Table) -> TimedTable:
    """What a large hash without deadlines is with them; none of its fields has one yet."""
    return TimedTable(table, Table(SCORES, new_seed()), [])


def table_with_times(table: Table, times: Table) -> TimedTable:
    """A large hash as it comes from a file: the order is made anew."""
    order: list[tuple[int, bytes]] = []
    for directory in times.directories:
        for bucket in directory:
            at: i64 = 0
            while at < len(bucket):
                rest = next_at(bucket, at)
                order.append((int(read_f64_le(bucket, rest)), string_at(bucket, at)))
                at = rest + SCORE_BYTES
    heapify(order)
    return TimedTable(table, times, order)
