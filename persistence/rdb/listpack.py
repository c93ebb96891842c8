"""Reads and makes listpacks: Redis's packed list of texts and integers.

Six bytes of header (all bytes, u32, and the number of elements, u16), the elements, 0xFF. The
length of each element stands behind it, in 7 bits a byte, so that a list can be walked backwards.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.rdb.kinds import Broken

HEADER_BYTES: Final = 6
MANY: Final = 0xFFFF  # so many elements, or more: nobody has counted
_END: Final = 0xFF
_INTEGER_BYTES: Final = [3, 4, 5, 9]
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_LONGEST_INTEGER: Final = 20  # digits and sign
_NINE: Final = 0x39


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


class Listpack:
    """A listpack that is being made.

    Attributes:
        count: how many elements it has.
    """

    def __init__(self) -> None:
        self.count = 0
        self._made: list[bytes] = []

    def integer(self, number: int) -> None:
        """Add an integer of 64 bits."""
        if 0 <= number < 0x80:
            self._add(bytes([number]))
        elif -0x1000 <= number < 0x1000:
            number &= 0x1FFF
            self._add(bytes([0xC0 | number >> 8, number & 0xFF]))
        else:
            for place, size in enumerate(_INTEGER_BYTES):
                if -(1 << 8 * size - 9) <= number < 1 << 8 * size - 9:
                    wire = number.to_bytes(size - 1, "little", signed=True)
                    self._add(bytes([0xF1 + place]) + wire)
                    return
            raise OverflowError

    def text(self, text: bytes) -> None:
        """Add a text, as an integer where it spells one."""
        number = spelled(text)
        if number is not None:
            self.integer(number)
            return
        size = len(text)
        if size < 0x40:
            self._add(b"%c%b" % (0x80 | size, text))
        elif size < 0x1000:
            self._add(b"%c%c%b" % (0xE0 | size >> 8, size & 0xFF, text))
        else:
            self._add(b"\xf0%b%b" % (size.to_bytes(4, "little"), text))

    def _add(self, element: bytes) -> None:
        made = self._made
        made.append(element)
        made.append(back_length(len(element)))
        self.count += 1

    def packed(self) -> bytes:
        """Its bytes."""
        body = b"".join(self._made)
        size = (len(body) + HEADER_BYTES + 1).to_bytes(4, "little")
        count = min(self.count, MANY).to_bytes(2, "little")
        return b"%b%b%b\xff" % (size, count, body)


def spelled(text: bytes) -> int | None:
    """The integer of 64 bits that a text spells as it is written; None for any other text."""
    if not 0 < len(text) <= _LONGEST_INTEGER or text[0] > _NINE:
        return None
    if not text.removeprefix(b"-").isdigit():
        return None
    number = int(text)
    if not INT64_MIN <= number <= INT64_MAX or b"%d" % number != text:
        return None
    return number
