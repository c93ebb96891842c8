"""What a region adds to a stream: in which lane, and with which ID.

A region writes one lane of a stream, its *current* one. It begins another when its epoch is a new
one, or when a deletion of the key covers all of the lane. A name of a lane is never used again. So
a deletion that another region made without knowing of the restart cannot reach into the new lane.

The IDs that a region makes have a sequence of ``generation * 2**20 + k * 16 + region``, with the
lowest k that is above all that is known, and not used by this region in that millisecond. What it
has used is known of the last millisecond of each lane. So where a deletion has let IDs begin anew,
and the clock is only a little behind those of before, ``*`` goes on with the last of these. Where
it is far behind them, the lane stands in the IDs that ``*`` makes: ``lane * 2**40`` is added. For a
region that has not heard of the deletion still shows those of before.
"""

from __future__ import annotations

from typing import Final

from headrace.regions.knowledge.region import GENERATION_SHIFT, STEP, STEP_SHIFT, Region
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.lanes import Lanes
from headrace.storage.sharing import LIBERAL
from headrace.storage.stream.appending import NodeLimits, size_of
from headrace.storage.stream.entry_log import (
    ENTRY_BYTES_MAX,
    ElementsTooLarge,
    IDNotGreater,
    IDsExhausted,
)
from headrace.storage.stream.run import ID_MAX, is_below
from headrace.storage.vectors import ID, lane_name

_GENERATION: Final = 1 << GENERATION_SHIFT
_AHEAD_MS: Final = 3000  # so much the IDs of ``*`` may be ahead of the clock: see ``promise_ms``


class OwnLanes(Lanes):
    """A stream to which a region adds entries.

    Args:
        region: who this is; it gives names to lanes and says which IDs are made.

    Attributes:
        own: the lane that own entries go to; None where the next one begins a lane.
        began: the number of the lane that the last own entry began; 0 where it went on with one.
    """

    def __init__(self, region: Region, idmp_duration_s: int, idmp_maxsize: int) -> None:
        super().__init__(idmp_duration_s, idmp_maxsize)
        self.region: Final = region
        self.region_id = region.id
        self.own: Lane | None = None
        self.began = 0
        self._own_origin = b""  # whose ``own`` is: this region in its epoch
        self._used_ms = -1  # up to which own lanes that are covered may have made each ID

    def next_seq(self, ms: int) -> int:
        """The sequence that ``ms`` stands for, or ``ms-*``; in mode ``LIBERAL`` only the latter.

        Raises:
            IDsExhausted, IDNotGreater: when that millisecond has none left.
        """
        if self.region.mode == LIBERAL:
            return super().next_seq(ms)
        seq = self._free_seq(ms)
        if seq < 0:
            raise IDsExhausted if ms == ID_MAX else IDNotGreater
        return seq

    def append(self, ms: int, seq: int, words: list[bytes], at: int, limits: NodeLimits) -> None:
        """Add an own entry; see ``EntryLog``."""
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
        """See ``EntryLog``. One that begins a lane is for ``append_next``."""
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
        """The lane that own entries go to; None where the next one begins a lane."""
        if self._own_origin is not self.region.origin:
            self.find_own()
        return self.own

    def find_own(self) -> None:
        """Look for the lane that own entries go to, and for what it may not repeat."""
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
        """The ID that ``*`` stands for.

        Raises:
            IDsExhausted: there is none above the last one.
        """
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
        """The ID of ``*``, in a millisecond of which it is not known what was used."""
        lane = self._own_lane()
        base = self.region.base_seq_in(self.region.next_lane() if lane is None else lane.key[2])
        seq = base
        if ms == self.last_ms and self.last_seq >= base:
            seq += (((self.last_seq - base) >> STEP_SHIFT) + 1) << STEP_SHIFT
        return (ms, seq) if seq < base + _GENERATION else self._free_id(ms + 1)

    def _free_seq(self, ms: int) -> int:
        """The lowest sequence that this region may give in a millisecond; -1 when there is none."""
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
