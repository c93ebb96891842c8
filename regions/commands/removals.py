"""Effects that remove: entries one by one, the oldest, or all of a key."""

from __future__ import annotations

from typing import Final

from headrace.regions.commands.state import (
    note_gaps_closed,
    note_outlived,
    settle,
    settle_and_report,
    state_of,
)
from headrace.regions.exchange.effects import Effect, EffectError, effect, emit, region_of, removal
from headrace.regions.lanes.removals import DEL, EXPIRE, Removal
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.changes.changes import Changes, Expiries
from headrace.server.changes.events import EXPIRED
from headrace.server.commands.streams.args import (
    XDELETED,
    XTRIMMED,
)
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.stream.references import (
    drop_left_behind,
    drop_references,
    is_held_back,
)
from headrace.storage.vectors import (
    ID,
    check_lane,
    decode_id,
    decode_lanes,
    decode_numbers,
)

LaneEntry = tuple[bytes, ID]
_REMOVAL: Final = "a removal has a key, lanes and numbers"


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


@effect(b"TRIM", 4, "TRIM has a key and lanes")
def apply_trim(found: Effect) -> int:
    """``AA TRIM key lanes``: remove of each lane what stands up to an ID."""
    lanes = decode_lanes(found.words[3])
    server = found.server
    key = found.words[2]
    stream = state_of(server, key)
    removed = stream.trim_to(lanes)
    if removed:
        note_gaps_closed(found, stream)
        note_outlived(server, key, stream)
    settle_and_report(found, stream, XTRIMMED, removed, False)
    return removed


@effect(b"DEL", 5, _REMOVAL)
def apply_del(found: Effect) -> None:
    """``AA DEL key lanes numbers``: remove all that its maker had seen, and every group."""
    _remove_key(found, DEL)


@effect(b"EXPIRE", 5, _REMOVAL)
def apply_expire(found: Effect) -> None:
    """``AA EXPIRE key lanes numbers``: as DEL, but groups that its maker had not seen live on.

    With no numbers it speaks of lanes that have outlived their epochs: nothing of theirs is left.
    """
    _remove_key(found, EXPIRE)


def _remove_key(found: Effect, kind: int) -> None:
    words = found.words
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
    settle_and_report(found, stream, XDELETED, max(0, before - stream.length))


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
