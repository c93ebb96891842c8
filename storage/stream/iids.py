"""Idempotent ids (iids) as the IDMP map keeps them: two words instead of an object.

Most iids are short: a number, a UUID, the 16 bytes of IDMPAUTO. Their first eight bytes and their
last eight hold them whole, and overlap where there are fewer than 16::

    iid               first         last          size  text
    b"0123456789"     b"01234567"   b"23456789"   10    b""
    b"42"             b"42"         0             2     b""
    b"0123 ... 012"   b"01234567"   b"56789012"   23    b"0123 ... 012"

A word is its bytes with the lowest first; below eight bytes there is one, filled up with zeros.
Beside them stands the hash, which says where in a table to look, and for what.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

WORD_BYTES: Final = 8
SHORT_BYTES: Final = 16  # an iid that two words hold whole; of a longer one the text is kept, too
HASH_BITS: Final = 32
HASH_MASK: Final = 0xFFFFFFFF
_HALF: Final = 0xFFFFFFFF  # of a word
_MIXED_BITS: Final = 62
_MIXED_MASK: Final = 0x3FFFFFFFFFFFFFFF
_FACTOR: Final = 0x1E3779B97F4A7C15  # odd, with its bits in no order
_SECRET: Final[i64] = hash(b"iids") & 0x7FFFFFFF

Iid = tuple[i64, i64, i64, bytes, i64]  # first, last, size, text, hash


def iid_of(text: bytes) -> Iid:
    """The iid that is written ``text``, which is not empty."""
    size: i64 = len(text)
    if size >= WORD_BYTES:
        last = read_i64_le(text, size - WORD_BYTES)
        return iid_made_of(read_i64_le(text, 0), last, size, text)
    first: i64 = 0
    if size >= 4:
        end = i64(read_i32_le(text, size - 4)) & _HALF
        first = (i64(read_i32_le(text, 0)) & _HALF) | end << (8 * (size - 4))
    else:
        at: i64 = 0
        while at < size:
            first |= i64(text[at]) << (8 * at)
            at += 1
    return iid_made_of(first, 0, size, text)


def iid_made_of(first: i64, last: i64, size: i64, text: bytes) -> Iid:
    """The iid of two words that is ``size`` bytes long; ``text`` only if they do not hold it.

    The hash has ``HASH_BITS``. It depends on a secret of the process, so that nobody outside can
    know which iids go to one place.
    """
    if size > SHORT_BYTES:
        number: i64 = hash(text)
        return first, last, size, text, number & HASH_MASK
    mixed = _mix(_mix((_SECRET + size) ^ first) ^ last) >> (_MIXED_BITS - HASH_BITS)
    return first, last, size, b"", mixed


def text_of(iid: Iid) -> bytes:
    """How ``iid`` is written."""
    size = int(iid[2])
    if size > SHORT_BYTES:
        return iid[3]
    first = int(iid[0]).to_bytes(WORD_BYTES, "little", signed=True)
    if size <= WORD_BYTES:
        return first[:size]
    last = int(iid[1]).to_bytes(WORD_BYTES, "little", signed=True)
    return first + last[SHORT_BYTES - size :]


def _mix(word: i64) -> i64:
    """Spread the bits of a word over 62 bits, the upper ones the best."""
    return ((word ^ (word >> 32)) & _MIXED_MASK) * _FACTOR & _MIXED_MASK
