"""Sets outside memory: in records, as SADD, and in all types of Redis's RDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from headrace.persistence.forms.buckets import TABLE_NUMBERS, BucketsWalk, TableIntake, put_head
from headrace.persistence.forms.form import Commands, Form, Unsound, Walk, Writer
from headrace.persistence.forms.records import NO_DEADLINE, Intake, Reader, Record, Records
from headrace.persistence.rdb.kinds import SET, SET_INTSET, SET_LISTPACK, VERSION_PACKED
from headrace.persistence.rdb.packings import Listpack, intset_of
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.persistence.rdb.values import SET_KINDS, set_count, set_parts, strings
from headrace.storage.packed.strings import unpack
from headrace.storage.packed.table import MEMBERS, Table
from headrace.storage.set.set import INTSET, Set, flaw_of, packed_set
from headrace.storage.set.set import SET as TYPE_NAME
from headrace.storage.set.small import HEAD, SetLimits

_PIECES_AT_ONCE: Final = 32


class _Members(Walk):
    def __init__(self, output: RdbOutput, value: Set) -> None:
        self._output: Final = output
        self._left: Final = value.pieces()[::-1]
        output.length(value.size())

    def step(self) -> bool:
        left = self._left
        for _ in range(min(_PIECES_AT_ONCE, len(left))):
            for member in unpack(left.pop()):
                self._output.string(member)
        return bool(left)


SMALL: Final = 28
LARGE: Final = 29
BUCKETS: Final = 30

_ROW: Final = 3  # numbers for a small one: lengths of the key and of the value, and the deadline
_NUMBERS: Final = 2 + TABLE_NUMBERS  # of a large one
_MEMBERS_AT_ONCE: Final = 64  # in an SADD


class SetWriter(Writer):
    """Collects small sets in rows; a large one is walked."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._small: Final = Record(SMALL)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        self.records.keys += 1
        rep = cast("Set", value).rep
        if isinstance(rep, Table):
            put_head(self.records, LARGE, key, expire_ms, [rep])
            return BucketsWalk(self.records, BUCKETS, rep.directories)
        self.records.put_row(self._small, key, rep, expire_ms)
        return None

    def flush(self) -> None:
        self.records.put(self._small)


class SetReader(Reader):
    """Reads rows of small sets, and the buckets of large ones."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._key = b""
        self._expire_ms = NO_DEADLINE
        self._table: TableIntake | None = None  # of a large one whose buckets follow

    def goes_on(self, kind: int) -> bool:
        return kind == BUCKETS and self._table is not None

    def read(self, kind: int, table: list[int]) -> None:
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
        members = self._members
        while self._left and len(members) < _MEMBERS_AT_ONCE:
            members += unpack(self._left.pop())
        self._commands.add([b"SADD", self._key, *members[:_MEMBERS_AT_ONCE]])
        self._members = members[_MEMBERS_AT_ONCE:]
        return bool(self._members or self._left)


class SetForm(Form):
    """Sets."""

    def __init__(self) -> None:
        names = {SMALL: "sets", LARGE: "large set", BUCKETS: "buckets of a set"}
        super().__init__(TYPE_NAME, "sets", names, SET_KINDS, ["members"], SetWriter, SetReader)

    def check(self, value: object) -> None:
        flaw = flaw_of(cast("Set", value))
        if flaw:
            raise Unsound(f"a set with {flaw}")

    def rewrite(self, commands: Commands, key: bytes, value: object) -> Walk | None:
        walk = _Rewrite(commands, key, cast("Set", value))
        return walk if walk.step() else None

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        """Read as ``Form``.

        As in Redis, the length of members says nothing where they come in one listpack, and a set
        that is written as strings begins large if that many integers would be.
        """
        limits = SetLimits(
            defaults.get("set-max-intset-entries", 512),
            defaults.get("set-max-listpack-entries", 128),
            defaults.get("set-max-listpack-value", 64),
        )
        if number == SET_LISTPACK:
            members = next(set_parts(source, number))
            packed = packed_set(members, limits.elements)
            if packed is None:
                raise source.damage("each member once")
            yield packed
            return
        made = Set()
        if number == SET:
            count = set_count(source)
            made.expect(count, limits)
            parts = strings(source, count)
        else:
            parts = set_parts(source, number)
        for some in parts:
            for member in some:
                if not made.add(member, limits):
                    raise source.damage("each member once")
            yield None
        yield made

    def rdb_type(self, value: object, version: int) -> int:
        """Return as ``Form``: a small one stays small."""
        content = cast("Set", value)
        if version < VERSION_PACKED or content.small_piece() is None:
            return SET
        return SET_INTSET if content.encoding(b"") == INTSET else SET_LISTPACK

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        content = cast("Set", value)
        kind = self.rdb_type(value, output.version)
        if kind == SET_INTSET:
            output.string(intset_of([int(member) for member in content.members()]))
            return None
        if kind == SET_LISTPACK:
            made = Listpack()
            for member in content.members():
                made.text(member)
            output.string(made.packed())
            return None
        return _Members(output, content)
