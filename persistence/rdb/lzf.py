"""LZF: how Redis compresses long strings.

A control byte below 32 says how many bytes, less one, follow as they are. Any other control byte
stands for a copy of what came before. It has three bits of length, with another byte of length if
all three are set, and 13 bits of distance.
"""

from __future__ import annotations

from typing import Final

MOST: Final = 88  # bytes that one may stand for: three of them copy 264


def expand(packed: bytes, size: int) -> bytes:
    """What was compressed, of ``size`` bytes; something shorter when it is damaged."""
    out = bytearray()
    at = 0
    end = len(packed)
    while at < end and len(out) < size:
        control = packed[at]
        at += 1
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            if at >= end:
                break
            length += packed[at]
            at += 1
        if at >= end:
            break
        start = len(out) - ((control & 0x1F) << 8 | packed[at]) - 1
        at += 1
        length += 2
        if start < 0:
            break
        while length > 0:
            piece = out[start : start + length]  # shorter where the copy overlaps what it makes
            out += piece
            start += len(piece)
            length -= len(piece)
    return bytes(out) if at == end else b""
