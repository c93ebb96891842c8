"""Members with or without their scores, as replies."""

from __future__ import annotations

from mypy_extensions import i64

from headrace.protocol.packing import Packer
from headrace.protocol.replies import Packed
from headrace.storage.packed.strings import next_at
from headrace.storage.sorted_set.runs import first_place, score_at, size_of


def members_reply(
    resp3: bool, runs: list[bytes], count: int, reverse: bool, scores: bool
) -> Packed:
    """An array of members, in RESP3 of pairs where scores are asked for.

    Args:
        runs: with all of them, in order; reverse: the last one comes first.
        count: how many there are.
    """
    out = Packer(resp3)
    add_members(out, resp3, runs, count, reverse, scores, resp3)
    return out.packed()


def add_members(
    out: Packer,
    resp3: bool,
    runs: list[bytes],
    count: int,
    reverse: bool,
    scores: bool,
    pairs: bool,
) -> None:
    """As ``members_reply``, as a part of a reply.

    Args:
        pairs: each member is an array of its own with its score.
    """
    nested = scores and pairs
    out.array(count if nested or not scores else 2 * count)
    if reverse:
        for run in reversed(runs):
            _add_reversed(out, run, scores, nested)
    else:
        for run in runs:
            if scores:
                _add_scored(out, run, nested)
            else:
                out.strings(run[first_place(run) :])


def _add_scored(out: Packer, run: bytes, nested: bool) -> None:
    size = size_of(run)
    place = first_place(run)
    number: i64 = 0
    while number < size:
        after = next_at(run, place)
        if nested:
            out.array(2)
        out.strings(run[place:after])
        out.double(score_at(run, number))
        place = after
        number += 1


def _add_reversed(out: Packer, run: bytes, scores: bool, nested: bool) -> None:
    places: list[i64] = []
    place = first_place(run)
    end: i64 = len(run)
    while place < end:
        places.append(place)
        place = next_at(run, place)
    number: i64 = size_of(run)
    while number > 0:
        number -= 1
        place = places[number]
        if nested:
            out.array(2)
        out.strings(run[place:end])
        end = place
        if scores:
            out.double(score_at(run, number))
