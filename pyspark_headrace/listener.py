"""How far queries are behind: in entries, bytes and milliseconds, after every batch.

Spark's own progress holds it as it was when a batch was planned, for the source reports where its
streams end: ``sources[0].latestOffset`` less ``endOffset``. A ``LagListener`` does the subtraction,
or asks the server once more when the batch is done. It passes the lag on to the log, a function, a
file for Prometheus, or a consumer group that mirrors the query.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from pyspark_headrace.connection import connection_from
from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.given import CONNECTION_NAMES, WRITE, Given
from pyspark_headrace.lag import Behind, lags_between, lags_now
from pyspark_headrace.mirror import mirror
from pyspark_headrace.offsets import VERSIONS, Offset, Positions, from_offset
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server

log = logging.getLogger("pyspark_headrace")


@dataclass(frozen=True)
class Lag:
    """Where a query stands with one stream after a batch.

    Attributes:
        query: its name, or its id.
        entries, bytes, ms: what is left to read, see ``Behind``; None where it is not known.
        lost: entries that went before they were read, ever.
        rows: of the whole query in this batch.
        rows_per_s: likewise.
        batch_ms: how long the batch took.
    """

    query: str
    batch: int
    key: str
    entries: int | None
    bytes: int | None
    ms: int | None
    lost: int
    rows: int
    rows_per_s: float
    batch_ms: int


def _offset_in(text: str | None) -> Offset:
    """An offset as progress shows it; an empty one where it is of another source."""
    try:
        offset: Any = json.loads(text or "null")
    except ValueError:
        return {}
    ours = isinstance(offset, dict) and "k" in offset and offset.get("v") in VERSIONS
    return offset if ours else {}


def positions_in(text: str | None) -> Positions:
    """The positions of an offset as progress shows it; none where it is of another source."""
    offset = _offset_in(text)
    return from_offset(offset) if offset else {}


def lags_in(progress: StreamingQueryProgress) -> list[Lag]:
    """Return how far a query is behind each stream, as it was seen when the batch was planned."""
    found: list[Lag] = []
    for source in progress.sources:
        read = positions_in(source.endOffset)
        left = lags_between(read, positions_in(source.latestOffset))
        found += _lags_of(progress, read, left)
    return found


def _lags_of(
    progress: StreamingQueryProgress, read: Positions, left: Mapping[str, Behind]
) -> list[Lag]:
    return [
        Lag(
            query=progress.name or str(progress.id),
            batch=progress.batchId,
            key=key,
            entries=behind.entries,
            bytes=behind.bytes,
            ms=behind.ms,
            lost=read[key].lost,
            rows=progress.numInputRows,
            rows_per_s=progress.processedRowsPerSecond or 0.0,
            batch_ms=progress.batchDuration,
        )
        for key, behind in left.items()
    ]


class LagListener(StreamingQueryListener):
    """Reports after every batch how far a query is behind.

    Args:
        on_lag: called with what is known of each stream.
        prometheus_file: rewritten after every batch, for the text file collector of an exporter.
        mirror_group: a consumer group to be set to where the query stands. Unlike the source's
            option of this name it is set after the last batch too.
        options: those of the source. With them the server is asked when a batch is done; without
            them lag is what was left when the batch was planned, and ``bytes`` are not known.
            Queries that read from another server are not asked about.
    """

    def __init__(
        self,
        on_lag: Callable[[list[Lag]], None] | None = None,
        prometheus_file: str | os.PathLike[str] | None = None,
        mirror_group: str = "",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._on_lag: Final = on_lag
        self._file: Final = None if prometheus_file is None else Path(prometheus_file)
        self._group: Final = mirror_group
        self._server: Server | None = None
        if mirror_group or options is not None:
            reach = {
                name: value
                for name, value in (options or {}).items()
                if name.lower() in CONNECTION_NAMES
            }
            self._server = Server(Link(connection_from(Given(reach, WRITE))))
        self._asks: Final = options is not None
        self._lags: dict[tuple[str, str], Lag] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing to report yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing has changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What was known stays known."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Compare where the query stands with where the streams end."""
        found: list[Lag] = []
        for source in event.progress.sources:
            read = positions_in(source.endOffset)
            if not read:
                continue
            left = self._ask(source, read)
            if left is None:
                left = lags_between(read, positions_in(source.latestOffset))
            found += _lags_of(event.progress, read, left)
        if found:
            self._lags.update({(lag.query, lag.key): lag for lag in found})
            self._report(found)

    def _ask(self, source: SourceProgress, read: Positions) -> dict[str, Behind] | None:
        """Return what the server says is left, and let the group mirror the query; or None."""
        server = self._server
        if server is None:
            return None
        label = server.link.connection.label
        if _offset_in(source.latestOffset).get("at", label) != label:
            return None  # another server's
        try:
            if self._group:
                mirror(server.link, self._group, read)
            return lags_now(server, read) if self._asks else None
        except (HeadraceError, OSError) as error:
            log.warning("lag at %s: %s", label, error)
            return None

    def _report(self, found: list[Lag]) -> None:
        for lag in found:
            log.info(
                "%s: batch %d, %s: %s entries, %s bytes and %s ms behind, %.0f rows/s",
                lag.query,
                lag.batch,
                lag.key,
                *("?" if figure is None else figure for figure in (lag.entries, lag.bytes, lag.ms)),
                lag.rows_per_s,
            )
        if self._on_lag is not None:
            self._on_lag(found)
        if self._file is not None:
            new = self._file.with_name(f".{self._file.name}.new")
            new.write_text(prometheus_text(self._lags.values()))
            new.replace(self._file)


def prometheus_text(lags: Iterable[Lag]) -> str:
    """The figures in Prometheus's text format."""
    rows = list(lags)
    lines: list[str] = []

    def metric(name: str, kind: str, text: str, value: Callable[[Lag], float | None]) -> None:
        lines.append(f"# HELP headrace_{name} {text}")
        lines.append(f"# TYPE headrace_{name} {kind}")
        for lag in rows:
            number = value(lag)
            if number is not None:
                labels = f'query="{_escaped(lag.query)}",stream="{_escaped(lag.key)}"'
                lines.append(f"headrace_{name}{{{labels}}} {number}")

    metric("lag_entries", "gauge", "Entries the query has not read yet.", lambda lag: lag.entries)
    metric("lag_bytes", "gauge", "Size of these, about.", lambda lag: lag.bytes)
    metric(
        "lag_seconds",
        "gauge",
        "From the last entry read to the last there is.",
        lambda lag: None if lag.ms is None else lag.ms / 1000,
    )
    metric("lost_entries_total", "counter", "Entries gone before being read.", lambda lag: lag.lost)
    metric("batch_seconds", "gauge", "Duration of the last batch.", lambda lag: lag.batch_ms / 1000)
    metric("rows_per_second", "gauge", "Of the last batch.", lambda lag: lag.rows_per_s)
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
