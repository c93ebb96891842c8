"""The bits of a string: counting them, finding one, combining strings bit by bit.

Bit 0 is the highest one of the first byte. Compiled, long strings are walked in words of 8 bytes.
The pure build leaves the same work to Python's large integers, because a loop over words would
take a hundred times longer there.

Bits are counted by adding up words before their bits are counted: three words become two, one with
the sums and one with the carries. Of eight words that are added up, only one has to be counted.
Source: W. Mula, N. Kurz, D. Lemire, "Faster Population Counts Using AVX2 Instructions", the part
on carry-save adders.
"""

from __future__ import annotations

from types import FunctionType
from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

from headrace.storage.packed.strings import empty_buffer

AND: Final = 0
OR: Final = 1
XOR: Final = 2
AND_NOT: Final = 3  # the bits of the first string that the second one has not

_WORD: Final = 8
_WORDS_AT_ONCE: Final = 64  # bytes that are added up before bits are counted
_UNTIL_FULL: Final = 31 * _WORDS_AT_ONCE  # a byte has up to eight bits, and counts to 255
_PLACES: Final = (1 << 48) - 1
_PIECE_BYTES: Final = 1 << 16  # what is looked at at once of a string that is written into
_ALIKE_BYTES: Final = 4096  # what is compared at once when a bit is sought
_CLEAR: Final = b"\x00" * _ALIKE_BYTES
_SET: Final = b"\xff" * _ALIKE_BYTES


def piece(data: bytes | bytearray, start: int, end: int) -> bytes:
    """Return a part of a string, in one copy at most."""
    if isinstance(data, bytes):
        return data[start:end]
    if not start and end >= len(data):
        return bytes(data)
    if end - start <= _ALIKE_BYTES:  # two copies of it take less time than a view
        return bytes(data[start:end])
    return bytes(memoryview(data)[start:end])


# Single bits


def get_bit(data: bytes | bytearray, offset: i64) -> int:
    """Return the bit at an offset; 0 behind the end."""
    place = offset >> 3
    if place >= len(data):
        return 0
    shift = 7 - (offset & 7)
    byte: i64
    if isinstance(data, bytes):  # which compiled code reads faster
        byte = data[place]
    else:
        byte = data[place]
    return int(byte >> shift & 1)


def set_bit(data: bytearray, offset: i64, bit: int) -> int:
    """Set the bit at an offset, which is there; return what it was."""
    place = offset >> 3
    byte: i64 = data[place]
    mask: i64 = 0x80
    mask >>= offset & 7
    old = 1 if byte & mask else 0
    if old != bit:
        data[place] = int(byte ^ mask)
    return old


# Counting


def count_bits(data: bytes | bytearray, start: int, end: int) -> int:
    """Return how many bits are set in the bytes from ``start`` up to ``end``, which lie within."""
    if isinstance(data, bytes):
        if _COMPILED:
            return int(_count(data, start, end))
        return _count_plainly(data[start:end])
    total = 0
    while start < end:
        part = piece(data, start, min(start + _PIECE_BYTES, end))
        total += int(_count(part, 0, len(part))) if _COMPILED else _count_plainly(part)
        start += _PIECE_BYTES
    return total


def count_bit_range(data: bytes | bytearray, first: int, last: int) -> int:
    """Return how many bits are set from bit ``first`` to ``last``, both there and included."""
    start = first >> 3
    end = (last >> 3) + 1
    total = count_bits(data, start, end)
    total -= (data[start] >> (8 - (first & 7))).bit_count()
    total -= (data[end - 1] & ((1 << (7 - (last & 7))) - 1)).bit_count()
    return total


def _count_plainly(data: bytes) -> int:
    return int.from_bytes(data, "little").bit_count()


