"""A run: some members with their scores, in order, in one immutable ``bytes``.

::

    number of members u16, their scores (8 bytes each), their members as packed strings

The order is that of scores, and among equal ones that of the bytes of the members. A small sorted
set is one run, and a large one consists of many.

A place is where a member begins. It is found from the first one on, which costs some nanoseconds a
member; a score is found at once.
"""

from __future__ import annotations

from math import isnan
from typing import Final

from librt.strings import (
    BytesWriter,
    read_f64_le,
    read_i32_le,
    read_i64_le,
    write_f64_le,
    write_i16_le,
)
from mypy_extensions import i16, i64, mypyc_attr, u8

from headrace.storage.packed.strings import count as strings_in
from headrace.storage.packed.strings import (
    empty_buffer,
    header_bytes,
    is_same,
    is_sound,
    length_at,
    next_at,
    packed_bytes,
    with_score,
    write_string,
)

HEAD_BYTES: Final[i64] = 2
SCORE_BYTES: Final[i64] = 8
MOST: Final[i64] = 32767  # members of one run
EMPTY: Final = b"\0\0"
_TAIL_BYTES: Final[i64] = 4
_BYTE: Final[i64] = 0xFF
_RETURN: Final[i64] = 0x0D
_ZERO: Final[i64] = 0x30
_END_BYTES: Final[i64] = 2
_COMMON: Final[i64] = 256
_HEADS: Final = [size.to_bytes(2, "little") for size in range(256)]


def size_of(run: bytes) -> i64:
    """Return how many members there are."""
    return i64(run[0]) | i64(run[1]) << 8


def score_at(run: bytes, number: i64) -> float:
    """Return the score of the member with this number."""
    return read_f64_le(run, HEAD_BYTES + SCORE_BYTES * number)


def first_place(run: bytes) -> i64:
    """Return where the members begin."""
    return HEAD_BYTES + SCORE_BYTES * size_of(run)


def place_of(run: bytes, number: i64) -> i64:
    """Return where the member with this number begins; beyond the last, where the run ends."""
    return next_at(run, first_place(run), number)


def compare_at(run: bytes, place: i64, member: bytes) -> i64:
    """Return how the member at a place compares with another one: below 0, 0 or above 0."""
    length = length_at(run, place)
    size: i64 = len(member)
    start = place + header_bytes(length)
    shorter = min(length, size)
    at: i64 = 0
    while at + 8 <= shorter and read_i64_le(run, start + at) == read_i64_le(member, at):
        at += 8
    while at < shorter:
        difference = i64(run[start + at]) - i64(member[at])
        if difference:
            return difference
        at += 1
    return length - size


def number_of(run: bytes, member: bytes) -> i64:
    """Return the number of a member; -1 where it is not there. Complexity: O(members).

    A member that is another one costs two reads, of its length and of its last four bytes.
    """
    size: i64 = len(member)
    place = first_place(run)
    end: i64 = len(run)
    number: i64 = 0
    if size < _TAIL_BYTES:
        while place < end:
            length = length_at(run, place)
            if length == size and is_same(run, place + header_bytes(length), member):
                return number
            place += packed_bytes(length)
            number += 1
        return -1
    tail = read_i32_le(member, size - _TAIL_BYTES)
    while place < end:
        head = i64(read_i32_le(run, place))
        length = (head >> 8 & _BYTE) - _ZERO
        start = place + 4
        if head >> 16 & _BYTE != _RETURN:
            length = 10 * length + (head >> 16 & _BYTE) - _ZERO
            start += 1
            if head >> 24 & _BYTE != _RETURN:
                length = length_at(run, place)
                start = place + header_bytes(length)
        if (
            length == size
            and read_i32_le(run, start + size - _TAIL_BYTES) == tail
            and is_same(run, start, member)
        ):
            return number
        place = start + length + _END_BYTES
        number += 1
    return -1


def above_score(run: bytes, score: float, inclusive: bool) -> i64:
    """Return how many members have a lower score, or, if ``inclusive``, this one."""
    low: i64 = 0
    left = size_of(run)
    # A step takes half of what is left, whichever way it goes: nothing to guess for the processor.
    if inclusive:
        while left > 0:
            half = (left + 1) >> 1
            if read_f64_le(run, HEAD_BYTES + SCORE_BYTES * (low + half - 1)) <= score:
                low += half
            left -= half
    else:
        while left > 0:
            half = (left + 1) >> 1
            if read_f64_le(run, HEAD_BYTES + SCORE_BYTES * (low + half - 1)) < score:
                low += half
            left -= half
    return low


