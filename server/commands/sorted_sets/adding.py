"""ZADD and ZINCRBY."""

from __future__ import annotations

from math import isnan
from typing import Final

from mypy_extensions import i64

from headrace.compat.errors import NOT_A_FLOAT, SYNTAX, CommandError
from headrace.compat.floats import parse_double
from headrace.compat.sorted_set_errors import GT_LT_AND_NX, INCR_ONE_PAIR, NX_AND_XX
from headrace.server.commands.sorted_set_keys import (
    ADDED,
    CH,
    GT,
    INCR,
    LT,
    NX,
    XX,
    Adding,
    limits,
    new_sorted_set,
    sorted_set_to_change,
)
from headrace.server.commands.sorted_sets.events import INCREASED
from headrace.server.dispatch.call import Call
from headrace.storage.sorted_set.sorted_set import NEW, SAME

_OPTIONS: Final[dict[bytes, int]] = {
    b"NX": int(NX),
    b"XX": int(XX),
    b"GT": int(GT),
    b"LT": int(LT),
    b"CH": int(CH),
    b"INCR": int(INCR),
}
_LONGEST_OPTION: Final = 4
_FIRST_SCORE: Final = 2
_ONE_PAIR: Final = 4  # words of a ZADD of one member without options
_DIGIT_NINE: Final = 0x39


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
    if count == _ONE_PAIR and at == _FIRST_SCORE:
        return _add_one(call, argv)
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
        if isnan(score):
            raise CommandError(NOT_A_FLOAT)
        adding.add_pair(score, argv[at + 1])
        at += 2
    adding.run(call)
    if options & INCR:
        return _increased(call, adding)
    if adding.added or adding.updated:
        call.changed(adding.key, ADDED, argv, adding.added + adding.updated)
    return adding.added + adding.updated if options & CH else adding.added


def zincrby(call: Call) -> object:
    """Reply: the score. An option of ZADD is taken for one, and leaves no pair behind."""
    score = parse_double(call.argv[2])
    if isnan(score):
        raise CommandError(SYNTAX if call.argv[2].upper() in _OPTIONS else NOT_A_FLOAT)
    adding = Adding(call.argv[1], INCR)
    adding.add_pair(score, call.argv[3])
    adding.run(call)
    return _increased(call, adding)


def _add_one(call: Call, argv: list[bytes]) -> int:
    """ZADD of one member without options, which most are."""
    score = parse_double(argv[2])
    if isnan(score):
        raise CommandError(NOT_A_FLOAT)
    key = argv[1]
    value = sorted_set_to_change(call, key)
    if value is None:
        value = new_sorted_set(call, 1, len(argv[3]))
        call.put(key, value)
    became = value.put(argv[3], score, limits(call))
    if became != SAME:
        call.changed(key, ADDED, argv)
    return 1 if became == NEW else 0


def _increased(call: Call, adding: Adding) -> object:
    """Report one increment; the reply."""
    score = adding.score
    if adding.added or adding.updated:
        call.changed(adding.key, INCREASED, call.argv)
    return None if isnan(score) else score
