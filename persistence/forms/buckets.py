"""Tables of packed buckets in records, for large sets, hashes and sorted sets.

Buckets stand there as they stand in memory, in the order of their numbers. Nothing is hashed to
read them.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.forms.records import Intake, Record, Records
from headrace.storage.packed.table import DIRECTORY, SEED_BITS, Table, table_of

TABLE_NUMBERS: Final = 4


def put_head(records: Records, kind: int, key: bytes, expire_ms: int, tables: list[Table]) -> None:
    """Put a record of a key and of the ``TABLE_NUMBERS`` numbers of its tables, without buckets."""
    head = Record(kind)
    head.add(key)
    head.table.append(expire_ms)
    for table in tables:
        head.table += [int(table.seed), int(table.count), int(table.fullest), int(table.buckets)]
    records.put(head)


class BucketsWalk(Walk):
    """Writes buckets, a directory at a time, of tables one after the other."""

    def __init__(self, records: Records, kind: int, directories: list[list[bytes]]) -> None:
        self._records: Final = records
        self._kind: Final = kind
        self._left: Final = directories[::-1]

    def step(self) -> bool:
        record = Record(self._kind)
        for bucket in self._left.pop():
            record.add(bucket)
        self._records.put(record)
        return bool(self._left)


class TableIntake:
    """A table that is being read. Raises Malformed if these are no numbers of a table.

    Args:
        numbers: those that ``put_head`` puts for a table.
        what: the kind of value with the table, for messages.

    Attributes:
        left: how many buckets are still to come.
    """

    def __init__(self, intake: Intake, kind: int, numbers: list[int], what: str) -> None:
        self._intake: Final = intake
        self._kind: Final = kind
        self._what: Final = what
        self._seed, self._count, self._fullest, self.left = numbers
        self._directories: Final[list[list[bytes]]] = []
        if min(numbers) < 0 or max(numbers) >= 1 << SEED_BITS:
            raise intake.malformed("numbers of a table")

    def take(self, sizes: list[int]) -> None:
        """Read buckets of these lengths. Raises Malformed if they are more than were said."""
        self.left -= len(sizes)
        if self.left < 0:
            raise self._intake.malformed("as many buckets as were said")
        directories = self._directories
        for size in sizes:
            bucket = self._intake.cut(size)
            if directories and len(directories[-1]) < DIRECTORY:
                directories[-1].append(bucket)
            else:
                directories.append([bucket])

    def table(self) -> Table:
        """Return the table. Raises Malformed if buckets are missing, or make no table."""
        table = table_of(self._kind, self._seed, self._count, self._fullest, self._directories)
        if table is None or self.left:
            raise self._intake.malformed(f"all buckets of {self._what}")
        return table
