"""One stream that several regions write, and its state at one moment while it goes on changing.

The state of a stream is the same in all regions that know the same records, in whatever order the
records of different origins came. Local data are kept in its groups and in its IDMP map.

For a snapshot each lane is frozen as a stream is (``storage.stream.frozen``), and the groups and
producers with them. The small data beside them are copied.
"""

from __future__ import annotations

from typing import Final

from headrace.regions.knowledge.region import STEP, Region
from headrace.regions.lanes.group_state import GREATEST, Create, GroupState, Home
from headrace.regions.lanes.lane import Lane, LaneError
from headrace.regions.lanes.lanes import Lanes
from headrace.regions.lanes.places import Interval, Places, acknowledged, new_group, places_of
from headrace.regions.lanes.remembered import (
    NO_DEADLINE,
    Awaited,
    Register,
    Removal,
    Setting,
    Tombstone,
    Top,
)
from headrace.storage.sharing import STRICT, Replicated
from headrace.storage.stream.appending import NodeLimits, size_of
from headrace.storage.stream.entry_log import ENTRY_BYTES_MAX, ElementsTooLarge
from headrace.storage.stream.frozen import FrozenStream
from headrace.storage.stream.idmp import IdmpMap, Record, iid_of
from headrace.storage.stream.run import following
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Freeable
from headrace.storage.vectors import ID, NO_ID, Dot, LaneVector, lane_name, region_of

PATIENCE_MS: Final = 10_000  # how long a deadline of another region is waited for
_USUAL_NODES: Final = NodeLimits(4096, 100)
_PAGE: Final = 1000  # entries looked at together
_SMALL_BYTES: Final = 200  # of each thing remembered beside entries and groups, about
# Most streams have nothing of these, so nothing is ever put into these lists.
_NO_TOPS: Final[list[Top]] = []
_NO_REMOVALS: Final[list[Removal]] = []
_NO_AWAITED: Final[list[Awaited]] = []


class FrozenLane:
    """A lane as it was: attributes as in ``lane.Lane``, ``early`` in order, ``log`` its entries."""

    def __init__(self, lane: Lane) -> None:
        self.name: Final = lane.name
        self.deleted: Final = lane.deleted
        self.trimmed: Final = lane.trimmed
        self.early: Final = sorted(lane.early)
        self.manual: Final = lane.manual
        self.log: Final = FrozenStream(lane.log)


class FrozenRegionalStream(FrozenStream):
    """A stream as it was; see ``FrozenStream``. Its blocks are those of its lanes.

    Complexity: O(lanes + groups + consumers + intervals), and one reference for 500 pending
        entries.

    Attributes:
        current: the lane that each origin writes, by name.
        tops, removals, awaited, state, ttl, limits: copies; see ``RegionalStream``.
        places: those of each group, in the order of ``groups``.
    """

    def __init__(self, stream: RegionalStream) -> None:
        super().__init__(stream)
        self.lanes: Final = [FrozenLane(lane) for lane in stream.lanes]
        self.current: Final = {lane.origin: lane.name for lane in stream.current_lanes()}
        self.tops: Final = stream.tops.copy()
        self.removals: Final = stream.removals.copy()
        self.awaited: Final = stream.awaited.copy()
        self.group_states: Final = {
            name: state.copy() for name, state in stream.group_states.items()
        }
        self.ttl: Final = stream.ttl.copy()
        self.limits: Final = stream.limits.copy()
        self.places: Final[list[Places]] = [
            places_of(group).copy() for group in stream.groups.values()
        ]

    def register(self) -> None:
        super().register()
        for lane in self.lanes:
            lane.log.register()

    def thaw(self) -> list[Freeable]:
        rest = super().thaw()
        for lane in self.lanes:
            rest.extend(lane.log.thaw())
        return rest

    def copied_bytes(self) -> int:
        total = super().copied_bytes()
        for lane in self.lanes:
            total += lane.log.copied_bytes()
        return total


