"""Reads ziplists, which Redis packed small values into before 7.0.

Ten bytes of header (all bytes, u32; where the last entry starts, u32; the number of entries, u16),
the entries, 0xFF. An entry begins with the length of the one before, in one byte or, behind 0xFE,
in four. Then come its kind and, for a text, its length; then its bytes.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.rdb.kinds import Broken

HEADER_BYTES: Final = 10
MANY: Final = 0xFFFF
_END: Final = 0xFF
_LONG: Final = 0xFE
_INTEGER_BYTES: Final = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}
_SMALLEST: Final = 0xF1  # an integer within the kind: this one is 0
_LARGEST: Final = 0xFD


def texts(packed: bytes) -> list[bytes]:
    """All entries in order, integers spelled.

    Raises:
        Broken: these are none.
    """
    end = len(packed) - 1
    if end < HEADER_BYTES or int.from_bytes(packed[:4], "little") != end + 1:
        raise Broken
    found: list[bytes] = []
    at = HEADER_BYTES
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
    if at != end or packed[end] != _END or last != (start if found else HEADER_BYTES):
        raise Broken
    if count not in (MANY, len(found)):
        raise Broken
    return found
