"""The effects of commands on streams, in whichever region they were made.

They set something of a stream (its top ID, its deadline, the limits of its IDMP map), they remove
entries one by one, the oldest, or all of a key, and they make, end and set groups. The removal of a
group wins over a create that is made meanwhile. Places, consumers and pending entries concern one
region alone, and so do the records that repeat them.
"""

from __future__ import annotations

from typing import Final

from headrace.regions.commands.group_handover import acknowledgement, hand_on
from headrace.regions.commands.state import (
    note_gaps_closed,
    note_outlived,
    settle,
    settle_and_report,
    state_of,
)
from headrace.regions.exchange.effects import (
    Effect,
    EffectError,
    effect,
    emit,
    local,
    number_in,
    region_of,
    removal,
)
from headrace.regions.lanes.group_state import Create, decode_start
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.remembered import (
    DEL,
    EXPIRE,
    NO_DEADLINE,
    Removal,
    Setting,
    Tombstone,
    Top,
)
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.changes.changes import Changes, Expiries
from headrace.server.changes.events import DEADLINE_SET, EXPIRED, PERSISTED
from headrace.server.commands.streams.args import (
    GROUP_CREATED,
    GROUP_DESTROYED,
    GROUP_MODE_SET,
    LAST_ID_SET,
    PENDING_CHANGED,
    PRODUCERS_CHANGED,
    XDELETED,
    XTRIMMED,
)
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.stream.groups import Group
from headrace.storage.stream.references import drop_left_behind, drop_references, is_held_back
from headrace.storage.vectors import (
    ID,
    check_lane,
    decode_dots,
    decode_id,
    decode_lanes,
    decode_numbers,
)

_REMOVAL: Final = "a removal has a key, lanes and numbers"


@effect(b"TOP", 4, "TOP has a key and an ID")
def apply_top(found: Effect) -> None:
    """Apply ``AA TOP key id``: later IDs are above this one."""
    top = decode_id(found.words[3])
    stream = state_of(found.server, found.words[2])
    stream.add_top(Top(found.dot, top))
    settle_and_report(found, stream, LAST_ID_SET, 1, False)


@effect(b"TTL", 5, "TTL has a key, a deadline and a version")
def apply_ttl(found: Effect) -> None:
    """Apply ``AA TTL key deadline version``: a key goes at a moment, or with -1 stays."""
    words = found.words
    moment_ms = NO_DEADLINE if words[3] == b"-1" else number_in(words[3])
    version = number_in(words[4])
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    before_ms = stream.deadline_ms()
    stream.add_ttl(Setting(found.dot, version, moment_ms))
    if settle(server, key, stream) and stream.deadline_ms() != before_ms:
        event = PERSISTED if moment_ms == NO_DEADLINE else DEADLINE_SET
        server.changes.report(0, key, event, None, 1, False)


def set_first_limits(server: Server, key: bytes, stream: RegionalStream) -> None:
    """Publish the limits that a new stream has; its iids stay."""
    emit(server, limits_record(key, stream.idmp_duration_s, stream.idmp_maxsize, 0))


def limits_record(key: bytes, duration_s: int, maxsize: int, version: int) -> list[bytes]:
    """Return the effect that sets limits."""
    return [AA, b"LIMITS", key, b"%d" % duration_s, b"%d" % maxsize, b"%d" % version]


@effect(b"LIMITS", 6, "LIMITS has a key, two limits and a version")
def apply_limits(found: Effect) -> None:
    """Apply ``AA LIMITS key duration maxsize version``: the limits of a stream's IDMP map.

    A change makes the stream forget all iids, unless it is the first one (version 0): those are the
    limits with which the stream was made.
    """
    words = found.words
    duration_s, maxsize, version = (number_in(word) for word in words[3:])
    if not (0 < duration_s <= IDMP_DURATION_S_MAX and 0 < maxsize <= IDMP_MAXSIZE_MAX):
        raise EffectError("limits that can be set")
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    pairs = [] if version else list(stream.idmp_records())
    for old in stream.add_limits(Setting(found.dot, version, duration_s, maxsize)):
        server.data.free_later(old)
    if pairs and stream.idmp is None:
        for pid, iid, ms, seq, added_ms in pairs:
            stream.record_iid(pid, iid, ms, seq, added_ms)
    settle_and_report(found, stream, PRODUCERS_CHANGED, 1, False)


LaneEntry = tuple[bytes, ID]


