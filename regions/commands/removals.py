"""Effects that remove: entries one by one, the oldest, or all of a key."""

from __future__ import annotations

from typing import Final

from headrace.compat.stream_ids import format_id
from headrace.regions.commands.groups import note_acknowledged
from headrace.regions.commands.state import note_gaps_closed, note_outlived, settle, state_of
from headrace.regions.exchange.effects import Effect, EffectError, effect, emit, region_of, removal
from headrace.regions.lanes.removals import DEL, EXPIRE, Removal
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.trim import entries_to_trim, lanes_below, lanes_by_length
from headrace.server.changes.changes import Changes, Expiries
from headrace.server.changes.events import EXPIRED
from headrace.server.commands.streams.args import (
    MAXLEN,
    PENDING_CHANGED,
    REFERENCE_MODES,
    XDELETED,
    XTRIMMED,
    TrimOptions,
)
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.stream.groups import Group
from headrace.storage.stream.references import (
    ACKED,
    DELETED,
    DELREF,
    KEEPREF,
    MISSING,
    REFERENCED,
    Trim,
    drop_left_behind,
    drop_references,
    is_held_back,
    is_referenced,
)
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import (
    ID,
    check_lane,
    decode_id,
    decode_lanes,
    decode_numbers,
    encode_lanes,
)

LaneEntry = tuple[bytes, ID]


# Entries one by one


def delete_everywhere(call: Call, key: bytes, stream: Stream, ids: list[ID]) -> int:
    """XDEL of a stream that is there; how many entries had one of these IDs."""
    entries = entries_with(stream, ids)
    return delete_entries(call.server, key, entries) if entries else 0


def entries_with(stream: Stream, ids: list[ID]) -> list[LaneEntry]:
    """The entries that have one of these IDs, in their lanes."""
    assert isinstance(stream, RegionalStream)
    found: dict[LaneEntry, None] = {}
    for ms, seq in ids:
        for lane in stream.holders(ms, seq):
            found[(lane.name, (ms, seq))] = None
    return list(found)


def delete_entries(
    server: Server, key: bytes, entries: list[LaneEntry], drops_references: bool = False
) -> int:
    """Delete entries that are there, in their lanes; how many that were."""
    words = [AA, b"XDEL", key]
    if drops_references:
        words.append(b"DELREF")
    for lane, entry_id in entries:
        words += [lane, b"%d-%d" % entry_id]
    deleted = emit(server, words)
    assert isinstance(deleted, int)
    return deleted


@effect(b"XDEL")
def apply_xdel(found: Effect) -> int:
    """``AA XDEL key [DELREF] [FOR lane id] lane id ...``: delete these entries, once they are here.

    FOR names the entry that makes the others superfluous: where it is not known they stay.
    """
    words = found.words
    at = 3
    drops_references = len(words) > 3 and words[3] == b"DELREF"
    if drops_references:
        at += 1
    winner: LaneEntry | None = None
    if len(words) > at + 2 and words[at] == b"FOR":
        winner = (check_lane(words[at + 1]), decode_id(words[at + 2]))
        at += 3
    if len(words) <= at or (len(words) - at) % 2:
        raise EffectError("XDEL of no entries")
    entries: list[LaneEntry] = []
    for place in range(at, len(words), 2):
        entries.append((check_lane(words[place]), decode_id(words[place + 1])))
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    deleted = 0
    freed = False
    for lane, entry_id in entries:
        if drops_references and drop_references(stream, entry_id[0], entry_id[1]):
            freed = True
        if winner is None:
            gone = stream.remove_entry(lane, entry_id)
        else:
            gone = stream.remove_for(winner[0], winner[1], lane, entry_id)
        if gone:
            deleted += 1
    if drops_references and drop_left_behind(stream):
        freed = True
    if deleted:
        note_gaps_closed(found, stream)
        note_outlived(server, key, stream)
    there = settle(server, key, stream)
    if there and (deleted or freed):
        wakes = freed and is_held_back(stream)
        server.changes.report(0, key, XDELETED, None, deleted, wakes)
    return deleted


# The oldest


def trim_everywhere(call: Call, key: bytes, stream: Stream, options: TrimOptions) -> int:
    """Trim a stream that is there; how many entries were removed."""
    assert isinstance(stream, RegionalStream)
    mode = REFERENCE_MODES[options.mode] if options.mode else KEEPREF
    by_length = options.strategy == MAXLEN
    below = (options.min_ms, options.min_seq)
    if mode != KEEPREF and stream.groups:
        how = Trim(options.threshold if by_length else -1, below, options.most, False)
        entries = entries_to_trim(stream, how, mode)
        return delete_entries(call.server, key, entries, mode == DELREF) if entries else 0
    whole_nodes = mode == KEEPREF
    if by_length:
        lanes = lanes_by_length(
            stream, options.threshold, options.approximate, options.most, whole_nodes
        )
    else:
        lanes = lanes_below(stream, below, options.approximate, options.most, whole_nodes)
    if not lanes:
        return 0
    removed = emit(call.server, [AA, b"TRIM", key, encode_lanes(lanes)])
    assert isinstance(removed, int)
    return removed