def _count(data: bytes, start: i64, end: i64) -> i64:
    # Masks are put together here, because compiled code reads one of 2**62 or more from an object.
    by_two: i64 = (0x55555555 << 32) | 0x55555555
    by_four: i64 = (0x33333333 << 32) | 0x33333333
    by_byte: i64 = (0x0F0F0F0F << 32) | 0x0F0F0F0F
    # Of the words so far, added up bit by bit: the lowest bits of 64 sums, the second, the third.
    ones: i64 = 0
    twos: i64 = 0
    fours: i64 = 0
    eights: i64 = 0  # what was carried further, counted
    sums: i64 = 0  # and what of that is still apart, by byte
    at: i64 = start
    full: i64 = at + _UNTIL_FULL
    while at + _WORDS_AT_ONCE <= end:
        place: i64 = at & _PLACES  # which is not negative: then the compiler need not look
        a: i64 = read_i64_le(data, place)
        b: i64 = read_i64_le(data, place + 8)
        half: i64 = ones ^ a
        carry1: i64 = (ones & a) | (half & b)
        ones = half ^ b
        a = read_i64_le(data, place + 16)
        b = read_i64_le(data, place + 24)
        half = ones ^ a
        carry2: i64 = (ones & a) | (half & b)
        ones = half ^ b
        half = twos ^ carry1
        more1: i64 = (twos & carry1) | (half & carry2)
        twos = half ^ carry2
        a = read_i64_le(data, place + 32)
        b = read_i64_le(data, place + 40)
        half = ones ^ a
        carry1 = (ones & a) | (half & b)
        ones = half ^ b
        a = read_i64_le(data, place + 48)
        b = read_i64_le(data, place + 56)
        half = ones ^ a
        carry2 = (ones & a) | (half & b)
        ones = half ^ b
        half = twos ^ carry1
        more2: i64 = (twos & carry1) | (half & carry2)
        twos = half ^ carry2
        half = fours ^ more1
        word: i64 = (fours & more1) | (half & more2)
        fours = half ^ more2
        word -= (word >> 1) & by_two
        word = (word & by_four) + ((word >> 2) & by_four)
        sums += (word + (word >> 4)) & by_byte
        at += _WORDS_AT_ONCE
        if at >= full:
            eights += _sum_of_bytes(sums)
            sums = 0
            full = at + _UNTIL_FULL
    eights += _sum_of_bytes(sums)
    apart = 4 * _count_word(fours) + 2 * _count_word(twos) + _count_word(ones)
    return 8 * eights + apart + _count_few(data, at, end)


def _count_few(data: bytes, at: i64, end: i64) -> i64:
    total: i64 = 0
    while at + _WORD <= end:
        total += _count_word(read_i64_le(data, at))
        at += _WORD
    while at < end:
        total += _count_word(data[at])
        at += 1
    return total


def _count_word(word: i64) -> i64:
    by_two: i64 = (0x55555555 << 32) | 0x55555555
    by_four: i64 = (0x33333333 << 32) | 0x33333333
    by_byte: i64 = (0x0F0F0F0F << 32) | 0x0F0F0F0F
    word -= (word >> 1) & by_two
    word = (word & by_four) + ((word >> 2) & by_four)
    return _sum_of_bytes((word + (word >> 4)) & by_byte)


def _sum_of_bytes(word: i64) -> i64:
    low_bytes: i64 = (0x00FF00FF << 32) | 0x00FF00FF
    word = (word & low_bytes) + ((word >> 8) & low_bytes)
    word += word >> 32
    return (word & 0xFFFF) + ((word >> 16) & 0xFFFF)


_COMPILED: Final = not isinstance(_count, FunctionType)


# Finding


def find_bit(data: bytes | bytearray, bit: int, first: int, last: int) -> int:
    """Return the first bit, from ``first`` to ``last``, that is ``bit``; -1 for none."""
    start = first >> 3
    end = (last >> 3) + 1
    passed = 0 if bit else 0xFF  # a byte that has none
    head = _without_front(data[start], first & 7, passed)
    if head != passed:
        at = start
    else:
        at = _first_other(data, start + 1, end, passed)
        if at == end:
            return -1
        head = data[at]
    sought = head if bit else head ^ 0xFF
    found = at * 8 + 8 - sought.bit_length()
    return found if found <= last else -1


def _without_front(byte: int, count: int, passed: int) -> int:
    """Return a byte whose first ``count`` bits are as in one that is passed over."""
    kept = 0xFF >> count
    return (byte & kept) | (passed & ~kept)


