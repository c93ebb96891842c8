"""The small form of a list: one ``bytes``.

::

    number of elements, u8 | the elements, packed

A push or a pop copies it, so it stays below a kilobyte.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

from headrace.storage.list.piece import numbers_of, with_other, with_string, without
from headrace.storage.packed.buffer import empty_buffer
from headrace.storage.packed.strings import next_at, string_at, unpack, write_string

START: Final = 1  # where the elements begin
MOST_BYTES: Final = 1024
MOST_ELEMENTS: Final = 64
_STRING_BYTES: Final = 10  # that a string takes beside its own, at most, if it is small enough
EMPTY: Final = b"\0"
_COUNTS: Final = [bytes([number]) for number in range(MOST_ELEMENTS + 1)]


def count_of(small: bytes) -> i64:
    """How many elements there are."""
    return small[0]


def takes(small: bytes, added_bytes: i64, added: i64) -> bool:
    """Whether so many elements, and bytes of them, may be added."""
    size = len(small) + added_bytes + _STRING_BYTES * added
    return size <= MOST_BYTES and count_of(small) + added <= MOST_ELEMENTS


def small_of(piece: bytes, count: i64) -> bytes:
    """The small form of packed elements."""
    return _COUNTS[count] + piece


def pushed_right(small: bytes, strings: list[bytes], first: i64) -> bytes:
    """The elements ``strings[first:]`` are added, one after the other."""
    out = empty_buffer()
    out.write(small)
    added: i64 = len(strings) - first
    out[0] = u8(small[0] + added)
    while first < len(strings):
        write_string(out, strings[first])
        first += 1
    return out.getvalue()


def pushed_left(small: bytes, strings: list[bytes], first: i64) -> bytes:
    """As ``pushed_right``, each of them in front of all."""
    out = empty_buffer()
    number: i64 = len(strings)
    out.append(int(count_of(small) + number - first))
    while number > first:
        number -= 1
        write_string(out, strings[number])
    out.write(small[START:])
    return out.getvalue()


def popped_left(small: bytes) -> tuple[bytes, bytes]:
    """The first element, and what is left without it."""
    at = next_at(small, START)
    return string_at(small, START), _COUNTS[count_of(small) - 1] + small[at:]


def popped_right(small: bytes) -> tuple[bytes, bytes]:
    """The last element, and what is left without it."""
    left = count_of(small) - 1
    at = next_at(small, START, left)
    out = empty_buffer()
    out.write(small)
    out[0] = u8(left)
    out.truncate(at)
    return string_at(small, at), out.getvalue()


def get(small: bytes, index: i64) -> bytes:
    """The element with ``index`` elements before it."""
    return string_at(small, next_at(small, START, index))


def part(small: bytes, index: i64, count: i64) -> bytes:
    """``count`` elements from ``index`` on, packed."""
    low = next_at(small, START, index)
    if index + count == count_of(small):
        return small[low:]
    return small[low : next_at(small, low, count)]


def all_of(small: bytes) -> list[bytes]:
    """The elements."""
    return unpack(small[START:])


def cut(small: bytes, first: i64, last: i64) -> bytes:
    """``first`` elements are removed from the beginning, and ``last`` from the end."""
    left = count_of(small) - first - last
    return _COUNTS[left] + part(small, first, left)


def replaced(small: bytes, index: i64, string: bytes) -> bytes:
    """The element with ``index`` elements before it is another."""
    return with_other(small, next_at(small, START, index), string)


def inserted(small: bytes, index: i64, string: bytes) -> bytes:
    """An element is added with ``index`` elements before it."""
    grown = with_string(small, next_at(small, START, index), string)
    return _COUNTS[count_of(small) + 1] + grown[START:]


def removed(small: bytes, string: bytes, most: i64, forward: bool) -> bytes:
    """Up to ``most`` elements that are equal to ``string`` are removed; 0 is all."""
    numbers = numbers_of(small, START, string)
    there: i64 = len(numbers)
    if not there:
        return small
    if most and there > most:
        numbers = numbers[:most] if forward else numbers[there - most :]
        there = most
    rest = without(small, START, len(string), numbers)
    return _COUNTS[count_of(small) - there] + rest[START:]
