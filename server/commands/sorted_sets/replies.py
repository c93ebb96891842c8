"""Members with or without their scores, as replies."""

from __future__ import annotations

from mypy_extensions import i64

from headrace.protocol.packing import Packer, packed_strings
from headrace.protocol.replies import Packed
from headrace.storage.packed.strings import next_at
from headrace.storage.sorted_set.runs import place_of, score_at
from headrace.storage.sorted_set.span import Span


def members_reply(resp3: bool, span: Span, reverse: bool, scores: bool) -> Packed:
    """An array of members, in RESP3 of pairs where scores are asked for.

    Args:
        reverse: the last one comes first.
    """
    if not scores and not reverse:
        return packed_strings(int(span.count), span.strings())
    out = Packer(resp3)
    add_members(out, span, reverse, scores, resp3)
    return out.packed()


def add_members(out: Packer, span: Span, reverse: bool, scores: bool, pairs: bool) -> None:
    """As ``members_reply``, as a part of a reply.

    Args:
        pairs: each member is an array of its own with its score.
    """
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
