"""The idempotent id that IDMPAUTO gives an entry: 16 bytes made of its fields and values.

Each pair is hashed by itself, XXH3 of 128 bits with seed 0, over ::

    field | length of the field, 8 bytes, little end first | value

The low halves of all pairs are added up, the high halves too, and both are also XORed. So the order
of the pairs does not matter, while it matters how often each occurs. The iid is the two numbers ::

    low  = sum of lows  ^ (xor of highs turned left by one bit)
    high = sum of highs ^ (xor of lows  turned left by one bit)

each as 8 bytes, little end first. All numbers are taken modulo 2^64, in 64 bits with a sign here,
and the iid stays two numbers: nobody reads its bytes before a file is written.
Redis computes the same, so what one server has recorded the other one finds.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_be
from mypy_extensions import i64
from xxhash import xxh3_128_digest

_digest: Final = xxh3_128_digest
_LOWER: Final = 0xFFFFFFFF
_SIGN_OF_32: Final = 0x80000000
_BELOW_62: Final = 0x3FFFFFFFFFFFFFFF


def content_iid(words: list[bytes], at: int) -> tuple[i64, i64]:
    """The iid, low and high, of the entry whose fields and values in turn are ``words[at:]``.

    Complexity: O(bytes).
    """
    if len(words) - at == 2:
        digest = _hasher.pair_digest(words[at], words[at + 1])
        high = read_i64_be(digest, 0)
        low = read_i64_be(digest, 8)
        return low ^ _turned(high), high ^ _turned(low)
    # Sums are kept in halves of 32 bits: they fit into 64 bits, compiled or not.
    low_upper: i64 = 0
    low_lower: i64 = 0
    high_upper: i64 = 0
    high_lower: i64 = 0
    low_xor: i64 = 0
    high_xor: i64 = 0
    for number in range(at, len(words), 2):
        digest = _hasher.pair_digest(words[number], words[number + 1])
        high = read_i64_be(digest, 0)
        low = read_i64_be(digest, 8)
        low_upper += low >> 32
        low_lower += low & _LOWER
        high_upper += high >> 32
        high_lower += high & _LOWER
        low_xor ^= low
        high_xor ^= high
    low_sum = _sum(low_upper, low_lower)
    high_sum = _sum(high_upper, high_lower)
    return low_sum ^ _turned(high_xor), high_sum ^ _turned(low_xor)


class _Hasher:
    """What is used again for the next pair: the name of the last field."""

    def __init__(self) -> None:
        self._field = b""
        self._head = b"\0" * 8  # the field and its length

    def pair_digest(self, field: bytes, value: bytes) -> bytes:
        """The digest of a pair."""
        if field is not self._field and field != self._field:
            self._field = field
            self._head = field + len(field).to_bytes(8, "little")
        return _digest(self._head + value)


_hasher: Final = _Hasher()


def _sum(upper: i64, lower: i64) -> i64:
    """A sum of which the halves were added up by themselves."""
    upper = (upper + (lower >> 32)) & _LOWER
    if upper & _SIGN_OF_32:
        upper -= _LOWER + 1
    return (upper << 32) | (lower & _LOWER)


def _turned(number: i64) -> i64:
    """The 64 bits of ``number`` turned left by one."""
    turned: i64 = (number & _BELOW_62) << 1
    if (number >> 62) & 1:
        # The highest bit, taken as a sum: a constant with that bit alone is no i64 to the compiler.
        turned = turned - _BELOW_62 - 1 - _BELOW_62 - 1
    return turned | 1 if number < 0 else turned
