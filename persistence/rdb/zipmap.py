"""Reads zipmaps, which Redis packed small hashes into before 2.6.

One byte with the number of fields (254: more than it can hold), then each field: its length and its
bytes, the length of its value, how many bytes behind that are unused, the value. 0xFF ends it.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.rdb.kinds import Broken

_END: Final = 0xFF
_LONG: Final = 0xFE  # as a length: the next four bytes have it


def texts(packed: bytes) -> list[bytes]:
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
