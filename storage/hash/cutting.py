"""What is read of packed pairs: fields, values or both, one behind the other."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from headrace.storage.packed.strings import next_at
from headrace.storage.packed.table import Table

FIELDS: Final[i64] = 1
VALUES: Final[i64] = 2
BOTH: Final[i64] = 3


class Reading:
    """What is read of a whole hash.

    Attributes:
        count: of how many fields.
        pieces: packed strings, in order.
    """

    def __init__(self, count: i64, pieces: list[bytes]) -> None:
        self.count: Final[i64] = count
        self.pieces: Final = pieces


def cut(pairs: bytes, at: i64, what: i64) -> bytes:
    """The fields, the values or all of packed pairs that begin at a place."""
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
    """Fields, values or both, of a table of pairs."""
    pieces: list[bytes] = []
    for directory in table.directories:
        if what == BOTH:
            pieces.extend(directory)
        else:
            for bucket in directory:
                pieces.append(cut(bucket, 0, what))
    return Reading(table.count, pieces)
