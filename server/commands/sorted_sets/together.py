"""Commands on sorted sets in a pipeline, whatever keys they name: all at once."""

from __future__ import annotations

from math import isnan
from typing import Final

from librt.vecs import append, vec

from headrace.compat.errors import CommandError
from headrace.compat.floats import parse_double
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.commands.sorted_set_keys import limits, put_together
from headrace.server.commands.sorted_sets import adding, reading  # noqa: F401  (the rows)
from headrace.server.commands.sorted_sets.ranges import any_range
from headrace.server.commands.sorted_sets.replies import add_members
from headrace.server.commands.together import Reader, Values, read_alike
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.storage.sorted_set.sorted_set import SortedSet

_PAIR_WORDS: Final = 4  # of ZADD with one pair and no option
_RANK_WORDS: Final = 3  # of ZRANK without one


@alike("ZADD", of_any_key=True)
def zadd_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Single members of sorted sets that are there, or are made."""
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
def zincrby_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Members that are there."""
    if not call.needs_no_events_of_any() or not limits(call).elements:  # then small ones turn large
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
    """Where a member stands.

    Args:
        ranks: its rank is asked for, else its score.
    """

    def __init__(self, ranks: bool) -> None:
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


_score: Final = _Place(False)
_rank: Final = _Place(True)


@alike("ZSCORE", of_any_key=True)
def zscore_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Scores of members."""
    return read_alike(call, requests, first, end, _score, 2)


@alike("ZRANK", of_any_key=True)
def zrank_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Ranks of members."""
    if len(requests[first]) != _RANK_WORDS:
        return NONE_ALIKE, NO_REPLIES
    return read_alike(call, requests, first, end, _rank, 2)


@alike("ZRANGE", of_any_key=True)
def zrange_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Ranges of members."""
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
