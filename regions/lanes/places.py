"""The position of a group in a stream of several lanes.

An entry of a lane need not be given to the group if it lies up to the group's **place**, if it is
not above the **start**, or if it is **acknowledged** elsewhere: those are held as intervals, which
are the same in every region (``Create``). New entries of a lane have higher IDs than all that came
of it. So nothing comes behind the place, however late it is.

The **prefix** is what this region may report to the others as acknowledged. Of each lane it ends at
the place, or below the lowest pending ID whose entry is still there. It begins where the group
began to be given entries of the lane, because this region knows nothing about entries below that.
Entries that go with their consumer were given and not acknowledged, so the prefix begins above them
(``release``).

All this is local, except the intervals. It hangs on one create of the group; if that dies and
another one lives, it begins anew.
"""

from __future__ import annotations

from typing import Final, cast

from headrace.regions.lanes.group_state import ANYWHERE, GREATEST, Create, GroupState, Start
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.lanes import Lanes
from headrace.regions.lanes.merge import Source, merged, reached_by
from headrace.storage.stream.entry_log import EntryLog
from headrace.storage.stream.groups import HERE, ON_ITS_WAY, UNKNOWN, Group, Position
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import NacksById
from headrace.storage.stream.run import following
from headrace.storage.vectors import ID, NO_ID, Dot, LaneVector

Interval = tuple[bytes, ID, ID]  # a lane, after which ID, up to which

ALL_IDS: Final[list[Interval]] = [(b"", NO_ID, GREATEST)]
NO_IDS: Final[set[ID]] = set()
_PLACES_BYTES: Final = 500  # about
_PLACE_BYTES: Final = 200
_EVER: Final = 2**62  # a moment that never comes
_FEW: Final = 64  # pending entries that are looked at together
_MANY: Final = 1000  # of which it is not looked up any more which lanes they are in


