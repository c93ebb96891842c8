"""The dense form of a HyperLogLog: 16,384 registers of 6 bits, the lowest bits first.

Four registers lie in three bytes; sixteen in twelve, and eight in the lower six of eight bytes,
which are read at once.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_le
from librt.vecs import vec
from mypy_extensions import i64

from headrace.storage.string.hyperloglog.hashing import REGISTERS

HEADER: Final = 16
DENSE_SIZE: Final = HEADER + REGISTERS * 6 // 8
_BITS: Final = 6
_MASK: Final = 0x3F
_AT_ONCE: Final = 8  # registers
_BYTES_AT_ONCE: Final = 6


def set_dense(sketch: bytearray, index: i64, count: i64) -> bool:
    """Raise a register to ``count``; False where it is as high already."""
    place = HEADER + (index * _BITS >> 3)
    shift = index * _BITS & 7
    both: i64 = sketch[place]
    if shift > 2:  # the last register ends with the last byte
        high: i64 = sketch[place + 1]
        both |= high << 8
    if (both >> shift) & _MASK >= count:
        return False
    mask: i64 = _MASK
    both = both & ~(mask << shift) | count << shift
    sketch[place] = int(both & 0xFF)
    if shift > 2:
        sketch[place + 1] = int(both >> 8)
    return True


def raise_by_dense(highest: vec[i64], data: bytes) -> None:
    """Raise registers to those of a dense string where these are higher."""
    padded = data + b"\0\0"  # so that eight bytes can be read everywhere
    at: i64 = HEADER
    index: i64 = 0
    while index < REGISTERS:
        word: i64 = read_i64_le(padded, at)
        end: i64 = index + _AT_ONCE
        while index < end:
            count: i64 = word & _MASK
            if count > highest[index]:
                highest[index] = count
            word >>= _BITS
            index += 1
        at += _BYTES_AT_ONCE


def packed(registers: vec[i64], header: bytes) -> bytearray:
    """A dense string of these registers."""
    writer = BytesWriter()
    writer.write(header)
    index: i64 = 0
    while index < REGISTERS:
        word: i64 = 0
        shift: i64 = 0
        while shift < _AT_ONCE * _BITS:
            word |= registers[index] << shift
            shift += _BITS
            index += 1
        for _ in range(_BYTES_AT_ONCE):
            writer.append(int(word & 0xFF))
            word >>= 8
    return bytearray(writer.getvalue())
