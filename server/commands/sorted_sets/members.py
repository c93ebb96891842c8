"""Members of sorted sets: ZADD, ZREM, ZPOPMIN, BZMPOP, ZSCORE, ZRANK, ZRANDMEMBER, their kin."""

from __future__ import annotations

from math import isnan
from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_double
from headrace.compat.type_errors import GT_LT_AND_NX, INCR_ONE_PAIR, NX_AND_XX
from headrace.protocol.doubles import double
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, NULL_ARRAY, Packed
from headrace.server.changes.events import Event
from headrace.server.commands.shared import (
    EMPTY_SCAN,
    LOOK_EVERY,
    Pop,
    ScanOptions,
    drop_empty,
    random_bits,
    random_count,
    random_places,
    scan_cursor,
    wait,
)
from headrace.server.commands.sorted_sets.ranges import (
    BY_NAME,
    BY_RANK,
    BY_SCORE,
    GREATEST_POPPED,
    INCREASED,
    LEAST_POPPED,
    NAMES_REMOVED,
    RANKS_REMOVED,
    REMOVED,
    SCORES_REMOVED,
    Bounds,
    add_members,
    any_range,
    members_reply,
)
from headrace.server.commands.together import Ran, Reader, Requests, Values, read_alike
from headrace.server.commands.typed_keys import (
    ADDED,
    CH,
    GT,
    INCR,
    LT,
    NX,
    XX,
    Adding,
    put_one,
    put_together,
    sorted_set_at,
    sorted_set_to_change,
)
from headrace.server.dispatch.args import at_least, deadline_of_seconds
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.server.waiting import ElementOf
from headrace.storage.sorted_set.runs import span_of
from headrace.storage.sorted_set.sorted_set import NEW, SAME, SORTED_SET, SortedSet, pairs_of

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
        raise CommandError(errors.SYNTAX)
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
            raise CommandError(errors.NOT_A_FLOAT)
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
        raise CommandError(
            errors.SYNTAX if call.argv[2].upper() in _OPTIONS else errors.NOT_A_FLOAT
        )
    adding = Adding(call.argv[1], INCR)
    adding.add_pair(score, call.argv[3])
    adding.run(call)
    return _increased(call, adding)


def _add_one(call: Call, argv: list[bytes]) -> int:
    """Run ZADD of one member without options, which most are."""
    score = parse_double(argv[2])
    if isnan(score):
        raise CommandError(errors.NOT_A_FLOAT)
    became = put_one(call, argv[1], score, argv[3])
    if became != SAME:
        call.changed(argv[1], ADDED, argv)
    return 1 if became == NEW else 0


def _increased(call: Call, adding: Adding) -> object:
    score = adding.score
    if adding.added or adding.updated:
        call.changed(adding.key, INCREASED, call.argv)
    return None if isnan(score) else score


def zrem(call: Call) -> object:
    """Reply: how many members were there."""
    argv = call.argv
    key = argv[1]
    value = sorted_set_to_change(call, key)
    if value is None:
        return 0
    removed = 0
    for member in argv[2:]:
        if value.remove(member):
            removed += 1
    if removed:
        call.changed(key, REMOVED, argv, removed)
        drop_empty(call, key, value)
    return removed


def zremrangebyrank(call: Call) -> object:
    """Reply: how many members were there."""
    return _remove_range(call, BY_RANK, RANKS_REMOVED)


def zremrangebyscore(call: Call) -> object:
    """Reply: how many members were there."""
    return _remove_range(call, BY_SCORE, SCORES_REMOVED)


def zremrangebylex(call: Call) -> object:
    """Reply: how many members were there."""
    return _remove_range(call, BY_NAME, NAMES_REMOVED)


def _remove_range(call: Call, kind: int, event: Event) -> int:
    argv = call.argv
    key = argv[1]
    bounds = Bounds(kind, argv[2], argv[3], False)
    value = sorted_set_to_change(call, key)
    if value is None:
        return 0
    first, end = bounds.ranks(value)
    if first >= end:
        return 0
    value.take(first, end)
    removed = int(end - first)
    call.changed(key, event, argv, removed)
    drop_empty(call, key, value)
    return removed


_ELEMENT: Final = ElementOf(SORTED_SET, SortedSet)


def _take(
    call: Call,
    key: bytes,
    value: SortedSet,
    greatest: bool,
    most: int,
    counted: bool,
    verbatim: bool = False,
) -> list[bytes]:
    """Take and report up to ``most`` members, the least or the greatest; return runs of them.

    The record has their number if ``counted``, or is the request if ``verbatim``.
    """
    size = value.size()
    count = min(most, size)
    first = size - count if greatest else 0
    taken = value.take(first, first + count)
    record: list[bytes] | None = None
    if verbatim:
        record = call.argv
    elif call.recorded:
        record = [b"ZPOPMAX" if greatest else b"ZPOPMIN", key]
        if counted:
            record.append(b"%d" % count)
    call.changed(key, GREATEST_POPPED if greatest else LEAST_POPPED, record, count)
    drop_empty(call, key, value)
    return taken


