"""A hash function of our own: the same number in every process and on every machine.

Python's own changes with each process, so that a table which was written to a file could not be
read back as it is. This one depends on a seed that the table keeps, and that its file holds.

The state has 32 bits. Each word of four bytes is mixed into it by one multiplication, whose upper
half is folded into the lower one. The factor is a part of the seed: who does not know it cannot
make strings that all have the same hash. No number on the way is 2**62 or more, because mypyc is
slow with constants beyond that, and so the interpreted build needs no masks of its own.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64

SEED_BITS: Final = 61  # 32 of the first state, 29 of the factor
HASH_BITS: Final = 32
_STATE: Final[i64] = 0xFFFFFFFF
_LEAST_FACTOR: Final[i64] = 0x20000001  # it is odd, and has 30 bits
_LAST_FACTOR: Final[i64] = 0x2F0B4A27
_FOLD: Final[i64] = 30
_WORD: Final[i64] = 4


def hash_of(data: bytes, start: i64, size: i64, seed: i64) -> i64:
    """The hash of ``size`` bytes of ``data`` from ``start`` on, below 2**HASH_BITS.

    Args:
        seed: below 2**SEED_BITS.
    """
    factor: i64 = (seed >> HASH_BITS) | _LEAST_FACTOR
    state: i64 = seed & _STATE
    word: i64 = 0
    left = size
    if size >= _WORD:
        last = start + size - _WORD
        while start < last:
            word = i64(read_i32_le(data, start)) & _STATE
            word = (state ^ word) * factor
            state = (word ^ (word >> _FOLD)) & _STATE
            start += _WORD
        word = i64(read_i32_le(data, last)) & _STATE
    else:
        while left > 0:
            word = word << 8 | i64(data[start])
            start += 1
            left -= 1
    word = (state ^ word) * factor
    state = (word ^ (word >> _FOLD)) & _STATE
    # The last word may overlap the one before, so the size has to tell such strings apart.
    word = (state ^ size) * _LAST_FACTOR
    return (word ^ (word >> _FOLD)) & _STATE


def mixed(number: i64, seed: i64) -> i64:
    """A number below 2**HASH_BITS that follows from another one and a seed, seemingly by chance."""
    word = ((seed ^ number) & _STATE) * ((seed >> HASH_BITS) | _LEAST_FACTOR)
    word = ((word ^ (word >> _FOLD)) & _STATE) * _LAST_FACTOR
    return (word ^ (word >> _FOLD)) & _STATE


class _Process:
    """What is chosen once for a process."""

    def __init__(self) -> None:
        self.seed: i64 = 0x0123456789ABCDEF  # until it is chosen


_process: Final = _Process()


def set_seed(seed: i64) -> None:
    """Choose the seed of the tables that are made from now on."""
    _process.seed = seed


def new_seed() -> i64:
    """The seed of a table that is made now."""
    return _process.seed