class RegionalStream(Lanes, Replicated):
    """One stream.

    Args:
        region: this region; it gives names to lanes and says which IDs are made.
        idmp_duration_s, idmp_maxsize: the limits of its IDMP map, as long as nothing else is set.

    Attributes:
        tops: IDs set with XSETID, as far as no deletion has seen them.
        removals: deletions of the key that not all regions are known to have seen.
        awaited: entries that are to be removed once others have come.
        state: what is known of the creates of groups, by name.
        ttl, limits: the deadline of the key, and the limits of the IDMP map.
    """

    def __init__(self, region: Region, idmp_duration_s: int, idmp_maxsize: int) -> None:
        super().__init__(region, idmp_duration_s, idmp_maxsize)
        self.tops = _NO_TOPS
        self.removals = _NO_REMOVALS
        self.awaited = _NO_AWAITED
        self.group_states: dict[bytes, GroupState] = {}
        self.ttl = Register(True)
        self.limits = Register()
        self._usual_duration_s: Final = idmp_duration_s
        self._usual_maxsize: Final = idmp_maxsize

    # Entries of other regions, and own ones that are read back

    def arrive(
        self,
        origin: bytes,
        new_lane: int,
        manual: bool,
        ms: int,
        seq: int,
        words: list[bytes],
        at: int,
        limits: NodeLimits,
    ) -> bool:
        """Add the next entry of an origin. Return False when it had been removed before it came.

        Args:
            new_lane: the number of the lane that it begins; 0 where it goes on with one.
            manual: its lane has no stable IDs from now on.

        Raises LaneError if it cannot be the next one of its lane, ElementsTooLarge if it is too
        long; nothing has changed then.
        """
        lane = self._lane_of_next(origin, new_lane, (ms, seq))
        if size_of(words, at) > ENTRY_BYTES_MAX:
            raise ElementsTooLarge
        if new_lane:
            if lane is None:
                lane = self.lane(lane_name(origin, new_lane))
            self.go_on_with(lane)
            self.region.met_lane(origin, new_lane)
        assert lane is not None
        was_covered = lane.is_covered()
        lane.manual |= manual
        is_deleted = bool(lane.early) and (ms, seq) in lane.early
        lives = lane.takes((ms, seq))
        if lives:
            lane.log.append(ms, seq, words, at, limits)
            self.length += 1
            self.note(lane)
        else:
            lane.pass_over(ms, seq)
            if is_deleted and (ms, seq) > (self.max_deleted_ms, self.max_deleted_seq):
                self.max_deleted_ms = ms
                self.max_deleted_seq = seq
        if not lane.is_covered():
            self.entries_added += lane.log.entries_added if was_covered else 1
            if (ms, seq) > (self.last_ms, self.last_seq):
                self.last_ms = ms
                self.last_seq = seq
        if lane.key[0] == self.region.id and lane is not self.own:
            self.find_own()
        if self.awaited:
            self.remove_awaited()
        return lives

    def _lane_of_next(self, origin: bytes, new_lane: int, entry_id: ID) -> Lane | None:
        if new_lane:
            lane = self.find_lane(lane_name(origin, new_lane))
        else:
            lane = self.current(origin)
            if lane is None:
                raise LaneError
        if entry_id == NO_ID or (lane is not None and entry_id <= lane.last()):
            raise LaneError
        return lane

    def foreign_seen(self) -> LaneVector:
        """Return ``seen`` of the lanes of other regions."""
        number = self.region.id
        return {name: last for name, last in self.seen().items() if region_of(name) != number}

    # IDs that callers gave below what this region has promised

    def mark_manual(self) -> None:
        """Mark the own lane: its last entry has an ID below what this region has promised."""
        lane = self.current(self.region.origin)
        assert lane is not None
        lane.manual = True

    def is_manual(self) -> bool:
        """Return whether a lane has such IDs."""
        return any(lane.manual and not lane.is_covered() for lane in self.lanes)

    def has_made_ids(self) -> bool:
        """Return whether there may be entries that have been promised to come in order."""
        return any(not lane.manual and not lane.is_covered() for lane in self.lanes)

    # Removing entries

    def remove_entry(self, lane_name: bytes, entry_id: ID) -> bool:
        """Remove an entry of a lane, or remember one still to come. Return whether it lived."""
        lane = self.lane(lane_name)
        if entry_id > lane.last():
            if entry_id > lane.deleted and entry_id > lane.trimmed:
                lane.remember(entry_id)
            return False
        return self._delete_in(lane, entry_id[0], entry_id[1])

    def remove_for(self, winner_lane: bytes, winner_id: ID, lane_name: bytes, entry_id: ID) -> bool:
        """As ``remove_entry``, once another entry has come, which says the same."""
        winner = self.find_lane(winner_lane)
        if winner is not None and winner.last() >= winner_id:
            return self.remove_entry(lane_name, entry_id)
        self.wait_for(Awaited(winner_lane, winner_id, lane_name, entry_id))
        return False

    def wait_for(self, one: Awaited) -> None:
        """Remember an entry that is to be removed once another one has come."""
        if self.awaited:
            self.awaited.append(one)
        else:
            self.awaited = [one]

    def remove_awaited(self) -> None:
        """Remove the entries that were to be removed once others came, if those have come."""
        waiting = self.awaited
        self.awaited = _NO_AWAITED
        for one in waiting:
            self.remove_for(*one)

    def named_lanes(self) -> set[bytes]:
        """Return the lanes that are here, and those that anything here names."""
        names = {lane.name for lane in self.lanes}
        for one in self.awaited:
            names.update((one.winner_lane, one.lane))
        for state in self.group_states.values():
            for of_lanes in [*[create.intervals for create in state.known()], *state.acks.values()]:
                names.update(of_lanes)
        for group in self.groups.values():
            names.update(places_of(group).place, places_of(group).again)
        return names

    def is_awaiting(self, one: Awaited) -> bool:
        """Return whether there may be an entry to be removed then."""
        lane = self.find_lane(one.lane)
        if lane is None:
            return True
        if one.entry_id <= lane.last():
            return lane.log.contains(*one.entry_id)
        gone = one.entry_id <= max(lane.deleted, lane.trimmed) or one.entry_id in lane.early
        return not gone

    def delete(self, ms: int, seq: int) -> bool:
        holders = self.holders(ms, seq)
        for lane in holders:
            self._delete_in(lane, ms, seq)
        return bool(holders)

    def discard(self, ms: int, seq: int) -> bool:
        """Remove all entries with this ID, here alone; see ``EntryLog``."""
        holders = self.holders(ms, seq)
        for lane in holders:
            lane.log.discard(ms, seq)
            self.length -= 1
            self.note(lane)
        return bool(holders)

    def _delete_in(self, lane: Lane, ms: int, seq: int) -> bool:
        if not lane.log.delete(ms, seq):
            return False
        self.length -= 1
        self.note(lane)
        if (ms, seq) > (self.max_deleted_ms, self.max_deleted_seq):
            self.max_deleted_ms = ms
            self.max_deleted_seq = seq
        return True

    def trim_to(self, vector: LaneVector) -> int:
        """Remove all up to an ID of each lane, also entries still to come. Return how many went."""
        removed = 0
        for name in vector:
            removed += self.lane(name).trim(vector[name])
        self.recount()
        return removed

    def cover(self, vector: LaneVector) -> list[Freeable]:
        """As ``trim_to``, of a deleted or expired key; see ``add_removal``. Return what to free."""
        freed: list[Freeable] = []
        for name in vector:
            old = self.lane(name).cover(vector[name])
            if old is not None:
                freed.append(old)
        self.recount()
        self.find_own()
        self._find_top()
        if self.seen():
            self._forget_pairs(freed)
        else:
            self.max_deleted_ms = 0
            self.max_deleted_seq = 0
            if self.idmp is not None:
                freed.append(self.idmp)
                self.idmp = None
        return freed

    def outlived(self) -> list[Lane]:
        """Return the lanes that are empty, and whose region has written later ones above them.

        A later lane says all that such a lane says: that the stream is there, from where on its IDs
        go on, and which of them its region has used.
        """
        found: list[Lane] = []
        if len(self.lanes) < 2:
            return found
        later: Lane | None = None
        for lane in reversed(self.lanes):
            if lane.is_covered():
                continue
            if later is None or later.key[0] != lane.key[0] or later.last() < lane.last():
                later = lane
            elif later.key[1] > lane.key[1] and not lane.log.length and not lane.early:
                found.append(lane)
        return found

    def end_lanes(self, vector: LaneVector) -> list[Freeable]:
        """As ``cover``, of lanes that were ``outlived`` where this was decided.

        It deletes nothing: messages stay known, and so does the number of entries added.
        """
        freed: list[Freeable] = []
        for name in vector:
            lane = self.lane(name)
            heirs = [each for each in self.lanes if each.key > lane.key and not each.is_covered()]
            if not lane.is_covered() and heirs and heirs[0].key[0] == lane.key[0]:
                heirs[0].log.entries_added += lane.log.entries_added
            old = lane.cover(vector[name])
            if old is not None:
                freed.append(old)
            for group in self.groups.values():
                places_of(group).forget([name])
        self.restored()
        return freed

    def _forget_pairs(self, freed: list[Freeable]) -> None:
        idmp = self.idmp
        if idmp is None:
            return
        kept = [record for record in idmp.records() if self.may_have(record[2], record[3])]
        if len(kept) == idmp.count:
            return
        freed.append(idmp)
        self.set_pairs(kept)

    def set_pairs(self, records: list[Record]) -> None:
        """Make these the only known messages of producers, oldest first."""
        self.idmp = None
        for pid, iid, ms, seq, added_ms in records:
            self.make_idmp().record(pid, iid_of(iid), ms, seq, added_ms)

    def may_have(self, ms: int, seq: int) -> bool:
        """Return whether an entry with an ID has come, or may have, that no deletion covers."""
        strict = self.region.mode == STRICT
        for lane in self.lanes:
            made_here = strict and lane.key[2] and not lane.manual  # the ID names its region
            if made_here and lane.key[0] != seq & (STEP - 1):
                continue
            if lane.deleted < (ms, seq) <= lane.last():
                return True
        return False

    # Where new IDs begin

    def top(self) -> ID:
        """Return the ID that new ones have to be above."""
        return self.last_ms, self.last_seq

    def add_top(self, top: Top) -> None:
        """Put new IDs above that of ``top``, unless the key was deleted since."""
        if not any(removal.has_seen(top.dot) for removal in self.removals):
            self.know_top(top)
            self._find_top()

    def know_top(self, top: Top) -> None:
        """Remember an ID set with XSETID."""
        self.tops = [*self.tops, top]

    def _find_top(self) -> None:
        found = max((top.entry_id for top in self.tops), default=NO_ID)
        for lane in self.lanes:
            if not lane.is_covered():
                found = max(found, lane.last())
        self.last_ms, self.last_seq = found

    # Deleting the key

    def add_removal(self, removal: Removal) -> list[Freeable]:
        """Remove groups and settings, because the key was deleted or has expired; see ``cover``.

        Returns: the removed groups and the IDMP map, to be freed.
        """
        self.know_removal(removal)
        self.tops = [top for top in self.tops if not removal.has_seen(top.dot)]
        self._find_top()
        self.ttl.drop_seen(removal.numbers)
        freed: list[Freeable] = []
        if self.limits.drop_seen(removal.numbers):
            old = self.apply_limits()
            if old is not None:
                freed.append(old)
        for name in list(self.group_states):
            self.group_states[name].add_removal(removal)
            freed.extend(self.settle_group(name))
        return freed

    def know_removal(self, removal: Removal) -> None:
        """Remember a deletion."""
        if self.removals:
            self.removals.append(removal)
        else:
            self.removals = [removal]

    def exists(self) -> bool:
        """Return whether there is a stream: no deletion covers an entry of it, or a group lives.

        So an emptied stream exists, as in Redis, and one that has only groups goes with them.
        """
        for lane in self.lanes:
            if not lane.is_covered():
                return True
        return bool(self.groups)

    def is_idle(self) -> bool:
        """Return whether it does not exist, and nothing of it is to be remembered."""
        if self.removals or self.tops or self.awaited or self.groups:
            return False
        if self.ttl.settings or self.limits.settings:
            return False
        if not all(state.is_idle() for state in self.group_states.values()):
            return False
        return all(lane.is_dead() for lane in self.lanes)

    def has_garbage(self) -> bool:
        """Return whether there is something that may be forgotten once all regions have seen it."""
        if self.removals or any(state.tombstones for state in self.group_states.values()):
            return True
        if any(lane.is_dead() for lane in self.lanes):
            return True
        return bool(self.outlived()) or bool(self.left_over())

    def left_over(self) -> list[Dot]:
        """Return the records that set something of a stream without knowing that it has gone.

        Empty where the stream exists, or where a removal is remembered that may matter to them.
        """
        if self.removals or self.exists():
            return []
        settings = [*self.ttl.settings.values(), *self.limits.settings.values()]
        for state in self.group_states.values():
            settings += [*state.mode.settings.values(), *state.home.settings.values()]
        return [top.dot for top in self.tops] + [setting.dot for setting in settings]

    # Groups

    def group_state(self, name: bytes) -> GroupState:
        """Return the record of the creates of a group."""
        state = self.group_states.get(name)
        if state is None:
            state = GroupState()
            self.group_states[name] = state
        return state

    def add_create(self, name: bytes, create: Create) -> bool:
        """Note that a group was made. Return whether that create lives."""
        lives = self.group_state(name).add_create(create, self.removals)
        self.settle_group(name)
        return lives

    def add_tombstone(self, name: bytes, tombstone: Tombstone) -> list[Freeable]:
        """Note that a group was destroyed. Return what is to be freed: the group."""
        self.group_state(name).add_tombstone(tombstone)
        return self.settle_group(name)

    def settle_group(self, name: bytes) -> list[Freeable]:
        """Make a group that lives, or remove one that does not. Return a removed one, to free."""
        state = self.group_state(name)
        freed: list[Freeable] = []
        group = self.groups.get(name)
        if group is not None and state.create(places_of(group).anchor) is None:
            del self.groups[name]
            freed.append(group)
            group = None
        anchor = state.anchor()
        if group is None and anchor is not None:
            group = new_group(name, state, anchor)
            self.groups[name] = group
        if group is not None:
            group.max_pending = state.max_pending()
        elif state.is_idle():
            del self.group_states[name]
        return freed

    def acknowledge(self, name: bytes, dots: list[Dot], intervals: list[Interval]) -> int:
        """Acknowledge entries for some creates of a group, as done elsewhere. Return how many."""
        state = self.group_state(name)
        news = False
        ranges: list[Interval] = []
        for lane, after, upto in intervals:
            ranges.extend((lane, *each) for each in state.not_acked(lane, after, upto))
        for dot in dots:
            come = self.region.knows(dot)
            for lane, after, upto in intervals:
                if state.acknowledge(dot, lane, after, upto, come):
                    news = True
        group = self.groups.get(name)
        if group is None and state.is_idle():
            del self.group_states[name]
        return 0 if group is None or not news else acknowledged(self, group, ranges)

    # Settings

    def add_ttl(self, setting: Setting) -> bool:
        """Set the deadline of the key. Return whether that stands. See ``deadline_ms``."""
        return not self._is_removed(setting) and self.ttl.add(setting)

    def deadline_ms(self) -> int:
        """Return when the key expires; ``NO_DEADLINE`` when it does not."""
        setting = self.ttl.winner()
        return NO_DEADLINE if setting is None else setting.first

    def removed_after_ms(self, deadline_ms: int) -> int:
        """Add ``PATIENCE_MS`` to another region's deadline; see ``Value``.

        That region may put the deadline off, and others learn of it late.
        """
        setting = self.ttl.winner()
        if setting is None or region_of(setting.dot[0]) == self.region.id:
            return deadline_ms
        return deadline_ms + PATIENCE_MS

    def add_limits(self, setting: Setting) -> list[Freeable]:
        """Set the limits of the IDMP map. Return a map with other limits, to be freed."""
        if self._is_removed(setting):
            return []
        self.limits.add(setting)
        old = self.apply_limits()
        return [] if old is None else [old]

    def add_mode(self, name: bytes, setting: Setting) -> None:
        """Set the most pending entries of a group."""
        self.group_state(name).add_mode(setting, self.removals)
        self.settle_group(name)

    def add_home(self, name: bytes, setting: Home) -> None:
        """Note that a group has moved to a region."""
        self.group_state(name).add_home(setting, self.removals)
        self.settle_group(name)

    def _is_removed(self, setting: Setting) -> bool:
        return any(removal.has_seen(setting.dot) for removal in self.removals)

    def apply_limits(self) -> IdmpMap | None:
        """Give the IDMP map the limits that stand. Return a map with other limits, to be freed."""
        setting = self.limits.winner()
        if setting is None:
            return self.limit_idmp(self._usual_duration_s, self._usual_maxsize)
        return self.limit_idmp(setting.first, setting.second)

    # As a value

    def used_bytes(self, samples: int) -> int:
        total = super().used_bytes(samples)
        for state in self.group_states.values():
            total += state.used_bytes()
        small = len(self.removals) + len(self.tops) + len(self.awaited)
        return total + _SMALL_BYTES * (small + len(self.ttl.settings) + len(self.limits.settings))

    def plain(self) -> Stream:
        """Return the entries, each ID once, without groups and iids; see ``Replicated``."""
        plain = Stream(self.idmp_duration_s, self.idmp_maxsize)
        while (plain.last_ms, plain.last_seq) < self.last_entry_id():
            start = following(plain.last_ms, plain.last_seq)
            for part in self.parts(start, GREATEST, _PAGE, False):
                run = part.run
                for number in range(part.low, part.high):
                    entry_id = (run.ms[number], run.seq[number])
                    is_dead = part.dead is not None and part.dead[number]
                    if not is_dead and entry_id > (plain.last_ms, plain.last_seq):
                        plain.append(*entry_id, run.row(number), 0, _USUAL_NODES)
        if not plain.length:
            plain.last_ms, plain.last_seq = self.top()
        return plain

    def free_some(self, most: int) -> bool:
        if self.frozen is not None:
            self.frozen.abandon()
            return True
        if self.groups or self.idmp is not None:
            done = super().free_some(most)
            if done and not self.groups:
                self.idmp = None
            return False
        lanes = self.lanes
        if lanes and lanes[-1].log.free_some(most):
            lanes.pop()
        return not lanes

    def freeze(self) -> FrozenRegionalStream:
        return FrozenRegionalStream(self)

    def restored(self) -> None:
        """Compute the derived state after all parts have been put in."""
        self.recount()
        self.find_own()
        self._find_top()
