"""The lanes of a stream: readers' queries over all of them, and the entries that a region adds.

Most streams have one lane with entries. Then that one answers, and nothing is merged.

A region writes one lane of a stream, its *current* one. It begins another when its epoch is a new
one, or when a deletion of the key covers all of the lane. A name of a lane is never used again. So
a deletion that another region made without knowing of the restart cannot reach into the new lane.

The IDs that a region makes have a sequence of ``generation * 2**20 + k * 16 + region``, with the
lowest k that is above all that is known, and not used by this region in that millisecond. Used
sequences are known of the last millisecond of each lane. So where a deletion has let IDs begin
anew, and the clock is only a little behind those of before, ``*`` goes on with the last of these.
Where it is far behind them, the lane stands in the IDs that ``*`` makes: ``lane * 2**40`` is added,
because a region that has not met the deletion still shows those of before.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NoReturn

from headrace.regions.knowledge.region import GENERATION_SHIFT, STEP, STEP_SHIFT, Region
from headrace.regions.lanes.lane import LANE_BYTES, Lane
from headrace.regions.lanes.merge import Source, around_rank, merged
from headrace.storage.sharing import LIBERAL
from headrace.storage.stream.appending import NodeLimits, size_of
from headrace.storage.stream.block import Block
from headrace.storage.stream.entry_log import (
    ENTRY_BYTES_MAX,
    ElementsTooLarge,
    IDNotGreater,
    IDsExhausted,
)
from headrace.storage.stream.part import Part, Stretch
from headrace.storage.stream.run import ID_MAX, is_below
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID, NO_ID, LaneVector, lane_name

if TYPE_CHECKING:
    from librt.vecs import vec
    from mypy_extensions import i64


_NO_LANES: Final[list[Lane]] = []  # of a stream without entries; never changed
_EARLY_BYTES: Final = 150  # of an entry that was removed before it came, about
_GENERATION: Final = 1 << GENERATION_SHIFT
_AHEAD_MS: Final = 3000  # so much the IDs of ``*`` may be ahead of the clock: see ``promise_ms``


class Lanes(Stream):
    """A stream that consists of lanes.

    ``length`` and ``entries_added`` are sums, ``last_ms`` and ``last_seq`` the highest ID that new
    ones have to be above. ``index`` and ``tail`` are of no use: each lane has its own.

    Args:
        region: has this copy of the stream; it gives names to lanes and says which IDs are made.

    Attributes:
        lanes: in the order of their keys.
        own: the lane that own entries go to; None where the next one begins a lane.
        began: the number of the lane that the last own entry began; 0 where it went on with one.
    """

    def __init__(self, region: Region, idmp_duration_s: int, idmp_maxsize: int) -> None:
        super().__init__(idmp_duration_s, idmp_maxsize)
        self.region: Final = region
        self.lanes: list[Lane] = []
        self.own: Lane | None = None
        self.began = 0
        self._filled = _NO_LANES  # those that have entries
        self._own_origin = b""  # the origin that has ``own``: this region in its epoch
        self._used_ms = -1  # up to which own lanes that are covered may have made each ID

    # Lanes

    def find_lane(self, name: bytes) -> Lane | None:
        """Return the lane with a name; None if there is none."""
        for lane in self.lanes:  # of which there are few
            if lane.name == name:
                return lane
        return None

    def lane(self, name: bytes) -> Lane:
        """Return the lane with a name, made where it is missing."""
        lane = self.find_lane(name)
        if lane is None:
            lane = Lane(name)
            self.insert(lane)
        return lane

    def current(self, origin: bytes) -> Lane | None:
        """Return the lane that an origin writes."""
        for lane in self.lanes:
            if lane.is_current and lane.origin == origin:
                return lane
        return None

    def current_lanes(self) -> list[Lane]:
        """Return the lanes that their origins write."""
        return [lane for lane in self.lanes if lane.is_current]

    def go_on_with(self, lane: Lane) -> None:
        """Make a lane the one that its origin writes."""
        before = self.current(lane.origin)
        if before is not None:
            before.is_current = False
        lane.is_current = True

    def insert(self, lane: Lane) -> None:
        """Add a lane that is not there, where it belongs."""
        keys = [other.key for other in self.lanes]
        self.lanes.insert(bisect_left(keys, lane.key), lane)
        self.recount()

    def remove_lanes(self, names: list[bytes]) -> None:
        """Remove lanes, with their entries."""
        self.lanes = [lane for lane in self.lanes if lane.name not in names]
        self.recount()

    def note(self, lane: Lane) -> None:
        """Check again whether a lane has entries, after some have come or gone."""
        if lane.filled != (lane.log.length > 0):
            lane.filled = not lane.filled
            self._filled = [other for other in self.lanes if other.filled]

    def recount(self) -> None:
        """Compute the sums anew."""
        self.length = 0
        self.entries_added = 0
        for lane in self.lanes:
            self.length += lane.log.length
            lane.filled = lane.log.length > 0
            if not lane.is_covered():
                self.entries_added += lane.log.entries_added
        self._filled = [lane for lane in self.lanes if lane.filled]

    def filled_lanes(self) -> list[Lane]:
        """Return the lanes that have entries, in their order; not to be changed."""
        return self._filled

    def seen(self) -> LaneVector:
        """Return the last ID of each lane that no deletion of the key covers."""
        return {lane.name: lane.last() for lane in self.lanes if not lane.is_covered()}

    def holders(self, ms: int, seq: int) -> list[Lane]:
        """Return the lanes in which there is a live entry with an ID."""
        return [lane for lane in self._filled if lane.log.contains(ms, seq)]

    def _only(self) -> Stream | None:
        return self._filled[0].log if len(self._filled) == 1 else None

    # Reading

    def parts(
        self, start: ID, end: ID, count: int, reverse: bool, most_bytes: int = 0
    ) -> list[Part]:
        """As in ``EntryLog``; entries with equal IDs come in the order of their lanes."""
        only = self._only()
        if only is not None:
            return only.parts(start, end, count, reverse, most_bytes)
        if start > end:
            return []
        sources = [Source(lane, [(start, end)]) for lane in self._filled]
        return merged(sources, count, reverse, most_bytes)

    def first_id(self) -> ID:
        found = NO_ID
        for lane in self._filled:
            first = lane.log.first_id()
            if found == NO_ID or first < found:
                found = first
        return found

    def last_entry_id(self) -> ID:
        found = NO_ID
        for lane in self._filled:
            found = max(found, lane.log.last_entry_id())
        return found

    def contains(self, ms: int, seq: int) -> bool:
        return any(lane.log.contains(ms, seq) for lane in self._filled)

    def one(self, ms: int, seq: int) -> Part | None:
        """As in ``EntryLog``; of entries with equal IDs, the first one."""
        for lane in self._filled:
            part = lane.log.one(ms, seq)
            if part is not None:
                return part
        return None

    def with_namesakes(self, part: Part) -> list[Part]:
        """Return all live entries with the ID of one that ``one`` has found, by lane."""
        if len(self._filled) < 2:
            return [part]
        ms = part.run.ms[part.low]
        seq = part.run.seq[part.low]
        found: list[Part] = []
        for lane in self._filled:
            other = lane.log.one(ms, seq)
            if other is not None:
                found.append(other)
        return found

    def has_after(self, ms: int, seq: int) -> bool:
        for lane in self._filled:
            if lane.log.has_after(ms, seq):
                return True
        return False

    def block_for(self, ms: int, seq: int) -> Block | None:
        """As in ``EntryLog``; None as well where several lanes have entries."""
        only = self._only()
        return None if only is None else only.block_for(ms, seq)

    def block_from(self, ms: int, seq: int) -> NoReturn:
        """Blocks of lanes do not come in the order of their IDs: see ``trimming``."""
        raise NotImplementedError

    def count_before(self, ms: int, seq: int) -> int:
        """As in ``EntryLog``. Complexity: O(lanes log n)."""
        count = 0
        for lane in self._filled:
            count += lane.log.count_before(ms, seq)
        return count

    def around_rank(self, rank: int) -> Stretch:
        only = self._only()
        return around_rank(self._filled, rank) if only is None else only.around_rank(rank)

    def is_scattered(self) -> bool:
        for lane in self._filled:
            if lane.log.is_scattered():
                return True
        return False

    def look_ahead(self, all_ms: vec[i64]) -> None:
        for lane in self._filled:
            if lane.log.is_scattered():
                lane.log.look_ahead(all_ms)

    # Size

    def node_count(self) -> int:
        count = 0
        for lane in self._filled:
            count += lane.log.node_count()
        return count

    def blocks_bytes(self) -> int:
        total = 0
        for lane in self.lanes:
            total += LANE_BYTES + lane.log.blocks_bytes() + _EARLY_BYTES * len(lane.early)
        return total

    def effort(self) -> int:
        total = super().effort()
        for lane in self.lanes:
            total += lane.log.effort()
        return total

    # Own entries

    def next_seq(self, ms: int) -> int:
        """Return the sequence of ``ms``, or ``ms-*``; in mode ``LIBERAL`` only of the latter.

        Raises IDsExhausted or IDNotGreater when that millisecond has none left.
        """
        if self.region.mode == LIBERAL:
            return super().next_seq(ms)
        seq = self._free_seq(ms)
        if seq < 0:
            raise IDsExhausted if ms == ID_MAX else IDNotGreater
        return seq

    def append(self, ms: int, seq: int, words: list[bytes], at: int, limits: NodeLimits) -> None:
        if not is_below(self.last_ms, self.last_seq, ms, seq):
            if self.last_ms == ID_MAX and self.last_seq == ID_MAX:
                raise IDsExhausted
            raise IDNotGreater
        self._append_own(ms, seq, words, at, limits)

    def append_next(self, now_ms: int, words: list[bytes], at: int, limits: NodeLimits) -> None:
        ms, seq = self._free_id(now_ms)
        self._append_own(ms, seq, words, at, limits)

    def append_alike(
        self,
        now_ms: int,
        requests: list[list[bytes]],
        first: int,
        end: int,
        at: int,
        limits: NodeLimits,
    ) -> int:
        """As in ``EntryLog``. An entry that begins a lane is for ``append_next``."""
        lane = self._own_lane()
        if lane is None or self.last_ms == ID_MAX:
            return 0
        ms, seq = self._free_id(now_ms)
        last = seq + STEP * (end - first)
        if last >= self.region.base_seq() + _GENERATION or ms <= self._used_ms:
            return 0
        log = lane.log
        added = log.append_in_steps(ms, seq, STEP, requests, first, end, at, limits)
        if added:
            self.began = 0
            self.length += added
            self.entries_added += added
            self.last_ms = log.last_ms
            self.last_seq = log.last_seq
            if not lane.filled:
                self.note(lane)
        return added

    def _append_own(
        self, ms: int, seq: int, words: list[bytes], at: int, limits: NodeLimits
    ) -> None:
        lane = self._own_lane()
        if lane is None or not is_below(lane.log.last_ms, lane.log.last_seq, ms, seq):
            if size_of(words, at) > ENTRY_BYTES_MAX:
                raise ElementsTooLarge
            lane = self._begin_lane()
        else:
            self.began = 0
        lane.log.append(ms, seq, words, at, limits)
        self.length += 1
        self.entries_added += 1
        self.last_ms = ms
        self.last_seq = seq
        if not lane.filled:
            self.note(lane)

    def _own_lane(self) -> Lane | None:
        """Return the lane that own entries go to; None where the next one begins a lane."""
        if self._own_origin is not self.region.origin:
            self.find_own()
        return self.own

    def find_own(self) -> None:
        """Find the lane that own entries go to, and the IDs that it may not repeat."""
        origin = self.region.origin
        lane = self.current(origin)
        self.own = None if lane is None or lane.is_covered() else lane
        self._own_origin = origin
        self._used_ms = -1
        end = self.region.base_seq() + _GENERATION
        for lane in self.lanes:
            if lane.key[0] == self.region.id and lane is not self.own:
                ms = lane.log.last_ms
                if lane.log.last_seq >= end and ms < ID_MAX:
                    ms += 1  # that it has used lower ones in this millisecond is not known
                self._used_ms = max(self._used_ms, ms)

    def _begin_lane(self) -> Lane:
        self.began = self.region.new_lane()
        origin = self.region.origin
        lane = self.lane(lane_name(origin, self.began))
        self.go_on_with(lane)
        self.find_own()
        self.own = lane
        return lane

    def _free_id(self, now_ms: int) -> ID:
        """Return the ID that ``*`` stands for. Raises IDsExhausted: none is above the last one."""
        ms = now_ms
        if ms < self.last_ms:  # ``max`` of several numbers would take longer than all the rest
            ms = self.last_ms
        if ms <= self.region.promise_ms:
            ms = self.region.promise_ms + 1
        if ms < self._used_ms:
            if ms + _AHEAD_MS < self._used_ms:
                return self._unused_id(ms)
            ms = self._used_ms
        seq = self._free_seq(ms)
        while seq < 0:
            if ms == ID_MAX:
                raise IDsExhausted
            ms += 1
            seq = self._free_seq(ms)
        return ms, seq

    def _unused_id(self, ms: int) -> ID:
        """Return the ID of ``*`` in a millisecond of which the used ones are not known."""
        lane = self._own_lane()
        base = self.region.base_seq_in(self.region.next_lane() if lane is None else lane.key[2])
        seq = base
        if ms == self.last_ms and self.last_seq >= base:
            seq += (((self.last_seq - base) >> STEP_SHIFT) + 1) << STEP_SHIFT
        return (ms, seq) if seq < base + _GENERATION else self._free_id(ms + 1)

    def _free_seq(self, ms: int) -> int:
        """Return the lowest sequence that this region may give in a millisecond; -1 for none."""
        base = self.region.base_seq()
        seq = base
        if ms == self.last_ms and self.last_seq >= base:
            seq += (((self.last_seq - base) >> STEP_SHIFT) + 1) << STEP_SHIFT
        if self._own_origin is not self.region.origin:
            self.find_own()
        if ms <= self._used_ms:
            for lane in self.lanes:
                last = lane.log.last_seq
                is_used = lane.key[0] == self.region.id and lane.log.last_ms == ms
                if is_used and base <= last < base + _GENERATION:
                    seq = max(seq, base + ((((last - base) >> STEP_SHIFT) + 1) << STEP_SHIFT))
        return seq if seq < base + _GENERATION and seq <= ID_MAX else -1