def below(run: bytes, score: float, member: bytes) -> i64:
    """Return how many members stand before one of this name and score, which need not be there."""
    number = above_score(run, score, False)
    if number < size_of(run) and score_at(run, number) == score:
        number, _ = _spot_among_equals(run, number, score, member)
    return number


def number_with(run: bytes, score: float, member: bytes) -> i64:
    """Return as ``below`` for a member that is there: it is compared only with equal scores."""
    number = above_score(run, score, False)
    if number + 1 < size_of(run) and score_at(run, number + 1) == score:
        number, _ = _spot_among_equals(run, number, score, member)
    return number


def spot_of(run: bytes, score: float, member: bytes) -> tuple[i64, i64]:
    """Return as ``below``, and the place where the next member begins, or where the run ends."""
    number = above_score(run, score, False)
    if number < size_of(run) and score_at(run, number) == score:
        return _spot_among_equals(run, number, score, member)
    return number, place_of(run, number)


def _spot_among_equals(run: bytes, number: i64, score: float, member: bytes) -> tuple[i64, i64]:
    """Return as ``spot_of``; ``number`` is that of the first member with this score."""
    size = size_of(run)
    place = place_of(run, number)
    while number < size and score_at(run, number) == score and compare_at(run, place, member) < 0:
        place = next_at(run, place)
        number += 1
    return number, place


def below_member(run: bytes, member: bytes, inclusive: bool) -> i64:
    """Return how many members are lower, or, if ``inclusive``, this one; all have one score."""
    place = first_place(run)
    end: i64 = len(run)
    number: i64 = 0
    while place < end:
        order = compare_at(run, place, member)
        if order > 0 or (order == 0 and not inclusive):
            break
        place = next_at(run, place)
        number += 1
    return number


def inserted(run: bytes, number: i64, place: i64, score: float, member: bytes) -> bytes:
    """Return the run with one member more, which gets this number and this place."""
    size = size_of(run) + 1
    scored = HEAD_BYTES + SCORE_BYTES * number
    out = empty_buffer()
    out.write(run)
    out.truncate(scored)
    out[0] = u8(size & _BYTE)
    out[1] = u8(size >> 8)
    write_f64_le(out, score)
    out.write(run[scored:place])
    write_string(out, member)
    if place < len(run):
        out.write(run[place:])
    return out.getvalue()


def without_one(run: bytes, number: i64, place: i64) -> bytes:
    """Return the run without the member that has this number and this place."""
    size = size_of(run) - 1
    scored = HEAD_BYTES + SCORE_BYTES * number
    after = next_at(run, place)
    out = empty_buffer()
    out.write(run)
    out.truncate(scored)
    out[0] = u8(size & _BYTE)
    out[1] = u8(size >> 8)
    out.write(run[scored + SCORE_BYTES : place])
    if after < len(run):
        out.write(run[after:])
    return out.getvalue()


def without(run: bytes, first: i64, end: i64) -> bytes:
    """Return the run without the members from ``first`` up to and without ``end``."""
    start = place_of(run, first)
    stop = next_at(run, start, end - first)
    return b"%b%b%b%b" % (
        _head(size_of(run) - (end - first)),
        run[HEAD_BYTES : HEAD_BYTES + SCORE_BYTES * first],
        run[HEAD_BYTES + SCORE_BYTES * end : start],
        run[stop:],
    )


def part_of(run: bytes, first: i64, end: i64) -> bytes:
    """Return a run of the members from ``first`` up to and without ``end``."""
    start = place_of(run, first)
    stop = next_at(run, start, end - first)
    return b"%b%b%b" % (
        _head(end - first),
        run[HEAD_BYTES + SCORE_BYTES * first : HEAD_BYTES + SCORE_BYTES * end],
        run[start:stop],
    )


def joined(run: bytes, other: bytes) -> bytes:
    """Return a run of the members of two, of which the first one's come first."""
    middle = first_place(run)
    other_middle = first_place(other)
    return b"%b%b%b%b%b" % (
        _head(size_of(run) + size_of(other)),
        run[HEAD_BYTES:middle],
        other[HEAD_BYTES:other_middle],
        run[middle:],
        other[other_middle:],
    )


