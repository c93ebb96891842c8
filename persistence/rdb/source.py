"""The bytes of an RDB file: lengths, strings and numbers, read once from front to end.

The two highest bits of the first byte say where a length is. ``00``: in the other six bits. ``01``:
in these and the next byte. ``10``: in the four or eight bytes that follow. ``11`` is no length, but
says how a string is written: as an integer of 1, 2 or 4 bytes, or compressed by LZF.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from headrace.persistence.errors import CorruptRDB
from headrace.persistence.files import open_to_read

CHUNK_BYTES: Final = 1 << 20
_SPECIAL: Final = 3  # the two bits of a string that is no plain one
_LZF: Final = 3
LZF_MOST: Final = 88  # bytes that one may stand for: three of them copy 264
_LENGTH_32: Final = 0x80
_LENGTH_64: Final = 0x81
_JONES: Final = 0x1AD93D23594C935A9  # the polynomial of Redis's CRC-64


class RdbSource:
    """An RDB file that is being read.

    Attributes:
        name: the file, for messages.
        size_bytes: its length.

    Raises:
        CorruptRDB: from any method, when there is less or something else than there should be.
        OSError: it cannot be read.
    """

    def __init__(self, path: bytes) -> None:
        self.name: Final = path
        self._fd: Final = open_to_read(path)
        self.size_bytes: Final = os.fstat(self._fd).st_size
        self._buffer = b""
        self._at = 0
        self._before = 0  # bytes of the file before the buffer
        self._crc = 0  # of those
        self._crc64: Final = _crc64()

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    @property
    def offset(self) -> int:
        """How much has been read."""
        return self._before + self._at

    def damage(self, expected: str) -> CorruptRDB:
        """What to raise for damage right here."""
        return CorruptRDB(self.name, self.offset, expected)

    def crc(self) -> int:
        """The checksum of everything read so far."""
        return self._crc64(self._buffer[: self._at], self._crc)

    def raw(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        end = self._at + size
        if end > len(self._buffer):
            self._fill(size)
            end = self._at + size
        data = self._buffer[self._at : end]
        self._at = end
        return data

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, which stay to be read; fewer at the end of the file."""
        left = min(size, self.size_bytes - self.offset)
        if self._at + left > len(self._buffer):
            self._fill(left)
        return self._buffer[self._at : self._at + left]

    def _fill(self, size: int) -> None:
        if size > self.size_bytes - self.offset:
            raise self.damage(f"{size} more bytes, but the file ends before that")
        self._crc = self._crc64(self._buffer[: self._at], self._crc)
        parts = [self._buffer[self._at :]]
        have = len(parts[0])
        self._before += self._at
        self._at = 0
        while have < size:
            data = os.read(self._fd, max(CHUNK_BYTES, size - have))
            if not data:
                raise self.damage(f"{size} more bytes, but the file ends before that")
            parts.append(data)
            have += len(data)
        self._buffer = b"".join(parts)

    def byte(self) -> int:
        """The next byte."""
        return self.raw(1)[0]

    def little(self, size: int) -> int:
        """The next ``size`` bytes as an unsigned number, lowest first."""
        return int.from_bytes(self.raw(size), "little")

    def signed(self, size: int) -> int:
        """As ``little``, signed."""
        return int.from_bytes(self.raw(size), "little", signed=True)

    def length(self) -> int:
        """A length, or another unsigned number written as one."""
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
        """A string, whatever it is written as."""
        value = self.value()
        return b"%d" % value if isinstance(value, int) else value

    def value(self) -> bytes | int:
        """A string: an integer where it is written as one."""
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
        if size > packed_bytes * LZF_MOST:
            raise self.damage(f"a compressed string, which {size} bytes cannot come from")
        packed = self.raw(packed_bytes)
        text = expand(packed, size)
        if not size or len(text) != size:
            raise self.damage(f"a compressed string of {size} bytes")
        return text


def expand(packed: bytes, size: int) -> bytes:
    """What LZF compressed, of ``size`` bytes; something shorter when it is damaged.

    A control byte below 32 says how many bytes, less one, follow as they are. Any other control
    byte stands for a copy of what came before. It has three bits of length, with another byte of
    length if all three are set, and 13 bits of distance.
    """
    out = bytearray()
    at = 0
    end = len(packed)
    while at < end and len(out) < size:
        control = packed[at]
        at += 1
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            if at >= end:
                break
            length += packed[at]
            at += 1
        if at >= end:
            break
        start = len(out) - ((control & 0x1F) << 8 | packed[at]) - 1
        at += 1
        length += 2
        if start < 0:
            break
        while length > 0:
            piece = out[start : start + length]  # shorter where the copy overlaps what it makes
            out += piece
            start += len(piece)
            length -= len(piece)
    return bytes(out) if at == end else b""


def _crc64() -> Callable[[bytes, int], int]:
    """Redis's checksum of some bytes, and of those before them."""
    import crcmod  # late: it makes tables, which only files of Redis's need

    return crcmod.mkCrcFun(_JONES, initCrc=0, rev=True, xorOut=0)
