"""The form of streams: where its parts are found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from headrace.persistence.forms.form import Commands, Form
from headrace.persistence.forms.records import Intake, Records
from headrace.persistence.forms.stream.rdb import (
    IID_TIMES,
    KINDS,
    MAX_PENDING,
    VERSION_7_0,
    VERSION_8_6,
    VERSION_8_8,
    StreamRdb,
    read_stream,
    stream_type,
    take_iid_times,
    take_max_pending,
)
from headrace.persistence.forms.stream.records import NAMES, StreamReader, StreamWriter
from headrace.persistence.forms.stream.rewriting import StreamRewrite
from headrace.persistence.forms.stream.soundness import check_stream
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE, Contents
from headrace.storage.stream.frozen import STREAM, FrozenStream
from headrace.storage.stream.stream import Stream


class StreamForm(Form):
    """Streams."""

    def type_name(self) -> bytes:
        return STREAM

    def plural(self) -> str:
        return "streams"

    def record_kinds(self) -> dict[int, str]:
        return NAMES

    def writer(self, records: Records) -> StreamWriter:
        return StreamWriter(records)

    def reader(self, intake: Intake) -> StreamReader:
        return StreamReader(intake)

    def check(self, value: object) -> None:
        check_stream(cast("Stream", value))

    def rewrite(self, commands: Commands, key: bytes, value: object) -> StreamRewrite:
        return StreamRewrite(commands, key, cast("FrozenStream", value))

    def rdb_types(self) -> list[int]:
        return list(KINDS)

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        duration_s = defaults.get("stream-idmp-duration", IDMP_DURATION_S)
        maxsize = defaults.get("stream-idmp-maxsize", IDMP_MAXSIZE)
        return read_stream(source, number, duration_s, maxsize)

    def take_note(self, value: object, name: bytes, source: RdbSource) -> None:
        stream = cast("Stream", value)
        if name == MAX_PENDING:
            take_max_pending(stream, source)
        elif name == IID_TIMES:
            take_iid_times(stream, source)

    def rdb_version(self, value: object) -> int:
        stream = cast("Contents", value)
        for group in stream.groups.values():
            if group.zone:
                return VERSION_8_8
        has_iids = stream.idmp is not None or stream.iids_added > 0
        return VERSION_8_6 if has_iids or not stream.has_default_limits() else VERSION_7_0

    def frozen_rdb_version(self, value: object) -> int:
        stream = cast("FrozenStream", value)
        for group in stream.groups:
            if group.zone:
                return VERSION_8_8
        has_iids = stream.producers > 0 or stream.iids_added > 0
        return VERSION_8_6 if has_iids or not stream.has_default_limits else VERSION_7_0

    def rdb_type(self, value: object, version: int) -> int:
        return stream_type(version)

    def write_rdb(self, output: RdbOutput, value: object) -> StreamRdb:
        return StreamRdb(output, cast("FrozenStream", value))

    def part_names(self) -> list[str]:
        return ["entries", "groups", "pending entries"]

    def part_counts(self, value: object) -> list[int]:
        stream = cast("Stream", value)
        pending = sum([group.pel.size for group in stream.groups.values()])
        return [stream.length, len(stream.groups), pending]

    def lacking_counts(self, value: object) -> list[int]:
        released = 0
        limited = 0
        for group in cast("Stream", value).groups.values():
            released += group.zone > 0
            limited += group.max_pending > 0
        return [released, limited]

    def lacking_elsewhere(self, counts: list[int]) -> list[str]:
        released, limited = counts
        found: list[str] = []
        if released:
            found.append(f"{released} groups hold released entries: XNACK needs Redis 8.8.")
        if limited:
            found.append(f"{limited} groups have a MAX-PENDING, which Redis does not know.")
        return found
