"""GEOADD of places in a pipeline, whatever keys they name: all at once."""

from __future__ import annotations

from librt.vecs import append, vec

from headrace.compat.errors import CommandError
from headrace.compat.geohash import score_of
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.commands.geo.places import ONE_PLACE
from headrace.server.commands.geo.words import coordinates
from headrace.server.commands.sorted_set_keys import put_together
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike


@alike("GEOADD", of_any_key=True)
def geoadd_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Single members of sorted sets that are there, or are made; recorded as ZADD."""
    if len(requests[first]) != ONE_PLACE or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    scores = vec[float]()
    at = first
    while at < end:
        words = requests[at]
        try:
            longitude, latitude = coordinates(words[2], words[3])
        except CommandError:
            break
        scores = append(scores, float(score_of(longitude, latitude)))
        at += 1
    out = Packer(call.session.resp3)
    changed: list[int] = []
    at = put_together(call, requests, first, 4, scores, out, changed)
    records: list[list[bytes]] = []
    if call.notes_changes:
        for each in changed:
            words = requests[each]
            records.append([b"zadd", words[1], b"%d" % int(scores[each - first]), words[4]])
    call.changed_alike(records, 0, len(records), len(changed))
    return at - first, out.replies()
