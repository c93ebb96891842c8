"""Reads and makes intsets, which Redis packs small sets of integers into.

How many bytes an integer has (2, 4 or 8, as u32), how many there are (u32), and they, in order.
"""

from __future__ import annotations

from struct import pack, unpack_from
from typing import Final

from headrace.persistence.rdb.kinds import Broken

HEADER_BYTES: Final = 8
_LETTERS: Final = {2: "h", 4: "i", 8: "q"}  # of the struct module, by their bytes


def integers(packed: bytes) -> list[int]:
    """All of them.

    Raises:
        Broken: there are none.
    """
    width = int.from_bytes(packed[:4], "little")
    count = int.from_bytes(packed[4:8], "little")
    if width not in _LETTERS or len(packed) != HEADER_BYTES + width * count or not count:
        raise Broken
    found = list(unpack_from(f"<{count}{_LETTERS[width]}", packed, HEADER_BYTES))
    for place in range(1, count):
        if found[place - 1] >= found[place]:
            raise Broken
    return found


def packed(numbers: list[int]) -> bytes:
    """An intset of integers that are in order; there is one."""
    furthest = max(numbers[-1], ~numbers[0])
    width = next(width for width in _LETTERS if furthest < 1 << 8 * width - 1)
    count = len(numbers)
    return pack(f"<II{count}{_LETTERS[width]}", width, count, *numbers)
