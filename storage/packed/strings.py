"""Packed strings: strings one behind the other in one immutable ``bytes``.

::

    $3 CRLF abc CRLF $0 CRLF CRLF $2 CRLF 12 CRLF

Each stands there as RESP sends a bulk string. So a reply of many elements is a copy of bytes, and
costs no object for each of them. The price is five bytes a string.

A place is where a string begins. Nothing marks places, and a string may hold bytes that look like
another one, so strings are found from the beginning on.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i16_le, write_i32_le
from mypy_extensions import i16, i32, i64

from headrace.storage.packed.buffer import KEPT_BYTES, empty_buffer

NOWHERE: Final = -1

# ``$0 CRLF`` with the lowest byte first; a digit is added to the second byte.
_DOLLAR_LINE: Final[i64] = 0x0A0D3024
_END_OF_LINE: Final[i16] = 0x0A0D
END_BYTES: Final = 2
_DOLLAR: Final = 0x24
_ZERO: Final = 0x30
_RETURN: Final = 0x0D
_LONGEST_HEADER: Final = 24
_WORD: Final = 8  # bytes that are compared at once
_HEADERS: Final = [b"$%d\r\n" % size for size in range(1024)]


def write_string(out: BytesWriter, string: bytes) -> None:
    """Add a string behind what ``out`` holds."""
    size: i64 = len(string)
    if size < 10:
        write_i32_le(out, i32(_DOLLAR_LINE + (size << 8)))
    elif size < 1024:
        out.write(_HEADERS[size])
    else:
        out.write(b"$%d\r\n" % size)
    out.write(string)
    write_i16_le(out, _END_OF_LINE)


def header(size: int) -> bytes:
    """What stands in front of a string of ``size`` bytes."""
    return _HEADERS[size] if size < 1024 else b"$%d\r\n" % size


def packed_string(string: bytes) -> bytes:
    """One string."""
    return b"%b%b\r\n" % (header(len(string)), string)


def with_string(piece: bytes, at: i64, string: bytes) -> bytes:
    """The piece with another string in the place of the one that is there."""
    end = next_at(piece, at)
    if len(piece) + len(string) > KEPT_BYTES:  # one copy is enough
        return b"%b%b%b" % (piece[:at], packed_string(string), piece[end:])
    out = empty_buffer()
    out.write(piece)
    out.truncate(at)
    write_string(out, string)
    if end < len(piece):
        out.write(piece[end:])
    return out.getvalue()


def pack(strings: list[bytes]) -> bytes:
    """All of them, in their order."""
    out = BytesWriter()
    for string in strings:
        write_string(out, string)
    return out.getvalue()


def unpack(piece: bytes) -> list[bytes]:
    """The strings of a piece, in their order."""
    found: list[bytes] = []
    at: i64 = 0
    end: i64 = len(piece)
    while at < end:
        size = length_at(piece, at)
        start = at + header_bytes(size)
        found.append(piece[start : start + size])
        at = start + size + END_BYTES
    return found


def length_at(piece: bytes, at: i64) -> i64:
    """How long the string at a place is."""
    size: i64 = piece[at + 1] - _ZERO
    at += 2
    digit: i64 = piece[at]
    while digit != _RETURN:
        size = 10 * size + digit - _ZERO
        at += 1
        digit = piece[at]
    return size


def header_bytes(size: i64) -> i64:
    """How many bytes stand in front of a string of ``size`` bytes."""
    if size < 10:
        return 4
    if size < 100:
        return 5
    if size < 1000:
        return 6
    count: i64 = 7
    while size >= 10_000:
        size //= 10
        count += 1
    return count


def packed_bytes(size: i64) -> i64:
    """How many bytes a string of ``size`` bytes takes."""
    return header_bytes(size) + size + END_BYTES


def string_at(piece: bytes, at: i64) -> bytes:
    """The string at a place."""
    size = length_at(piece, at)
    start = at + header_bytes(size)
    return piece[start : start + size]


def next_at(piece: bytes, at: i64, count: i64 = 1) -> i64:
    """The place of the string that comes ``count`` strings behind the one at a place.

    Behind the last one that is the end of the piece.
    """
    while count > 0:
        head = i64(read_i32_le(piece, at))  # no string takes fewer bytes
        first = (head >> 8 & 0xFF) - _ZERO
        second = head >> 16 & 0xFF
        if second == _RETURN:
            width = first + END_BYTES + 4
        elif head >> 24 == _RETURN:
            width = 10 * first + second - _ZERO + END_BYTES + 5
        else:
            width = packed_bytes(length_at(piece, at))
            head = 0  # it is only a part of the header
        at += width
        count -= 1
        # Neighbours are often of one length. The processor guesses so, and waits for no header.
        while count > 0 and i64(read_i32_le(piece, at)) == head:
            at += width
            count -= 1
    return at


def count(piece: bytes) -> i64:
    """How many strings there are. Complexity: O(strings)."""
    found: i64 = 0
    at: i64 = 0
    end: i64 = len(piece)
    while at < end:
        at += packed_bytes(length_at(piece, at))
        found += 1
    return found


def is_same(piece: bytes, start: i64, string: bytes) -> bool:
    """Whether the bytes of ``piece`` from ``start`` on, as many as ``string`` has, are equal."""
    size: i64 = len(string)
    left = size
    # Strings that differ mostly differ at their ends.
    while left >= _WORD:
        left -= _WORD
        if read_i64_le(piece, start + left) != read_i64_le(string, left):
            return False
    if size >= _WORD:  # a word may reach into what has been compared
        return not left or read_i64_le(piece, start) == read_i64_le(string, 0)
    while left > 0:
        left -= 1
        if piece[start + left] != string[left]:
            return False
    return True


def sound_end(piece: bytes, at: i64) -> i64:
    """Where the string at a place of a piece from a stranger ends; ``NOWHERE`` if it is none."""
    end: i64 = len(piece)
    line: i64 = piece.find(b"\r\n", at, at + _LONGEST_HEADER)
    digits = piece[at + 1 : line] if line > at else b""
    if not digits.isdigit() or piece[at] != _DOLLAR:
        return NOWHERE
    size = int(digits)
    if size > end or b"%d" % size != digits:
        return NOWHERE
    at = line + size + 2 * END_BYTES
    return at if at <= end and piece[at - END_BYTES : at] == b"\r\n" else NOWHERE


def is_sound(piece: bytes) -> bool:
    """Whether a piece from a stranger consists of packed strings and nothing else."""
    at: i64 = 0
    end: i64 = len(piece)
    while at != NOWHERE and at < end:
        at = sound_end(piece, at)
    return at == end
