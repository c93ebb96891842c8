"""Bounds of ranges, as they are written: of ranks, scores and names."""

from __future__ import annotations

from math import isnan
from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.compat.errors import NOT_AN_INTEGER, CommandError
from headrace.compat.floats import parse_bound
from headrace.compat.numbers import parse_integer
from headrace.compat.sorted_set_errors import BOUND_NOT_A_FLOAT, BOUND_NOT_A_NAME
from headrace.storage.sorted_set.lex import HIGHEST, LOWEST, MEMBER, LexBound, LexRange
from headrace.storage.sorted_set.sorted_set import SortedSet
from headrace.storage.sorted_set.span import Span

BY_RANK: Final = 0
BY_SCORE: Final = 1
BY_NAME: Final = 2
_PARENTHESIS: Final = 0x28


@mypyc_attr(acyclic=True, free_list_len=1)
class Bounds:
    """A range that was asked for.

    Args:
        kind: ``BY_RANK``, ``BY_SCORE`` or ``BY_NAME``.
        low, high: its bounds as words.
        reverse: it is walked from its end; ranks are counted from there, too.

    Raises:
        CommandError: they are none.
    """

    def __init__(self, kind: int, low: bytes, high: bytes, reverse: bool) -> None:
        self.kind: Final = kind
        self.reverse: Final = reverse
        self._first: i64 = 0
        self._last: i64 = 0
        self._low = 0.0
        self._high = 0.0
        self._without_low = False
        self._without_high = False
        self._names: LexRange | None = None
        if kind == BY_RANK:
            first = parse_integer(low)
            last = parse_integer(high)
            if first is None or last is None:
                raise CommandError(NOT_AN_INTEGER)
            self._first = first
            self._last = last
        elif kind == BY_SCORE:
            self._without_low = _is_exclusive(low)
            self._without_high = _is_exclusive(high)
            self._low = _score(low)
            self._high = _score(high)
        else:
            self._names = LexRange(_name(low), _name(high))

    def ranks(self, value: SortedSet, skipped: i64 = 0) -> tuple[i64, i64]:
        """The first rank of a set in the range, and the one behind its last.

        Args:
            skipped: so many, which a walk meets first, are left out; not of a range of ranks.
        """
        if self.kind == BY_RANK:
            return self._by_rank(value.size())
        if self.kind == BY_NAME:
            assert self._names is not None
            return value.lex_ranks(self._names, self.reverse, skipped)
        if self._is_empty():
            return 0, 0
        low = self._low
        high = self._high
        first = value.above_score(low, self._without_low)
        end = value.above_score(high, not self._without_high)
        if skipped:
            left = max(0, end - first)
            if self.reverse:
                end -= min(skipped, left)
            else:
                first += min(skipped, left)
        return first, end

    def span(self, value: SortedSet, skipped: i64, most: i64) -> Span:
        """Up to ``most`` members in a range of scores, which is walked from its beginning.

        Args:
            skipped: so many are left out before.
        """
        if self._is_empty():
            return Span()
        return value.span_of_scores(
            self._low, self._without_low, self._high, not self._without_high, skipped, most
        )

    def _is_empty(self) -> bool:
        """Whether no score can be in the range."""
        low = self._low
        high = self._high
        return low > high or (low == high and (self._without_low or self._without_high))

    def _by_rank(self, size: i64) -> tuple[i64, i64]:
        first = self._first
        last = self._last
        if first < 0:
            first = max(0, first + size)
        if last < 0:
            last += size
        last = min(last, size - 1)
        if first > last:
            return 0, 0
        if self.reverse:
            return size - 1 - last, size - first
        return first, last + 1


def _is_exclusive(word: bytes) -> bool:
    return len(word) > 0 and word[0] == _PARENTHESIS


def _score(word: bytes) -> float:
    value = parse_bound(word, 1 if _is_exclusive(word) else 0)
    if isnan(value):
        raise CommandError(BOUND_NOT_A_FLOAT)
    return value


def _name(word: bytes) -> LexBound:
    mark = word[:1]
    if mark == b"[" or mark == b"(":
        return LexBound(MEMBER, word[1:], mark == b"(")
    text = word.partition(b"\0")[0]
    if text == b"+":
        return LexBound(HIGHEST, b"", True)
    if text == b"-":
        return LexBound(LOWEST, b"", True)
    raise CommandError(BOUND_NOT_A_NAME)
