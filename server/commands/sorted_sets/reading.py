"""Sizes, scores and ranks: ZCARD, ZCOUNT, ZLEXCOUNT, ZSCORE, ZMSCORE, ZRANK, ZREVRANK."""

from __future__ import annotations

from math import isnan
from typing import Final

from headrace.compat.errors import SYNTAX, CommandError, wrong_arity
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.commands.sorted_set_keys import sorted_set_at
from headrace.server.commands.sorted_sets.bounds import BY_NAME, BY_SCORE, Bounds
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import KeySpec

READ_KEY: Final = (KeySpec("RO ACCESS"),)
_WITH_SCORE: Final = 4  # words of ZRANK with that option


def zcard(call: Call) -> object:
    """Reply: how many members there are."""
    value = sorted_set_at(call, call.argv[1])
    return 0 if value is None else value.size()


def zscore(call: Call) -> object:
    """Reply: the score, or nil."""
    value = sorted_set_at(call, call.argv[1])
    if value is None:
        return None
    score = value.score(call.argv[2])
    return None if isnan(score) else score


def zmscore(call: Call) -> object:
    """Reply: the score of each member, or nil."""
    value = sorted_set_at(call, call.argv[1])
    out = Packer(call.session.resp3)
    out.array(len(call.argv) - 2)
    for member in call.argv[2:]:
        score = float("nan") if value is None else value.score(member)
        if isnan(score):
            out.null()
        else:
            out.double(score)
    return out.packed()


def zcount(call: Call) -> object:
    """Reply: how many members have scores in the range."""
    return _count(call, BY_SCORE)


def zlexcount(call: Call) -> object:
    """Reply: how many members are in the range."""
    return _count(call, BY_NAME)


def _count(call: Call, kind: int) -> int:
    bounds = Bounds(kind, call.argv[2], call.argv[3], False)
    value = sorted_set_at(call, call.argv[1])
    if value is None:
        return 0
    first, end = bounds.ranks(value)
    return int(end - first)


def zrank(call: Call) -> object:
    """Reply: the rank, or nil; with WITHSCORE the rank and the score, or nil."""
    return _rank(call, False)


def zrevrank(call: Call) -> object:
    """As ZRANK, counted from the greatest score."""
    return _rank(call, True)


def _rank(call: Call, reverse: bool) -> object:
    argv = call.argv
    if len(argv) > _WITH_SCORE:
        raise CommandError(wrong_arity(call.name()))
    scored = len(argv) == _WITH_SCORE
    if scored and argv[3].upper() != b"WITHSCORE":
        raise CommandError(SYNTAX)
    value = sorted_set_at(call, argv[1])
    score = float("nan") if value is None else value.score(argv[2])
    if value is None or isnan(score):
        return NULL_ARRAY if scored else None
    rank = int(value.rank(argv[2], score))
    if reverse:
        rank = value.size() - 1 - rank
    return [rank, score] if scored else rank
