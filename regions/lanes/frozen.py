"""A stream of several lanes as it is at one moment, while the stream itself goes on changing.

Each lane is frozen as a stream is (``storage.stream.frozen``), and the groups and producers with
them. What is remembered beside them is small, and copied.
"""

from __future__ import annotations

from typing import Final

from headrace.regions.lanes.births import Births
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.lanes import Lanes
from headrace.regions.lanes.places import Places, places_of
from headrace.regions.lanes.registers import Register
from headrace.regions.lanes.removals import Awaited, Removal, Top
from headrace.storage.stream.frozen import FrozenStream
from headrace.storage.value import Freeable


class FrozenLane:
    """A lane as it was.

    Attributes:
        name, deleted, trimmed, manual: as in ``lane.Lane``.
        early: in order.
        log: its entries.
    """

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

    Args:
        stream: its lanes and groups.
        tops, removals, awaited, births, ttl, limits: what else it has; see
            ``stream.RegionalStream``. They are copied.

    Attributes:
        lanes: in their order.
        current: the lane that each origin writes, by name.
        places: those of each group, in the order of ``groups``.
    """

    def __init__(
        self,
        stream: Lanes,
        tops: list[Top],
        removals: list[Removal],
        awaited: list[Awaited],
        births: dict[bytes, Births],
        ttl: Register,
        limits: Register,
    ) -> None:
        super().__init__(stream)
        self.lanes: Final = [FrozenLane(lane) for lane in stream.lanes]
        self.current: Final = {lane.origin: lane.name for lane in stream.lanes if lane.is_current}
        self.tops: Final = tops.copy()
        self.removals: Final = removals.copy()
        self.awaited: Final = awaited.copy()
        self.births: Final = {name: of_name.copy() for name, of_name in births.items()}
        self.ttl: Final = ttl.copy()
        self.limits: Final = limits.copy()
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
