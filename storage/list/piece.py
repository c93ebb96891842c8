"""Pieces of a list: what is done to packed strings by their number, and by their content.

A piece never changes; each of these makes a new one. ``start`` is where its first string begins:
in front of it there may be something else, which is left as it is.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from headrace.storage.packed.listpack import EMPTY_BYTES, text_bytes
from headrace.storage.packed.strings import (
    header_bytes,
    is_same,
    length_at,
    next_at,
    pack,
    packed_bytes,
    write_string,
)

# Bytes of a piece: it is searched as a whole before it is walked, unless it holds long strings.
_LONG: Final = 512
_LONGEST: Final = 1 << 14


def listpack_bytes(strings: list[bytes]) -> i64:
    """The size of a listpack that holds these."""
    size: i64 = EMPTY_BYTES
    for string in strings:
        size += text_bytes(string)
    return size


def reversed_pack(strings: list[bytes]) -> bytes:
    """All of them packed, the last one first."""
    out = BytesWriter()
    for number in range(len(strings) - 1, -1, -1):
        write_string(out, strings[number])
    return out.getvalue()


def with_string(piece: bytes, at: i64, string: bytes) -> bytes:
    """A string is put in at a place."""
    out = BytesWriter()
    out.write(piece[:at])
    write_string(out, string)
    out.write(piece[at:])
    return out.getvalue()


def with_other(piece: bytes, at: i64, string: bytes) -> bytes:
    """The string at a place is replaced."""
    out = BytesWriter()
    out.write(piece[:at])
    write_string(out, string)
    out.write(piece[next_at(piece, at) :])
    return out.getvalue()


def numbers_of(piece: bytes, start: i64, string: bytes) -> list[int]:
    """The numbers of the strings that are equal to one, from 0 on."""
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
    """Strings of one length are taken out.

    Args:
        size: how long each of them is.
        numbers: which ones, in rising order.
    """
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
