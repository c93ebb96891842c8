"""Writes streams into one file: those of one server, and those that several regions write."""

from __future__ import annotations

from typing import Final, cast

from headrace.persistence.forms.form import Walk, Writer
from headrace.persistence.forms.records import Records
from headrace.persistence.forms.stream.encoding import StreamRecords, StreamWalk
from headrace.persistence.forms.stream.regional.encoding import LanesRecords, LanesWalk
from headrace.storage.stream.frozen import FrozenStream
from headrace.storage.stream.regional.frozen import FrozenRegionalStream


class StreamWriter(Writer):
    """Writes streams; each is a walk."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._parts: Final = StreamRecords(records)
        self._lanes: Final = LanesRecords(records)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        """See ``Writer``."""
        if isinstance(value, FrozenRegionalStream):
            return LanesWalk(self._lanes, self._parts, key, expire_ms, value)
        stream = cast("FrozenStream", value)
        self._parts.stream(key, expire_ms, stream)
        return StreamWalk(self._parts, stream)
