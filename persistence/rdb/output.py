"""Writes RDB: lengths, strings and numbers, as ``source`` reads them.

Strings are written as they are, or as integers where they spell short ones, and are not compressed.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_f64_le

from headrace.persistence.rdb.kinds import NOTE
from headrace.persistence.rdb.listpack import spelled

_LONGEST_INTEGER: Final = 11  # of a text that is written as one
_INTEGER_BYTES: Final = (1, 2, 4)
_AS_INTEGER: Final = 0xC0
_ONE_BYTE: Final = 1 << 6  # lengths below take one byte
_DOUBLE_BYTES: Final = 8
_JOINED_BYTES: Final = 1 << 14  # at least, of a piece that is kept as it comes
_PIECE_BYTES: Final = 1 << 16  # about, of one that others are joined to


class RdbOutput:
    """Collects bytes.

    Args:
        version: of the form; what it does not know must not be written.

    Attributes:
        size_bytes: the length of what ``take`` would return.
        notes: names and texts in turn: what is to stand behind the value that is being written,
            because its type has no place for it. Servers pass over notes that they do not know.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.size_bytes = 0
        self.notes: list[bytes] = []
        self._made: list[bytes] = []  # before what is in ``_joined``
        self._joined = BytesWriter()

    def raw(self, data: bytes) -> None:
        """Add bytes as they are."""
        size = len(data)
        self.size_bytes += size
        if size >= _JOINED_BYTES:
            self._end_piece()
            self._made.append(data)
            return
        self._joined.write(data)
        if len(self._joined) >= _PIECE_BYTES:
            self._end_piece()

    def byte(self, number: int) -> None:
        """Add one byte."""
        self._joined.append(number)
        self.size_bytes += 1

    def little(self, number: int, size: int) -> None:
        """Add a number in ``size`` bytes, lowest first; one below 0 as its complement."""
        self.raw((number & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def double(self, number: float) -> None:
        """Add a double."""
        write_f64_le(self._joined, number)
        self.size_bytes += _DOUBLE_BYTES

    def length(self, number: int) -> None:
        """Add a length, or another number from 0 to 2^64 - 1."""
        if number < _ONE_BYTE:
            self.byte(number)
        else:
            self.raw(length(number))

    def string(self, text: bytes) -> None:
        """Add a string."""
        size = len(text)
        if size <= _LONGEST_INTEGER:
            number = spelled(text)
            if number is not None and self._integer(number):
                return
        self.length(size)
        self.raw(text)

    def write_notes(self, notes: list[bytes]) -> None:
        """Add names and texts, in turn, as notes."""
        for place in range(0, len(notes), 2):
            self.byte(NOTE)
            self.string(notes[place])
            self.string(notes[place + 1])

    def end_value(self) -> None:
        """Add the notes on the value that has been written."""
        if self.notes:
            self.write_notes(self.notes)
            self.notes = []

    def _integer(self, number: int) -> bool:
        for kind, size in enumerate(_INTEGER_BYTES):
            if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
                self.raw(bytes([_AS_INTEGER | kind]) + number.to_bytes(size, "little", signed=True))
                return True
        return False

    def take(self) -> list[bytes]:
        """Return what has been added since the last call; short pieces are joined."""
        self._end_piece()
        made = self._made
        self._made = []
        self.size_bytes = 0
        return made

    def _end_piece(self) -> None:
        """Let what has been joined be a piece."""
        if len(self._joined):
            self._made.append(self._joined.getvalue())
            self._joined.truncate(0)


def length(number: int) -> bytes:
    """A length as RDB has it."""
    if number < _ONE_BYTE:
        return bytes([number])
    if number < 1 << 14:
        return bytes([0x40 | number >> 8, number & 0xFF])
    if number < 1 << 32:
        return b"\x80" + number.to_bytes(4, "big")
    return b"\x81" + number.to_bytes(8, "big")
