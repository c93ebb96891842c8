"""Listpacks, intsets, ziplists and zipmaps, into which Redis packs small values.

A *listpack* is a list of texts and integers. Six bytes of header (all bytes, u32, and the number of
elements, u16), the elements, 0xFF. The length of each element stands behind it, in 7 bits a byte,
so that a list can be walked backwards.

An *intset* is a set of integers: how many bytes an integer has (2, 4 or 8, as u32), how many there
are (u32), and they, in order.

A *ziplist* was used before 7.0. Ten bytes of header (all bytes, u32; where the last entry starts,
u32; the number of entries, u16), the entries, 0xFF. An entry begins with the length of the one
before, in one byte or, behind 0xFE, in four. Then come its kind and, for a text, its length; then
its bytes.

A *zipmap* was used for hashes before 2.6. One byte with the number of fields (254: more than it can
hold), then each field: its length, in one byte or, behind 0xFE, in four, and its bytes, the length
of its value, how many bytes behind that are unused, the value. 0xFF ends it.
"""

from __future__ import annotations

from struct import pack, unpack_from
from typing import Final

from headrace.persistence.rdb.kinds import Broken

_LISTPACK_HEAD_BYTES: Final = 6
MANY: Final = 0xFFFF  # so many elements, or more: they were not counted
_END: Final = 0xFF
_INTEGER_BYTES: Final = [3, 4, 5, 9]
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_LONGEST_INTEGER: Final = 20  # digits and sign
_NINE: Final = 0x39


def elements(packed: bytes) -> list[bytes | int]:
    """Return all elements in order. Raises Broken if these are none."""
    end = len(packed) - 1
    if end < _LISTPACK_HEAD_BYTES or int.from_bytes(packed[:4], "little") != end + 1:
        raise Broken
    found: list[bytes | int] = []
    at = _LISTPACK_HEAD_BYTES
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


def listpack_texts(packed: bytes) -> list[bytes]:
    """As ``elements``, integers spelled. Raises Broken if these are none."""
    return [b"%d" % each if isinstance(each, int) else each for each in elements(packed)]


def back_length(size: int) -> bytes:
    """Return the bytes behind an element of ``size`` bytes: 7 bits a byte, the lowest last.

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
    """A listpack that is being made, with ``count`` elements so far."""

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
        """Return its bytes."""
        body = b"".join(self._made)
        size = (len(body) + _LISTPACK_HEAD_BYTES + 1).to_bytes(4, "little")
        count = min(self.count, MANY).to_bytes(2, "little")
        return b"%b%b%b\xff" % (size, count, body)


def spelled(text: bytes) -> int | None:
    """Return the integer of 64 bits that a text spells as it is written; None for other texts."""
    if not 0 < len(text) <= _LONGEST_INTEGER or text[0] > _NINE:
        return None
    if not text.removeprefix(b"-").isdigit():
        return None
    number = int(text)
    if not INT64_MIN <= number <= INT64_MAX or b"%d" % number != text:
        return None
    return number


_INTSET_HEAD_BYTES: Final = 8
_LETTERS: Final = {2: "h", 4: "i", 8: "q"}  # of the struct module, by their bytes


def intset_integers(packed: bytes) -> list[int]:
    """Return all integers of an intset. Raises Broken if there are none."""
    width = int.from_bytes(packed[:4], "little")
    count = int.from_bytes(packed[4:8], "little")
    if width not in _LETTERS or len(packed) != _INTSET_HEAD_BYTES + width * count or not count:
        raise Broken
    found = list(unpack_from(f"<{count}{_LETTERS[width]}", packed, _INTSET_HEAD_BYTES))
    for place in range(1, count):
        if found[place - 1] >= found[place]:
            raise Broken
    return found


def intset_of(numbers: list[int]) -> bytes:
    """Return an intset of integers that are in order; there is one."""
    furthest = max(numbers[-1], ~numbers[0])
    width = next(width for width in _LETTERS if furthest < 1 << 8 * width - 1)
    count = len(numbers)
    return pack(f"<II{count}{_LETTERS[width]}", width, count, *numbers)


_ZIPLIST_HEAD_BYTES: Final = 10
_LONG: Final = 0xFE
_ZIPLIST_INTEGER_BYTES: Final = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}
_SMALLEST: Final = 0xF1  # an integer within the kind: this one is 0
_LARGEST: Final = 0xFD


def ziplist_texts(packed: bytes) -> list[bytes]:
    """Return all entries in order, integers spelled. Raises Broken if these are none."""
    end = len(packed) - 1
    if end < _ZIPLIST_HEAD_BYTES or int.from_bytes(packed[:4], "little") != end + 1:
        raise Broken
    found: list[bytes] = []
    at = _ZIPLIST_HEAD_BYTES
    start = at
    before = 0
    while at < end:
        if packed[at] == _LONG:
            length_before = int.from_bytes(packed[at + 1 : at + 5], "little")
            kind_at = at + 5
        else:
            length_before = packed[at]
            kind_at = at + 1
        if length_before != before or kind_at >= end:
            raise Broken
        start = at
        kind = packed[kind_at]
        at = kind_at + 1
        if kind < 0xC0:
            if kind < 0x40:
                size = kind
            elif kind < 0x80:
                size = (kind & 0x3F) << 8 | packed[at]
                at += 1
            else:
                size = int.from_bytes(packed[at : at + 4], "big")
                at += 4
            found.append(packed[at : at + size])
        elif _SMALLEST <= kind <= _LARGEST:
            size = 0
            found.append(b"%d" % (kind - _SMALLEST))
        else:
            size = _ZIPLIST_INTEGER_BYTES.get(kind, 0)
            if not size:
                raise Broken
            found.append(b"%d" % int.from_bytes(packed[at : at + size], "little", signed=True))
        at += size
        before = at - start
    count = packed[8] | packed[9] << 8
    last = int.from_bytes(packed[4:8], "little")
    if at != end or packed[end] != _END or last != (start if found else _ZIPLIST_HEAD_BYTES):
        raise Broken
    if count not in (MANY, len(found)):
        raise Broken
    return found


def zipmap_texts(packed: bytes) -> list[bytes]:
    """Return fields and values in turn. Raises Broken if these are none."""
    end = len(packed) - 1
    if end < 1 or packed[end] != _END:
        raise Broken
    found: list[bytes] = []
    at = 1
    while at < end:
        size = packed[at]
        at += 1
        if size >= _LONG:
            if size == _END:
                raise Broken
            size = int.from_bytes(packed[at : at + 4], "little")
            at += 4
        unused = 0
        if len(found) % 2:
            unused = packed[at]
            at += 1
        found.append(packed[at : at + size])
        at += size + unused
    if at != end or len(found) % 2 or (packed[0] < _LONG and packed[0] != len(found) // 2):
        raise Broken
    return found
