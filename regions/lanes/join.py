"""Two states of one stream made into one that knows all that either of them knows.

This is for regions that were apart for longer than their files reach back: records that one of them
lacks cannot be had any more, but the state to which they led. Of each lane, either state knows how
far it has come. Entries that a state lacks up to there were removed in it. Those beyond are new to
it. Where one state has forgotten a lane, all that names it goes, even if nothing of it has come to
the other one: whatever waits for an entry of it has been decided where that had come. Groups are
compared by the numbers that either state knows: what is known, and is not there, has gone.

Joining gives the same as exchanging the records. It is commutative and idempotent. Places,
consumers and pending entries stay what they are here, except that what the other side knows to be
acknowledged is acknowledged here too.
"""

from __future__ import annotations

from typing import Final

from headrace.regions.lanes.group_state import Create, GroupState
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.places import ALL_IDS, NO_IDS, acknowledged, places_of, put_back
from headrace.regions.lanes.remembered import Register
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import forget_lanes
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.block import Block
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID, NO_ID, Numbers, covers, lane_key, lane_origin

_BLOCKS: Final = 32  # that are looked at in one piece
_LAST: Final[ID] = (ID_MAX, ID_MAX)


class Join:
    """Two states on their way to become one, in pieces between which the stream can be read.

    Nothing else may change it meanwhile. A key that one side has not got has to be joined with an
    empty stream, because what the other side knows of it may have gone.

    Args:
        mine: becomes the join of both.
        copy: of no use afterwards.
        my_numbers, copy_numbers: what the sides know.
        limits: when a lane starts a new node.
    """

    def __init__(
        self,
        mine: RegionalStream,
        copy: RegionalStream,
        my_numbers: Numbers,
        copy_numbers: Numbers,
        limits: NodeLimits,
    ) -> None:
        self._mine: Final = mine
        self._copy: Final = copy
        self._my_numbers: Final = my_numbers
        self._copy_numbers: Final = copy_numbers
        self._limits: Final = limits
        self._has_begun = False
        self._next_lane = 0
        self._lanes: _LaneJoin | None = None

    def step(self) -> bool:
        """Do the next piece, about a millisecond's work. Return False when nothing is left."""
        mine = self._mine
        lanes = self._copy.lanes
        if not self._has_begun:
            self._has_begun = True
            gone_there = _gone(mine, self._copy, self._my_numbers, self._copy_numbers)
            gone_here = _gone(self._copy, mine, self._copy_numbers, self._my_numbers)
            forget_lanes(mine, gone_there)
            forget_lanes(self._copy, gone_here)
        elif self._lanes is not None:
            if not self._lanes.step():
                self._lanes = None
        elif self._next_lane < len(lanes):
            lane = lanes[self._next_lane]
            self._next_lane += 1
            self._lanes = _LaneJoin(mine.lane(lane.name), lane, self._limits)
        else:
            self._join_rest()
            return False
        mine.recount()
        return True

    def _join_rest(self) -> None:
        mine = self._mine
        copy = self._copy
        stay = {group.name: put_back(mine, group) for group in mine.groups.values()}
        _join_current(mine, copy, self._my_numbers, self._copy_numbers)
        _join_removals(mine, copy, self._my_numbers, self._copy_numbers)
        for name in copy.group_states:
            mine.group_state(name)
        nothing = GroupState()
        for name in list(mine.group_states):
            other = copy.group_states.get(name, nothing)
            _join_group_state(
                mine, mine.group_states[name], other, self._my_numbers, self._copy_numbers
            )
            mine.settle_group(name)
        known = set(mine.awaited)
        for one in copy.awaited:
            if one not in known:
                mine.wait_for(one)
        mine.remove_awaited()
        _join_deleted(mine, copy)
        join_pairs(mine, copy)
        mine.restored()
        for group in mine.groups.values():
            acknowledged(mine, group, ALL_IDS, stay.get(group.name, NO_IDS))


def _gone(
    stream: RegionalStream, other: RegionalStream, numbers: Numbers, other_numbers: Numbers
) -> list[bytes]:
    """Return lanes that the other side has known and forgotten, so that nothing of them lives.

    A lane that is named alone, as by a removal that came before its entries, may be new to both.
    """
    found: list[bytes] = []
    for name in stream.named_lanes():
        if other.find_lane(name) is not None:
            continue
        origin = lane_origin(name)
        lane = stream.find_lane(name)
        knows_all = other_numbers.get(origin, 0) >= numbers.get(origin, 0)
        has_come = lane is not None and lane.last() != NO_ID and knows_all
        if has_come or covers(other_numbers, (origin, max(1, lane_key(name)[2]))):
            found.append(name)
    return found


