"""How the msgpack values of a payload begin, what numbers fit into them, and its one limit."""

from __future__ import annotations

from typing import Final

FIX_ARRAY: Final = 0x90  # and its size
APART: Final = FIX_ARRAY | 5  # of values of which some have a length
NIL: Final = 0xC0
BIN_8: Final = 0xC4
BIN_16: Final = 0xC5
UINT_8: Final = 0xCC
UINT_16: Final = 0xCD
UINT_32: Final = 0xCE
UINT_64: Final = 0xCF
INT_8: Final = 0xD0
INT_16: Final = 0xD1
INT_64: Final = 0xD3
ARRAY_16: Final = 0xDC
NEGATIVE: Final = 0xE0  # and above: a number below 0 that is one byte

BYTE_BITS: Final = 8
BYTE: Final = 0xFF
TWO_BYTES: Final = 0xFFFF
UINT_32_MAX: Final = 0xFFFF_FFFF
NUMBER_MAX: Final = 2**61  # what is above may be no i64 in sums

SHARED_MOST: Final = 64 * 1024  # bytes of all values of a block that stand once for several
