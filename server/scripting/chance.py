"""``math.random``: the same numbers after every start, as in Redis."""

from __future__ import annotations

import math
from typing import Any, Final

from headrace.server.scripting.errors import LibraryError
from headrace.server.scripting.values import refused, whole_at

_FACTOR: Final = 0x5DEECE66D
_START: Final = 0x1234ABCD330E
_MASK: Final = (1 << 48) - 1
_MOST: Final = (1 << 31) - 1


class Chance:
    """The 48-bit generator of POSIX."""

    def __init__(self) -> None:
        self._state = _START

    def random(self, words: tuple[Any, ...]) -> int | float:
        """The next number: below 1, or a whole one from 1 or the first argument to the last."""
        self._state = (self._state * _FACTOR + 0xB) & _MASK
        drawn = (self._state >> 17) % _MOST / _MOST
        if not words:
            return drawn
        if len(words) > 2:
            raise LibraryError(b"wrong number of arguments")
        low = 1 if len(words) == 1 else whole_at(words, 0)
        high = whole_at(words, len(words) - 1)
        if low > high:
            raise refused(len(words) - 1, "interval is empty")
        return math.floor(drawn * (high - low + 1)) + low

    def seed(self, words: tuple[Any, ...]) -> None:
        """Begin anew with a number."""
        number = whole_at(words, 0)
        self._state = ((number & 0xFFFFFFFF) << 16 | 0x330E) & _MASK
