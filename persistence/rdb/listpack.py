"""Reads and makes listpacks: Redis's packed list of texts and integers.

Six bytes of header (all bytes, u32, and the number of elements, u16), the elements, 0xFF. The
length of each element stands behind it, in 7 bits a byte, so that a list can be walked backwards.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.rdb.broken import Broken

HEADER_BYTES: Final = 6
MANY: Final = 0xFFFF  # so many elements, or more: nobody has counted
_END: Final = 0xFF
_INTEGER_BYTES: Final = [3, 4, 5, 9]


def elements(packed: bytes) -> list[bytes | int]:
    """All elements in order.

    Raises:
        Broken: these are none.
    """
    end = len(packed) - 1
    if end < HEADER_BYTES or int.from_bytes(packed[:4], "little") != end + 1:
        raise Broken
    found: list[bytes | int] = []
    at = HEADER_BYTES
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
            raise Broken
        at += size
        if size < 128:
            if at >= end or packed[at] != size:
                raise Broken
            at += 1
        else:
            back = back_length(size)
            if packed[at] == 0:
                back = b"\0%c%b" % (back[0] | 0x80, back[1:])
            if packed[at : at + len(back)] != back:
                raise Broken
            at += len(back)
        found.append(value)
    count = packed[4] | packed[5] << 8
    if at != end or packed[end] != _END or (count != MANY and count != len(found)):
        raise Broken
    return found


def texts(packed: bytes) -> list[bytes]:
    """As ``elements``, integers spelled.

    Raises:
        Broken: these are none.
    """
    return [b"%d" % each if isinstance(each, int) else each for each in elements(packed)]


def back_length(size: int) -> bytes:
    """What stands behind an element of ``size`` bytes: 7 bits a byte, the lowest in the last one.

    Where all bits of several bytes are set, Redis before 8.10 puts a 0 in front.
    """
    shift = 0
    while shift < 28 and size >> shift + 7:
        shift += 7
    found = bytearray([size >> shift])
    while shift:
        shift -= 7
        found.append(size >> shift & 0x7F | 0x80)
    return bytes(found)
