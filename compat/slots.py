"""The slots of a cluster: each key belongs to one of them, by its name or by the tag in its name.

A tag is what stands between the first ``{`` and the next ``}``, if that is anything. The slot is
the CRC-16 (XMODEM) of the tag, or of the whole name, modulo 16384.
"""

from __future__ import annotations

import binascii
import re
from typing import Final

SLOTS: Final = 16384
_WILDCARD: Final = re.compile(rb"[*?\[]")


def slot_of(key: bytes) -> int:
    """The slot of a key."""
    begin, end = _hashed_part(key)
    return binascii.crc_hqx(key[begin:end], 0) % SLOTS


def pattern_slot(pattern: bytes) -> int:
    """The slot of all keys that a pattern can become; -1 where they may be of several."""
    begin, end = _hashed_part(pattern)
    if _WILDCARD.search(pattern, 0, end) is not None:
        return -1
    return binascii.crc_hqx(pattern[begin:end], 0) % SLOTS


def _hashed_part(key: bytes) -> tuple[int, int]:
    """Return where the part of a name begins and ends that decides on the slot."""
    begin = key.find(b"{") + 1
    if begin:
        end = key.find(b"}", begin)
        if end > begin:
            return begin, end
    return 0, len(key)
