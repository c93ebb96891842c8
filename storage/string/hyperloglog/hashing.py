"""Which register of a HyperLogLog an element belongs to, and what it counts there.

The hash is MurmurHash64A by Austin Appleby, which is in the public domain, with Redis's seed. Its
products are taken modulo 2**64. Compiled, 64-bit integers do that by themselves.
"""

from __future__ import annotations

from types import FunctionType
from typing import Final

from librt.strings import read_i64_le
from mypy_extensions import i64

INDEX_BITS: Final = 14
REGISTERS: Final = 1 << INDEX_BITS
LONGEST_RUN: Final = 51  # of zeros and the one behind them, in the bits that name no register

_SEED: Final = 0xADC83B19
_FACTOR: Final = 0xC6A4A7935BD1E995
_SIGNED_FACTOR: Final = -0x395B586CA42E166B  # the same as a signed number
_ALL: Final = 0xFFFFFFFFFFFFFFFF
_SHIFT: Final = 47
_SHIFTED: Final = 0x1FFFF  # the bits that are left behind the shift
_ABOVE: Final = 1 << 64 - INDEX_BITS  # a bit above those that are left


def place_of(element: bytes) -> i64:
    """A register, and in the bits above ``INDEX_BITS`` the count that an element brings there."""
    if _COMPILED:
        hashed = _hash(element)
        rest = hashed >> INDEX_BITS | _ABOVE
        index = hashed & (REGISTERS - 1)
    else:
        plainly = _hash_plainly(element)
        rest = plainly >> INDEX_BITS | _ABOVE
        index = plainly & (REGISTERS - 1)
    count: i64 = 1
    while not rest & 1:
        rest >>= 1
        count += 1
    return count << INDEX_BITS | index


def _hash(data: bytes) -> i64:
    """The hash as a signed number; only compiled code can do this."""
    factor: i64 = _SIGNED_FACTOR
    size: i64 = len(data)
    seed: i64 = _SEED
    mixed: i64 = seed ^ (size * factor)
    at: i64 = 0
    while at + 8 <= size:
        word: i64 = read_i64_le(data, at) * factor
        word ^= (word >> _SHIFT) & _SHIFTED
        mixed = (mixed ^ (word * factor)) * factor
        at += 8
    if at < size:
        rest: i64 = 0
        shift: i64 = 0
        while at < size:
            byte: i64 = data[at]
            rest |= byte << shift
            shift += 8
            at += 1
        mixed = (mixed ^ rest) * factor
    mixed ^= (mixed >> _SHIFT) & _SHIFTED
    mixed *= factor
    return mixed ^ ((mixed >> _SHIFT) & _SHIFTED)


def _hash_plainly(data: bytes) -> int:
    """The hash as an unsigned number."""
    whole = len(data) & -8
    mixed = _SEED ^ (len(data) * _FACTOR & _ALL)
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * _FACTOR & _ALL
        word ^= word >> _SHIFT
        mixed = (mixed ^ (word * _FACTOR & _ALL)) * _FACTOR & _ALL
    if whole < len(data):
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _ALL
    mixed ^= mixed >> _SHIFT
    mixed = mixed * _FACTOR & _ALL
    return mixed ^ (mixed >> _SHIFT)


_COMPILED: Final = not isinstance(_hash, FunctionType)
