"""Where elements stand in pieces that are looked into by index.

A piece has no places of its elements in it, so an element is found by walking there. For a piece
that was looked into, the places of every 32nd element are kept from then on, and the walk begins
at the nearest one of these. They take 4 bytes for 32 elements.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, write_i32_le
from mypy_extensions import i32, i64

from headrace.storage.packed.strings import next_at

_BITS: Final = 5
_EVERY: Final = 1 << _BITS
_BETWEEN: Final = _EVERY - 1
_MARK_BYTES: Final = 4
UNKNOWN: Final = b""


def place_of(marks: list[bytes], number_of_piece: i64, piece: bytes, number: i64) -> i64:
    """The place of the element with ``number`` elements before it in a piece, or its end.

    Args:
        marks: those of each piece, by its number, as far as they are known; more may be by now.
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
    """The places of the 32nd element, counted from 0, the 64th and so on."""
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
