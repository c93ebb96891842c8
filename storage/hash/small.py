"""A small hash: one immutable ``bytes`` in the order in which its fields came.

::

    count u16, field, value, field, value, ...

The strings are packed. A value is replaced where it stands, and a removed field leaves no gap.
Redis's listpack does the same, and clients see that order.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i16_le
from mypy_extensions import i64

from headrace.storage.packed.strings import next_at, packed_bytes, packed_string
from headrace.storage.packed.table import PAIRS, Table, find_element

FIELDS: Final[i64] = 1
VALUES: Final[i64] = 2
BOTH: Final[i64] = 3


class Reading:
    """The packed strings read of a whole hash, in order in ``pieces``, of ``count`` fields."""

    def __init__(self, count: i64, pieces: list[bytes]) -> None:
        self.count: Final[i64] = count
        self.pieces: Final = pieces


def cut(pairs: bytes, at: i64, what: i64) -> bytes:
    """Return the fields, the values or all of packed pairs that begin at a place."""
    if what == BOTH:
        return pairs[at:] if at else pairs
    out = BytesWriter()
    end: i64 = len(pairs)
    while at < end:
        middle = next_at(pairs, at)
        stop = next_at(pairs, middle)
        if what == FIELDS:
            out.write(pairs[at:middle])
        else:
            out.write(pairs[middle:stop])
        at = stop
    return out.getvalue()


def read_table(table: Table, what: i64) -> Reading:
    """Return the fields, the values or both of a table of pairs."""
    pieces: list[bytes] = []
    for directory in table.directories:
        if what == BOTH:
            pieces.extend(directory)
        else:
            for bucket in directory:
                pieces.append(cut(bucket, 0, what))
    return Reading(table.count, pieces)


EMPTY: Final = b"\0\0"
HEAD: Final[i64] = 2  # where the first field is
MOST: Final[i64] = 0xFFFF  # fields that the head can count
PAIR: Final[i64] = 2
_BYTE: Final = 0xFF
_HEADS: Final = [bytes((count & _BYTE, count >> 8)) for count in range(1025)]


def head(count: i64) -> bytes:
    """Return what stands in front of so many fields."""
    if count <= 1024:
        return _HEADS[count]
    return bytes((int(count) & _BYTE, int(count) >> 8))


def count_of(piece: bytes) -> i64:
    """Return how many fields there are."""
    return i64(read_i16_le(piece, 0)) & MOST


def find_field(piece: bytes, field: bytes) -> i64:
    """Return the place of a field; less than 0 if there is none."""
    return find_element(piece, field, PAIRS, HEAD)


def find_value(piece: bytes, field: bytes) -> i64:
    """Return the place of the value of a field; less than 0 if there is none."""
    place = find_field(piece, field)
    return place if place < 0 else place + packed_bytes(len(field))


def with_field(piece: bytes, field: bytes, value: bytes) -> bytes:
    """Return the same with one more field, the last one."""
    return b"%b%b%b%b" % (
        head(count_of(piece) + 1),
        piece[HEAD:],
        packed_string(field),
        packed_string(value),
    )


def without(piece: bytes, place: i64) -> bytes:
    """Return the same without the field at a place."""
    end = next_at(piece, place, PAIR)
    return b"%b%b%b" % (head(count_of(piece) - 1), piece[HEAD:place], piece[end:])
