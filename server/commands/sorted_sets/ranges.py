"""Ranges of members: ZRANGE, its older kin, and ZRANGESTORE."""

from __future__ import annotations

from math import isnan
from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.compat import type_errors
from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, CommandError
from headrace.compat.event_classes import EVENT_ZSET
from headrace.compat.numbers import parse_bound, parse_integer
from headrace.protocol.packing import Packer, packed_strings
from headrace.protocol.replies import Packed
from headrace.server.changes.events import Event
from headrace.server.commands.shared import store_result
from headrace.server.commands.typed_keys import sorted_set_at
from headrace.server.dispatch.args import integer
from headrace.server.dispatch.call import Call
from headrace.storage.packed.strings import next_at
from headrace.storage.sorted_set.runs import Span, place_of, score_at
from headrace.storage.sorted_set.sorted_set import (
    HIGHEST,
    LOWEST,
    MEMBER,
    LexBound,
    LexRange,
    SortedSet,
    pairs_of,
    sorted_set_of,
)

INCREASED: Final = Event(b"zincr", EVENT_ZSET, touches=True)
REMOVED: Final = Event(b"zrem", EVENT_ZSET, touches=True)
RANKS_REMOVED: Final = Event(b"zremrangebyrank", EVENT_ZSET, touches=True)
SCORES_REMOVED: Final = Event(b"zremrangebyscore", EVENT_ZSET, touches=True)
NAMES_REMOVED: Final = Event(b"zremrangebylex", EVENT_ZSET, touches=True)
LEAST_POPPED: Final = Event(b"zpopmin", EVENT_ZSET, touches=True)
GREATEST_POPPED: Final = Event(b"zpopmax", EVENT_ZSET, touches=True)
RANGE_STORED: Final = Event(b"zrangestore", EVENT_ZSET, touches=True)
UNION_STORED: Final = Event(b"zunionstore", EVENT_ZSET, touches=True)
INTERSECTION_STORED: Final = Event(b"zinterstore", EVENT_ZSET, touches=True)
DIFFERENCE_STORED: Final = Event(b"zdiffstore", EVENT_ZSET, touches=True)


def members_reply(resp3: bool, span: Span, reverse: bool, scores: bool) -> Packed:
    """Return an array of members, in RESP3 of pairs with scores; ``reverse``: last one first."""
    if not scores and not reverse:
        return packed_strings(int(span.count), span.strings())
    out = Packer(resp3)
    add_members(out, span, reverse, scores, resp3)
    return out.packed()


def add_members(out: Packer, span: Span, reverse: bool, scores: bool, pairs: bool) -> None:
    """Add an array as of ``members_reply``; ``pairs``: each member is an array with its score."""
    nested = scores and pairs
    count = int(span.count)
    out.array(2 * count if scores and not nested else count)
    at: i64 = 0
    runs: i64 = len(span.runs)
    if reverse:
        at = runs
        while at > 0:
            at -= 1
            first, end = span.bounds(at)
            _add_reversed(out, span.runs[at], first, end, scores, nested)
    elif scores:
        while at < runs:
            first, end = span.bounds(at)
            _add_scored(out, span.runs[at], first, end, nested)
            at += 1
    else:
        for piece in span.strings():
            out.strings(piece)


def _add_scored(out: Packer, run: bytes, number: i64, end: i64, nested: bool) -> None:
    place = place_of(run, number)
    while number < end:
        after = next_at(run, place)
        if nested:
            out.array(2)
        out.strings(run[place:after])
        out.double(score_at(run, number))
        place = after
        number += 1


def _add_reversed(
    out: Packer, run: bytes, first: i64, number: i64, scores: bool, nested: bool
) -> None:
    places: list[i64] = []
    place = place_of(run, first)
    at = first
    while at < number:
        places.append(place)
        place = next_at(run, place)
        at += 1
    end = place
    while number > first:
        number -= 1
        place = places[number - first]
        if nested:
            out.array(2)
        out.strings(run[place:end])
        end = place
        if scores:
            out.double(score_at(run, number))