def moved(run: bytes, number: i64, to: i64, score: float) -> bytes:
    """Return the run with another score for a member, which then stands before number ``to``."""
    scored = HEAD_BYTES + SCORE_BYTES * number
    if number <= to <= number + 1:  # it stays where it is
        return with_score(run, scored, score)
    out = empty_buffer()
    out.write(run)
    to_scored = HEAD_BYTES + SCORE_BYTES * to
    if to > number:
        place = place_of(run, number)
        after = next_at(run, place)
        to_place = next_at(run, after, to - number - 1)
        out.truncate(scored)
        out.write(run[scored + SCORE_BYTES : to_scored])
        write_f64_le(out, score)
        out.write(run[to_scored:place])
        out.write(run[after:to_place])
        out.write(run[place:after])
        out.write(run[to_place:])
        return out.getvalue()
    to_place = place_of(run, to)
    place = next_at(run, to_place, number - to)
    after = next_at(run, place)
    out.truncate(to_scored)
    write_f64_le(out, score)
    out.write(run[to_scored:scored])
    out.write(run[scored + SCORE_BYTES : to_place])
    out.write(run[place:after])
    out.write(run[to_place:place])
    out.write(run[after:])
    return out.getvalue()


def _head(size: i64) -> bytes:
    return _HEADS[size] if size < _COMMON else int(size).to_bytes(2, "little")


def member_at(run: bytes, place: i64) -> bytes:
    """Return the member that begins at a place."""
    length = length_at(run, place)
    start = place + header_bytes(length)
    return run[start : start + length]


def run_of(pairs: list[tuple[float, bytes]], first: i64, end: i64) -> bytes:
    """Return a run of the pairs from ``first`` up to and without ``end``, which are in order."""
    out = BytesWriter()
    write_i16_le(out, i16(end - first))
    number = first
    while number < end:
        write_f64_le(out, pairs[number][0])
        number += 1
    number = first
    while number < end:
        write_string(out, pairs[number][1])
        number += 1
    return out.getvalue()


def is_sound_run(run: bytes) -> bool:
    """Return whether an untrusted run has members, in the right layout and in order."""
    if len(run) < HEAD_BYTES:
        return False
    size = size_of(run)
    start = HEAD_BYTES + SCORE_BYTES * size
    if not 0 < size <= MOST or len(run) < start:
        return False
    members = run[start:]
    if not is_sound(members) or strings_in(members) != size:
        return False
    place = start
    number: i64 = 0
    while number < size:
        score = score_at(run, number)
        if isnan(score):
            return False
        after = next_at(run, place)
        if number + 1 < size:
            later = score_at(run, number + 1)
            if score > later:
                return False
            if score == later and compare_at(run, after, member_at(run, place)) <= 0:
                return False
        place = after
        number += 1
    return True


@mypyc_attr(acyclic=True, free_list_len=1)
class Span:
    """Some members in order.

    Attributes:
        runs: those that hold them. Of the first and the last run a part may belong to the span; of
            the others every member does.
        first: the number of the first member in the first run.
        end: the number behind that of the last member in the last run.
    """

    def __init__(self) -> None:
        self.runs: list[bytes] = []
        self.first: i64 = 0
        self.end: i64 = 0
        self.count: i64 = 0

    def add(self, run: bytes, first: i64, end: i64) -> None:
        """Add the members of a run from ``first`` up to and without ``end``."""
        if first >= end:
            return
        if not self.count:
            self.first = first
        self.runs.append(run)
        self.end = end
        self.count += end - first

    def bounds(self, at: i64) -> tuple[i64, i64]:
        """Return the first number that is meant in a run, and the one behind the last."""
        run = self.runs[at]
        first = self.first if at == 0 else 0
        end = self.end if at + 1 == len(self.runs) else size_of(run)
        return first, end

    def strings(self) -> list[bytes]:
        """Return the members as packed strings, in pieces."""
        found: list[bytes] = []
        at: i64 = 0
        count: i64 = len(self.runs)
        while at < count:
            first, end = self.bounds(at)
            run = self.runs[at]
            start = place_of(run, first)
            if end < size_of(run):
                found.append(run[start : next_at(run, start, end - first)])
            else:
                found.append(run[start:])
            at += 1
        return found

    def parts(self) -> list[bytes]:
        """Return runs that hold these members and no others."""
        found: list[bytes] = []
        at: i64 = 0
        count: i64 = len(self.runs)
        while at < count:
            first, end = self.bounds(at)
            run = self.runs[at]
            found.append(run if end - first == size_of(run) else part_of(run, first, end))
            at += 1
        return found


def span_of(runs: list[bytes]) -> Span:
    """Return all members of some runs."""
    made = Span()
    for run in runs:
        made.add(run, 0, size_of(run))
    return made