class _LaneJoin:
    """Two states of one lane on their way to become one."""

    def __init__(self, mine: Lane, copy: Lane, limits: NodeLimits) -> None:
        self._mine: Final = mine
        self._copy: Final = copy
        self._limits: Final = limits
        self._my_last: Final = mine.last()
        self._both: Final = min(mine.last(), copy.last())
        self._place: ID | None = NO_ID  # in ``mine``, up to where those gone have been dropped
        self._start = mine.last()  # up to where news has been appended
        if not mine.log.length:
            _take_over(mine, copy, self._my_last)
            self._place = None
            self._start = _LAST

    def step(self) -> bool:
        if self._place is not None:
            self._place = _drop_those_gone(self._mine.log, self._copy.log, self._place, self._both)
        elif self._start < self._copy.log.last_entry_id():
            self._append_news()
        else:
            self._end()
            return False
        return True

    def _append_news(self) -> None:
        """Append some blocks of the entries that the other side has beyond the last one here.

        A block that lies beyond as a whole comes as it is.
        """
        mine = self._mine.log
        copy = self._copy.log
        for _ in range(_BLOCKS):
            if self._start >= copy.last_entry_id():
                break
            ms, seq = following(self._start[0], self._start[1])
            block = copy.block_from(ms, seq)
            assert block is not None
            end = (block.last_ms, block.last_seq)
            if (block.first_ms, block.first_seq) > self._start:
                mine.take_block(block)
            else:
                self._append_some((ms, seq), end)
            self._start = end

    def _append_some(self, start: ID, end: ID) -> None:
        mine = self._mine.log
        for part in self._copy.log.parts(start, end, 0, False):
            run = part.run
            for number in range(part.low, part.high):
                if part.dead is None or not part.dead[number]:
                    row = run.row(number)
                    mine.append(run.ms[number], run.seq[number], row, 0, self._limits)

    def _end(self) -> None:
        mine = self._mine
        copy = self._copy
        last = max(self._my_last, copy.last())
        if copy.last() > self._my_last:
            mine.log.entries_added = copy.log.entries_added
        mine.log.last_ms, mine.log.last_seq = last
        mine.manual |= copy.manual
        early = mine.early | copy.early
        for entry_id in early:
            if entry_id <= last:
                mine.log.discard(*entry_id)
        mine.remember_only({entry_id for entry_id in early if entry_id > last})
        mine.trim(max(mine.trimmed, copy.trimmed))
        mine.cover(max(mine.deleted, copy.deleted))


def _take_over(mine: Lane, copy: Lane, my_last: ID) -> None:
    """Take the other side's entries beyond ``my_last`` as they are, because there are none here."""
    log = copy.log
    if my_last != NO_ID and my_last != _LAST:
        ms, seq = following(my_last[0], my_last[1])
        log.trim_below(ms, seq, False, 0, False)
    elif my_last == _LAST:
        log = copy.clear()
    mine.log = log


def _drop_those_gone(mine: Stream, copy: Stream, start: ID, both: ID) -> ID | None:
    """Remove entries that the other side lacks, up to where both have come: some blocks.

    Blocks that are alike on both sides, as most are, are not decoded. Return the ID to go on from;
    None at the end.
    """
    gone: list[ID] = []
    following_id: ID | None = start
    for _ in range(_BLOCKS):
        if following_id is None:
            break
        block = mine.block_from(following_id[0], following_id[1])
        if block is None or (block.first_ms, block.first_seq) > both:
            following_id = None
            break
        other = copy.block_from(block.first_ms, block.first_seq)
        if other is None or not _are_alike(block, other):
            for entry_id in block.live_ids():
                if entry_id <= both and not copy.contains(*entry_id):
                    gone.append(entry_id)
        last = (block.last_ms, block.last_seq)
        following_id = None if last == _LAST else following(last[0], last[1])
    for entry_id in gone:
        mine.discard(*entry_id)
    return following_id


def _are_alike(block: Block, other: Block) -> bool:
    """Return whether two sealed blocks are known to have the same live entries."""
    return bool(block.payload) and block.payload == other.payload and block.dead == other.dead


def _join_current(
    mine: RegionalStream, copy: RegionalStream, my_numbers: Numbers, copy_numbers: Numbers
) -> None:
    """Make each origin write the lane that the side says that knows more of it."""
    for lane in copy.current_lanes():
        origin = lane.origin
        knows_more = copy_numbers.get(origin, 0) > my_numbers.get(origin, 0)
        if knows_more or mine.current(origin) is None:
            mine.go_on_with(mine.lane(lane.name))


def _join_removals(
    mine: RegionalStream, copy: RegionalStream, my_numbers: Numbers, copy_numbers: Numbers
) -> None:
    """Unite removals; drop tops and settings that either side has seen go."""
    theirs = {top.dot for top in copy.tops}
    tops = [top for top in mine.tops if top.dot in theirs or not covers(copy_numbers, top.dot)]
    ours = {top.dot for top in mine.tops}
    news_of_tops = [top for top in copy.tops if not covers(my_numbers, top.dot)]
    tops += [top for top in news_of_tops if top.dot not in ours]
    removals = mine.removals + copy.removals
    mine.tops = [top for top in tops if not any(each.has_seen(top.dot) for each in removals)]
    _join_register(mine.ttl, copy.ttl, my_numbers, copy_numbers)
    _join_register(mine.limits, copy.limits, my_numbers, copy_numbers)
    known = {removal.dot for removal in mine.removals}
    news = [removal for removal in copy.removals if removal.dot not in known]
    for removal in list(mine.removals):
        for register in (mine.ttl, mine.limits):
            register.drop_seen(removal.numbers)
    for removal in news:
        mine.add_removal(removal)
    mine.apply_limits()