BY_RANK: Final = 0
BY_SCORE: Final = 1
BY_NAME: Final = 2
_PARENTHESIS: Final = 0x28


@mypyc_attr(acyclic=True, free_list_len=1)
class Bounds:
    """A range of ranks, scores or names that was asked for, with its bounds as words.

    With ``reverse`` it is walked from its end; ranks are counted from there, too. Raises:
    CommandError.
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
        """Return the first rank of a set in the range, and the one behind its last.

        ``skipped`` members, which a walk meets first, are left out; not of a range of ranks.
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
        """Return up to ``most`` members of a range of scores, without the first ``skipped``."""
        if self._is_empty():
            return Span()
        return value.span_of_scores(
            self._low, self._without_low, self._high, not self._without_high, skipped, most
        )

    def _is_empty(self) -> bool:
        """Return whether no score can be in the range."""
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
        return (size - 1 - last, size - first) if self.reverse else (first, last + 1)


def _is_exclusive(word: bytes) -> bool:
    return len(word) > 0 and word[0] == _PARENTHESIS


def _score(word: bytes) -> float:
    value = parse_bound(word, 1 if _is_exclusive(word) else 0)
    if isnan(value):
        raise CommandError(type_errors.BOUND_NOT_A_FLOAT)
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
    raise CommandError(type_errors.BOUND_NOT_A_NAME)


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
    found: i64 = _OPTIONS.get(word, -1)  # mostly it is in upper case
    if found < 0:
        found = _OPTIONS.get(word.upper(), 0)
    return found


@mypyc_attr(acyclic=True, free_list_len=1)
class Range:
    """A request of this module: a key, bounds and options. Raises: CommandError for a wrong one.

    Args:
        at: where the key stands.
        kind: of the bounds; ``_ANY`` where that is an option.
        direction: forward, reverse, or ``_ANY``.
        stored: it is not answered, so scores cannot be asked for.
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
                self._offset = integer(argv[place])
                self._limit = integer(argv[place + 1])
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
            raise CommandError(type_errors.LIMIT_OF_RANKS)
        if self.scores and kind == BY_NAME:
            raise CommandError(type_errors.SCORES_OF_NAMES)
        low, high = argv[at + 1], argv[at + 2]
        if reverse and kind != BY_RANK:
            low, high = high, low
        self.by_rank: Final = kind == BY_RANK
        self._by_score: Final = kind == BY_SCORE
        self.reverse: Final = reverse
        self._bounds: Final = Bounds(kind, low, high, reverse)

    def span(self, value: SortedSet) -> Span:
        """Return the members of a set that are asked for."""
        if self._by_score and not self.reverse and self._offset >= 0:
            most: i64 = value.size() if self._limit < 0 else self._limit
            return self._bounds.span(value, self._offset, most)
        first, end = self.ranks(value)
        return value.span(first, end)

    def ranks(self, value: SortedSet) -> tuple[i64, i64]:
        """Return the first rank of a set that is asked for, and the one behind the last."""
        if self.by_rank:
            return self._bounds.ranks(value)
        if self._offset < 0:
            return 0, 0
        first, end = self._bounds.ranks(value, self._offset)
        limit = self._limit
        if 0 <= limit < end - first:
            return (end - limit, end) if self.reverse else (first, first + limit)
        return first, end


def any_range(argv: list[bytes]) -> Range:
    """Return what a ZRANGE asks for; raises CommandError if it is not well formed."""
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
    made = sorted_set_of(pairs, call.server.data.sorted_set_limits)
    store_result(call, call.argv[1], made, RANGE_STORED, call.argv)
    return made.size()


def _lose_signs(call: Call, pairs: list[tuple[float, bytes]], wanted: Range) -> None:
    """Take the sign from each 0 that Redis would put into a small set, before that turns large."""
    bounds = call.server.data.sorted_set_limits
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
