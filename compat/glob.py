"""Redis's glob patterns: ``*``, ``?``, ``[a-z]``, ``[^x]`` and ``\\`` as escape.

A pattern is cut at its stars into segments, each a row of places that take one byte. The first
segment stands at the start of a text, the last at its end, and each one between goes where it first
fits: a later place would only leave less room. So no star is ever tried twice.

Rules that are easy to get wrong, as util.c, stringmatchlen has them:

1. A class that is not closed ends with the pattern. ``[]`` takes nothing, ``[^]`` anything.
2. ``-`` makes a range of whatever byte follows, ``]`` included; a reversed range is turned round.
   Bytes from 128 on are negative there.
3. A ``\\`` at the very end is itself. Inside a class it escapes, and what it escapes keeps its
   case even where case is ignored. The ends of a range lose theirs after they were put in order.
4. An empty text fits only an empty pattern.
5. With more than 1000 stars before its end a pattern fits nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

MOST_STARS: Final = 1000
REMEMBERED_BYTES: Final = 1024  # of a pattern, at most, that is kept compiled

_BACKSLASH: Final = 0x5C
_ANY: Final = bytes([1]) * 256


def matches(pattern: bytes, text: bytes, ignore_case: bool = False) -> bool:
    """Return whether the whole of ``text`` fits ``pattern``; a lone star takes an empty text too.

    Complexity: O(text) for a pattern without classes; at most O(text * pattern / 64).
    """
    return pattern == b"*" or compiled(pattern, ignore_case).matches(text)


def compiled(pattern: bytes, ignore_case: bool = False) -> Glob:
    """Return the ``Glob`` of a pattern, remembered for a while unless it is long."""
    if len(pattern) > REMEMBERED_BYTES:
        return Glob(pattern, ignore_case)
    return _remembered(pattern, ignore_case)


@lru_cache(maxsize=256)
def _remembered(pattern: bytes, ignore_case: bool) -> Glob:
    return Glob(pattern, ignore_case)


class Segment:
    """Places without a star between them.

    ``literal`` is their text where each takes one byte only (in lower case where case is ignored);
    otherwise ``tables`` says for each place which bytes it takes.
    """

    def __init__(self, places: list[int | bytes]) -> None:
        self.size: Final = len(places)
        self.is_literal: Final = not any(isinstance(place, bytes) for place in places)
        self.literal: Final = bytes([place for place in places if isinstance(place, int)])
        self._places: Final = places
        self._masks: Final[dict[int, int]] = {}

    def fits(self, text: bytes, folded: bytes, start: int) -> bool:
        """Return whether the segment fits at ``start``; ``folded`` is ``text`` without case."""
        if self.is_literal:
            return folded.startswith(self.literal, start)
        if start + self.size > len(text):
            return False
        position = start
        for place in self._places:
            if isinstance(place, int):
                if folded[position] != place:
                    return False
            elif not place[text[position]]:
                return False
            position += 1
        return True

    def find(self, text: bytes, folded: bytes, start: int, end: int) -> int:
        """Return the end of the first place from ``start`` to ``end`` that it fits, or -1."""
        if self.is_literal:
            found = folded.find(self.literal, start, end)
            return found if found < 0 else found + self.size
        # One bit for each place: set when the bytes up to here fit the places up to there.
        reached = 0
        complete = 1 << (self.size - 1)
        for position in range(start, end):
            mask = self._masks.get(text[position])
            if mask is None:
                mask = self._mask(text[position], folded[position])
            reached = (reached << 1 | 1) & mask
            if reached & complete:
                return position + 1
        return -1

    def _mask(self, char: int, folded: int) -> int:
        """Return the places that take ``char``, as bits, the first place lowest."""
        bits = bytearray()
        for place in reversed(self._places):
            taken = place == folded if isinstance(place, int) else bool(place[char])
            bits.append(0x31 if taken else 0x30)
        mask = int(bits, 2)
        self._masks[char] = mask
        return mask


class Glob:
    """A pattern made ready to be tried on many texts."""

    def __init__(self, pattern: bytes, ignore_case: bool = False) -> None:
        self.pattern: Final = pattern
        self._ignore_case: Final = ignore_case
        self._segments: Final = _Reader(pattern, ignore_case).segments()
        self._least_bytes: Final = sum([segment.size for segment in self._segments])
        stars = len(self._segments) - 1
        if stars and not self._segments[-1].size:
            stars -= 1
        self._hopeless: Final = stars > MOST_STARS

    def matches(self, text: bytes) -> bool:
        """Return whether the whole of ``text`` fits."""
        if not text:
            return not self.pattern
        size = len(text)
        if self._hopeless or size < self._least_bytes:
            return False
        folded = text.lower() if self._ignore_case else text
        segments = self._segments
        first = segments[0]
        if not first.fits(text, folded, 0):
            return False
        if len(segments) == 1:
            return first.size == size
        last = segments[-1]
        end = size - last.size
        if not last.fits(text, folded, end):
            return False
        position = first.size
        for number in range(1, len(segments) - 1):
            position = segments[number].find(text, folded, position, end)
            if position < 0:
                return False
        return position <= end


class _Reader:
    def __init__(self, pattern: bytes, ignore_case: bool) -> None:
        self._pattern: Final = pattern
        self._ignore_case: Final = ignore_case
        self._position = 0
        self._classes: dict[bytes, bytes] = {}  # equal classes share one table

    def segments(self) -> list[Segment]:
        """Return all segments; there is one more than there are runs of stars."""
        pattern = self._pattern
        size = len(pattern)
        found: list[Segment] = []
        places: list[int | bytes] = []
        while self._position < size:
            char = pattern[self._position]
            self._position += 1
            if char == 0x2A:
                while pattern[self._position : self._position + 1] == b"*":
                    self._position += 1
                found.append(Segment(places))
                places = []
            elif char == 0x3F:
                places.append(_ANY)
            elif char == 0x5B:
                places.append(self._class())
            else:
                if char == _BACKSLASH and self._position < size:
                    char = pattern[self._position]
                    self._position += 1
                places.append(_lower(char) if self._ignore_case else char)
        found.append(Segment(places))
        return found

    def _class(self) -> bytes:
        pattern = self._pattern
        size = len(pattern)
        negated = pattern[self._position : self._position + 1] == b"^"
        if negated:
            self._position += 1
        table = bytearray(256)
        while self._position < size:
            char = pattern[self._position]
            if char == _BACKSLASH and self._position + 1 < size:
                table[pattern[self._position + 1]] = 1
                self._position += 2
            elif char == 0x5D:
                self._position += 1
                break
            elif self._position + 2 < size and pattern[self._position + 1] == 0x2D:
                self._add_range(table, char, pattern[self._position + 2])
                self._position += 3
            else:
                table[char] = 1
                if self._ignore_case:
                    table[_lower(char)] = 1
                    table[_upper(char)] = 1
                self._position += 1
        if negated:
            table = bytearray([1 - taken for taken in bytes(table)])
        found = bytes(table)
        return self._classes.setdefault(found, found)

    def _add_range(self, table: bytearray, start: int, end: int) -> None:
        low, high = _signed(start), _signed(end)
        if low > high:
            low, high = high, low
        if self._ignore_case:
            low, high = _lower(low), _lower(high)
        for char in range(256):
            compared = _signed(char)
            if low <= (_lower(compared) if self._ignore_case else compared) <= high:
                table[char] = 1


def _signed(char: int) -> int:
    return char - 256 if char >= 128 else char


def _lower(char: int) -> int:
    return char + 32 if 0x41 <= char <= 0x5A else char


def _upper(char: int) -> int:
    return char - 32 if 0x61 <= char <= 0x7A else char