@effect(b"TRIM")
def apply_trim(found: Effect) -> int:
    """``AA TRIM key lanes``: remove of each lane what stands up to an ID."""
    if len(found.words) != 4:
        raise EffectError("TRIM has a key and lanes")
    lanes = decode_lanes(found.words[3])
    server = found.server
    key = found.words[2]
    stream = state_of(server, key)
    removed = stream.trim_to(lanes)
    if removed:
        note_gaps_closed(found, stream)
        note_outlived(server, key, stream)
    if settle(server, key, stream) and removed:
        server.changes.report(0, key, XTRIMMED, None, removed, False)
    return removed


# All of a key


@effect(b"DEL")
def apply_del(found: Effect) -> None:
    """``AA DEL key lanes numbers``: remove all that its maker had seen, and every group."""
    _remove_key(found, DEL)


@effect(b"EXPIRE")
def apply_expire(found: Effect) -> None:
    """``AA EXPIRE key lanes numbers``: as DEL, but groups that its maker had not seen live on.

    With no numbers it speaks of lanes that have outlived their epochs: nothing of theirs is left.
    """
    _remove_key(found, EXPIRE)


def _remove_key(found: Effect, kind: int) -> None:
    words = found.words
    if len(words) != 5:
        raise EffectError("a removal has a key, lanes and numbers")
    lanes = decode_lanes(words[3])
    numbers = decode_numbers(words[4])
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    before = stream.length
    was_there = stream.exists()
    expires = kind == EXPIRE and bool(numbers)
    dropped = stream.cover(lanes) if kind == DEL or expires else stream.end_lanes(lanes)
    dropped += stream.add_removal(Removal(kind, found.dot, numbers))
    for piece in dropped:
        server.data.free_later(piece)
    region_of(server).note_garbage(key, found.dot)
    note_gaps_closed(found, stream)
    if expires and was_there:
        server.changes.report(0, key, EXPIRED, None, 1, False)
    if settle(server, key, stream) and stream.length < before:
        server.changes.report(0, key, XDELETED, None, before - stream.length, True)


class RegionalExpiries(Expiries):
    """Streams that expired are removed in all regions."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server: Final = server
        self._db: Final = server.data.dbs[0]

    def expired(self, changes: Changes, db: int, key: bytes) -> None:
        value = self._db.expired_values.pop(key, None)
        if isinstance(value, RegionalStream):
            server = self._server
            words = removal(b"EXPIRE", key, value, region_of(server))
            server.data.tombstones.put(key, value, 0)  # for the effect to find it
            emit(server, words)
        else:
            self._server.data.free_later(value)
            super().expired(changes, db, key)


# With heed to the groups that refer to them


def delete_by_mode(call: Call, key: bytes, stream: Stream, mode: int, ids: list[ID]) -> object:
    """XDELEX of a stream that is there; its reply."""
    reply: list[object] = []
    wanted: list[ID] = []
    for entry_id in ids:
        outcome = _outcome(stream, mode, entry_id, wanted)
        reply.append(outcome)
        if outcome == DELETED:
            wanted.append(entry_id)
    if mode == DELREF:
        _drop_references(call, key, stream, [each for each in ids if each not in wanted])
    if wanted:
        delete_entries(call.server, key, entries_with(stream, wanted), mode == DELREF)
    return reply


def _outcome(stream: Stream, mode: int, entry_id: ID, wanted: list[ID]) -> int:
    """Return what becomes of an entry; ``wanted`` are to be deleted already."""
    ms, seq = entry_id
    if mode == ACKED and is_referenced(stream, ms, seq):
        return REFERENCED
    return DELETED if entry_id not in wanted and stream.contains(ms, seq) else MISSING


def _drop_references(call: Call, key: bytes, stream: Stream, ids: list[ID]) -> None:
    """Take entries that are not there out of what is pending in any group."""
    for group in stream.groups.values():
        dropped = [format_id(ms, seq) for ms, seq in ids if group.ack(ms, seq)]
        if dropped:
            record = [b"XACK", key, group.name, *dropped]
            call.changed(key, PENDING_CHANGED, record, count=0, wakes=is_held_back(stream))
            note_acknowledged(call, key, stream, group)


def ack_and_delete(
    call: Call, key: bytes, stream: Stream, group: Group, mode: int, ids: list[ID]
) -> object:
    """XACKDEL in a group that is there; its reply."""
    reply: list[object] = []
    acknowledged: list[bytes] = []
    wanted: list[ID] = []
    for entry_id in ids:
        ms, seq = entry_id
        if not group.ack(ms, seq):
            reply.append(MISSING)
            continue
        acknowledged.append(format_id(ms, seq))
        kept = mode == ACKED and is_referenced(stream, ms, seq)
        reply.append(REFERENCED if kept else DELETED)
        if not kept and stream.contains(ms, seq):
            wanted.append(entry_id)
    if acknowledged:
        record = [b"XACK", key, group.name, *acknowledged]
        held_back = is_held_back(stream)
        call.changed(key, PENDING_CHANGED, record, count=len(acknowledged), wakes=held_back)
    if wanted:
        delete_entries(call.server, key, entries_with(stream, wanted), mode == DELREF)
    if acknowledged:
        note_acknowledged(call, key, stream, group)
    return reply
