"""GEOADD of places in a pipeline, whatever keys they name: all at once."""

from __future__ import annotations

from headrace.compat.errors import CommandError
from headrace.compat.geohash import score_of
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.commands.geo.places import ONE_PLACE
from headrace.server.commands.geo.words import coordinates
from headrace.server.commands.sorted_set_keys import limits, new_sorted_set
from headrace.server.commands.together import Values
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike
from headrace.storage.sorted_set.sorted_set import NEW, SAME, SortedSet


@alike("GEOADD", of_any_key=True)
def geoadd_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Single members of sorted sets that are there, or are made; recorded as ZADD."""
    if len(requests[first]) != ONE_PLACE or not call.concerns_only_logs():
        return NONE_ALIKE, NO_REPLIES
    bounds = limits(call)
    values = Values(call, requests, end, writes=True, element_at=4)
    recorded = call.recorded
    out = Packer(call.session.resp3)
    records: list[list[bytes]] = []
    changes = 0
    at = first
    while at < end:
        words = requests[at]
        try:
            longitude, latitude = coordinates(words[2], words[3])
        except CommandError:
            break
        score = score_of(longitude, latitude)
        value = values.of(at)
        if value is None:
            if call.server.changes.expired:
                break
            made = new_sorted_set(call, 1, len(words[4]))
            call.db.put(words[1], made, call.now_ms)
            values.made(made)
            became = made.put(words[4], float(score), bounds)
        elif isinstance(value, SortedSet):
            became = value.put(words[4], float(score), bounds)
        else:
            break
        if became != SAME:
            changes += 1
            if recorded:
                records.append([b"ZADD", words[1], b"%d" % score, words[4]])
        out.number(1 if became == NEW else 0)
        at += 1
    call.changed_alike(records, 0, len(records), changes)
    return at - first, out.replies()