def zpopmin(call: Call) -> object:
    """Reply: the members with their scores, the least first."""
    return _pop(call, False)


def zpopmax(call: Call) -> object:
    """Reply: the members with their scores, the greatest first."""
    return _pop(call, True)


def _pop(call: Call, greatest: bool) -> object:
    argv = call.argv
    most = 1
    counted = len(argv) > 2
    if counted:
        if len(argv) > 3:
            raise CommandError(errors.SYNTAX)
        most = at_least(argv[2], 0, errors.NOT_POSITIVE)
    key = argv[1]
    value = sorted_set_to_change(call, key)
    if value is None or not most:
        return []
    runs = _take(call, key, value, greatest, most, counted, verbatim=True)
    resp3 = call.session.resp3
    if counted:
        return members_reply(resp3, span_of(runs), greatest, True)
    out = Packer(resp3)
    add_members(out, span_of(runs), greatest, True, False)
    return out.packed()


_ENDS: Final = (b"MIN", b"MAX")


def _pop_first(call: Call, pop: Pop) -> Packed | None:
    for key in pop.keys:
        value = sorted_set_to_change(call, key)
        if value is not None:
            runs = _take(call, key, value, pop.last, pop.count, True)
            out = Packer(call.session.resp3)
            out.array(2)
            out.text(key)
            add_members(out, span_of(runs), pop.last, True, True)
            return out.packed()
    return None


def zmpop(call: Call) -> object:
    """Reply: a key, and members with their scores; nil where there is no such key."""
    reply = _pop_first(call, Pop(call.argv, 1, _ENDS))
    return NULL_ARRAY if reply is None else reply


def bzmpop(call: Call) -> object:
    """As ZMPOP, once there is such a key."""
    pop = Pop(call.argv, 2, _ENDS)
    deadline_ms = deadline_of_seconds(call.argv[1], call.now_ms)  # the last that Redis looks at
    reply = _pop_first(call, pop)
    return wait(call, pop.keys, deadline_ms, _ELEMENT) if reply is None else reply


def bzpopmin(call: Call) -> object:
    """Reply: the key, the member and its score; nil in the end."""
    return _pop_or_wait(call, False)


def bzpopmax(call: Call) -> object:
    """Reply: the key, the member and its score; nil in the end."""
    return _pop_or_wait(call, True)


def _pop_or_wait(call: Call, greatest: bool) -> object:
    keys = call.argv[1:-1]
    deadline_ms = deadline_of_seconds(call.argv[-1], call.now_ms)
    for key in keys:
        value = sorted_set_to_change(call, key)
        if value is not None:
            run = _take(call, key, value, greatest, 1, False)[0]
            member, score = pairs_of(run)[0]
            return [key, member, score]
    return wait(call, keys, deadline_ms, _ELEMENT)


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
        raise CommandError(errors.wrong_arity(call.name()))
    scored = len(argv) == _WITH_SCORE
    if scored and argv[3].upper() != b"WITHSCORE":
        raise CommandError(errors.SYNTAX)
    value = sorted_set_at(call, argv[1])
    score = float("nan") if value is None else value.score(argv[2])
    if value is None or isnan(score):
        return NULL_ARRAY if scored else None
    rank = int(value.rank(argv[2], score))
    if reverse:
        rank = value.size() - 1 - rank
    return [rank, score] if scored else rank


def zrandmember(call: Call) -> object:
    """Reply: a member or nil; with a count so many, with their scores if they are asked for."""
    argv = call.argv
    if len(argv) == 2:
        value = sorted_set_at(call, argv[1])
        return None if value is None else _pair(value, random_bits() % value.size())[0]
    count, scores = random_count(argv, b"WITHSCORES")
    value = sorted_set_at(call, argv[1])
    if value is None or not count:
        return []
    size = value.size()
    if count >= size:
        return members_reply(call.session.resp3, value.span(0, size), False, scores)
    if count > 0:
        return _members(call, value, random_places(size, count), scores)
    return _repeated_members(call, value, -count, scores)


def _pair(value: SortedSet, rank: int) -> tuple[bytes, float]:
    return pairs_of(value.runs(rank, rank + 1)[0])[0]