def delete_entries(
    server: Server, key: bytes, entries: list[LaneEntry], drops_references: bool = False
) -> int:
    """Delete entries that are there, in their lanes. Return how many."""
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
    """Apply ``AA XDEL key [DELREF] [FOR lane id] lane id ...``: delete these entries, once here.

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
        deleted += gone
        freed |= gone and drop_references(stream, *entry_id, True)
    if drops_references and drop_left_behind(stream):
        freed = True
    if deleted:
        note_gaps_closed(found, stream)
        note_outlived(server, key, stream)
    if settle(server, key, stream) and (deleted or freed):
        server.changes.report(0, key, XDELETED, None, deleted, freed and is_held_back(stream))
    return deleted


@effect(b"TRIM", 4, "TRIM has a key and lanes")
def apply_trim(found: Effect) -> int:
    """Apply ``AA TRIM key lanes``: remove the entries of each lane up to an ID."""
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
    """Apply ``AA DEL key lanes numbers``: remove all that its maker had seen, and every group."""
    _remove_key(found, DEL)


@effect(b"EXPIRE", 5, _REMOVAL)
def apply_expire(found: Effect) -> None:
    """Apply ``AA EXPIRE key lanes numbers``: as DEL, but groups its maker had not seen live on.

    Without numbers it ends lanes that have outlived their epochs: nothing of theirs is left.
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
    """Removes expired streams in all regions."""

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


# With regard to the groups that refer to them


@effect(b"GROUP", 6, "GROUP has a key, a name, a start and numbers")
def apply_group(found: Effect) -> None:
    """Apply ``AA GROUP key name start numbers``: make a group that was not removed meanwhile."""
    words = found.words
    create = Create(found.dot, decode_start(words[4]), decode_numbers(words[5]))
    stream = state_of(found.server, words[2])
    was_there = words[3] in stream.groups
    stream.add_create(words[3], create)
    is_new = words[3] in stream.groups and not was_there
    settle_and_report(found, stream, GROUP_CREATED, int(is_new), False)


@effect(b"UNGROUP", 5, "UNGROUP has a key, a name and numbers")
def apply_ungroup(found: Effect) -> None:
    """Apply ``AA UNGROUP key name numbers``: end a group, with all creates of it meanwhile."""
    words = found.words
    numbers = decode_numbers(words[4])
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    gone = stream.add_tombstone(words[3], Tombstone(found.dot, numbers))
    region_of(server).note_garbage(key, found.dot)
    for group in gone:
        server.data.free_later(group)
    if gone:
        server.changes.report(0, key, GROUP_DESTROYED, None, 1, True)
    settle(server, key, stream)


def publish(server: Server, key: bytes, stream: RegionalStream, group: Group) -> None:
    """Publish up to where everything is acknowledged, if that is farther than is known."""
    found = places_of(group).prefix(stream, group)
    if found:
        emit(server, acknowledgement(key, group, found))


def publish_waiting(server: Server) -> None:
    """Publish all acknowledgements that have waited."""
    region = region_of(server)
    waiting = list(region.unpublished)
    region.unpublished.clear()
    for key, name in waiting:
        found = server.data.dbs[0].peek(key)
        if found is not None and isinstance(found.value, RegionalStream):
            group = found.value.groups.get(name)
            if group is not None and not hand_on(server, key, found.value, group):
                publish(server, key, found.value, group)


@effect(b"ACK")
def apply_ack(found: Effect) -> None:
    """Apply ``AA ACK key name creates lane after upto ...``: acknowledge all of these stretches."""
    words = found.words
    if len(words) < 8 or (len(words) - 5) % 3:
        raise EffectError("ACK has a key, a name, creates and stretches of lanes")
    creates = decode_dots(words[4])
    stretches: list[tuple[bytes, ID, ID]] = []
    for at in range(5, len(words), 3):
        lane = check_lane(words[at])
        stretches.append((lane, decode_id(words[at + 1]), decode_id(words[at + 2])))
    stream = state_of(found.server, words[2])
    cleared = stream.acknowledge(words[3], creates, stretches)
    if cleared:
        note_gaps_closed(found, stream)
    settle_and_report(found, stream, PENDING_CHANGED, cleared)


@effect(b"MODE", 6, "MODE has a key, a name, a number and a version")
def apply_mode(found: Effect) -> None:
    """Apply ``AA MODE key name max-pending version``: the most pending entries of a group."""
    words = found.words
    most, version = number_in(words[4]), number_in(words[5])
    stream = state_of(found.server, words[2])
    stream.add_mode(words[3], Setting(found.dot, version, most))
    settle_and_report(found, stream, GROUP_MODE_SET)


@local(b"PLACE")
def replay_place(server: Server, words: list[bytes]) -> None:
    """Apply ``AA PLACE key name lane id ...``: a group has been given lanes up to these entries."""
    if len(words) < 6 or len(words) % 2:
        raise EffectError("PLACE has a key, a name and places in lanes")
    reached: dict[bytes, ID] = {}
    for at in range(4, len(words), 2):
        reached[check_lane(words[at])] = decode_id(words[at + 1])
    stream = state_of(server, words[2])
    group = stream.groups.get(words[3])
    if group is None:
        raise EffectError("a place of a group that is not there")
    places = places_of(group)
    for name, entry_id in reached.items():
        places.put(name, entry_id)
        group.last_ms, group.last_seq = max((group.last_ms, group.last_seq), entry_id)
