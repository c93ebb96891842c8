"""ZADD and ZINCRBY."""

from __future__ import annotations

from math import isnan
from typing import Final

from mypy_extensions import i64

from headrace.compat.errors import NOT_A_FLOAT, SYNTAX, CommandError
from headrace.compat.floats import parse_double
from headrace.compat.sorted_set_errors import (
    GT_LT_AND_NX,
    INCR_ONE_PAIR,
    NX_AND_XX,
    SCORE_IS_NAN,
)
from headrace.protocol.doubles import double
from headrace.server.commands.sorted_sets.events import ADDED, INCREASED
from headrace.server.commands.sorted_sets.values import (
    limits,
    new_sorted_set,
    sorted_set_to_change,
)
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import DENYOOM, FAST, WRITE, KeySpec, command

NX: Final[i64] = 1
XX: Final[i64] = 2
GT: Final[i64] = 4
LT: Final[i64] = 8
CH: Final[i64] = 16
INCR: Final[i64] = 32

_OPTIONS: Final[dict[bytes, int]] = {
    b"NX": int(NX),
    b"XX": int(XX),
    b"GT": int(GT),
    b"LT": int(LT),
    b"CH": int(CH),
    b"INCR": int(INCR),
}
_LONGEST_OPTION: Final = 4
_DIGIT_NINE: Final = 0x39


class Adding:
    """Pairs that are put into the sorted set of a key, by the rules of ZADD.

    Attributes:
        added, updated: how many members are new, and how many have another score.
        score: of the member that was looked at last; not a number if a condition refused it.
    """

    def __init__(self, key: bytes, options: i64) -> None:
        self.key: Final = key
        self.options: Final[i64] = options
        self.scores: Final[list[float]] = []
        self.members: Final[list[bytes]] = []
        self.added = 0
        self.updated = 0
        self.score = 0.0

    def add_pair(self, score: float, member: bytes) -> None:
        """Have one more pair put there."""
        self.scores.append(score)
        self.members.append(member)

    def run(self, call: Call) -> None:
        """Do it.

        Raises:
            CommandError: the key holds another type, or a sum is no number.
        """
        value = sorted_set_to_change(call, self.key)
        options = self.options
        members = self.members
        self.score = float("nan")
        if value is None:
            if options & XX:
                return
            value = new_sorted_set(call, len(members), len(members[0]))
            call.put(self.key, value)
        bounds = limits(call)
        if len(members) > bounds.elements:
            value.make_large()
        for at, member in enumerate(members):
            score = self.scores[at]
            old = value.score(member)
            if isnan(old):
                if options & XX:
                    score = old
                else:
                    value.add(member, score, bounds)
                    self.added += 1
            elif options & NX:
                score = float("nan")
            else:
                if options & INCR:
                    score += old
                    if isnan(score):
                        raise CommandError(SCORE_IS_NAN)
                if (options & GT and score <= old) or (options & LT and score >= old):
                    score = float("nan")
                elif score != old:
                    value.change(member, old, score)
                    self.updated += 1
            self.score = score


@command(
    "ZADD",
    arity=-4,
    flags=WRITE | DENYOOM | FAST,
    keys=(KeySpec("RW UPDATE"),),
    acl=("sortedset",),
)
def zadd(call: Call) -> object:
    """Reply: how many members are new, with CH or changed; with INCR the score, or nil."""
    argv = call.argv
    options: i64 = 0
    at = 2
    count = len(argv)
    while at < count and 0 < len(argv[at]) <= _LONGEST_OPTION and argv[at][0] > _DIGIT_NINE:
        option: i64 = _OPTIONS.get(argv[at].upper(), 0)
        if not option:
            break
        options |= option
        at += 1
    if (count - at) % 2 or at == count:
        raise CommandError(SYNTAX)
    if options & NX and options & XX:
        raise CommandError(NX_AND_XX)
    if (options & NX and options & (GT | LT)) or (options & GT and options & LT):
        raise CommandError(GT_LT_AND_NX)
    if options & INCR and count - at > 2:
        raise CommandError(INCR_ONE_PAIR)
    adding = Adding(argv[1], options)
    while at < count:
        score = parse_double(argv[at])
        if score is None:
            raise CommandError(NOT_A_FLOAT)
        adding.add_pair(score, argv[at + 1])
        at += 2
    adding.run(call)
    if options & INCR:
        return _increased(call, adding)
    if adding.added or adding.updated:
        call.changed(adding.key, ADDED, argv, adding.added + adding.updated)
    return adding.added + adding.updated if options & CH else adding.added


@command(
    "ZINCRBY",
    arity=4,
    flags=WRITE | DENYOOM | FAST,
    keys=(KeySpec("RW ACCESS UPDATE"),),
    acl=("sortedset",),
)
def zincrby(call: Call) -> object:
    """Reply: the score."""
    score = parse_double(call.argv[2])
    if score is None:
        raise CommandError(NOT_A_FLOAT)
    adding = Adding(call.argv[1], INCR)
    adding.add_pair(score, call.argv[3])
    adding.run(call)
    return _increased(call, adding)


def _increased(call: Call, adding: Adding) -> object:
    """Report one increment, recorded as what came of it; the reply."""
    score = adding.score
    if adding.added or adding.updated:
        record = [b"ZADD", adding.key, double(score), adding.members[0]]
        call.changed(adding.key, INCREASED, record)
    return None if isnan(score) else score
