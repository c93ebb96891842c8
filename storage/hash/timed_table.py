"""A large hash of which fields expire: two tables, and the order in which fields are due.

The second table has the deadlines, as scores.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_f64_le
from mypy_extensions import i64, mypyc_attr

from headrace.storage.due import NOTHING, PAIR_BYTES, STALE_AT_ONCE, DueOrder, pair_of
from headrace.storage.hash.cutting import Reading, cut, read_table
from headrace.storage.hash.timed import NEVER, Timed, has_passed
from headrace.storage.heap import Heap, heap_of
from headrace.storage.packed.hashing import new_seed
from headrace.storage.packed.strings import next_at, string_at
from headrace.storage.packed.table import SCORE_BYTES, SCORES, Table

_FIELD_BYTES: Final = 16  # of a field that is due, about
_FREED_WITH_A_PIECE: Final = 128  # pairs


@mypyc_attr(acyclic=True)
class FieldOrder(DueOrder):
    """The fields of a hash in the order in which they are due.

    Args:
        times: the deadlines, as scores.
    """

    def __init__(self, times: Table, pairs: Heap) -> None:
        super().__init__(pairs)
        self._times: Final = times

    def moment_of(self, name: bytes) -> i64:
        """See ``DueOrder``."""
        moment_ms = self._times.score(name)
        return i64(int(moment_ms)) if moment_ms == moment_ms else NOTHING


@mypyc_attr(acyclic=True)
class TimedTable(Timed):
    """Fields with values and deadlines.

    Attributes:
        table: the fields and their values.
        times: the deadlines of those that have one.
    """

    def __init__(self, table: Table, times: Table, pairs: Heap) -> None:
        self.table: Final = table
        self.times: Final = times
        self._order: Final = FieldOrder(times, pairs)

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
        self._order.add(field, deadline_ms, self.times.count)

    def first_ms(self) -> i64:
        """See ``Timed``."""
        if not self.times.count:
            return NEVER
        first_ms = self._order.next_ms()
        return NEVER if first_ms == NOTHING else first_ms

    def has_deadlines(self) -> bool:
        """See ``Timed``."""
        return self.times.count > 0

    def take_due(self, now_ms: i64, most: i64) -> list[bytes]:
        """See ``Timed``."""
        found: list[bytes] = []
        order = self._order
        looks = most + STALE_AT_ONCE
        while looks > 0 and len(found) < most:
            first_ms = order.first_ms()
            if first_ms == NOTHING or first_ms >= now_ms:
                break
            looks -= 1
            field = order.take_first()
            if field is not None:
                self.remove(field)
                found.append(field)
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
        return TimedTable(self.table.copy(), self.times.copy(), self._order.pairs.copy())

    def without_order(self) -> TimedTable:
        """A copy of which nobody asks what is due. Complexity: O(directories)."""
        return TimedTable(self.table.copy(), self.times.copy(), Heap())

    def free_some(self, most: int) -> bool:
        """Free about ``most`` pieces of what nobody uses any more; True at the end."""
        return (
            self.table.free_some(most)
            and self.times.free_some(most)
            and self._order.free_some(most * _FREED_WITH_A_PIECE)
        )

    def used_bytes(self) -> int:
        """See ``Timed``."""
        order = (PAIR_BYTES + _FIELD_BYTES) * int(self._order.pairs.size)
        return self.table.used_bytes() + self.times.used_bytes() + order


def timed_table(table: Table) -> TimedTable:
    """What a large hash without deadlines is with them; none of its fields has one yet."""
    return TimedTable(table, Table(SCORES, new_seed()), Heap())


def table_with_times(table: Table, times: Table) -> TimedTable:
    """A large hash as it comes from a file: the order is made anew."""
    pairs: list[bytes] = []
    for directory in times.directories:
        for bucket in directory:
            at: i64 = 0
            while at < len(bucket):
                rest = next_at(bucket, at)
                moment_ms = i64(int(read_f64_le(bucket, rest)))
                pairs.append(pair_of(moment_ms, string_at(bucket, at)))
                at = rest + SCORE_BYTES
    return TimedTable(table, times, heap_of(pairs))
