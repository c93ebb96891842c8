"""Pieces of a list: packed strings, and what is done to them by number and by content.

A piece never changes; each of these makes a new one. ``start`` is where its first string begins:
in front of it there may be something else, which is left as it is.

**Places.** A piece has no places of its elements in it, so an element is found by walking there.
For a piece that was looked into, the places of every 32nd element are kept from then on, and the
walk begins at the nearest one of these. They take 4 bytes for 32 elements.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, write_i32_le
from mypy_extensions import i32, i64

from headrace.storage.packed.strings import (
    EMPTY_BYTES,
    header_bytes,
    is_same,
    length_at,
    next_at,
    pack,
    packed_bytes,
    text_bytes,
    write_string,
)

_BYTES_BY_FILL: Final = [4096, 8192, 16384, 32768, 65536]  # for -1, -2 and so on
_SAFE_BYTES: Final = 8192  # where the parameter counts elements, a node has no more bytes either
_NO_LIMIT: Final = 1 << 60
_ESTIMATED_BYTES: Final = 8  # that an element takes beside its own; Redis estimates high


class PlainThreshold:
    """The length from which on a string stands alone, where a test has set that; else 0.

    There is one for the process, as in Redis: DEBUG QUICKLIST-PACKED-THRESHOLD sets it.
    """

    def __init__(self) -> None:
        self.string_bytes: i64 = 0


PLAIN_THRESHOLD: Final = PlainThreshold()


class NodeLimits:
    """The limits of a node: ``fill`` is the number of elements, or below 0 one of five sizes."""

    def __init__(self, fill: int) -> None:
        self.fill: Final = fill
        most_bytes = _SAFE_BYTES if fill >= 0 else _BYTES_BY_FILL[min(-fill, 5) - 1]
        self.most_bytes: Final[i64] = most_bytes
        self.most_elements: Final[i64] = max(fill, 1) if fill >= 0 else _NO_LIMIT

    def are_exceeded(self, size: i64, count: i64) -> bool:
        """Return whether a node of ``size`` bytes and ``count`` elements would be too large."""
        return size > self.most_bytes or count > self.most_elements

    def is_alone(self, string: bytes) -> bool:
        """Return whether a string is so large that it gets a node of its own, no listpack."""
        threshold = PLAIN_THRESHOLD.string_bytes
        size: i64 = len(string)
        return size >= threshold if threshold else size > self.most_bytes

    def have_room(self, size: i64, count: i64, string: bytes) -> bool:
        """Return whether a string fits into a node of ``size`` bytes and ``count`` elements."""
        if self.is_alone(string):
            return False
        return not self.are_exceeded(size + len(string) + _ESTIMATED_BYTES, count + 1)

    def let_merge(self, size: i64, other_size: i64, count: i64) -> bool:
        """Return whether two nodes may become one with ``count`` elements."""
        return not self.are_exceeded(size + other_size - EMPTY_BYTES, count)

    def make_listpack(self, size: i64, count: i64, shrinking: bool) -> bool:
        """Return whether the only node of a list is so small that the list is that alone.

        If the list has been ``shrinking``, it has to be half as large.
        """
        share: i64 = 2 if shrinking else 1
        if self.fill >= 0:
            return count <= self.most_elements // share
        return size <= self.most_bytes // share


_BITS: Final = 5
_EVERY: Final = 1 << _BITS
_BETWEEN: Final = _EVERY - 1
_MARK_BYTES: Final = 4
UNKNOWN: Final = b""


def place_of(marks: list[bytes], number_of_piece: i64, piece: bytes, number: i64) -> i64:
    """Return the place of the element with ``number`` elements before it in a piece, or its end.

    ``marks`` has those of each piece, by its number, as far as they are known; it may gain some.
    """
    if number < _EVERY:
        return next_at(piece, 0, number)
    while len(marks) <= number_of_piece:
        marks.append(UNKNOWN)
    known = marks[number_of_piece]
    if not known:
        known = _marks_of(piece)
        marks[number_of_piece] = known
    nearest = i64(read_i32_le(known, _MARK_BYTES * ((number >> _BITS) - 1)))
    return next_at(piece, nearest, number & _BETWEEN)


def _marks_of(piece: bytes) -> bytes:
    """Return the places of the 32nd element, counted from 0, the 64th and so on."""
    out = BytesWriter()
    at: i64 = 0
    end: i64 = len(piece)
    count: i64 = 0
    while at < end:
        at = next_at(piece, at)
        count += 1
        if not count & _BETWEEN:
            write_i32_le(out, i32(at))
    return out.getvalue()


# Bytes of a piece: it is searched as a whole before it is walked, unless it holds long strings.
_LONG: Final = 512
_LONGEST: Final = 1 << 14


def listpack_bytes(strings: list[bytes]) -> i64:
    """Return the bytes of a listpack that holds these."""
    size: i64 = EMPTY_BYTES
    for string in strings:
        size += text_bytes(string)
    return size


def reversed_pack(strings: list[bytes]) -> bytes:
    """Return all of them packed, the last one first."""
    out = BytesWriter()
    for number in range(len(strings) - 1, -1, -1):
        write_string(out, strings[number])
    return out.getvalue()


def with_string(piece: bytes, at: i64, string: bytes) -> bytes:
    """Return the piece with a string put in at a place."""
    out = BytesWriter()
    out.write(piece[:at])
    write_string(out, string)
    out.write(piece[at:])
    return out.getvalue()


def with_other(piece: bytes, at: i64, string: bytes) -> bytes:
    """Return the piece with another string at a place."""
    out = BytesWriter()
    out.write(piece[:at])
    write_string(out, string)
    out.write(piece[next_at(piece, at) :])
    return out.getvalue()


def numbers_of(piece: bytes, start: i64, string: bytes) -> list[int]:
    """Return the numbers of the strings that are equal to one, from 0 on."""
    found: list[int] = []
    end: i64 = len(piece)
    if _LONG <= end <= _LONGEST and pack([string]) not in piece:
        return found
    size: i64 = len(string)
    number = 0
    at = start
    while at < end:
        length = length_at(piece, at)
        if length == size and is_same(piece, at + header_bytes(length), string):
            found.append(number)
        at += packed_bytes(length)
        number += 1
    return found


def without(piece: bytes, start: i64, size: i64, numbers: list[int]) -> bytes:
    """Return the piece without the strings of ``size`` bytes with these ascending numbers."""
    out = BytesWriter()
    at = start
    number: i64 = 0
    kept: i64 = 0
    for each in numbers:
        gone: i64 = each
        at = next_at(piece, at, gone - number)
        out.write(piece[kept:at])
        at += packed_bytes(size)
        kept = at
        number = gone + 1
    out.write(piece[kept:])
    return out.getvalue()
