"""Writes RDB: lengths, strings and numbers, as ``source`` reads them.

Strings are written as they are, or as integers where they spell short ones, and are not compressed.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from headrace.persistence.rdb.listpack import spelled
from headrace.persistence.rdb.opcodes import NOTE

_DOUBLE: Final = Struct("<d")
_LONGEST_INTEGER: Final = 11  # of a text that is written as one
_INTEGER_BYTES: Final = (1, 2, 4)
_AS_INTEGER: Final = 0xC0
_JOINED_BYTES: Final = 1 << 14


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
        self.version: Final = version
        self.size_bytes = 0
        self.notes: list[bytes] = []
        self._made: list[bytes] = []

    def raw(self, data: bytes) -> None:
        """Add bytes as they are."""
        self._made.append(data)
        self.size_bytes += len(data)

    def byte(self, number: int) -> None:
        """Add one byte."""
        self.raw(bytes([number]))

    def little(self, number: int, size: int) -> None:
        """Add a number in ``size`` bytes, lowest first; one below 0 as its complement."""
        self.raw((number & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def double(self, number: float) -> None:
        """Add a double."""
        self.raw(_DOUBLE.pack(number))

    def length(self, number: int) -> None:
        """Add a length, or another number from 0 to 2^64 - 1."""
        self.raw(length(number))

    def string(self, text: bytes) -> None:
        """Add a string."""
        if len(text) <= _LONGEST_INTEGER:
            number = spelled(text)
            if number is not None and self._integer(number):
                return
        self.raw(length(len(text)))
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
        """What has been added since the last call; short pieces are joined."""
        made: list[bytes] = []
        short: list[bytes] = []
        for piece in self._made:
            if len(piece) < _JOINED_BYTES:
                short.append(piece)
            else:
                made.append(b"".join(short))
                made.append(piece)
                short = []
        made.append(b"".join(short))
        self._made = []
        self.size_bytes = 0
        return [piece for piece in made if piece]


def length(number: int) -> bytes:
    """A length as RDB has it."""
    if number < 1 << 6:
        return bytes([number])
    if number < 1 << 14:
        return bytes([0x40 | number >> 8, number & 0xFF])
    if number < 1 << 32:
        return b"\x80" + number.to_bytes(4, "big")
    return b"\x81" + number.to_bytes(8, "big")