class Places(Position):
    """The reading position of a group, by lane.

    Attributes:
        anchor: the create that this hangs on.
        start: where reading begins; that of the create, or what XGROUP SETID says.
        place: up to where entries were given, of each lane.
        begun: above which ID all entries of a lane that were given are pending, or acknowledged.
        again: up to where acknowledged entries are given all the same, as XGROUP SETID may say.
        is_whole: all is known to be here that the places say was given.
    """

    def __init__(self, group_state: GroupState, create: Create) -> None:
        self.anchor: Dot = create.dot
        self.start: Start = create.start
        self.place: LaneVector = {}
        self.begun: LaneVector = {}
        self.again: LaneVector = {}
        self.group_state = group_state
        self.is_whole = False

    def floor(self, lane: bytes) -> ID:
        """Return the ID of a lane up to which there is nothing to be given."""
        return max(self.place.get(lane, NO_ID), self.start.floor(lane))

    def set(self, start: Start, again: LaneVector) -> None:
        """Begin anew at ``start``, here alone; up to ``again`` give acknowledged entries, too."""
        self.start = start
        self.place = {}
        self.begun = {}
        self.again = again

    def is_unread(self) -> bool:
        """Return whether nothing was given, and reading begins where the group was made to."""
        if self.place or self.again:
            return False
        create = self.group_state.create(self.anchor)
        return create is not None and create.start.encode() == self.start.encode()

    def put(self, lane: bytes, entry_id: ID) -> None:
        """Note that entries of a lane up to an ID have been given."""
        if lane not in self.begun:
            self.begun[lane] = self.floor(lane)
        if entry_id > self.place.get(lane, NO_ID):
            self.place[lane] = entry_id

    def begin_above(self, lane: bytes, entry_id: ID) -> None:
        """Forget what is acknowledged of a lane up to an ID."""
        reached = min(entry_id, self.place[lane])
        self.begun[lane] = max(self.begun[lane], reached)

    def forget(self, lanes: list[bytes]) -> None:
        """Forget lanes that no longer exist."""
        for vector in (self.place, self.begun, self.again):
            for lane in lanes:
                vector.pop(lane, None)

    def is_acked(self, lane: bytes, entry_id: ID) -> bool:
        """Return whether an entry is acknowledged, here or elsewhere, for any of the creates."""
        intervals = self.group_state.intervals(lane)
        return intervals is not None and intervals.holds(entry_id)

    def is_done(self, stream: Lanes, entry_id: ID) -> bool:
        """Return whether all entries of an ID are acknowledged; False where none is there."""
        holders = stream.holders(entry_id[0], entry_id[1])
        return bool(holders) and all(self.is_acked(lane.name, entry_id) for lane in holders)

    def to_come(self, lane: bytes) -> list[tuple[ID, ID]]:
        """Return the stretches of a lane that are to be given: first and last ID of each."""
        floor = self.floor(lane)
        intervals = self.group_state.intervals(lane)
        if floor >= GREATEST:
            return []
        if intervals is None:
            return [(following(floor[0], floor[1]), GREATEST)]
        again = self.again.get(lane, NO_ID)
        if again <= floor:
            return intervals.gaps(floor)
        ranges = [(following(floor[0], floor[1]), again)]
        ranges.extend(intervals.gaps(again))
        return ranges

    # Questions of a group

    def has_new(self, log: EntryLog) -> bool:
        for lane in _lanes(log).filled_lanes():
            ranges = self.to_come(lane.name)
            if ranges and _has_any(lane, ranges):
                return True
        return False

    def lag(self, log: EntryLog) -> int:
        """Return the lag; see ``Position``. Complexity: O(lanes and intervals, times log n)."""
        count = 0
        for lane in _lanes(log).filled_lanes():
            for start, end in self.to_come(lane.name):
                count += _count(lane, start, end)
        return count

    def parts(self, log: EntryLog, count: int, most_bytes: int = 0) -> list[Part]:
        """Return the next ``count`` entries, or with 0 all, as parts of lanes; see ``Position``."""
        sources: list[Source] = []
        for lane in _lanes(log).filled_lanes():
            ranges = self.to_come(lane.name)
            if ranges:
                sources.append(Source(lane, ranges))
        return merged(sources, count, False, most_bytes)

    def with_namesakes(self, log: EntryLog, part: Part) -> list[Part]:
        return _lanes(log).with_namesakes(part)

    def deliver(self, parts: list[Part]) -> None:
        reached = reached_by(parts)
        for name in reached:
            self.put(name, reached[name])

    def is_to_come(self, log: EntryLog, ms: int, seq: int) -> bool:
        """As in ``Position``; an ID that is not there is to come if it is above all places."""
        stream = _lanes(log)
        entry_id = (ms, seq)
        holders = stream.holders(ms, seq)
        if holders:
            above = [lane for lane in holders if entry_id > self.floor(lane.name)]
            return not all(self.is_acked(lane.name, entry_id) for lane in above)
        highest = max(self.start.highest(), max(self.place.values(), default=NO_ID))
        return entry_id > highest

    def elsewhere(self, log: EntryLog) -> int:
        """Return the region where the group is read, as in ``Position``.

        The position of the group may be known before all entries below it have come: those given in
        another region, and pending, may still have to arrive.
        """
        if not self.group_state.home.settings:
            return HERE
        stream = _lanes(log)
        home = self.group_state.home_region()
        if home not in (ANYWHERE, stream.region.id):
            return home
        if not self.is_whole:
            for name, entry_id in self.place.items():
                lane = stream.find_lane(name)
                if lane is None or max(lane.last(), lane.deleted) < entry_id:
                    return ON_ITS_WAY
            self.is_whole = True
        return HERE

    # Acknowledgements

    def prefix(self, stream: Lanes, group: Group) -> list[Interval]:
        """Return what is acknowledged from the beginning, and what the others do not know yet."""
        lowest = lowest_pending(stream, group)
        found: list[Interval] = []
        for lane_name in sorted(self.place):
            lane = stream.find_lane(lane_name)
            if lane is None or lane.is_covered():  # nothing of it is there
                continue
            after = self.begun[lane_name]
            upto = min(self.place[lane_name], lane.last())  # it may have read more elsewhere
            if lowest is not None and lowest <= upto:
                upto = lane.log.last_before(lowest)
            if upto <= after:
                continue
            intervals = self.group_state.intervals(lane_name)
            if intervals is None or not intervals.covers(after, upto):
                found.append((lane_name, after, upto))
        return found

    # Copies

    def copy(self) -> Places:
        twin = Places(self.group_state, Create(self.anchor, self.start, {}))
        twin.place = self.place.copy()
        twin.begun = self.begun.copy()
        twin.again = self.again.copy()
        twin.is_whole = self.is_whole
        return twin

    def used_bytes(self) -> int:
        return _PLACES_BYTES + _PLACE_BYTES * (len(self.place) + len(self.begun))


