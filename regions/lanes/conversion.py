"""The stream of a single server becomes one that several regions write, and the other way round.

Its entries are the first lane of the region that it belongs to. All of it counts as the first
record of that region: other regions can only get it as a copy.
"""

from __future__ import annotations

from headrace.regions.knowledge.region import Region, first_lane
from headrace.regions.lanes.group_state import Create, start_after, start_after_seen
from headrace.regions.lanes.lane import Lane, new_log
from headrace.regions.lanes.places import Places, lowest_pending, places_of
from headrace.regions.lanes.remembered import Setting
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE
from headrace.storage.stream.groups import UNKNOWN, Group
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import NO_ID, Dot, origin_of

ADOPTED: int = 1  # the number of the record that adopted data counts as


def adopted(region: Region, stream: Stream, deadline_ms: int) -> RegionalStream:
    """Return a regional stream with the same data; ``stream`` itself is of no use afterwards.

    ``deadline_ms`` is that of its key, -1 for none. Complexity: O(blocks + groups).
    """
    dot = (origin_of(region.id, 0), ADOPTED)
    made = RegionalStream(region, IDMP_DURATION_S, IDMP_MAXSIZE)
    lane = Lane(first_lane(region.id))
    lane.log = new_log()
    lane.log.copy_entries(stream)
    if lane.last() != NO_ID:
        made.insert(lane)
        made.go_on_with(lane)
    made.max_deleted_ms = stream.max_deleted_ms
    made.max_deleted_seq = stream.max_deleted_seq
    if not stream.has_default_limits():
        made.limits.add(Setting(dot, 1, stream.idmp_duration_s, stream.idmp_maxsize))
        made.apply_limits()
    made.idmp = stream.idmp
    made.iids_added = stream.iids_added
    made.iids_duplicates = stream.iids_duplicates
    if deadline_ms >= 0:
        made.ttl.add(Setting(dot, 1, deadline_ms))
    made.restored()
    for group in stream.groups.values():
        _adopt_group(made, lane, group, dot)
    made.restored()
    return made


def _adopt_group(made: RegionalStream, lane: Lane, group: Group, dot: Dot) -> None:
    """Let a group go on where it is.

    To other regions, all that it has read below its lowest pending entry is read. Entries of other
    lanes are new to it, whatever the ID.
    """
    state = made.group_state(group.name)
    last = (group.last_ms, group.last_seq)
    floor = last
    lowest = lowest_pending(made, group)
    if lowest is not None and lowest <= last:
        floor = lane.log.last_before(lowest)
    start = start_after(NO_ID) if floor == NO_ID else start_after_seen({lane.name: floor})
    create = Create(dot, start, {})
    state.add_create(create, [])
    if group.max_pending:
        state.mode.add(Setting(dot, 1, group.max_pending))
    places = Places(state, create)
    if last > floor:
        places.begun[lane.name] = floor
        places.place[lane.name] = last
    group.places = places
    group.entries_read = UNKNOWN
    made.groups[group.name] = group


def alone(stream: RegionalStream) -> Stream:
    """Return a stream with the same entries, each ID once, and this region's groups and iids.

    ``stream`` itself is of no use afterwards. A single server knows one place of a group. It is
    below the first entry that the group has not been given, so that nothing is skipped; entries
    above that were given are given again. Complexity: O(entries + pending entries).
    """
    plain = stream.plain()
    plain.last_ms, plain.last_seq = stream.top()
    plain.entries_added = max(stream.entries_added, plain.length)
    deleted = (stream.max_deleted_ms, stream.max_deleted_seq)
    plain.max_deleted_ms, plain.max_deleted_seq = min(deleted, stream.top())
    plain.idmp = stream.idmp
    plain.iids_added = stream.iids_added
    plain.iids_duplicates = stream.iids_duplicates
    for name, group in stream.groups.items():
        _leave(stream, plain, group)
        plain.groups[name] = group
    return plain


def _leave(stream: RegionalStream, plain: Stream, group: Group) -> None:
    last = stream.top()
    for part in places_of(group).parts(stream, 1):
        last = plain.last_before((part.run.ms[part.low], part.run.seq[part.low]))
    group.places = None
    group.entries_read = UNKNOWN
    group.last_ms, group.last_seq = last
