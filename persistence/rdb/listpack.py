"""Reads a listpack: Redis's packed list of texts and integers.

Six bytes of header (all bytes, u32, and the number of elements, u16), the elements, 0xFF. The
length of each element stands behind it, in 7 bits a byte, so that a list can be walked backwards.
"""

from __future__ import annotations

from typing import Final

HEADER_BYTES: Final = 6
_END: Final = 0xFF


class BrokenListpack(Exception):
    """The bytes are no listpack."""


def elements(packed: bytes) -> list[bytes | int]:
    """All elements in order.

    Raises:
        BrokenListpack: these are none.
    """
    if len(packed) <= HEADER_BYTES or int.from_bytes(packed[:4], "little") != len(packed):
        raise BrokenListpack
    found: list[bytes | int] = []
    at = HEADER_BYTES
    end = len(packed) - 1
    while at < end:
        first = packed[at]
        value: bytes | int
        if first < 0x80:
            size = 1
            value = first
        elif first < 0xC0:
            size = 1 + (first & 0x3F)
            value = packed[at + 1 : at + size]
        elif first < 0xE0:
            size = 2
            value = (first & 0x1F) << 8 | packed[at + 1]
            if value >= 0x1000:
                value -= 0x2000
        elif first < 0xF0:
            size = 2 + ((first & 0x0F) << 8 | packed[at + 1])
            value = packed[at + 2 : at + size]
        elif first == 0xF0:
            size = 5 + int.from_bytes(packed[at + 1 : at + 5], "little")
            value = packed[at + 5 : at + size]
        elif first <= 0xF4:
            size = _INTEGER_BYTES[first - 0xF1]
            value = int.from_bytes(packed[at + 1 : at + size], "little", signed=True)
        else:
            raise BrokenListpack
        at += size + _back_length(size)
        if at > end:
            raise BrokenListpack
        found.append(value)
    if packed[end] != _END:
        raise BrokenListpack
    return found


_INTEGER_BYTES: Final = [3, 4, 5, 9]


def _back_length(size: int) -> int:
    """How many bytes say that an element has ``size`` bytes."""
    count = 1
    while size > 127 and count < 5:
        size >>= 7
        count += 1
    return count