def _join_register(
    mine: Register, copy: Register, my_numbers: Numbers, copy_numbers: Numbers
) -> None:
    settings = mine.settings
    gone = [name for name in settings if covers(copy_numbers, settings[name].dot)]
    mine.drop([origin for origin in gone if origin not in copy.settings])
    for origin, setting in copy.settings.items():
        if origin in mine.settings or not covers(my_numbers, setting.dot):
            mine.add(setting)


def _join_deleted(mine: RegionalStream, copy: RegionalStream) -> None:
    """Take the greatest deleted ID of either side."""
    deleted = NO_ID
    if mine.seen():
        deleted = (mine.max_deleted_ms, mine.max_deleted_seq)
        deleted = max(deleted, (copy.max_deleted_ms, copy.max_deleted_seq))
    mine.max_deleted_ms, mine.max_deleted_seq = deleted


def join_pairs(mine: RegionalStream, other: RegionalStream) -> None:
    """Take the messages of producers that either side knows; those that both know stay.

    So a producer that adds one of them again is answered with the entry that is there. Where both
    sides have an entry for one message, both entries stay.
    """
    mine.iids_added = max(mine.iids_added, other.iids_added)
    records = [*mine.idmp_records()]
    kept = [record for record in records if mine.may_have(record[2], record[3])]
    known = {(record[0], record[1]) for record in kept}
    theirs = [record for record in other.idmp_records() if mine.may_have(record[2], record[3])]
    news = [record for record in theirs if (record[0], record[1]) not in known]
    if not news and len(kept) == len(records):
        return
    mine.set_pairs(sorted(kept + news, key=lambda record: record[4]))


def _join_group_state(
    stream: RegionalStream,
    mine: GroupState,
    copy: GroupState,
    my_numbers: Numbers,
    copy_numbers: Numbers,
) -> None:
    kept: list[Create] = []
    theirs = {create.dot: create for create in copy.known()}
    ours = {create.dot for create in mine.known()}
    for create in mine.known():
        other = theirs.get(create.dot)
        if other is not None:
            for lane, intervals in other.intervals.items():
                create.intervals_of(lane).unite(intervals)
            kept.append(create)
        elif not covers(copy_numbers, create.dot):
            kept.append(create)
    mine.keep(kept)
    tombstones = {tombstone.dot for tombstone in mine.tombstones}
    for tombstone in copy.tombstones:
        if tombstone.dot not in tombstones:
            mine.add_tombstone(tombstone)
    for removal in stream.removals:
        mine.add_removal(removal)
    _join_register(mine.mode, copy.mode, my_numbers, copy_numbers)
    _join_register(mine.home, copy.home, my_numbers, copy_numbers)
    for register in (mine.mode, mine.home):
        for tombstone in mine.tombstones:
            register.drop_seen(tombstone.numbers)
        for removal in stream.removals:
            register.drop_seen(removal.numbers)
    for create in copy.known():
        if create.dot not in ours and not covers(my_numbers, create.dot):
            mine.add_create(create.copy(), stream.removals)
    _join_acks(mine, copy, my_numbers, copy_numbers)


def _join_acks(
    mine: GroupState, copy: GroupState, my_numbers: Numbers, copy_numbers: Numbers
) -> None:
    """Join acknowledgements for creates that one side did not have."""
    for state in (mine, copy):
        waiting, state.acks = state.acks, {}
        for dot, acks in waiting.items():
            come = covers(my_numbers, dot) or covers(copy_numbers, dot)
            for lane, intervals in acks.items():
                for after, upto in intervals.pairs():
                    mine.acknowledge(dot, lane, after, upto, come)


def keep_local(fresh: RegionalStream, mine: RegionalStream) -> None:
    """Move the places, consumers, pending entries and iids of ``mine`` to ``fresh``.

    A group keeps them if the create on which they hang still lives. ``mine`` is of no use
    afterwards.
    """
    join_pairs(fresh, mine)
    fresh.iids_duplicates = mine.iids_duplicates
    for name, group in list(mine.groups.items()):
        state = fresh.group_states.get(name)
        places = places_of(group)
        if state is None or state.create(places.anchor) is None:
            continue
        stay = put_back(mine, group)
        del mine.groups[name]
        places.group_state = state
        places.is_whole = False  # less may be here than there was
        places.forget([lane for lane in places.begun if fresh.find_lane(lane) is None])
        group.max_pending = state.max_pending()
        fresh.groups[name] = group
        acknowledged(fresh, group, ALL_IDS, stay)
