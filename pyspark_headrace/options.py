"""What readers and writers have to know: options, checked whole, in objects that can be pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark_headrace.connection import Connection, connection_from
from pyspark_headrace.errors import OptionError
from pyspark_headrace.given import EVERYWHERE, NAMES, READ, STREAM, WRITE, Given
from pyspark_headrace.ids import (
    GREATEST,
    ID_MAX,
    LEAST,
    StreamID,
    before,
    parse_id,
    parse_moment,
)

FIELDS_FORMATS: Final = ("map", "pairs", "json")
MODES: Final = ("permissive", "dropmalformed", "failfast")
RESOURCES: Final = ("entries", "info", "groups", "consumers", "pending")
IDENTITIES: Final = ("auto", "column", "content", "ordinal", "marker", "none")
_WHICH: Final = ("subscribe", "subscribePattern", "assign", "path", "paths")
# What means nothing to the state of streams.
_OF_ENTRIES: Final = sorted(
    name
    for name, uses in NAMES.items()
    if READ in uses and uses != EVERYWHERE and name not in (*_WHICH, "resource")
)
# What means nothing to rows that are not known again, or only by their place.
_OF_IIDS: Final = (
    *("idColumn", "idmpProducers", "configureIdmp", "idmpMaxsize", "failOnForgotten"),
)
_IDLE: Final[dict[str, tuple[str, ...]]] = {
    "none": (*_OF_IIDS, "idScope", "writerId", "runId"),
    "marker": _OF_IIDS,
    "content": ("idColumn",),
    "ordinal": ("idColumn",),
}
TARGET_BYTES: Final = 64 << 20
MOST_POLL_MS: Final = 3_600_000
MOST_IIDS: Final = 10_000  # of a producer, that a stream remembers
MOST_CUTS: Final = 256  # an offset is a line in a file: it does not grow without end


@dataclass(frozen=True)
class Bound:
    """Where a stream's reading starts or ends: an ID, or a word for one.

    Attributes:
        word: ``earliest`` or ``latest``; empty when ``id`` counts.
        id: reading starts after it, or ends with it.
    """

    word: str = ""
    id: StreamID = LEAST


EARLIEST: Final = Bound("earliest")
LATEST: Final = Bound("latest")


@dataclass(frozen=True)
class Frame:
    """What the columns of a frame depend on; an option each."""

    resource: str = "entries"
    fields_format: str = "map"
    include_id: bool = True
    include_headers: bool = False
    include_corrupt: bool = False


def frame_options(options: Mapping[str, str]) -> Frame:
    """Return what the columns depend on.

    Raises:
        OptionError: an option is not known to any reader.
    """
    return _frame(Given(options, READ, STREAM))


def _frame(given: Given) -> Frame:
    return Frame(
        given.choice("resource", RESOURCES),
        given.choice("fieldsFormat", FIELDS_FORMATS),
        given.flag("includeId", True),
        given.flag("includeHeaders", False),
        given.flag("includeCorrupt", False),
    )


@dataclass(frozen=True)
class ReadOptions:
    """What a reader, for a batch or for a streaming query, has to know.

    Attributes:
        keys: the streams by name; ``pattern`` finds more of them.
        start, end: where reading starts and ends, of streams that ``starts`` and ``ends`` do not
            name.
        max_rows, max_bytes: the most entries of a micro-batch, and about the most bytes; 0 is all
            there are.
        target_bytes: about how many bytes a task reads.
        min_rows: fewer entries than that wait, up to ``max_delay_ms``.
    """

    connection: Connection
    keys: tuple[str, ...]
    pattern: str
    start: Bound
    starts: dict[str, Bound]
    end: Bound
    ends: dict[str, Bound]
    frame: Frame
    mode: str
    encoding: str
    fail_on_loss: bool
    fetch_count: int
    min_partitions: int
    max_rows_per_partition: int
    min_rows_per_partition: int
    target_bytes: int
    walk_limit: int
    max_rows: int = 0
    max_bytes: int = 0
    min_rows: int = 0
    max_delay_ms: int = 0
    poll_ms: int = 0
    mirror_group: str = ""

    def start_of(self, key: str) -> Bound:
        """Return where the reading of a stream starts."""
        return self.starts.get(key, self.start)

    def end_of(self, key: str) -> Bound:
        """Return where the reading of a stream ends."""
        return self.ends.get(key, self.end)


def read_options(options: Mapping[str, str], use: str) -> ReadOptions:
    """The options of ``spark.read`` or ``spark.readStream``.

    Args:
        use: ``READ`` or ``STREAM``.

    Raises:
        OptionError: an option is unknown, missing or does not fit.
    """
    given = Given(options, use)
    which = given.only_one_of(*_WHICH)
    if not which:
        raise OptionError(
            "which streams? Give one of subscribe (names), subscribePattern, assign, or load(name)"
            "; in SQL: FROM a_table WITH (subscribe 'names')"
        )
    keys, starts, ends = _subscribed(given, which)
    start = EARLIEST if use == READ else LATEST
    started_by = _only_bound(
        given, which, "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp"
    )
    if started_by:
        start, starts = _beginning(given, started_by, start)
    end = LATEST
    ended_by = _only_bound(given, which, "endingOffsets", "endingTimestamp")
    if ended_by:
        end, ends = _ending(given, ended_by)
    if which != "subscribePattern":
        _refuse_strangers(started_by, starts, keys)
        _refuse_strangers(ended_by, ends, keys)
    for key in sorted({"", *starts, *ends}):
        if _is_backwards(starts.get(key, start), ends.get(key, end)):
            which_end, which_start = ended_by or which, started_by or "the start"
            of = f" of stream {key}" if key else ""
            raise OptionError(f"option {which_end}: the end{of} is before {which_start}")
    frame = _frame(given)
    if frame.resource != "entries":
        given.refuse(_OF_ENTRIES, f"to resource={frame.resource}")
    if not given.has("minOffsetsPerTrigger"):
        given.refuse(["maxTriggerDelay"], "without minOffsetsPerTrigger")
    encoding = given.choice("encoding", ("utf-8", "latin-1"))
    min_rows = given.integer("minOffsetsPerTrigger", 0)
    max_rows = given.integer("maxOffsetsPerTrigger", 0)
    if max_rows and min_rows > max_rows:
        raise OptionError("option minOffsetsPerTrigger is above maxOffsetsPerTrigger")
    return ReadOptions(
        connection=connection_from(given),
        keys=keys,
        pattern=given.text("subscribePattern") or "",
        start=start,
        starts=starts,
        end=end,
        ends=ends,
        frame=frame,
        mode=_mode(given),
        encoding=encoding,
        fail_on_loss=given.flag("failOnDataLoss", True),
        fetch_count=given.integer("fetchCount", 2000),
        min_partitions=given.integer("minPartitions", 0),
        max_rows_per_partition=given.integer("maxRecordsPerPartition", 0),
        min_rows_per_partition=given.integer("minRowsPerPartition", 20_000),
        target_bytes=given.size_bytes("targetPartitionBytes", TARGET_BYTES),
        walk_limit=given.integer("planWalkLimit", 100_000, 0),
        max_rows=max_rows,
        max_bytes=given.size_bytes("maxBytesPerTrigger", 0),
        min_rows=min_rows,
        max_delay_ms=given.duration_ms("maxTriggerDelay", 15 * 60_000),
        poll_ms=given.integer("pollTimeoutMs", 200, 0, MOST_POLL_MS),
        mirror_group=given.text("mirrorGroup") or "",
    )


Bounds = dict[str, Bound]


def _subscribed(given: Given, which: str) -> tuple[tuple[str, ...], Bounds, Bounds]:
    """The streams that are named, and where each of them starts and ends if that is said there."""
    if which == "assign":
        return _assigned(given)
    if which == "paths":
        return tuple(sorted(set(json.loads(given.text(which) or "")))), {}, {}
    if which == "subscribePattern":
        return (), {}, {}
    return _names(given.text(which) or "", which), {}, {}


def _only_bound(given: Given, which: str, *options: str) -> str:
    """Which of these options is given; empty for none."""
    found = given.only_one_of(*options)
    if which == "assign" and found:
        raise OptionError(f"options assign and {found} exclude each other")
    return found


def _beginning(given: Given, option: str, start: Bound) -> tuple[Bound, Bounds]:
    """Return where reading starts: by default, and of the streams that are named."""
    if option == "startingOffsets":
        return _offsets(given, option, start)
    return _start_by_time(given, option, start)


def _ending(given: Given, option: str) -> tuple[Bound, Bounds]:
    """Return where reading ends: by default, and of the streams that are named."""
    if option != "endingOffsets":
        moment = parse_moment(given.text(option) or "", option)
        return Bound(id=before((moment, 0))), {}
    end, ends = _offsets(given, option, LATEST)
    if end == EARLIEST or EARLIEST in ends.values():
        raise OptionError("option endingOffsets: earliest is no end")
    return end, ends


def _refuse_strangers(option: str, named: Bounds, keys: tuple[str, ...]) -> None:
    strangers = sorted(set(named) - set(keys))
    if strangers:
        raise OptionError(f"option {option} names {strangers[0]}, which is not subscribed to")


def _is_backwards(start: Bound, end: Bound) -> bool:
    """Return whether the bounds were mixed up; those that leave nothing between them were not."""
    return not start.word and not end.word and end.id < start.id


def _mode(given: Given) -> str:
    """Return what becomes of entries that do not fit; ``badValue`` is an older way to say it."""
    if given.only_one_of("mode", "badValue") == "badValue":
        bad_value = given.choice("badValue", ("null", "fail"))
        return "permissive" if bad_value == "null" else "failfast"
    return given.choice("mode", MODES)


def _names(text: str, option: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise OptionError(f"option {option}: a stream without a name in {text!r}")
    return tuple(sorted(set(names)))


def _assigned(given: Given) -> tuple[tuple[str, ...], dict[str, Bound], dict[str, Bound]]:
    """``assign``: for each stream the first and the last ID, both included, or ``-`` and ``+``."""
    starts: dict[str, Bound] = {}
    ends: dict[str, Bound] = {}
    for key, pair in given.json_object("assign").items():
        fits = isinstance(pair, list) and len(pair) == 2
        if not fits or not all(isinstance(each, str) for each in pair):
            raise OptionError(f'option assign: {key} must have two IDs, such as ["-", "1700-0"]')
        try:
            first = LEAST if pair[0] == "-" else parse_id(pair[0])
            last = GREATEST if pair[1] == "+" else parse_id(pair[1], ID_MAX)
        except ValueError as error:
            raise OptionError(f"option assign: {error}") from None
        starts[key] = Bound(id=before(first))
        ends[key] = LATEST if last == GREATEST else Bound(id=last)
    return tuple(sorted(starts)), starts, ends


def _offsets(given: Given, option: str, default: Bound) -> tuple[Bound, dict[str, Bound]]:
    text = given.text(option) or ""
    if text.lower() in ("earliest", "latest"):
        return Bound(text.lower()), {}
    if not text.startswith("{"):
        raise OptionError(
            f"option {option}: {text!r} is neither earliest nor latest, nor JSON such as "
            '{"key":"1-0"}'
        )
    bounds: dict[str, Bound] = {}
    for key, value in given.json_object(option).items():
        if not isinstance(value, str):
            raise OptionError(f"option {option}: the ID of {key} must be a string")
        if value in ("earliest", "latest"):
            bounds[key] = Bound(value)
            continue
        try:
            bounds[key] = Bound(id=parse_id(value))
        except ValueError as error:
            raise OptionError(f"option {option}: {error}") from None
    return default, bounds


def _start_by_time(given: Given, option: str, default: Bound) -> tuple[Bound, dict[str, Bound]]:
    if option == "startingTimestamp":
        moment = parse_moment(given.text(option) or "", option)
        return Bound(id=before((moment, 0))), {}
    bounds: dict[str, Bound] = {}
    for key, value in given.json_object(option).items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise OptionError(f"option {option}: the time of {key} must be a number or a string")
        bounds[key] = Bound(id=before((parse_moment(str(value), option), 0)))
    return default, bounds


@dataclass(frozen=True)
class WriteOptions:
    """What a sink has to know.

    Attributes:
        stream: the stream to append to; empty when a column names it, row by row.
        error_stream: takes the rows that cannot be written; empty where these are an error.
        identity: how a row is known again, see ``identity``.
        run_id: makes a batch job's rows the same rows when the job runs again.
        producers: how many producer ids share the rows of a writer.
        maxsize: with ``configure_idmp``: how many rows of each a stream is to remember.
        trim: the words of XADD that cap the stream.
    """

    connection: Connection
    stream: str
    error_stream: str
    identity: str
    id_column: str
    id_scope: str
    writer_id: str
    run_id: str
    producers: int
    configure_idmp: bool
    maxsize: int
    fail_on_forgotten: bool
    depth: int
    max_bytes: int
    trim: tuple[str, ...] = field(default=())


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """The options of ``df.write`` or ``df.writeStream``.

    Raises:
        OptionError: an option is unknown, missing or does not fit.
    """
    given = Given(options, WRITE)
    target = given.only_one_of("stream", "path")
    identity = given.choice("identity", IDENTITIES)
    given.refuse(_IDLE.get(identity, ()), f"to identity={identity}")
    stream = (given.text(target) or "") if target else ""
    error_stream = given.text("errorStream") or ""
    if not given.flag("configureIdmp", False):
        given.refuse(["idmpMaxsize"], "without configureIdmp=true")
    if error_stream and error_stream == stream:
        raise OptionError("option errorStream names the stream that is written to")
    return WriteOptions(
        connection=connection_from(given),
        stream=stream,
        error_stream=error_stream,
        identity=identity,
        id_column=given.text("idColumn") or "",
        id_scope=given.choice("idScope", ("batch", "query")),
        writer_id=given.text("writerId") or "",
        run_id=given.text("runId") or "",
        producers=given.integer("idmpProducers", 2048),
        configure_idmp=given.flag("configureIdmp", False),
        maxsize=given.integer("idmpMaxsize", 100, most=MOST_IIDS),
        fail_on_forgotten=given.flag("failOnForgotten", True),
        depth=given.integer("pipelineDepth", 1000),
        max_bytes=given.size_bytes("maxInFlightBytes", 4 << 20),
        trim=_trim_words(given),
    )


def _trim_words(given: Given) -> tuple[str, ...]:
    how = given.only_one_of("maxlen", "minid")
    exact = not given.flag("approximateTrim", True)
    if not how:
        given.refuse(["approximateTrim"], "without maxlen or minid")
        return ()
    if how == "maxlen":
        threshold = str(given.integer("maxlen", 0, 0))
    else:
        threshold = given.text("minid") or ""
        try:
            parse_id(threshold)
        except ValueError as error:
            raise OptionError(f"option minid: {error}") from None
    return (how.upper(), "=" if exact else "~", threshold)
