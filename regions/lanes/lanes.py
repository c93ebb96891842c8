"""The lanes of a stream, and what readers ask of them together.

Most streams have one lane with entries. Then that one answers, and nothing is merged.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NoReturn

from headrace.regions.lanes.lane import LANE_BYTES, Lane
from headrace.regions.lanes.merged import Source, around_rank, merged
from headrace.storage.stream.block import Block
from headrace.storage.stream.part import Part, Stretch
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID, NO_ID, LaneVector

if TYPE_CHECKING:
    from librt.vecs import vec
    from mypy_extensions import i64

_NO_LANES: Final[list[Lane]] = []  # of a stream without entries; never changed
_EARLY_BYTES: Final = 150  # of an entry that was removed before it came, about


class Lanes(Stream):
    """A stream that consists of lanes.

    ``length`` and ``entries_added`` are sums, ``last_ms`` and ``last_seq`` the highest ID that new
    ones have to be above. ``index`` and ``tail`` are of no use: each lane has its own.

    Attributes:
        lanes: in the order of their keys.
        region_id: whose copy of the stream this is.
    """

    def __init__(self, idmp_duration_s: int, idmp_maxsize: int) -> None:
        super().__init__(idmp_duration_s, idmp_maxsize)
        self.lanes: list[Lane] = []
        self.region_id = 0
        self._filled = _NO_LANES  # those that have entries

    # Lanes

    def find_lane(self, name: bytes) -> Lane | None:
        """The lane with a name."""
        for lane in self.lanes:  # of which there are few
            if lane.name == name:
                return lane
        return None

    def lane(self, name: bytes) -> Lane:
        """The lane with a name, made where it is missing."""
        lane = self.find_lane(name)
        if lane is None:
            lane = Lane(name)
            self.insert(lane)
        return lane

    def current(self, origin: bytes) -> Lane | None:
        """The lane that an origin writes."""
        for lane in self.lanes:
            if lane.is_current and lane.origin == origin:
                return lane
        return None

    def current_lanes(self) -> list[Lane]:
        """The lanes that their origins write."""
        return [lane for lane in self.lanes if lane.is_current]

    def go_on_with(self, lane: Lane) -> None:
        """The origin of a lane writes that one from now on."""
        before = self.current(lane.origin)
        if before is not None:
            before.is_current = False
        lane.is_current = True

    def insert(self, lane: Lane) -> None:
        """Add a lane that is not there, where it belongs."""
        keys = [other.key for other in self.lanes]
        self.lanes.insert(bisect_left(keys, lane.key), lane)
        self.recount()

    def remove_lanes(self, dead: list[Lane]) -> None:
        """Take lanes out, with what they hold."""
        names = {lane.name for lane in dead}
        self.lanes = [lane for lane in self.lanes if lane.name not in names]
        self.recount()

    def note(self, lane: Lane) -> None:
        """Entries of a lane have come or gone: whether it has any may be news."""
        if lane.filled != (lane.log.length > 0):
            lane.filled = not lane.filled
            self._filled = [other for other in self.lanes if other.filled]

    def recount(self) -> None:
        """Make the sums anew."""
        self.length = 0
        self.entries_added = 0
        for lane in self.lanes:
            self.length += lane.log.length
            lane.filled = lane.log.length > 0
            if not lane.is_covered():
                self.entries_added += lane.log.entries_added
        self._filled = [lane for lane in self.lanes if lane.filled]

    def filled_lanes(self) -> list[Lane]:
        """The lanes that have entries, in their order; not to be changed."""
        return self._filled

    def seen(self) -> LaneVector:
        """Return how far each lane has come that no deletion of the key covers."""
        return {lane.name: lane.last() for lane in self.lanes if not lane.is_covered()}

    def holders(self, ms: int, seq: int) -> list[Lane]:
        """The lanes in which there is a live entry with an ID."""
        return [lane for lane in self._filled if lane.log.contains(ms, seq)]

    def _only(self) -> Stream | None:
        """The log of the only lane that has entries, if it is the only one."""
        return self._filled[0].log if len(self._filled) == 1 else None

    # Reading

    def parts(
        self, start: ID, end: ID, count: int, reverse: bool, most_bytes: int = 0
    ) -> list[Part]:
        """See ``EntryLog``; entries with equal IDs come in the order of their lanes."""
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
        """See ``EntryLog``; of entries with equal IDs, the first one."""
        for lane in self._filled:
            part = lane.log.one(ms, seq)
            if part is not None:
                return part
        return None

    def with_namesakes(self, part: Part) -> list[Part]:
        """All live entries with the ID of one that ``one`` has found, in the order of lanes."""
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
        """See ``EntryLog``; None as well where several lanes have entries."""
        only = self._only()
        return None if only is None else only.block_for(ms, seq)

    def block_from(self, ms: int, seq: int) -> NoReturn:
        """Blocks of lanes do not come in the order of their IDs: see ``trimming``."""
        raise NotImplementedError

    def count_before(self, ms: int, seq: int) -> int:
        """See ``EntryLog``. Complexity: O(lanes log n)."""
        count = 0
        for lane in self._filled:
            count += lane.log.count_before(ms, seq)
        return count

    def count_upto(self, ms: int, seq: int) -> int:
        """Return how many live entries have this ID or a lower one."""
        if ms == ID_MAX and seq == ID_MAX:
            return self.length
        above = following(ms, seq)
        return self.count_before(above[0], above[1])

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
