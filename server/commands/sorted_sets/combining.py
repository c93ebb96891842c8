"""Several sets at once: ZUNION, ZINTER, ZDIFF, their STOREs, and ZINTERCARD.

Sources are sorted sets and sets, whose members have the score 1. Where order decides, because sums
of doubles depend on it, sources are taken as in Redis: the smallest one first.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_double
from headrace.compat.type_errors import WEIGHT_NOT_A_FLOAT
from headrace.protocol.packing import Packer
from headrace.server.changes.events import Event
from headrace.server.commands.shared import store_result
from headrace.server.commands.sorted_sets.ranges import (
    DIFFERENCE_STORED,
    INTERSECTION_STORED,
    UNION_STORED,
)
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.packed.strings import unpack
from headrace.storage.set.set import Set
from headrace.storage.sorted_set.sorted_set import SortedSet, pairs_of, sorted_set_of

_PORTION: Final = 64  # members of a sorted set that are looked at together
_UNION: Final = 0
_INTER: Final = 1
_DIFF: Final = 2

_SUM: Final = 0
_MIN: Final = 1
_MAX: Final = 2
_COUNT: Final = 3
_AGGREGATES: Final = {b"SUM": _SUM, b"MIN": _MIN, b"MAX": _MAX, b"COUNT": _COUNT}


class Source:
    """A key with members: a sorted set, a set or None, and the factor ``weight`` of its scores."""

    def __init__(self, value: SortedSet | Set | None) -> None:
        self.value: Final[SortedSet | Set | None] = value
        self.weight = 1.0

    def size(self) -> int:
        """Return how many members there are."""
        return 0 if self.value is None else self.value.size()

    def pairs(self) -> list[tuple[bytes, float]]:
        """Return all members with their scores, in order."""
        value = self.value
        found: list[tuple[bytes, float]] = []
        if isinstance(value, Set):
            return [(member, 1.0) for member in value.members()]
        if value is not None:
            for run in value.runs(0, value.size()):
                found.extend(pairs_of(run))
        return found

    def members(self) -> Iterator[bytes]:
        """Yield all members."""
        value = self.value
        if isinstance(value, Set):
            for directory in value.directories():
                for piece in directory:
                    yield from unpack(piece)
        elif value is not None:
            for first in range(0, value.size(), _PORTION):
                for run in value.runs(first, min(first + _PORTION, value.size())):
                    for member, _ in pairs_of(run):
                        yield member

    def score(self, member: bytes) -> float:
        """Return the score of a member; not a number where it is not there."""
        value = self.value
        if isinstance(value, Set):
            return 1.0 if value.has(member) else float("nan")
        return float("nan") if value is None else value.score(member)


class Combining:
    """A request of one ``operation``, with the number of keys at ``at``.

    Raises: CommandError, where it is not well formed, or a key holds another type.
    """

    def __init__(self, call: Call, at: int, operation: int, stored: bool, counted: bool) -> None:
        args = Args(call.argv, at)
        numkeys = args.integer(errors.NOT_AN_INTEGER)
        if numkeys < 1:
            raise CommandError(errors.NO_INPUT_KEYS % call.name())
        if numkeys > args.left:
            raise CommandError(errors.SYNTAX)
        self._operation: Final = operation
        self._sources: list[Source] = [_source(call, args.word()) for _ in range(numkeys)]
        self._aggregate = _SUM
        self.scores = False
        self.limit = 0
        weighed = operation != _DIFF and not counted
        while args.left:
            option = args.option()
            if option == b"WEIGHTS" and weighed and args.left >= numkeys:
                self._take_weights(args)
            elif option == b"AGGREGATE" and weighed and args.left:
                aggregate = _AGGREGATES.get(args.option(), -1)
                if aggregate < 0:
                    raise CommandError(errors.SYNTAX)
                self._aggregate = aggregate
            elif option == b"WITHSCORES" and not stored and not counted:
                self.scores = True
            elif option == b"LIMIT" and counted and args.left:
                self.limit = args.integer(errors.LIMIT_BELOW_ZERO)
                if self.limit < 0:
                    raise CommandError(errors.LIMIT_BELOW_ZERO)
            else:
                raise CommandError(errors.SYNTAX)

    def _take_weights(self, args: Args) -> None:
        for source in self._sources:
            weight = parse_double(args.word())
            if isnan(weight):
                raise CommandError(WEIGHT_NOT_A_FLOAT)
            source.weight = weight

    def result(self) -> list[tuple[float, bytes]]:
        """Return all members with their scores, in order."""
        if self._operation == _UNION:
            scores = self._union()
        elif self._operation == _INTER:
            scores = self._intersection()
        else:
            scores = self._difference()
        pairs = [(score, member) for member, score in scores.items()]
        pairs.sort()
        return pairs

    def count(self) -> int:
        """Return how many members the intersection has, up to the limit."""
        sources = sorted(self._sources, key=_size)
        found = 0
        first = sources[0]  # a generator takes longer, but stops where the limit is
        for member in first.members() if self.limit else [pair[0] for pair in first.pairs()]:
            if _is_in_all(sources, member):
                found += 1
                if found == self.limit:
                    break
        return found

    def _union(self) -> dict[bytes, float]:
        scores: dict[bytes, float] = {}
        for source in sorted(self._sources, key=_size):
            for member, each in source.pairs():
                score = self._weighed(source, each)
                if member in scores:
                    score = self._joined(scores[member], score)
                scores[member] = score
        return scores

    def _intersection(self) -> dict[bytes, float]:
        sources = sorted(self._sources, key=_size)
        scores: dict[bytes, float] = {}
        for member, each in sources[0].pairs():
            score = self._weighed(sources[0], each)
            is_in_all = True
            for source in sources[1:]:
                other = source.score(member)
                if isnan(other):
                    is_in_all = False
                    break
                # Only the first source's product is replaced where it is no number, as in Redis.
                other = source.weight if self._aggregate == _COUNT else other * source.weight
                score = self._joined(score, other)
            if is_in_all:
                scores[member] = score
        return scores

    def _difference(self) -> dict[bytes, float]:
        others = [source for source in self._sources[1:] if source.size()]
        return {
            member: score
            for member, score in self._sources[0].pairs()
            if not _is_in_any(others, member)
        }

    def _weighed(self, source: Source, score: float) -> float:
        if self._aggregate == _COUNT:
            return source.weight
        score *= source.weight
        return 0.0 if isnan(score) else score

    def _joined(self, score: float, other: float) -> float:
        if self._aggregate == _MIN:
            return min(score, other)
        if self._aggregate == _MAX:
            return max(score, other)
        score += other
        return 0.0 if isnan(score) else score


def _size(source: Source) -> int:
    return source.size()


def _is_in_all(sources: list[Source], member: bytes) -> bool:
    for source in sources[1:]:
        if isnan(source.score(member)):
            return False
    return True


def _is_in_any(sources: list[Source], member: bytes) -> bool:
    for source in sources:
        if not isnan(source.score(member)):
            return True
    return False


def _source(call: Call, key: bytes) -> Source:
    value = call.lookup(key)
    if value is None or isinstance(value, (SortedSet, Set)):
        return Source(value)
    raise CommandError(errors.WRONGTYPE)


def _answer(call: Call, operation: int) -> object:
    combining = Combining(call, 1, operation, False, False)
    resp3 = call.session.resp3
    out = Packer(resp3)
    pairs = combining.result()
    scores = combining.scores
    out.array(2 * len(pairs) if scores and not resp3 else len(pairs))
    for score, member in pairs:
        if scores and resp3:
            out.array(2)
        out.text(member)
        if scores:
            out.double(score)
    return out.packed()


def _store(call: Call, operation: int, event: Event) -> object:
    combining = Combining(call, 2, operation, True, False)
    made = sorted_set_of(combining.result(), call.server.data.sorted_set_limits)
    store_result(call, call.argv[1], made, event, call.argv)
    return made.size()


def zunion(call: Call) -> object:
    """Reply: the members of any of the sets, with WITHSCORES each with its score."""
    return _answer(call, _UNION)


def zinter(call: Call) -> object:
    """Reply: the members of all of the sets, with WITHSCORES each with its score."""
    return _answer(call, _INTER)


def zdiff(call: Call) -> object:
    """Reply: the members of the first set that no other has, with their scores if asked for."""
    return _answer(call, _DIFF)


def zintercard(call: Call) -> object:
    """Reply: how many members are in all of the sets, or the limit."""
    return Combining(call, 1, _INTER, False, True).count()


def zunionstore(call: Call) -> object:
    """Reply: how many members were stored."""
    return _store(call, _UNION, UNION_STORED)


def zinterstore(call: Call) -> object:
    """Reply: how many members were stored."""
    return _store(call, _INTER, INTERSECTION_STORED)


def zdiffstore(call: Call) -> object:
    """Reply: how many members were stored."""
    return _store(call, _DIFF, DIFFERENCE_STORED)
