"""What Redis packs small values into, besides listpacks: intsets, ziplists and zipmaps.

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

_INTSET_HEAD_BYTES: Final = 8
_LETTERS: Final = {2: "h", 4: "i", 8: "q"}  # of the struct module, by their bytes


def intset_integers(packed: bytes) -> list[int]:
    """All integers of an intset.

    Raises:
        Broken: there are none.
    """
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
    """An intset of integers that are in order; there is one."""
    furthest = max(numbers[-1], ~numbers[0])
    width = next(width for width in _LETTERS if furthest < 1 << 8 * width - 1)
    count = len(numbers)
    return pack(f"<II{count}{_LETTERS[width]}", width, count, *numbers)


_ZIPLIST_HEAD_BYTES: Final = 10
_MANY: Final = 0xFFFF
_END: Final = 0xFF
_LONG: Final = 0xFE
_INTEGER_BYTES: Final = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}
_SMALLEST: Final = 0xF1  # an integer within the kind: this one is 0
_LARGEST: Final = 0xFD


def ziplist_texts(packed: bytes) -> list[bytes]:
    """All entries in order, integers spelled.

    Raises:
        Broken: these are none.
    """
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
            size = _INTEGER_BYTES.get(kind, 0)
            if not size:
                raise Broken
            found.append(b"%d" % int.from_bytes(packed[at : at + size], "little", signed=True))
        at += size
        before = at - start
    count = packed[8] | packed[9] << 8
    last = int.from_bytes(packed[4:8], "little")
    if at != end or packed[end] != _END or last != (start if found else _ZIPLIST_HEAD_BYTES):
        raise Broken
    if count not in (_MANY, len(found)):
        raise Broken
    return found


def zipmap_texts(packed: bytes) -> list[bytes]:
    """Fields and values in turn.

    Raises:
        Broken: these are none.
    """
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
