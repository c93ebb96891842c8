"""RDB's lengths, strings and numbers, written, and read of a file or of one value.

The two highest bits of the first byte say where a length is. ``00``: in the other six bits. ``01``:
in these and the next byte. ``10``: in the four or eight bytes that follow. ``11`` is no length, but
says how a string stands there: as an integer of 1, 2 or 4 bytes, or compressed by LZF. Strings are
written as they are, or as integers where they spell short ones, and are not compressed.

LZF is how Redis compresses long strings. A control byte below 32 says how many bytes, less one,
follow as they are. Any other control byte stands for a copy of earlier bytes. It has three bits of
length, with another byte of length if all three are set, and 13 bits of distance.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from librt.strings import BytesWriter, write_f64_le

from headrace.persistence.errors import CorruptRDB, EmptyValue, os_refusal
from headrace.persistence.files import open_to_read
from headrace.persistence.rdb.crc64 import crc64
from headrace.persistence.rdb.kinds import NOTE
from headrace.persistence.rdb.packings import spelled

MOST: Final = 88  # bytes that one may stand for: three of them copy 264


class Expansion:
    """Expands compressed bytes to ``size`` bytes."""

    def __init__(self, packed: bytes, size: int) -> None:
        self._packed: Final = packed
        self._size: Final = size
        self._at = 0
        self._out: Final = bytearray()

    def go_on(self, most: int) -> bool:
        """Expand about ``most`` bytes more. Return False when all is done, or no more can be."""
        out = self._out
        packed = self._packed
        at = self._at
        end = len(packed)
        stop = min(self._size, len(out) + most)
        while at < end and len(out) < stop:
            control = packed[at]
            at += 1
            if control < 32:
                out += packed[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                if at >= end:
                    return False
                length += packed[at]
                at += 1
            if at >= end:
                return False
            start = len(out) - ((control & 0x1F) << 8 | packed[at]) - 1
            at += 1
            length += 2
            if start < 0:
                return False
            distance = len(out) - start
            if length <= distance:
                out += out[start : start + length]
            else:  # the copy overlaps what it makes: that is repeated
                out += (out[start:] * (length // distance + 1))[:length]
        self._at = at
        return at < end and len(out) < self._size

    def text(self) -> bytes:
        """Return the expanded bytes; fewer when the compressed ones are damaged."""
        return bytes(self._out) if self._at == len(self._packed) else b""


def expand(packed: bytes, size: int) -> bytes:
    """Return the expanded bytes, of ``size`` bytes; fewer when the compressed ones are damaged."""
    expansion = Expansion(packed, size)
    expansion.go_on(size)
    return expansion.text()


CHUNK_BYTES: Final = 1 << 20
PIECE_BYTES: Final = 1 << 16  # of a long string, which are read at once
_SPECIAL: Final = 3  # the two bits of a string that is no plain one
_LZF: Final = 3
_LENGTH_32: Final = 0x80
_LENGTH_64: Final = 0x81
_COMPRESSED: Final = 0xC3
_LONG: Final = (_LENGTH_32, _LENGTH_64, _COMPRESSED)  # first bytes of a long string


class RdbSource:
    """The bytes of one value, or of a file (``RdbFile``), that are being read.

    Any method raises CorruptRDB when there is less or something else than there should be.

    Args:
        name: where they come from, for messages.

    Attributes:
        size_bytes: how many there are.
        now_ms: the present. What is dated later counts as having happened now, because the clock
            may have been set back.
        shapes: the field names of each list of them that hashes of this file share, by number.
    """

    def __init__(self, name: bytes, data: bytes, size_bytes: int, now_ms: int) -> None:
        self.now_ms: Final = now_ms
        self.name: Final = name
        self.size_bytes: Final = size_bytes
        self.shapes: Final[dict[int, list[bytes]]] = {}
        self._buffer = data
        self._at = 0
        self._before = 0  # bytes before the buffer

    @property
    def offset(self) -> int:
        """Bytes read so far."""
        return self._before + self._at

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return self.size_bytes - self.offset

    def damage(self, expected: str) -> CorruptRDB:
        """Return the error to raise for damage right here."""
        return CorruptRDB(self.name, self.offset, expected)

    def empty(self, what: str) -> EmptyValue:
        """Return the error to raise behind a value without elements; servers leave no such key."""
        return EmptyValue(self.name, self.offset, f"a {what} that holds something")

    def raw(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        end = self._at + size
        if end > len(self._buffer):
            self._fill(size)
            end = self._at + size
        data = self._buffer[self._at : end]
        self._at = end
        return data

    def _fill(self, size: int) -> None:
        raise self.damage(f"{size} more bytes, but there are {self.left}")

    def byte(self) -> int:
        """Return the next byte."""
        return self.raw(1)[0]

    def little(self, size: int) -> int:
        """Return the next ``size`` bytes as an unsigned number, lowest first."""
        return int.from_bytes(self.raw(size), "little")

    def signed(self, size: int) -> int:
        """As ``little``, signed."""
        return int.from_bytes(self.raw(size), "little", signed=True)

    def length(self) -> int:
        """Return a length, or another unsigned number written as one."""
        first = self.byte()
        if first >> 6 == _SPECIAL:
            raise self.damage("a length")
        return self._length(first)

    def _length(self, first: int) -> int:
        kind = first >> 6
        if kind == 0:
            return first & 0x3F
        if kind == 1:
            return (first & 0x3F) << 8 | self.byte()
        if first == _LENGTH_32:
            return int.from_bytes(self.raw(4), "big")
        if first == _LENGTH_64:
            return int.from_bytes(self.raw(8), "big")
        raise self.damage("a length")

    def string(self) -> bytes:
        """Return the next string, whatever it is written as."""
        value = self.value()
        return b"%d" % value if isinstance(value, int) else value

    def value(self) -> bytes | int:
        """Return the next string, as an integer where it is written as one."""
        first = self.byte()
        if first >> 6 != _SPECIAL:
            return self.raw(self._length(first))
        kind = first & 0x3F
        if kind < _LZF:
            return self.signed(1 << kind)
        if kind != _LZF:
            raise self.damage("a string")
        packed_bytes = self.length()
        size = self.length()
        if size > packed_bytes * MOST:
            raise self.damage(f"a compressed string, which {size} bytes cannot come from")
        packed = self.raw(packed_bytes)
        text = expand(packed, size)
        if not size or len(text) != size:
            raise self.damage(f"a compressed string of {size} bytes")
        return text

    def is_long(self) -> bool:
        """Return whether a string comes next that may take long to be read; see ``long_value``."""
        if self._at == len(self._buffer):
            self._fill(1)
        return self._buffer[self._at] in _LONG

    def long_value(self) -> Iterator[object]:
        """As ``value``, of no integer: yield None after each piece, at last the string."""
        first = self.byte()
        size = self._length(first) if first >> 6 != _SPECIAL else self.length()
        whole_bytes = size if first >> 6 != _SPECIAL else self.length()
        if whole_bytes > size * MOST:
            raise self.damage(f"a compressed string, which {whole_bytes} bytes cannot come from")
        if size > self.left:
            self._fill(size)  # which says so
        pieces: list[bytes] = []
        while size > PIECE_BYTES:
            pieces.append(self.raw(PIECE_BYTES))
            size -= PIECE_BYTES
            yield None
        pieces.append(self.raw(size))
        text = b"".join(pieces)
        if first >> 6 == _SPECIAL:
            expansion = Expansion(text, whole_bytes)
            while expansion.go_on(PIECE_BYTES):
                yield None
            text = expansion.text()
            if not whole_bytes or len(text) != whole_bytes:
                raise self.damage(f"a compressed string of {whole_bytes} bytes")
        yield text

    def many(self, least_bytes: int) -> int:
        """Return a length of elements, each of which takes ``least_bytes`` or more."""
        count = self.length()
        if count * least_bytes > self.left:
            raise self.damage(f"{count} elements, but there are {self.left} bytes")
        return count


class RdbFile(RdbSource):
    """An RDB file that is being read, once from front to end.

    Any method raises PersistenceError when it cannot be read, or as of ``RdbSource``. OSError is
    raised if it cannot be opened.
    """

    def __init__(self, path: bytes, now_ms: int) -> None:
        self._fd: Final = open_to_read(path)
        super().__init__(path, b"", os.fstat(self._fd).st_size, now_ms)
        self._crc = 0  # of the bytes before the buffer

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def crc(self) -> int:
        """Return the checksum of everything read so far."""
        return crc64(self._buffer[: self._at], self._crc)

    def peek(self, size: int) -> bytes:
        """Return the next ``size`` bytes, which stay to be read; fewer at the end of the file."""
        left = min(size, self.size_bytes - self.offset)
        if self._at + left > len(self._buffer):
            self._fill(left)
        return self._buffer[self._at : self._at + left]

    def _fill(self, size: int) -> None:
        if size > self.size_bytes - self.offset:
            raise self.damage(f"{size} more bytes, but the file ends before that")
        self._crc = crc64(self._buffer[: self._at], self._crc)
        parts = [self._buffer[self._at :]]
        have = len(parts[0])
        self._before += self._at
        self._at = 0
        while have < size:
            try:
                data = os.read(self._fd, max(CHUNK_BYTES, size - have))
            except OSError as error:
                raise os_refusal(self.name, "read", error) from error
            if not data:
                raise self.damage(f"{size} more bytes, but the file ends before that")
            parts.append(data)
            have += len(data)
        self._buffer = b"".join(parts)


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
        notes: names and texts in turn, written behind the value that is being written, because its
            type has no place for them. Servers pass over notes that they do not know.
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
        """Return the bytes added since the last call; short pieces are joined."""
        self._end_piece()
        made = self._made
        self._made = []
        self.size_bytes = 0
        return made

    def _end_piece(self) -> None:
        if len(self._joined):
            self._made.append(self._joined.getvalue())
            self._joined.truncate(0)


def length(number: int) -> bytes:
    """Return a length as RDB has it."""
    if number < _ONE_BYTE:
        return bytes([number])
    if number < 1 << 14:
        return bytes([0x40 | number >> 8, number & 0xFF])
    if number < 1 << 32:
        return b"\x80" + number.to_bytes(4, "big")
    return b"\x81" + number.to_bytes(8, "big")
