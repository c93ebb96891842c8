"""Packed strings: strings one behind the other in one immutable ``bytes``.

::

    $3 CRLF abc CRLF $0 CRLF CRLF $2 CRLF 12 CRLF

Each stands there as RESP sends a bulk string. So a reply of many elements is a copy of bytes, and
costs no object for each of them. The price is five bytes a string.

A place is where a string begins. Nothing marks places, and a string may hold bytes that look like
another one, so strings are found from the beginning on.

**Slim strings.** Where many strings are kept that are seldom read, each is a byte with its length,
and its bytes. Only strings of up to 255 bytes can be slim.

**Listpacks.** ``text_bytes`` and others say how many bytes Redis's listpack would take for what is
packed here. Nothing here is a listpack. But what ``XTRIM ~`` removes, what XINFO counts and what
OBJECT ENCODING answers depend on where Redis starts a new node, so blocks of streams and pieces of
lists are cut at the same places. A listpack is 7 bytes, and for each element its encoding and a
back length of one byte per 7 bits of the encoding's size. Text that is a canonical 64-bit integer
is encoded as one.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i32_le,
    read_i64_le,
    write_f64_le,
    write_i16_le,
    write_i32_le,
    write_i64_le,
)
from mypy_extensions import i16, i32, i64, u8

_SCORE_BYTES: Final[i64] = 8
KEPT_BYTES: Final = 1 << 16  # of the buffer, at most, once it has been used


class _Kept:
    """A buffer that is used again and again, unless it has become large."""

    def __init__(self) -> None:
        self._out = BytesWriter()

    def empty(self) -> BytesWriter:
        """Return the buffer, with nothing in it."""
        out = self._out
        if len(out) > KEPT_BYTES:
            out = BytesWriter()
            self._out = out
        out.truncate(0)
        return out


_first: Final = _Kept()
_second: Final = _Kept()
_of_wide: Final = _Kept()


def empty_buffer() -> BytesWriter:
    """Return the buffer, with nothing in it."""
    return _first.empty()


def other_buffer() -> BytesWriter:
    """Return a second one, because two records may be put together at the same time."""
    return _second.empty()


def with_score(piece: bytes, place: i64, score: float) -> bytes:
    """Return a piece with another double at a place, where it has one."""
    out = empty_buffer()
    out.write(piece)
    write_f64_le(out, score)
    end: i64 = len(piece)
    at: i64 = 0
    while at < _SCORE_BYTES:
        out[place + at] = out[end + at]
        at += 1
    out.truncate(end)
    return out.getvalue()


NOWHERE: Final = -1
MOST_SLIM: Final[i64] = 255  # bytes of a slim string

# ``$0 CRLF`` with the lowest byte first; a digit is added to the second byte.
_DOLLAR_LINE: Final[i64] = 0x0A0D3024
_END_OF_LINE: Final[i16] = 0x0A0D
END_BYTES: Final = 2
_DOLLAR: Final = 0x24
_ZERO: Final = 0x30
_RETURN: Final = 0x0D
_LINE_FEED: Final = 0x0A
_SHORTEST: Final[i64] = 6  # bytes of a packed string: $0 CRLF CRLF
_WIDEST_SHORT: Final[i64] = 4  # bytes of a dollar and three digits
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
    """Return the header of a string of ``size`` bytes."""
    return _HEADERS[size] if size < 1024 else b"$%d\r\n" % size


def packed_string(string: bytes) -> bytes:
    """Return one string, packed."""
    return b"%b%b\r\n" % (header(len(string)), string)


def with_string(piece: bytes, at: i64, string: bytes) -> bytes:
    """Return the piece with another string in the place of the one that is there."""
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
    """Return all of them, packed, in their order."""
    out = BytesWriter()
    for string in strings:
        write_string(out, string)
    return out.getvalue()


def unpack(piece: bytes) -> list[bytes]:
    """Return the strings of a piece, in their order."""
    found: list[bytes] = []
    at: i64 = 0
    end: i64 = len(piece)
    while at < end:
        size = length_at(piece, at)
        start = at + header_bytes(size)
        found.append(piece[start : start + size])
        at = start + size + END_BYTES
    return found


def are_short(piece: bytes, at: i64) -> bool:
    """Return whether the strings from a place on can be slim; the piece may be untrusted."""
    end: i64 = len(piece)
    while at + _SHORTEST <= end:
        size: i64 = piece[at + 1] - _ZERO
        width: i64 = 2
        while piece[at + width] != _RETURN:
            size = 10 * size + piece[at + width] - _ZERO
            width += 1
            if width > _WIDEST_SHORT:
                return False
        width += END_BYTES
        if not 0 <= size <= MOST_SLIM or header_bytes(size) != width:
            return False
        stop = at + width + size + END_BYTES
        if stop > end or piece[at] != _DOLLAR or piece[at + width - 1] != _LINE_FEED:
            return False
        if piece[stop - 2] != _RETURN or piece[stop - 1] != _LINE_FEED:
            return False
        at = stop
    return at == end


def write_slim(out: BytesWriter, piece: bytes, at: i64) -> None:
    """Add the strings from a place on as slim ones."""
    end: i64 = len(piece)
    while at < end:
        size = length_at(piece, at)
        at += header_bytes(size)
        out.append(u8(size))
        out.write(piece[at : at + size])
        at += size + END_BYTES


def wide(slim: bytes, at: i64, end: i64) -> bytes:
    """Return slim strings, from a place up to an end, as packed ones."""
    out = _of_wide.empty()
    last: i64 = len(slim) - _WORD
    while at < end:
        size = i64(slim[at])
        at += 1
        if size <= _WORD and at <= last:  # with no object for the string
            write_i32_le(out, i32(_DOLLAR_LINE + (size << 8)))
            write_i64_le(out, read_i64_le(slim, at))
            out.truncate(i64(len(out)) - _WORD + size)
            write_i16_le(out, _END_OF_LINE)
        else:
            write_string(out, slim[at : at + size])
        at += size
    return out.getvalue()


def next_slim(slim: bytes, at: i64, count: i64) -> i64:
    """Return the place as ``next_at``, of slim strings."""
    while count > 0:
        at += 1 + slim[at]
        count -= 1
    return at


def length_at(piece: bytes, at: i64) -> i64:
    """Return how long the string at a place is."""
    size: i64 = piece[at + 1] - _ZERO
    at += 2
    digit: i64 = piece[at]
    while digit != _RETURN:
        size = 10 * size + digit - _ZERO
        at += 1
        digit = piece[at]
    return size


def header_bytes(size: i64) -> i64:
    """Return how many bytes stand in front of a string of ``size`` bytes."""
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
    """Return how many bytes a string of ``size`` bytes takes."""
    return header_bytes(size) + size + END_BYTES


def string_at(piece: bytes, at: i64) -> bytes:
    """Return the string at a place."""
    size = length_at(piece, at)
    start = at + header_bytes(size)
    return piece[start : start + size]


def next_at(piece: bytes, at: i64, count: i64 = 1) -> i64:
    """Return the place ``count`` strings behind; behind the last one that is the piece's end."""
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
    """Return how many strings there are. Complexity: O(strings)."""
    found: i64 = 0
    at: i64 = 0
    end: i64 = len(piece)
    while at < end:
        at += packed_bytes(length_at(piece, at))
        found += 1
    return found


