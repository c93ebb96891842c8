"""Tallies outside memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from headrace.persistence.forms.form import Commands, Form, Unsound, Walk, Writer
from headrace.persistence.forms.records import INT64_MAX, INT64_MIN, Reader, Record
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from support.tally.value import TALLY, FrozenTally, Tally

RECORD = 200
RDB_TALLY = 100  # no server of Redis has it
MARKS_AT_ONCE = 10


class TallyWriter(Writer):
    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        record = Record(RECORD)
        record.add(key)
        record.table += [expire_ms, *cast("FrozenTally", value).marks]
        self.records.keys += 1
        self.records.put(record)
        return None


class TallyReader(Reader):
    def read(self, kind: int, table: list[int]) -> None:
        size, expire_ms, *marks = table
        self.intake.place(self.intake.cut(size), Tally(marks), expire_ms)


class TallyRewrite(Walk):
    """TALLY.ADD for each mark, a few at a time."""

    def __init__(self, commands: Commands, key: bytes, marks: list[int]) -> None:
        self.commands = commands
        self.key = key
        self.left = marks[::-1]

    def step(self) -> bool:
        for _ in range(MARKS_AT_ONCE):
            if self.left:
                self.commands.add([b"TALLY.ADD", self.key, b"%d" % self.left.pop()])
        return bool(self.left)


class TallyForm(Form):
    def __init__(self) -> None:
        super().__init__(
            TALLY, "tallies", {RECORD: "tally"}, (RDB_TALLY,), ["marks"], TallyWriter, TallyReader
        )

    def check(self, value: object) -> None:
        if not all(INT64_MIN <= mark <= INT64_MAX for mark in cast("Tally", value).marks):
            raise Unsound("a mark out of range")

    def rewrite(self, commands: Commands, key: bytes, value: object) -> TallyRewrite:
        return TallyRewrite(commands, key, cast("FrozenTally", value).marks)

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        yield Tally([source.signed(8) for _ in range(source.many(8))])

    def rdb_version(self, value: object) -> int:
        return 0

    def rdb_type(self, value: object, version: int) -> int:
        return RDB_TALLY

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        marks = cast("FrozenTally", value).marks
        output.length(len(marks))
        for mark in marks:
            output.little(mark, 8)
        return None

    def lacking_counts(self, value: object) -> list[int]:
        return [1]

    def lacking_elsewhere(self, counts: list[int]) -> list[str]:
        return [f"{counts[0]} tallies, which Redis does not know."] if counts[0] else []
