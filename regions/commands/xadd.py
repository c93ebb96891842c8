"""XADD in a region: which IDs callers may give, what is recorded, and how an entry arrives.

    XADD key [NEWLANE n] [MANUAL] [IDMP pid iid SEEN lanes] id field value ...

NEWLANE begins a lane with this number. MANUAL says that the stream has IDs that its callers made.
IDMP names the message that the entry stands for, and SEEN what its maker had seen of others.

Two regions may add the same message while they are apart. When such an entry arrives where the
message was added, too, the lower one stands. The region whose entry loses, or wins, removes the
other, in one transaction with the arrival.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.stream_ids import format_id
from headrace.regions.commands.state import note_outlived, settle, state_of
from headrace.regions.commands.stream_effects import LaneEntry
from headrace.regions.exchange.effects import Effect, EffectError, effect, may_write, region_of
from headrace.regions.lanes.lane import Lane, LaneError
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.commands.streams.args import XADDED
from headrace.server.dispatch.call import Call
from headrace.storage.sharing import AA
from headrace.storage.stream.entry_log import ElementsTooLarge
from headrace.storage.stream.idmp import Iid, iid_of, text_of
from headrace.storage.vectors import (
    ID,
    BadVector,
    LaneVector,
    decode_id,
    decode_lanes,
    encode_lanes,
    reaches,
)
from headrace.storage.vectors import region_of as region_in

_NEWLANE: Final = b"NEWLANE"
_MANUAL: Final = b"MANUAL"
_IDMP: Final = b"IDMP"
_SEEN: Final = b"SEEN"
_NUMBER_DIGITS: Final = 18


def entry_record(
    call: Call, stream: RegionalStream, at: int, pid: bytes, iid: Iid, manual: bool
) -> list[bytes]:
    """Return the record of the entry that was added last.

    Args:
        at: where its ID stands in the request.
        pid: its producer, whose message is ``iid``; empty without one.
        manual: its ID is its caller's.
    """
    argv = call.argv
    entry_id = format_id(stream.last_ms, stream.last_seq)
    if not stream.began and not manual and not pid:
        record = argv[at - 2 :]
        record[0] = b"XADD"
        record[1] = argv[1]
        record[2] = entry_id
        return record
    record = [b"XADD", argv[1]]
    if stream.began:
        record += [_NEWLANE, b"%d" % stream.began]
    if manual:
        record.append(_MANUAL)
    if pid:
        seen = encode_lanes(stream.foreign_seen())
        record += [_IDMP, pid, text_of(iid), _SEEN, seen]
    record.append(entry_id)
    record += argv[at + 1 :]
    return record


class _Options:
    """The words before the ID of a record of XADD."""

    def __init__(self, words: list[bytes]) -> None:
        self.new_lane = 0
        self.manual = False
        self.pid = b""
        self.iid = b""
        self.seen: LaneVector = {}
        at = 2
        word = words[at]
        if word == _NEWLANE:
            self.new_lane = _lane_number(words[at + 1])
            at += 2
            word = words[at]
        if word == _MANUAL:
            self.manual = True
            at += 1
            word = words[at]
        if word == _IDMP:
            self.pid = words[at + 1]
            self.iid = words[at + 2]
            if words[at + 3] != _SEEN or not self.pid or not self.iid:
                raise EffectError("an XADD with IDMP has a producer, an iid and SEEN")
            self.seen = decode_lanes(words[at + 4])
            at += 5
        self.at = at


def _lane_number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _NUMBER_DIGITS:
        raise BadVector(text)
    return int(text)


@effect(b"XADD")
def apply_xadd(found: Effect) -> bool:
    """Apply an entry. Return whether it is there: it may have been removed before it arrived."""
    words = found.words
    server = found.server
    options: _Options | None = None
    at = 2
    if len(words) < 5:
        raise EffectError("an XADD without an entry")
    if not words[2][:1].isdigit():
        try:
            options = _Options(words)
        except IndexError:
            raise EffectError("an XADD without an entry") from None
        at = options.at
    if len(words) - at < 3 or not (len(words) - at) % 2:
        raise EffectError("an XADD of fields without values")
    ms, seq = decode_id(words[at])
    key = words[1]
    stream = state_of(server, key)
    new_lane = 0 if options is None else options.new_lane
    manual = options is not None and options.manual
    may_end_lanes = new_lane > 0 or bool(stream.awaited)
    try:
        alive = stream.arrive(
            found.origin, new_lane, manual, ms, seq, words, at + 1, server.data.node_limits
        )
    except LaneError:
        raise EffectError(
            "an ID that is not above the last one of its lane: two regions may have one name"
        ) from None
    except ElementsTooLarge:
        raise EffectError("an entry that is too large") from None
    if options is not None and options.pid:
        lane = stream.current(found.origin)
        assert lane is not None
        _meet_message(found, stream, lane, (ms, seq), options)
    if may_end_lanes or not alive:  # what was to come of its lane may have come now
        note_outlived(server, key, stream)
    settle(server, key, stream)
    if alive:
        server.changes.report(0, key, XADDED, None, 1, False)
    return alive


def _meet_message(
    found: Effect, stream: RegionalStream, lane: Lane, entry_id: ID, options: _Options
) -> None:
    """Compare an entry that stands for a message with another one that may stand for it, too.

    A deletion of the key forgets the messages of the entries that it covers.
    """
    if entry_id <= lane.deleted:
        return
    iid = iid_of(options.iid)
    idmp = stream.idmp
    known = None if idmp is None else idmp.find(options.pid, iid, found.now_ms)
    other = None if known is None else _other_lane(stream, lane, known)
    winner = entry_id
    if known is not None and other is not None and not reaches(options.seen, other.name, known):
        if (known, other.key) < (entry_id, lane.key):
            winner = known
            _decide(found, other, (other.name, known), (lane.name, entry_id))
        else:
            _decide(found, other, (lane.name, entry_id), (other.name, known))
    added_ms = min(entry_id[0], found.now_ms)
    stream.make_idmp().record(options.pid, iid, winner[0], winner[1], added_ms)
    stream.iids_added += 1


def _other_lane(stream: RegionalStream, lane: Lane, entry_id: ID) -> Lane | None:
    """Return the lane that holds an entry, beside the one that another entry has come in."""
    for holder in stream.holders(entry_id[0], entry_id[1]):
        if holder is not lane and region_in(holder.name) != region_in(lane.name):
            return holder
    return None


def _decide(found: Effect, other: Lane, winner: LaneEntry, loser: LaneEntry) -> None:
    """Remove the loser of two entries for one message, if this region has made one of them."""
    region = region_of(found.server)
    if found.own or found.replaying or region_in(other.name) != region.id:
        return
    if may_write(found.server):
        region.pairs_merged += 1
        found.following.append(
            [
                *(AA, b"XDEL", found.words[1], b"FOR", winner[0], format_id(*winner[1])),
                *(loser[0], format_id(*loser[1])),
            ]
        )