def places_of(group: Group) -> Places:
    """Return the places of a group of a stream of lanes."""
    places = group.places
    assert places is not None
    return cast("Places", places)


def new_group(name: bytes, group_state: GroupState, create: Create) -> Group:
    """Return a group that begins to read where a create says."""
    ms, seq = create.start.highest()
    group = Group(name, ms, seq, UNKNOWN)
    group.max_pending = group_state.max_pending()
    group.places = Places(group_state, create)
    return group


def acknowledged(
    stream: Lanes, group: Group, ranges: list[Interval], stay: set[ID] = NO_IDS
) -> int:
    """End the pending state of entries acknowledged elsewhere. Return how many these are.

    An ID that several entries have stays pending until all of them are acknowledged. ``ranges`` are
    the first and last ID of each stretch of a lane that was not acknowledged before; ``ALL_IDS``
    looks at all pending ones. Those that ``stay`` were ``put_back`` before.
    """
    if not stream.length:
        return 0
    places = places_of(group)
    first = stream.first_id()  # pending IDs below have no entry any more
    cleared = 0
    for name, start, end in ranges:
        lane = stream.find_lane(name)
        for nack in group.pel.between(max(start, first), end, group.pel.size, _EVER):
            entry_id = (nack.ms, nack.seq)
            is_news = lane.log.contains(*entry_id) if lane else not name and entry_id not in stay
            if is_news and places.is_done(stream, entry_id):
                group.drop(nack)
                cleared += 1
    return cleared


def put_back(stream: Lanes, group: Group) -> set[ID]:
    """Return the IDs that are acknowledged and were made pending again, as by XREDRIVE. O(n)."""
    places = places_of(group)
    ids = [(nack.ms, nack.seq) for nack in group.pel.from_id(0, 0, 0)]
    return {entry_id for entry_id in ids if places.is_done(stream, entry_id)}


def lowest_pending(stream: Lanes, group: Group) -> ID | None:
    """Return the lowest pending ID whose entry is still there."""
    if not stream.length:
        return None
    ms, seq = stream.first_id()
    while True:
        nacks = group.pel.from_id(ms, seq, _FEW)
        for nack in nacks:
            if stream.contains(nack.ms, nack.seq):
                return nack.ms, nack.seq
        if len(nacks) < _FEW:
            return None
        ms, seq = following(nacks[-1].ms, nacks[-1].seq)


def release(stream: Lanes, group: Group, held: NacksById) -> None:
    """Make the entries that a consumer holds pending no more, though no one acknowledged them.

    The others must not see them as acknowledged: where they read, the entries are given again.
    """
    places = places_of(group)
    names = list(places.place)
    looked = 0
    for chunk in reversed(held.chunks):
        for nack in reversed(list(chunk.live())):
            if not names:
                return
            entry_id = (nack.ms, nack.seq)
            if looked == _MANY:
                for name in names:
                    places.begin_above(name, entry_id)
                return
            looked += 1
            for lane in stream.holders(nack.ms, nack.seq):
                if lane.name in names and entry_id <= places.place[lane.name]:
                    places.begin_above(lane.name, entry_id)
                    names.remove(lane.name)


def _lanes(log: EntryLog) -> Lanes:
    return cast("Lanes", log)


def _has_any(lane: Lane, ranges: list[tuple[ID, ID]]) -> bool:
    start, end = ranges[-1]
    if end == GREATEST and lane.log.last_entry_id() >= start:
        return True
    for start, end in ranges:
        if _count(lane, start, end):
            return True
    return False


def _count(lane: Lane, start: ID, end: ID) -> int:
    """Return how many live entries of a lane lie from ``start`` to ``end``, both included."""
    log = lane.log
    if end >= log.last_entry_id():
        return log.length - log.count_before(start[0], start[1])
    above = following(end[0], end[1])
    return log.count_before(above[0], above[1]) - log.count_before(start[0], start[1])
