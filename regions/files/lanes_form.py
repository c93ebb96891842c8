"""The form of streams in a region: a single server's, and those of lanes that regions write."""

from __future__ import annotations

from typing import Final, cast

from headrace.persistence.forms.form import Unsound, Walk
from headrace.persistence.forms.records import Intake, Records
from headrace.persistence.forms.stream.form import StreamForm
from headrace.persistence.forms.stream.records import StreamWriter
from headrace.persistence.forms.stream.soundness import (
    check_beside_entries,
    check_entries,
    check_id,
    check_stream,
)
from headrace.persistence.forms.table import register
from headrace.regions.files.lanes_decoding import LanesReader
from headrace.regions.files.lanes_documents import LANE_KINDS
from headrace.regions.files.lanes_encoding import LanesRecords, LanesWalk
from headrace.regions.lanes.frozen import FrozenRegionalStream
from headrace.regions.lanes.grave import bury
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.stream import Stream


class LanesWriter(StreamWriter):
    """Writes streams, of whichever kind they are."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._lanes: Final = LanesRecords(records)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        if isinstance(value, FrozenRegionalStream):
            return LanesWalk(self._lanes, self.parts, key, expire_ms, value)
        return super().add(key, value, expire_ms)


class LanesForm(StreamForm):
    """Streams, of whichever kind they are."""

    def record_kinds(self) -> dict[int, str]:
        return {**super().record_kinds(), **LANE_KINDS}

    def writer(self, records: Records) -> StreamWriter:
        return LanesWriter(records)

    def reader(self, intake: Intake) -> LanesReader:
        return LanesReader(intake)

    def in_grave(self, value: object) -> object:
        return (bury(value) or value) if isinstance(value, RegionalStream) else value

    def check(self, value: object) -> None:
        if not isinstance(value, RegionalStream):
            check_stream(cast("Stream", value))
            return
        for lane in value.lanes:
            check_entries(lane.log)
            if lane.log.length and lane.log.first_id() <= max(lane.deleted, lane.trimmed):
                raise Unsound("an entry of a lane that was removed")
        check_id(value.max_deleted_ms, value.max_deleted_seq)
        check_beside_entries(value)


register(LanesForm())
