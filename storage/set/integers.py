"""The smallest form of a set: integers in their order, each of as many bytes as the largest needs.

::

    mark, i16 | numbers, little-endian, ascending

The mark is below zero, and says how many bytes a number takes: two, four or eight.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_le,
    read_i32_le,
    read_i64_le,
    write_i16_le,
    write_i32_le,
    write_i64_le,
)
from mypy_extensions import i16, i32, i64

from headrace.storage.packed.strings import write_string

_HEAD: Final[i64] = 2
_OF_TWO_BYTES: Final[i16] = -3
_OF_FOUR_BYTES: Final[i16] = -2
_OF_EIGHT_BYTES: Final[i16] = -1
NO_INTEGERS: Final = b"\xfd\xff"
_ZERO: Final[i64] = 0x30
_NINE: Final[i64] = 0x39
_MINUS: Final[i64] = 0x2D
_SURE_DIGITS: Final[i64] = 18  # so many are in range whatever they are
_LONGEST: Final[i64] = 20
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_INT16: Final[i64] = 2**15
_INT32: Final[i64] = 2**31
_DECIMALS: Final = [b"%d" % number for number in range(1000)]


def spells_integer(text: bytes) -> bool:
    """Return whether a text is a 64-bit integer as it is printed: no plus, leading zeros or -0."""
    size: i64 = len(text)
    if not 0 < size <= _LONGEST:
        return False
    at: i64 = 0
    digit: i64 = text[0]
    if digit == _MINUS:
        at = 1
        if size == 1:
            return False
        digit = text[1]
    if digit == _ZERO:
        return size == 1
    digits = size - at
    while at < size:
        digit = text[at]
        if digit < _ZERO or digit > _NINE:
            return False
        at += 1
    return digits <= _SURE_DIGITS or _LEAST <= int(text) <= _MOST


def integer_of(text: bytes) -> i64:
    """Return the integer that a text spells."""
    size: i64 = len(text)
    if size > _SURE_DIGITS:
        return i64(int(text))
    first: i64 = text[0]
    at: i64 = 1 if first == _MINUS else 0
    number: i64 = 0
    while at < size:
        number = 10 * number + i64(text[at]) - _ZERO
        at += 1
    return -number if first == _MINUS else number


def text_of(number: i64) -> bytes:
    """Return how an integer is spelled."""
    return _DECIMALS[number] if 0 <= number < 1000 else b"%d" % int(number)


def count_of(numbers: bytes) -> i64:
    """Return how many there are."""
    return (i64(len(numbers)) - _HEAD) // _width(numbers)


def number_at(numbers: bytes, index: i64) -> i64:
    """Return the number with ``index`` numbers before it."""
    width = _width(numbers)
    place = _HEAD + index * width
    if width == 2:
        return i64(read_i16_le(numbers, place))
    return i64(read_i32_le(numbers, place)) if width == 4 else read_i64_le(numbers, place)


def find(numbers: bytes, number: i64) -> i64:
    """Return the index of a number; if it is not there, ``~`` of the index that it would have."""
    low: i64 = 0
    high = count_of(numbers)
    while low < high:
        middle = (low + high) >> 1
        if number_at(numbers, middle) < number:
            low = middle + 1
        else:
            high = middle
    return low if low < count_of(numbers) and number_at(numbers, low) == number else ~low


def with_number(numbers: bytes, index: i64, number: i64) -> bytes:
    """Return the numbers with one more, which has this index."""
    mark = read_i16_le(numbers, 0)
    least = _mark_for(number)
    if least > mark:
        numbers = _widened(numbers, least)
        mark = least
    out = BytesWriter()
    _write(out, number, mark)
    place = _HEAD + index * _width(numbers)
    return b"%b%b%b" % (numbers[:place], out.getvalue(), numbers[place:])


def without(numbers: bytes, index: i64) -> bytes:
    """Return the numbers without the one with this index."""
    width = _width(numbers)
    place = _HEAD + index * width
    return numbers[:place] + numbers[place + width :]


def packed(numbers: bytes) -> bytes:
    """Return all of them as packed strings."""
    out = BytesWriter()
    count = count_of(numbers)
    for index in range(count):
        write_string(out, text_of(number_at(numbers, index)))
    return out.getvalue()


def longest_text(numbers: bytes) -> i64:
    """Return how many bytes the longest spelling of one of them has; 0 without numbers."""
    count = count_of(numbers)
    if not count:
        return 0
    return max(len(text_of(number_at(numbers, 0))), len(text_of(number_at(numbers, count - 1))))


def is_sound(numbers: bytes) -> bool:
    """Return whether untrusted bytes, at least two, are such integers."""
    mark = read_i16_le(numbers, 0)
    if not _OF_TWO_BYTES <= mark < 0 or (len(numbers) - 2) % _width(numbers):
        return False
    count = count_of(numbers)
    for index in range(1, count):
        if number_at(numbers, index - 1) >= number_at(numbers, index):
            return False
    return True


def _width(numbers: bytes) -> i64:
    return 16 >> -i64(read_i16_le(numbers, 0))


def _mark_for(number: i64) -> i16:
    if -_INT16 <= number < _INT16:
        return _OF_TWO_BYTES
    return _OF_FOUR_BYTES if -_INT32 <= number < _INT32 else _OF_EIGHT_BYTES


def _write(out: BytesWriter, number: i64, mark: i16) -> None:
    if mark == _OF_TWO_BYTES:
        write_i16_le(out, i16(number))
    elif mark == _OF_FOUR_BYTES:
        write_i32_le(out, i32(number))
    else:
        write_i64_le(out, number)


def _widened(numbers: bytes, mark: i16) -> bytes:
    out = BytesWriter()
    write_i16_le(out, mark)
    count = count_of(numbers)
    for index in range(count):
        _write(out, number_at(numbers, index), mark)
    return out.getvalue()