def _members(call: Call, value: SortedSet, ranks: list[int], scores: bool) -> object:
    out = _begun(call, len(ranks), scores)
    for rank in ranks:
        _add(out, _pair(value, rank), scores, call.session.resp3)
    return out.packed()


def _repeated_members(call: Call, value: SortedSet, count: int, scores: bool) -> object:
    """Return ``count`` random members, repeats allowed: they may be more than memory holds."""
    size = value.size()
    out = _begun(call, count, scores)
    for number in range(count):
        _add(out, _pair(value, random_bits() % size), scores, call.session.resp3)
        if number % LOOK_EVERY == 0 and call.reply_is_too_long(out.wire_bytes()):
            break
    return out.packed()


def _begun(call: Call, count: int, scores: bool) -> Packer:
    resp3 = call.session.resp3
    out = Packer(resp3)
    out.array(2 * count if scores and not resp3 else count)
    return out


def _add(out: Packer, pair: tuple[bytes, float], scores: bool, resp3: bool) -> None:
    if scores:
        if resp3:
            out.array(2)
        out.text(pair[0])
        out.double(pair[1])
    else:
        out.text(pair[0])


def zscan(call: Call) -> object:
    """Reply: the next cursor, 0 at the end, and members each with its score, as texts."""
    cursor = scan_cursor(call)
    value = sorted_set_at(call, call.argv[1])
    if value is None:
        return EMPTY_SCAN
    wanted = ScanOptions(call, 3)
    large = value.is_large()
    cursor, pairs = value.scan(cursor, wanted.count)
    found: list[object] = []
    for member, score in pairs:
        if wanted.takes(member):
            found.append(member)
            found.append(b"%.17g" % score if large else double(score))
    return [b"%d" % cursor, found]


_PAIR_WORDS: Final = 4  # of ZADD with one pair and no option
_RANK_WORDS: Final = 3  # of ZRANK without one


@alike("ZADD", of_any_key=True)
def zadd_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Put single members into sorted sets, which may be new."""
    if len(requests[first]) != _PAIR_WORDS or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    scores = vec[float]()
    at = first
    while at < end:
        score = parse_double(requests[at][2])
        if isnan(score):
            break
        scores = append(scores, score)
        at += 1
    out = Packer(call.session.resp3)
    changed: list[int] = []
    at = put_together(call, requests, first, 3, scores, out, changed)
    if len(changed) == at - first:
        call.changed_alike(requests, first, at, at - first)
    else:
        records = [requests[each] for each in changed]
        call.changed_alike(records, 0, len(records), len(records))
    return at - first, out.replies()


@alike("ZINCRBY", of_any_key=True)
def zincrby_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Increment scores of members that are there."""
    if (
        not call.needs_no_events_of_any() or not call.server.data.sorted_set_limits.elements
    ):  # then small ones turn large
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end, writes=True, element_at=3)
    out = Packer(call.session.resp3)
    changed: list[list[bytes]] = []
    at = first
    while at < end:
        words = requests[at]
        value = values.of(at)
        if not isinstance(value, SortedSet):
            break
        old = value.score(words[3])
        score = old + parse_double(words[2])
        if isnan(score):
            break
        if score != old:
            value.change(words[3], old, score)
            changed.append(words)
        out.double(score)
        at += 1
    call.changed_alike(changed, 0, len(changed), len(changed))
    return at - first, out.replies()


class _Place(Reader):
    """Answers with a member's rank if ``ranks``, else its score."""

    def __init__(self, ranks: bool, words: i64 = 0) -> None:
        super().__init__(words, element_at=2)
        self._ranks: Final = ranks

    def absent(self, out: Packer) -> None:
        out.null()

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, SortedSet):
            return False
        score = value.score(words[2])
        if isnan(score):
            out.null()
        elif self._ranks:
            out.number(int(value.rank(words[2], score)))
        else:
            out.double(score)
        return True


read_alike("ZSCORE", _Place(False))
read_alike("ZRANK", _Place(True, _RANK_WORDS))


@alike("ZRANGE", of_any_key=True)
def zrange_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Write ranges of members."""
    resp3 = call.session.resp3
    values = Values(call, requests, end)
    out = Packer(resp3)
    hits = 0
    at = first
    while at < end:
        words = requests[at]
        try:
            wanted = any_range(words)
        except CommandError:
            break
        value = values.of(at)
        if value is None:
            if call.reports_misses():
                break
            out.array(0)
        elif isinstance(value, SortedSet):
            add_members(out, wanted.span(value), wanted.reverse, wanted.scores, resp3)
            hits += 1
        else:
            break
        at += 1
        if out.wire_bytes() >= ALIKE_BYTES:
            break
    call.count_reads(hits, at - first - hits)
    return at - first, out.replies()
