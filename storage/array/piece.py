"""A piece of an array: 32 elements that lie next to each other, those of them that are there.

::

    which are there u32, packed strings

Bit n of the number is set where the n-th element is there. A piece without elements is empty.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64

from headrace.storage.packed.strings import next_at, packed_string, string_at

SLOTS: Final = 32
HEAD: Final = 4
ALL: Final = 0xFFFFFFFF


def mask_of(piece: bytes) -> int:
    """Which elements are there."""
    return int(read_i32_le(piece, 0)) & ALL if piece else 0


def element(piece: bytes, slot: int) -> bytes | None:
    """The element of a slot, or None."""
    mask = mask_of(piece)
    if not (mask >> slot) & 1:
        return None
    return string_at(piece, next_at(piece, HEAD, _rank(mask, slot)))


def elements(piece: bytes) -> list[tuple[int, bytes]]:
    """The slots that are set, and what they hold."""
    mask = mask_of(piece)
    found: list[tuple[int, bytes]] = []
    at: i64 = HEAD
    for slot in range(SLOTS):
        if (mask >> slot) & 1:
            found.append((slot, string_at(piece, at)))
            at = next_at(piece, at)
    return found


def with_element(piece: bytes, slot: int, string: bytes) -> bytes:
    """The piece with a slot set."""
    mask = mask_of(piece)
    if not mask:
        return _head(1 << slot) + packed_string(string)
    start = next_at(piece, HEAD, _rank(mask, slot))
    end = next_at(piece, start) if (mask >> slot) & 1 else start
    mask |= 1 << slot
    return b"%b%b%b%b" % (_head(mask), piece[HEAD:start], packed_string(string), piece[end:])


def without(piece: bytes, gone: int) -> bytes:
    """The piece without the elements of a mask."""
    mask = mask_of(piece)
    left = mask & ~gone & ALL
    if left == mask:
        return piece
    if not left:
        return b""
    kept = [_head(left)]
    at: i64 = HEAD
    for slot in range(SLOTS):
        if (mask >> slot) & 1:
            end = next_at(piece, at)
            if (left >> slot) & 1:
                kept.append(piece[at:end])
            at = end
    return b"".join(kept)


def _head(mask: int) -> bytes:
    return mask.to_bytes(HEAD, "little")


def _rank(mask: int, slot: int) -> int:
    """How many elements are there before a slot."""
    return (mask & ((1 << slot) - 1)).bit_count()
