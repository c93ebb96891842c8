"""Tables of packed buckets in records: what large sets, hashes and sorted sets have in common.

Buckets stand there as they stand in memory, in the order of their numbers. Nothing is hashed to
read them.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.forms.records import Intake, Record, Records
from headrace.storage.packed.table import DIRECTORY, SEED_BITS, Table, table_of

TABLE_NUMBERS: Final = 4


def numbers_of(table: Table) -> list[int]:
    """Return what stands in a file for a table besides its buckets, ``TABLE_NUMBERS`` of them."""
    return [int(table.seed), int(table.count), int(table.fullest), int(table.buckets)]


class BucketsWalk(Walk):
    """Writes buckets, a directory at a time.

    Args:
        kind: of the records; directories: of tables, one table after the other.
    """

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
    """A table that is being read.

    Args:
        kind: of the table.
        numbers: what ``numbers_of`` returned.
        what: what holds the table, for messages.

    Attributes:
        left: how many buckets are still to come.

    Raises:
        Malformed: these are no numbers of a table.
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
        """Read buckets of these lengths. Raises: Malformed; they are more than were said."""
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
        """The table, all of whose buckets were read.

        Raises:
            Malformed: some were not, or they make no table.
        """
        table = table_of(self._kind, self._seed, self._count, self._fullest, self._directories)
        if table is None or self.left:
            raise self._intake.malformed(f"all buckets of {self._what}")
        return table
