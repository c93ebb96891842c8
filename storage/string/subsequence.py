"""The longest common subsequence of two strings: what is left of both when bytes are left out.

Let L(i, j) be its length for the first i bytes of one string and the first j of the other. Within
a row of this table a number is at most one above the number before it, so a row is a row of bits.
One large integer holds it, and a few operations make the next row of it: all numbers of a row at
once. Source: H. Hyyrö, "Bit-parallel LCS-length computation revisited".

Rows stand for the bytes of the shorter string. They are kept where the bytes in common are asked
for, and not only their number: then a walk from the last corner of the table to the first finds
them. Where bytes differ it goes to the larger of both neighbours, to the one with less of the
second string where they are equal: there are often several longest subsequences, and this finds
that of Redis.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.storage.string.bits import count_bits

_WORD_BITS: Final = 62  # as many as compiled code has in hand


class Match:
    """Bytes that follow each other in both strings; all four offsets are included."""

    def __init__(self, first_start: int, second_start: int) -> None:
        self.first_start = first_start
        self.first_end: Final = first_start
        self.second_start = second_start
        self.second_end: Final = second_start

    def length(self) -> int:
        """Return how many bytes."""
        return self.first_end - self.first_start + 1


def common_length(first: bytes, second: bytes) -> int:
    """Return how long the longest common subsequence is."""
    return _Rows(first, second, False).length


def common_matches(first: bytes, second: bytes) -> list[Match]:
    """Return the matches of the longest common subsequence, the last one first."""
    rows = _Rows(first, second, True)
    matches: list[Match] = []
    last: Match | None = None
    i: i64 = len(first)
    j: i64 = len(second)
    while i > 0 and j > 0:
        if first[i - 1] == second[j - 1]:
            i -= 1
            j -= 1
            if last is None:
                last = Match(i, j)
                matches.append(last)
            else:
                last.first_start = i
                last.second_start = j
        else:
            last = None
            if rows.leaves_out_second(i, j):
                j -= 1
            else:
                i -= 1
    return matches


def text_of(first: bytes, matches: list[Match]) -> bytes:
    """Return the bytes of a subsequence that ``common_matches`` found."""
    return b"".join([first[match.first_start : match.first_end + 1] for match in reversed(matches)])


class _Rows:
    """The rows of the table, kept to be walked if ``keep``; ``length`` is its last number."""

    def __init__(self, first: bytes, second: bytes, keep: bool) -> None:
        self._of_first: Final = len(first) <= len(second)
        short, long = (first, second) if self._of_first else (second, first)
        # A bit of a row is set where the number is one above the one before. Here it is turned.
        places = _places(short, long)
        every = (1 << len(long)) - 1
        row = every
        size = (len(long) + 7) >> 3
        self._rows: Final[list[bytes]] = [bytes(size)]
        for byte in short:
            taken = row & places[byte]
            row = ((row + taken) | (row - taken)) & every
            if keep:
                self._rows.append((every ^ row).to_bytes(size, "little"))
        self.length: Final = (every ^ row).bit_count()
        # The column for which the walk has counted the step from the column before it.
        self._counted_row: i64 = -1
        self._counted_at: i64 = 0
        self._step: i64 = 0

    def leaves_out_second(self, i: i64, j: i64) -> bool:
        """Return whether L(i - 1, j) is not above L(i, j - 1), where both last bytes differ."""
        if self._of_first:
            return not _bit(self._rows[i], j - 1)
        if _bit(self._rows[j], i - 1):
            return True
        return self._step_to(i, j) == 0

    def _step_to(self, i: i64, j: i64) -> i64:
        """Return L(i, j) - L(i, j - 1), where rows are of the second string."""
        row = self._rows[j]
        before = self._rows[j - 1]
        if self._counted_row != j:
            self._counted_row = j
            self._counted_at = i
            self._step = _bits_below(row, i) - _bits_below(before, i)
        while self._counted_at > i:
            self._counted_at -= 1
            self._step -= _bit(row, self._counted_at) - _bit(before, self._counted_at)
        return self._step


def _places(short: bytes, long: bytes) -> dict[int, int]:
    """Return for each byte of the short string its places in the long one, as bits."""
    found: dict[int, int] = {}
    if len(long) <= _WORD_BITS:
        for byte in short:
            bits: i64 = 0
            for number in range(len(long) - 1, -1, -1):
                bits = bits << 1 | (1 if long[number] == byte else 0)
            found[byte] = int(bits)
        return found
    turned = long[::-1]
    for byte in set(short):
        digits = bytearray(b"0" * 256)
        digits[byte] = 0x31
        found[byte] = int(turned.translate(digits), 2)
    return found


def _bit(row: bytes, at: i64) -> i64:
    byte: i64 = row[at >> 3]
    return (byte >> (at & 7)) & 1


def _bits_below(row: bytes, end: i64) -> i64:
    whole: i64 = end >> 3
    count: i64 = count_bits(row, 0, int(whole))
    if end & 7:
        count += (row[whole] & ((1 << int(end & 7)) - 1)).bit_count()
    return count
