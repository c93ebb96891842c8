"""Strings outside memory: rows of many in one record, SET, and RDB's first type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.persistence.forms.form import Commands, Form, Walk, Writer
from headrace.persistence.forms.records import (
    INT64_MAX,
    INT64_MIN,
    NO_DEADLINE,
    PAYLOAD_BYTES,
    TABLE_NUMBERS,
    Reader,
    Record,
    Records,
)
from headrace.persistence.rdb.kinds import STRING as RDB_STRING
from headrace.persistence.rdb.packings import spelled
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.storage.string.string import STRING, string_bytes

STRINGS: Final = 3
INTEGERS: Final = 4
MORTAL_STRINGS: Final = 5  # as the two above, each with a deadline
MORTAL_INTEGERS: Final = 6
_PIECE_BYTES: Final = 1 << 18  # of a long string


class StringWriter(Writer):
    """Collects keys in rows, those with and without deadlines, texts and integers apart."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._strings: Final = Record(STRINGS)
        self._integers: Final = Record(INTEGERS)
        self._mortal_strings: Final = Record(MORTAL_STRINGS)
        self._mortal_integers: Final = Record(MORTAL_INTEGERS)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        records = self.records
        records.keys += 1
        if isinstance(value, bytes):
            record = self._strings if expire_ms == NO_DEADLINE else self._mortal_strings
            table = record.table
            table.append(len(key))
            table.append(len(value))
            record.data.append(key)
            record.data.append(value)
            record.size += len(key) + len(value)
        else:
            assert isinstance(value, int)
            record = self._integers if expire_ms == NO_DEADLINE else self._mortal_integers
            table = record.table
            table.append(len(key))
            table.append(value)
            record.data.append(key)
            record.size += len(key)
        if expire_ms != NO_DEADLINE:
            table.append(expire_ms)
        if record.size > PAYLOAD_BYTES or len(table) > TABLE_NUMBERS:
            records.put(record)
        return None

    def flush(self) -> None:
        self.records.put(self._strings)
        self.records.put(self._integers)
        self.records.put(self._mortal_strings)
        self.records.put(self._mortal_integers)


class StringReader(Reader):
    """Reads rows of keys."""

    def read(self, kind: int, table: list[int]) -> None:
        if kind in (STRINGS, MORTAL_STRINGS):
            self._strings(table, kind == MORTAL_STRINGS)
        else:
            self._integers(table, kind == MORTAL_INTEGERS)

    def _strings(self, table: list[int], mortal: bool) -> None:
        intake = self.intake
        expire_ms = NO_DEADLINE
        width = 3 if mortal else 2
        frame = intake.frame
        at = intake.at
        end = intake.end
        now_ms = intake.now_ms
        # Most keys of most snapshots come this way: without ``place``.
        db = None if mortal else intake.database()
        for row in range(0, len(table), width):
            middle = at + table[row]
            stop = middle + table[row + 1]
            if not at <= middle <= stop <= end:
                raise intake.malformed("data that ends with its frame")
            key = frame[at:middle]
            if db is not None:
                if not db.load(key, frame[middle:stop], NO_DEADLINE, now_ms):
                    raise intake.doubled(key)
                intake.keys += 1
            else:
                if mortal:
                    expire_ms = table[row + 2]
                intake.place(key, frame[middle:stop], expire_ms)
            at = stop
        intake.at = at

    def _integers(self, table: list[int], mortal: bool) -> None:
        intake = self.intake
        expire_ms = NO_DEADLINE
        width = 3 if mortal else 2
        for row in range(0, len(table), width):
            if mortal:
                expire_ms = table[row + 2]
            value = table[row + 1]
            if not INT64_MIN <= value <= INT64_MAX:
                raise intake.malformed("an integer of 64 bits")
            intake.place(intake.cut(table[row]), value, expire_ms)


def _read_long(source: RdbSource) -> Iterator[object]:
    for value in source.long_value():
        integer = spelled(value) if isinstance(value, bytes) else None
        yield value if integer is None else integer


class _LongString(Walk):
    """A string that is written in pieces, so that it does not block clients."""

    def __init__(self, output: RdbOutput, text: bytes) -> None:
        self._output: Final = output
        self._text: Final = text
        self._at = 0

    def step(self) -> bool:
        end = self._at + _PIECE_BYTES
        self._output.raw(self._text[self._at : end])
        self._at = end
        return end < len(self._text)


class StringForm(Form):
    """Strings."""

    def __init__(self) -> None:
        names = {
            STRINGS: "strings",
            INTEGERS: "integers",
            MORTAL_STRINGS: "mortal strings",
            MORTAL_INTEGERS: "mortal integers",
        }
        super().__init__(STRING, "strings", names, (RDB_STRING,), [], StringWriter, StringReader)

    def check(self, value: object) -> None:
        """Any bytes are a string."""

    def rewrite(self, commands: Commands, key: bytes, value: object) -> Walk | None:
        text = value if isinstance(value, bytes) else string_bytes(value)
        commands.add([b"SET", key, text or b""])
        return None

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        if source.is_long():
            return _read_long(source)
        value = source.value()
        integer = value if isinstance(value, int) else spelled(value)
        return iter((value if integer is None else integer,))

    def rdb_type(self, value: object, version: int) -> int:
        return RDB_STRING

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        text = value if isinstance(value, bytes) else string_bytes(value)
        if text is not None and len(text) > _PIECE_BYTES:
            output.length(len(text))
            return _LongString(output, text)
        output.string(text or b"")
        return None

    def part_counts(self, value: object) -> list[int]:
        return []