def is_same(piece: bytes, start: i64, string: bytes) -> bool:
    """Return whether ``piece`` has the bytes of ``string`` from ``start`` on."""
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
    """Return where the string at a place of an untrusted piece ends; ``NOWHERE``: it is none."""
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
    """Return whether an untrusted piece consists of packed strings and nothing else."""
    at: i64 = 0
    end: i64 = len(piece)
    while at != NOWHERE and at < end:
        at = sound_end(piece, at)
    return at == end


EMPTY_BYTES: Final = 7
_SHORT_TEXT_BYTES: Final = 64  # below, text that is no number takes two bytes beside its own
_NUMBER_TEXT_BYTES: Final = 20  # of a 64-bit integer, its sign included, at most
_MINUS: Final = 0x2D
_NINE: Final = 0x39
_U64: Final = 2**64
_SMALL: Final = 2**61  # within this, a number stays unboxed in compiled code
_I64_MAX: Final = 2**63 - 1
_I64_MIN: Final = -(2**63)
# By number of digits, where that alone decides the size of a positive integer; else 0.
_POSITIVE_BYTES: Final = [0, 2, 2, 0, 0, 0, 5, 0, 6, 6, 0, 10, 10, 10, 10, 10, 10, 10, 10]


def text_bytes(text: bytes) -> i64:
    """Return the size in bytes of one element that holds ``text``."""
    size: i64 = len(text)
    if 0 < size <= _NUMBER_TEXT_BYTES:
        first: i64 = text[0]
        last: i64 = text[size - 1]
        if first <= _NINE and last <= _NINE and (first >= _ZERO or first == _MINUS):
            found = _number_bytes(text)
            if found:
                return found
    if size < _SHORT_TEXT_BYTES:
        return size + 2
    size += 2 if size < 4096 else 5
    return size + _back_length(size)


def _number_bytes(text: bytes) -> int:
    """Return the size of ``text`` as an integer element; 0 when it is no canonical integer."""
    size = len(text)
    digits = text if text[0] != _MINUS else text[1:]
    if not digits.isdigit() or (digits[0] == _ZERO and size > 1):
        return 0
    if size < len(_POSITIVE_BYTES) and text[0] != _MINUS and _POSITIVE_BYTES[size]:
        return _POSITIVE_BYTES[size]
    number = int(text)
    return integer_bytes(number) if _I64_MIN <= number <= _I64_MAX else 0


def integer_bytes(number: int) -> int:
    """Return the size of an element with a signed 64-bit ``number``, back length included."""
    if 0 <= number <= 127:
        return 2
    if -4096 <= number <= 4095:
        return 3
    if -32768 <= number <= 32767:
        return 4
    if -8388608 <= number <= 8388607:
        return 5
    return 6 if -2147483648 <= number <= 2147483647 else 10


def delta_bytes(delta: int) -> int:
    """Return ``integer_bytes`` of the difference of two unsigned 64-bit numbers, which wraps."""
    if -_SMALL < delta < _SMALL:
        return integer_bytes(delta)
    wrapped = delta % _U64
    return integer_bytes(wrapped - _U64 if wrapped > _I64_MAX else wrapped)


def are_as_long(first: int, last: int) -> bool:
    """Return whether ``delta_bytes`` is surely equal for all from ``first`` to ``last``."""
    return (first < 0) == (last < 0) and delta_bytes(first) == delta_bytes(last)


def _back_length(size: i64) -> i64:
    if size <= 127:
        return 1
    if size < 16383:
        return 2
    if size < 2097151:
        return 3
    return 4 if size < 268435455 else 5
