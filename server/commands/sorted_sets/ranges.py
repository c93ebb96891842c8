"""Ranges of members: ZRANGE, its older kin, and ZRANGESTORE."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, CommandError
from headrace.compat.numbers import parse_integer
from headrace.compat.sorted_set_errors import LIMIT_OF_RANKS, SCORES_OF_NAMES
from headrace.server.commands.collections import store_result
from headrace.server.commands.sorted_set_keys import limits, sorted_set_at
from headrace.server.commands.sorted_sets.bounds import BY_NAME, BY_RANK, BY_SCORE, Bounds
from headrace.server.commands.sorted_sets.events import RANGE_STORED
from headrace.server.commands.sorted_sets.replies import members_reply
from headrace.server.dispatch.call import Call
from headrace.storage.sorted_set.sorted_set import SortedSet, pairs_of, sorted_set_of
from headrace.storage.sorted_set.span import Span

_ANY: Final = -1  # the kind, or the direction, is an option
_FORWARD: Final = 0
_REVERSE: Final = 1
_NO_LIMIT: Final = -1

_WITHSCORES: Final[i64] = 1
_LIMIT: Final[i64] = 2
_REV: Final[i64] = 3
_BYLEX: Final[i64] = 4
_BYSCORE: Final[i64] = 5
_OPTIONS: Final[dict[bytes, int]] = {
    b"WITHSCORES": int(_WITHSCORES),
    b"LIMIT": int(_LIMIT),
    b"REV": int(_REV),
    b"BYLEX": int(_BYLEX),
    b"BYSCORE": int(_BYSCORE),
}


def _option(word: bytes) -> i64:
    """The option that a word is."""
    found: i64 = _OPTIONS.get(word, -1)  # mostly it is in upper case
    if found < 0:
        found = _OPTIONS.get(word.upper(), 0)
    return found


def _number(word: bytes) -> int:
    value = parse_integer(word)
    if value is None:
        raise CommandError(NOT_AN_INTEGER)
    return value


@mypyc_attr(acyclic=True, free_list_len=1)
class Range:
    """What a command of this module asks for: a key, bounds and options.

    Args:
        at: where the key stands.
        kind: of the bounds; ``_ANY`` where that is an option.
        direction: forward, reverse, or ``_ANY``.
        stored: it is not answered, so scores cannot be asked for.

    Raises:
        CommandError: it is not well formed.
    """

    def __init__(self, argv: list[bytes], at: int, kind: int, direction: int, stored: bool) -> None:
        self.key: Final = argv[at]
        self.scores = False
        self._offset: i64 = 0
        self._limit: i64 = _NO_LIMIT
        count = len(argv)
        place = at + 3
        while place < count:
            option = _option(argv[place])
            place += 1
            if option == _WITHSCORES and not stored:
                self.scores = True
            elif option == _LIMIT and place + 2 <= count:
                self._offset = _number(argv[place])
                self._limit = _number(argv[place + 1])
                place += 2
            elif option == _REV and direction == _ANY:
                direction = _REVERSE
            elif option == _BYLEX and kind == _ANY:
                kind = BY_NAME
            elif option == _BYSCORE and kind == _ANY:
                kind = BY_SCORE
            else:
                raise CommandError(SYNTAX)
        if kind == _ANY:
            kind = BY_RANK
        reverse = direction == _REVERSE
        if self._limit != _NO_LIMIT and kind == BY_RANK:
            raise CommandError(LIMIT_OF_RANKS)
        if self.scores and kind == BY_NAME:
            raise CommandError(SCORES_OF_NAMES)
        low, high = argv[at + 1], argv[at + 2]
        if reverse and kind != BY_RANK:
            low, high = high, low
        self.by_rank: Final = kind == BY_RANK
        self._by_score: Final = kind == BY_SCORE
        self.reverse: Final = reverse
        self._bounds: Final = Bounds(kind, low, high, reverse)

    def span(self, value: SortedSet) -> Span:
        """The members of a set that are asked for."""
        if self._by_score and not self.reverse and self._offset >= 0:
            most: i64 = value.size() if self._limit < 0 else self._limit
            return self._bounds.span(value, self._offset, most)
        first, end = self.ranks(value)
        return value.span(first, end)

    def ranks(self, value: SortedSet) -> tuple[i64, i64]:
        """The first rank of a set that is asked for, and the one behind the last."""
        if self.by_rank:
            return self._bounds.ranks(value)
        if self._offset < 0:
            return 0, 0
        first, end = self._bounds.ranks(value, self._offset)
        limit = self._limit
        if 0 <= limit < end - first:
            if self.reverse:
                return end - limit, end
            return first, first + limit
        return first, end


def any_range(argv: list[bytes]) -> Range:
    """What a ZRANGE asks for; raises CommandError if it is not well formed."""
    return Range(argv, 1, _ANY, _ANY, False)


def _answer(call: Call, kind: int, direction: int) -> object:
    wanted = Range(call.argv, 1, kind, direction, False)
    value = sorted_set_at(call, wanted.key)
    if value is None:
        return []
    span = wanted.span(value)
    return members_reply(call.session.resp3, span, wanted.reverse, wanted.scores)


def zrange(call: Call) -> object:
    """Reply: the members, with WITHSCORES each with its score."""
    return _answer(call, _ANY, _ANY)


def zrevrange(call: Call) -> object:
    """As ZRANGE with REV."""
    return _answer(call, BY_RANK, _REVERSE)


def zrangebyscore(call: Call) -> object:
    """As ZRANGE with BYSCORE."""
    return _answer(call, BY_SCORE, _FORWARD)


def zrevrangebyscore(call: Call) -> object:
    """As ZRANGE with BYSCORE and REV."""
    return _answer(call, BY_SCORE, _REVERSE)


def zrangebylex(call: Call) -> object:
    """As ZRANGE with BYLEX."""
    return _answer(call, BY_NAME, _FORWARD)


def zrevrangebylex(call: Call) -> object:
    """As ZRANGE with BYLEX and REV."""
    return _answer(call, BY_NAME, _REVERSE)


def zrangestore(call: Call) -> object:
    """Reply: how many members were stored."""
    wanted = Range(call.argv, 2, _ANY, _ANY, True)
    value = sorted_set_at(call, wanted.key)
    pairs: list[tuple[float, bytes]] = []
    if value is not None:
        for run in wanted.span(value).parts():
            pairs.extend([(score, member) for member, score in pairs_of(run)])
        _lose_signs(call, pairs, wanted)
    made = sorted_set_of(pairs, limits(call))
    store_result(call, call.argv[1], made, RANGE_STORED, call.argv)
    return made.size()


def _lose_signs(call: Call, pairs: list[tuple[float, bytes]], wanted: Range) -> None:
    """Take the sign from each 0 that Redis would put into a small set, before that turns large."""
    bounds = limits(call)
    count: i64 = len(pairs)
    if wanted.by_rank and count > bounds.elements:
        return
    number: i64 = 0
    while number < count and number < bounds.elements:
        at = count - 1 - number if wanted.reverse else number
        score, member = pairs[at]
        if len(member) > bounds.element_bytes:
            return
        if score == 0:
            pairs[at] = (0.0, member)
        number += 1
