"""Turns a frozen stream of lanes into records: the blocks of each lane as they are."""

from __future__ import annotations

from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.forms.records import Record, Records
from headrace.persistence.forms.stream.records import BLOCKS_AT_ONCE, StreamRecords, StreamWalk
from headrace.regions.files.lanes_documents import (
    BIRTHS,
    LANE,
    LANES,
    PLACES,
    REMEMBERED,
    births_document,
    ids_document,
    places_document,
    remembered_document,
)
from headrace.regions.lanes.frozen import FrozenLane, FrozenRegionalStream
from headrace.storage.stream.frozen import FrozenGroup, FrozenStream


class LanesRecords:
    """Makes the records that only streams of lanes have."""

    def __init__(self, records: Records) -> None:
        self._records: Final = records

    def stream(self, key: bytes, expire_ms: int, stream: FrozenRegionalStream) -> None:
        """A key that holds such a stream; what it consists of follows."""
        self._records.keys += 1
        self._records.entries += stream.length
        record = Record(LANES)
        record.table = [
            expire_ms,
            stream.max_deleted_ms,
            stream.max_deleted_seq,
            stream.idmp_duration_s,
            stream.idmp_maxsize,
            stream.iids_added,
            stream.iids_duplicates,
            len(stream.lanes),
            len(stream.births),
            len(stream.groups),
            stream.producers,
        ]
        record.add(key)
        self._records.put(record)

    def lane(self, lane: FrozenLane) -> None:
        """A lane; its blocks follow."""
        log = lane.log
        record = Record(LANE)
        record.table = [
            log.last_ms,
            log.last_seq,
            *lane.deleted,
            *lane.trimmed,
            1 if lane.manual else 0,
            log.entries_added,
            log.length,
            log.blocks,
            0 if log.tail is None else 1,
        ]
        record.add(lane.name)
        record.add(ids_document(lane.early))
        self._records.put(record)

    def remembered(self, stream: FrozenRegionalStream) -> None:
        """What is remembered beside lanes and groups."""
        record = Record(REMEMBERED)
        record.add(remembered_document(stream))
        self._records.put(record)

    def births(self, stream: FrozenRegionalStream, name: bytes) -> None:
        """What is known of the creates of a group."""
        record = Record(BIRTHS)
        record.add(name)
        record.add(births_document(stream.births[name]))
        self._records.put(record)

    def places(self, stream: FrozenRegionalStream, number: int) -> None:
        """How far a group has read."""
        record = Record(PLACES)
        record.add(places_document(stream.places[number]))
        self._records.put(record)


class LanesWalk(Walk):
    """Encodes one frozen stream of lanes, part by part: its lanes, and then as any stream."""

    def __init__(
        self,
        records: LanesRecords,
        parts: StreamRecords,
        key: bytes,
        expire_ms: int,
        stream: FrozenRegionalStream,
    ) -> None:
        self._records: Final = records
        self._parts: Final = parts
        self._stream: Final = stream
        self._next_lane = 0
        self._log: FrozenStream | None = None
        self._names: Final = list(stream.births)
        self._next_name = 0
        self._remembered = False
        self._groups: Final = _GroupsWalk(records, parts, stream)
        records.stream(key, expire_ms, stream)

    def step(self) -> bool:
        log = self._log
        stream = self._stream
        if log is not None:
            self._go_on_with(log)
        elif self._next_lane < len(stream.lanes):
            lane = stream.lanes[self._next_lane]
            self._next_lane += 1
            self._log = lane.log
            self._records.lane(lane)
        elif not self._remembered:
            self._remembered = True
            self._records.remembered(stream)
        elif self._next_name < len(self._names):
            self._records.births(stream, self._names[self._next_name])
            self._next_name += 1
        else:
            return self._groups.step()
        return True

    def _go_on_with(self, log: FrozenStream) -> None:
        """Encode the next part of a lane."""
        parts = self._parts
        blocks = log.next_blocks(BLOCKS_AT_ONCE)
        if blocks:
            parts.blocks(blocks)
            return
        parts.blocks_done()
        if log.tail is not None:
            parts.open_block(log.tail)
        self._log = None


class _GroupsWalk(StreamWalk):
    """Encodes the groups and producers of a stream of lanes."""

    def __init__(
        self, records: LanesRecords, parts: StreamRecords, stream: FrozenRegionalStream
    ) -> None:
        super().__init__(parts, stream)
        self._lanes_records: Final = records
        self._lanes: Final = stream

    def begin_group(self, group: FrozenGroup, number: int) -> None:
        """See ``StreamWalk``: its places follow."""
        super().begin_group(group, number)
        self._lanes_records.places(self._lanes, number)
