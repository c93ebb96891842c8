"""Arrays outside memory: the pieces as they stand there, ARMSET, and Redis's own form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from headrace.persistence.forms.form import Commands, Form, Unsound, Walk, Writer
from headrace.persistence.forms.records import Intake, Reader, Record, Records
from headrace.persistence.rdb.kinds import ARRAY as RDB_ARRAY
from headrace.persistence.rdb.packings import spelled
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.persistence.rdb.values import NEVER_INSERTED, ArrayHead, array_parts
from headrace.storage.array import (
    ARRAY,
    EXHAUSTED,
    GREATEST,
    HEAD,
    PIECE_BITS,
    Array,
    elements,
    mask_of,
)
from headrace.storage.array import Walk as Pieces
from headrace.storage.packed.strings import count, is_sound

HEADER: Final = 36
PIECES: Final = 37

_NUMBERS: Final = 4  # of a header: length of the key, deadline, cursor, number of pieces
_AT_ONCE: Final = 256  # pieces in a step
_ELEMENTS_AT_ONCE: Final = 64  # in an ARMSET
_RDB_VERSION: Final = 14  # that of Redis 8.8
_INTEGER: Final = 1  # how an element stands in RDB
_TEXT: Final = 0
_SHORT_TEXT: Final = 3
_SHORT_BYTES: Final = 7


class ArrayWriter(Writer):
    """Writes arrays one after another."""

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        self.records.keys += 1
        array = cast("Array", value)
        head = Record(HEADER)
        head.add(key)
        head.table += [expire_ms, array.cursor, array.piece_count()]
        self.records.put(head)
        walk = _Written(self.records, array)
        return walk if walk.step() else None


class _Written(Walk):
    def __init__(self, records: Records, array: Array) -> None:
        self._records: Final = records
        self._pieces: Final = Pieces(array, 0, GREATEST, False)
        self._record: Final = Record(PIECES)
        self._last = -1

    def step(self) -> bool:
        record = self._record
        pieces = self._pieces
        for _ in range(_AT_ONCE):
            if not pieces.step():
                self._records.put(record)
                return False
            number = pieces.base >> PIECE_BITS
            record.table.append(number - self._last)
            self._last = number
            record.add(pieces.piece)
            if record.is_full():
                self._records.put(record)
        return True


class ArrayReader(Reader):
    """Reads arrays."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._array: Array | None = None  # whose pieces follow
        self._key = b""
        self._expire_ms = 0
        self._left = 0  # pieces that are still to come
        self._last = -1

    def goes_on(self, kind: int) -> bool:
        return kind == PIECES and self._array is not None

    def read(self, kind: int, table: list[int]) -> None:
        if kind == HEADER:
            self._begin(table)
        else:
            self._read_pieces(table)

    def _begin(self, table: list[int]) -> None:
        if len(table) != _NUMBERS or not 0 <= table[2] <= EXHAUSTED:
            raise self.intake.malformed("the four numbers of an array")
        self._key = self.intake.cut(table[0])
        self._expire_ms = table[1]
        self._array = Array()
        self._array.cursor = table[2]
        self._left = table[3]
        self._last = -1

    def _read_pieces(self, table: list[int]) -> None:
        array = self._array
        if array is None:
            raise self.intake.malformed("an array before its pieces")
        for at in range(0, len(table), 2):
            piece = self.intake.cut(table[at + 1])
            self._last += table[at]
            if table[at] <= 0 or self._last > GREATEST >> PIECE_BITS or not mask_of(piece):
                raise self.intake.malformed("pieces of an array in order")
            array.set_piece(self._last, piece)
            self._left -= 1

    def finish(self) -> None:
        array = self._array
        if array is None:
            return
        self._array = None
        if self._left or array.is_empty():
            raise self.intake.malformed("all pieces of an array")
        self.intake.place(self._key, array, self._expire_ms)


class _Rewrite(Walk):
    """ARMSET for some elements at a time, and then ARSEEK."""

    def __init__(self, commands: Commands, key: bytes, array: Array) -> None:
        self._commands: Final = commands
        self._key: Final = key
        self._cursor: Final = array.cursor
        self._pieces: Final = Pieces(array, 0, GREATEST, False)

    def step(self) -> bool:
        words = [b"ARMSET", self._key]
        pieces = self._pieces
        while len(words) < 2 * _ELEMENTS_AT_ONCE:
            if not pieces.step():
                if len(words) > 2:
                    self._commands.add(words)
                if self._cursor:
                    self._commands.add([b"ARSEEK", self._key, b"%d" % self._cursor])
                return False
            for slot, string in elements(pieces.piece):
                words += [b"%d" % (pieces.base + slot), string]
        self._commands.add(words)
        return True


class _Output(Walk):
    def __init__(self, output: RdbOutput, array: Array) -> None:
        self._output: Final = output
        self._pieces: Final = Pieces(array, 0, GREATEST, False)

    def step(self) -> bool:
        output = self._output
        for _ in range(_AT_ONCE):
            if not self._pieces.step():
                return False
            for slot, string in elements(self._pieces.piece):
                output.length(self._pieces.base + slot)
                integer = spelled(string)
                if integer is not None:
                    output.byte(_INTEGER)
                    output.little(integer, 8)
                else:
                    output.byte(_SHORT_TEXT if len(string) <= _SHORT_BYTES else _TEXT)
                    output.string(string)
        return True


class ArrayForm(Form):
    """Arrays."""

    def __init__(self) -> None:
        names = {HEADER: "array", PIECES: "pieces of an array"}
        super().__init__(
            ARRAY, "arrays", names, (RDB_ARRAY,), ["elements"], ArrayWriter, ArrayReader
        )

    def check(self, value: object) -> None:
        array = cast("Array", value)
        pieces = Pieces(array, 0, GREATEST, False)
        while pieces.step():
            strings = pieces.piece[HEAD:]
            if not is_sound(strings) or count(strings) != mask_of(pieces.piece).bit_count():
                raise Unsound("an array with a piece that is none")
        if array.length() > GREATEST + 1:
            raise Unsound("an array with an index that is too large")

    def rewrite(self, commands: Commands, key: bytes, value: object) -> Walk | None:
        walk = _Rewrite(commands, key, cast("Array", value))
        return walk if walk.step() else None

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        array = Array()
        head = ArrayHead(source)
        if head.inserted_at != NEVER_INSERTED:
            array.cursor = min(head.inserted_at + 1, EXHAUSTED)
        for part in array_parts(source, head.count):
            for place, value in zip(part.places, part.values, strict=True):
                if place > GREATEST:
                    raise source.damage("an index of an array")
                array.put(place, _text_of(value))
            yield None
        yield array

    def rdb_version(self, value: object) -> int:
        return _RDB_VERSION

    def rdb_type(self, value: object, version: int) -> int:
        return RDB_ARRAY

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        array = cast("Array", value)
        output.length(array.size())
        output.length(1 if array.cursor else 0)
        if array.cursor:
            output.length(array.cursor - 1)
        walk = _Output(output, array)
        return walk if walk.step() else None

    def lacking_counts(self, value: object) -> list[int]:
        return [1]

    def lacking_elsewhere(self, counts: list[int]) -> list[str]:
        arrays = counts[0]
        found = "An array" if arrays == 1 else f"{arrays} arrays"
        return [f"{found}, which Redis knows since 8.8 only."] if arrays else []


def _text_of(value: bytes | float) -> bytes:
    """Return an element as text; Redis keeps a fraction as a number if 17 digits give it back."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return b"%d" % value
    text = b"%.17g" % value
    return text if b"." in text or b"e" in text else text + b".0"
