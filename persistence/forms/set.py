"""Sets outside memory: rows of small ones in one record, the buckets of large ones, and SADD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from headrace.persistence.forms.buckets import (
    TABLE_NUMBERS,
    BucketsWalk,
    TableIntake,
    numbers_of,
)
from headrace.persistence.forms.commands import Commands
from headrace.persistence.forms.form import Form, Unsound, Walk, Writer
from headrace.persistence.forms.intake import Intake, Reader
from headrace.persistence.forms.records import NO_DEADLINE, Record, Records
from headrace.persistence.forms.set_rdb import read_set, set_type, write_set
from headrace.persistence.rdb.kinds import VERSION_MIN
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.parts import SET_KINDS
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.packed.strings import unpack
from headrace.storage.packed.table import MEMBERS, Table
from headrace.storage.set.set import SET, Set, flaw_of
from headrace.storage.set.small import HEAD

SMALL: Final = 28
LARGE: Final = 29
BUCKETS: Final = 30

_ROW: Final = 3  # numbers for a small one: lengths of the key and of what it is, and the deadline
_NUMBERS: Final = 2 + TABLE_NUMBERS  # of a large one
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
            head.table += [expire_ms, *numbers_of(rep)]
            self.records.put(head)
            return BucketsWalk(self.records, BUCKETS, rep.directories)
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


class SetReader(Reader):
    """Reads rows of small sets, and the buckets of large ones."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._key = b""
        self._expire_ms = NO_DEADLINE
        self._table: TableIntake | None = None  # of a large one whose buckets follow

    def goes_on(self, kind: int) -> bool:
        """See ``Reader``."""
        return kind == BUCKETS and self._table is not None

    def read(self, kind: int, table: list[int]) -> None:
        """See ``Reader``."""
        if kind == SMALL:
            self._read_small(table)
        elif kind == LARGE:
            self._begin(table)
        elif self._table is None:
            raise self.intake.malformed("a set before its buckets")
        else:
            self._table.take(table)

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
        self._expire_ms = table[1]
        self._table = TableIntake(self.intake, MEMBERS, table[2:], "a set")

    def finish(self) -> None:
        """A large one is complete; see ``Reader``."""
        if self._table is None:
            return
        table = self._table.table()
        self._table = None
        if not table.count:
            raise self.intake.malformed("a set with members")
        self.intake.place(self._key, Set(table), self._expire_ms)


class _Rewrite(Walk):
    """SADD for some members at a time."""

    def __init__(self, commands: Commands, key: bytes, value: Set) -> None:
        self._commands: Final = commands
        self._key: Final = key
        self._left: Final = value.pieces()[::-1]
        self._members: list[bytes] = []  # of the pieces so far that no SADD has named

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

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        """See ``RdbValues``."""
        return read_set(source, number, defaults)

    def rdb_version(self, value: object) -> int:
        """See ``Form``."""
        return VERSION_MIN

    def rdb_type(self, value: object, version: int) -> int:
        """See ``Form``."""
        return set_type(cast("Set", value), version)

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        """See ``Form``."""
        return write_set(output, cast("Set", value))

    def part_names(self) -> list[str]:
        """See ``Form``."""
        return ["members"]

    def part_counts(self, value: object) -> list[int]:
        """See ``Form``."""
        return [cast("Set", value).size()]
