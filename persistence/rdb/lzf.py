"""LZF: how Redis compresses long strings.

A control byte below 32 says how many bytes, less one, follow as they are. Any other control byte
stands for a copy of what came before. It has three bits of length, with another byte of length if
all three are set, and 13 bits of distance.
"""

from __future__ import annotations

from typing import Final

MOST: Final = 88  # bytes that one may stand for: three of them copy 264


class Expansion:
    """Expands what was compressed, to ``size`` bytes."""

    def __init__(self, packed: bytes, size: int) -> None:
        self._packed: Final = packed
        self._size: Final = size
        self._at = 0
        self._out: Final = bytearray()

    def go_on(self, most: int) -> bool:
        """Expand about ``most`` bytes more; False when all is done, or nothing more can be."""
        out = self._out
        packed = self._packed
        at = self._at
        end = len(packed)
        stop = min(self._size, len(out) + most)
        while at < end and len(out) < stop:
            control = packed[at]
            at += 1
            if control < 32:
                out += packed[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                if at >= end:
                    return False
                length += packed[at]
                at += 1
            if at >= end:
                return False
            start = len(out) - ((control & 0x1F) << 8 | packed[at]) - 1
            at += 1
            length += 2
            if start < 0:
                return False
            distance = len(out) - start
            if length <= distance:
                out += out[start : start + length]
            else:  # the copy overlaps what it makes: that is repeated
                out += (out[start:] * (length // distance + 1))[:length]
        self._at = at
        return at < end and len(out) < self._size

    def text(self) -> bytes:
        """What it was; something shorter when it is damaged."""
        return bytes(self._out) if self._at == len(self._packed) else b""


def expand(packed: bytes, size: int) -> bytes:
    """What was compressed, of ``size`` bytes; something shorter when it is damaged."""
    expansion = Expansion(packed, size)
    expansion.go_on(size)
    return expansion.text()
