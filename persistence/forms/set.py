"""Sets outside memory: rows of small ones in one record, the buckets of large ones, and SADD.

Small sets and buckets stand in a record as they stand in memory. Nothing is hashed to read them.
"""

from __future__ import annotations

from typing import Final, cast

from headrace.persistence.forms.commands import Commands
from headrace.persistence.forms.form import Form, Unsound, Walk, Writer
from headrace.persistence.forms.intake import Intake, Reader
from headrace.persistence.forms.records import Record, Records
from headrace.persistence.forms.set_rdb import SetRdb, read_set
from headrace.persistence.rdb.kinds import SET as RDB_SET
from headrace.persistence.rdb.kinds import VERSION_MIN
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.parts import SET_KINDS
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.packed.hashing import SEED_BITS
from headrace.storage.packed.strings import unpack
from headrace.storage.packed.table import DIRECTORY, MEMBERS, Table, table_of
from headrace.storage.set.set import SET, Set, flaw_of
from headrace.storage.set.small import HEAD

SMALL: Final = 28
LARGE: Final = 29
BUCKETS: Final = 30

_ROW: Final = 3  # numbers for a small one: lengths of the key and of what it is, and the deadline
_NUMBERS: Final = 6  # of a large one
_MEMBERS_AT_ONCE: Final = 64  # in an SADD


class SetWriter(Writer):
    """Collects small sets in rows; a large one is walked."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._small: Final = Record(SMALL)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        """See ``Writer``."""
        self.records.keys += 1
        rep = cast("Set", value).rep
        if isinstance(rep, Table):
            head = Record(LARGE)
            head.add(key)
            head.table.append(expire_ms)
            head.table += [rep.seed, rep.count, rep.fullest, rep.buckets]
            self.records.put(head)
            return _Buckets(self.records, rep)
        record = self._small
        record.add(key)
        record.add(rep)
        record.table.append(expire_ms)
        if record.is_full():
            self.records.put(record)
        return None

    def flush(self) -> None:
        """Put the rows."""
        self.records.put(self._small)


class _Buckets(Walk):
    """Writes the buckets of a large set, a directory at a time."""

    def __init__(self, records: Records, table: Table) -> None:
        self._records: Final = records
        self._left: Final = table.directories[::-1]
        self._record: Final = Record(BUCKETS)

    def step(self) -> bool:
        """See ``Walk``."""
        record = self._record
        for bucket in self._left.pop():
            record.add(bucket)
            if record.is_full():
                self._records.put(record)
        if self._left:
            return True
        self._records.put(record)
        return False


class SetReader(Reader):
    """Reads rows of small sets, and the buckets of large ones."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._key = b""
        self._numbers: list[int] = []  # of a large one whose buckets follow
        self._directories: list[list[bytes]] = []
        self._left = 0  # buckets that are still to come

    def goes_on(self, kind: int) -> bool:
        """See ``Reader``."""
        return kind == BUCKETS and bool(self._numbers)

    def read(self, kind: int, table: list[int]) -> None:
        """See ``Reader``."""
        if kind == SMALL:
            self._read_small(table)
        elif kind == LARGE:
            self._begin(table)
        else:
            self._read_buckets(table)

    def _read_small(self, table: list[int]) -> None:
        intake = self.intake
        for row in range(0, len(table), _ROW):
            key = intake.cut(table[row])
            rep = intake.cut(table[row + 1])
            if len(rep) < HEAD:
                raise intake.malformed("the number of members")
            intake.place(key, Set(rep), table[row + 2])

    def _begin(self, table: list[int]) -> None:
        if len(table) != _NUMBERS:
            raise self.intake.malformed("the six numbers of a set")
        self._key = self.intake.cut(table[0])
        self._numbers = table
        self._directories = []
        self._left = table[-1]
        if not 0 <= table[2] < 1 << SEED_BITS:
            raise self.intake.malformed("a seed")

    def _read_buckets(self, table: list[int]) -> None:
        if not self._numbers:
            raise self.intake.malformed("a set before its buckets")
        directories = self._directories
        self._left -= len(table)
        for size in table:
            bucket = self.intake.cut(size)
            if directories and len(directories[-1]) < DIRECTORY:
                directories[-1].append(bucket)
            else:
                directories.append([bucket])

    def finish(self) -> None:
        """A large one is complete; see ``Reader``."""
        if not self._numbers:
            return
        _, expire_ms, seed, count, fullest, _ = self._numbers
        table = table_of(MEMBERS, seed, count, fullest, self._directories)
        self._numbers = []
        self._directories = []
        if table is None or self._left or not count:
            raise self.intake.malformed("all buckets of a set")
        self.intake.place(self._key, Set(table), expire_ms)


class _Rewrite(Walk):
    """SADD for some members at a time."""

    def __init__(self, commands: Commands, key: bytes, value: Set) -> None:
        self._commands: Final = commands
        self._key: Final = key
        self._left: Final = value.pieces()[::-1]
        self._members: list[bytes] = []  # of the piece at hand, in order

    def step(self) -> bool:
        """See ``Walk``."""
        members = self._members
        while self._left and len(members) < _MEMBERS_AT_ONCE:
            members += unpack(self._left.pop())
        self._commands.add([b"SADD", self._key, *members[:_MEMBERS_AT_ONCE]])
        self._members = members[_MEMBERS_AT_ONCE:]
        return bool(self._members or self._left)


class SetForm(Form):
    """Sets."""

    def type_name(self) -> bytes:
        """See ``Form``."""
        return SET

    def plural(self) -> str:
        """See ``Form``."""
        return "sets"

    def record_kinds(self) -> dict[int, str]:
        """See ``Form``."""
        return {SMALL: "sets", LARGE: "large set", BUCKETS: "buckets of a set"}

    def writer(self, records: Records) -> SetWriter:
        """See ``Form``."""
        return SetWriter(records)

    def reader(self, intake: Intake) -> SetReader:
        """See ``Form``."""
        return SetReader(intake)

    def check(self, value: object) -> None:
        """See ``Form``."""
        flaw = flaw_of(cast("Set", value))
        if flaw:
            raise Unsound(f"a set with {flaw}")

    def rewrite(self, commands: Commands, key: bytes, value: object) -> Walk | None:
        """See ``Form``."""
        walk = _Rewrite(commands, key, cast("Set", value))
        return walk if walk.step() else None

    def rdb_types(self) -> list[int]:
        """See ``RdbValues``."""
        return list(SET_KINDS)

    def read_rdb(self, source: RdbSource, number: int, defaults: dict[str, int]) -> Set:
        """See ``RdbValues``."""
        return read_set(source, number, defaults)

    def rdb_version(self, value: object) -> int:
        """See ``Form``."""
        return VERSION_MIN

    def rdb_type(self, value: object, version: int) -> int:
        """See ``Form``."""
        return RDB_SET

    def write_rdb(self, output: RdbOutput, value: object) -> SetRdb:
        """See ``Form``."""
        return SetRdb(output, cast("Set", value))

    def part_names(self) -> list[str]:
        """See ``Form``."""
        return ["members"]

    def part_counts(self, value: object) -> list[int]:
        """See ``Form``."""
        return [cast("Set", value).size()]

    def lacking_elsewhere(self, values: list[object]) -> list[str]:
        """Every server reads sets."""
        return []
