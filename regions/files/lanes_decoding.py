"""Turns records back into streams of lanes, and all others as they are."""

from __future__ import annotations

from headrace.persistence.forms.records import Intake
from headrace.persistence.forms.stream.records import STREAM, StreamReader
from headrace.regions.files.lanes_documents import (
    BIRTHS,
    LANE,
    LANES,
    PLACES,
    REMEMBERED,
    read_births,
    read_ids,
    read_places,
    read_remembered,
)
from headrace.regions.knowledge.region import region_as
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.contents import (
    IDMP_DURATION_S,
    IDMP_DURATION_S_MAX,
    IDMP_MAXSIZE,
    IDMP_MAXSIZE_MAX,
)
from headrace.storage.stream.run import ID_MAX
from headrace.storage.vectors import ID, check_lane


class LanesReader(StreamReader):
    """Puts the parts of a stream together, of whichever kind it is."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._lanes: RegionalStream | None = None  # the current stream, if it is one of lanes
        self._lanes_left = 0
        self._remembered = False
        self._births_left = 0

    def goes_on(self, kind: int) -> bool:
        """All records but the first are parts."""
        return kind not in (STREAM, LANES)

    def read(self, kind: int, table: list[int]) -> None:
        if kind < LANES:
            super().read(kind, table)
        elif kind == LANES:
            self._new_lanes(table)
        elif self._lanes is None:
            raise self.intake.malformed("a stream of lanes before its parts")
        elif kind == LANE:
            self._new_lane(self._lanes, table)
        elif kind == REMEMBERED:
            self._remember(self._lanes, table)
        elif kind == BIRTHS:
            self._new_births(self._lanes, table)
        elif kind == PLACES:
            self._places(self._lanes, table)

    def _new_lanes(self, table: list[int]) -> None:
        intake = self.intake
        region = intake.region
        if region is None:
            raise intake.malformed("no stream of lanes outside the snapshot of a region")
        expire_ms, deleted_ms, deleted_seq, duration_s, maxsize = table[:5]
        added, duplicates, lanes, births, groups, producers = table[5:11]
        self._key = intake.cut(table[11])
        self._expire_ms = expire_ms
        if not (0 < duration_s <= IDMP_DURATION_S_MAX and 0 < maxsize <= IDMP_MAXSIZE_MAX):
            raise intake.malformed("limits of iids that can be set")
        stream = RegionalStream(region_as(region), IDMP_DURATION_S, IDMP_MAXSIZE)
        stream.max_deleted_ms = deleted_ms
        stream.max_deleted_seq = deleted_seq
        stream.idmp_duration_s = duration_s
        stream.idmp_maxsize = maxsize
        stream.iids_added = added
        stream.iids_duplicates = duplicates
        self._lanes = stream
        self._lanes_left = lanes
        self._remembered = False
        self._births_left = births
        self._begin(stream, groups, producers)

    def _new_lane(self, stream: RegionalStream, table: list[int]) -> None:
        intake = self.intake
        self._finish_log()
        self._lanes_left -= 1
        if self._lanes_left < 0 or len(table) != 13:
            raise intake.malformed("no more lanes than the stream has")
        name = check_lane(intake.cut(table[11]))
        lane = Lane(name)
        if stream.lanes and lane.key <= stream.lanes[-1].key:
            raise intake.malformed("lanes in their order")
        log = lane.log
        log.last_ms, log.last_seq = self._id(table, 0)
        lane.deleted = self._id(table, 2)
        lane.trimmed = self._id(table, 4)
        lane.manual = table[6] != 0
        log.entries_added = table[7]
        log.length = table[8]
        lane.remember_only(set(read_ids(intake.cut(table[12]))))
        stream.insert(lane)
        self._begin_log(log, table[9], table[10])

    def _id(self, table: list[int], at: int) -> ID:
        ms = table[at]
        seq = table[at + 1]
        if not (0 <= ms <= ID_MAX and 0 <= seq <= ID_MAX):
            raise self.intake.malformed("IDs")
        return ms, seq

    def _remember(self, stream: RegionalStream, table: list[int]) -> None:
        intake = self.intake
        self._finish_log()
        if self._lanes_left or self._remembered:
            raise intake.malformed("all lanes of the stream, and then once what is remembered")
        self._remembered = True
        read_remembered(intake.cut(table[0]), stream)

    def _new_births(self, stream: RegionalStream, table: list[int]) -> None:
        intake = self.intake
        name = intake.cut(table[0])
        self._births_left -= 1
        if self._births_left < 0 or not self._remembered or name in stream.births:
            raise intake.malformed("the births of each group once")
        stream.births[name] = read_births(intake.cut(table[1]))

    def _places(self, stream: RegionalStream, table: list[int]) -> None:
        intake = self.intake
        group = self._group
        births = None if group is None else stream.births.get(group.name)
        if group is None or births is None or group.places is not None or self._births_left:
            raise intake.malformed("a group and its births before its places")
        group.places = read_places(intake.cut(table[0]), births)

    def finish(self) -> None:
        stream = self._lanes
        self._lanes = None
        if stream is not None:
            self._finish_log()
            if self._lanes_left or not self._remembered or self._births_left:
                raise self.intake.malformed("the rest of a stream")
            for group in stream.groups.values():
                if group.places is None:
                    raise self.intake.malformed("the places of each group")
            stream.restored()
        super().finish()