def _first_other(data: bytes | bytearray, at: int, end: int, passed: int) -> int:
    alike = _SET if passed else _CLEAR
    while at + _ALIKE_BYTES <= end and data[at : at + _ALIKE_BYTES] == alike:
        at += _ALIKE_BYTES
    part = piece(data, at, min(at + _ALIKE_BYTES, end))
    front = int(_count_words(part, passed)) if _COMPILED else 0
    return at + len(part) - len(part[front:].lstrip(alike[:1]))


def _count_words(part: bytes, byte: i64) -> i64:
    """Return how many bytes in front, in whole words, are ``byte``, which is 0 or 0xFF."""
    word: i64 = -1 if byte else 0
    at: i64 = 0
    while at + _WORD <= len(part) and read_i64_le(part, at) == word:
        at += _WORD
    return at


# Combining


def combine(operation: int, left: bytes, right: bytes) -> bytes:
    """Combine two strings by ``AND``, ``OR``, ``XOR`` or ``AND_NOT``.

    Behind the end of the shorter one there are zeros; the result is as long as the longer one.
    """
    if not _COMPILED:
        return _combine_plainly(operation, left, right)
    common = min(len(left), len(right))
    result = empty_buffer()
    whole = common & -_WORD
    _combine_words(result, operation, left, right, whole)
    for at in range(whole, common):
        result.append(_combined_byte(operation, left[at], right[at]))
    rest = max(len(left), len(right)) - common
    if operation == AND or (operation == AND_NOT and len(left) == common):
        result.write(bytes(rest))
    else:
        result.write((left if len(left) > common else right)[common:])
    return result.getvalue()


def complement(data: bytes) -> bytes:
    """Return the string with every bit turned."""
    return combine(XOR, data, b"\xff" * len(data))


def _combine_words(
    result: BytesWriter, operation: int, left: bytes, right: bytes, end: i64
) -> None:
    at: i64 = 0
    if operation == AND:
        while at < end:
            write_i64_le(result, read_i64_le(left, at) & read_i64_le(right, at))
            at += _WORD
    elif operation == OR:
        while at < end:
            write_i64_le(result, read_i64_le(left, at) | read_i64_le(right, at))
            at += _WORD
    elif operation == XOR:
        while at < end:
            write_i64_le(result, read_i64_le(left, at) ^ read_i64_le(right, at))
            at += _WORD
    else:
        while at < end:
            write_i64_le(result, read_i64_le(left, at) & ~read_i64_le(right, at))
            at += _WORD


def _combined_byte(operation: int, left: int, right: int) -> int:
    if operation == AND:
        return left & right
    if operation == OR:
        return left | right
    return left ^ right if operation == XOR else left & ~right


def _combine_plainly(operation: int, left: bytes, right: bytes) -> bytes:
    size = max(len(left), len(right))
    one = int.from_bytes(left, "little")
    other = int.from_bytes(right, "little")
    if operation == AND:
        one &= other
    elif operation == OR:
        one |= other
    elif operation == XOR:
        one ^= other
    else:
        one &= ~other
    return one.to_bytes(size, "little")


# Fields of some bits


def read_field(data: bytes | bytearray, offset: int, width: int) -> int:
    """Return ``width`` bits from bit ``offset`` on, unsigned; behind the end are zeros."""
    start = offset >> 3
    end = (offset + width + 7) >> 3
    if end <= len(data) and end - start < _WORD:
        word: i64 = 0
        for at in range(start, end):
            word = word << 8 | i64(data[at])
        return int(word >> (end * 8 - offset - width)) & ((1 << width) - 1)
    value = int.from_bytes(data[start:end], "big") << 8 * (end - max(start, min(end, len(data))))
    return (value >> (end * 8 - offset - width)) & ((1 << width) - 1)


def write_field(data: bytearray, offset: int, width: int, value: int) -> None:
    """Set ``width`` bits from bit ``offset`` on, which are there, to the lowest of a number."""
    start = offset >> 3
    end = (offset + width + 7) >> 3
    behind = end * 8 - offset - width
    mask = (1 << width) - 1
    whole = int.from_bytes(data[start:end], "big") & ~(mask << behind)
    whole |= (value & mask) << behind
    data[start:end] = whole.to_bytes(end - start, "big")
