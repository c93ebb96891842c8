"""How far queries are behind: in entries and in milliseconds, after every batch.

Spark's own progress holds it already, for the source reports where its streams end:
``sources[0].latestOffset`` less ``endOffset``. A ``LagListener`` does the subtraction and passes it
on to the log, a function, a file for Prometheus, or a consumer group that mirrors the query.
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
    StreamingQueryListener,
)

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.mirror import mirror
from pyspark_headrace.offsets import VERSIONS, Positions, from_offset
from pyspark_headrace.options import CONNECTION_NAMES, WRITE, Given, connection_from
from pyspark_headrace.resp import Link

log = logging.getLogger("pyspark_headrace")


@dataclass(frozen=True)
class Lag:
    """Where a query stands with one stream after a batch.

    Attributes:
        query: its name, or its id.
        entries: how many are still to be read; None when the ranks are not known.
        ms: between the last entry read and the last one there is.
        lost: entries that went before they were read, ever.
        rows: of the whole query in this batch.
        rows_per_s: likewise.
        batch_ms: how long the batch took.
    """

    query: str
    batch: int
    key: str
    entries: int | None
    ms: int
    lost: int
    rows: int
    rows_per_s: float
    batch_ms: int


def lags_between(read: Positions, there: Positions) -> dict[str, tuple[int | None, int]]:
    """For each stream how many entries and milliseconds lie between two positions."""
    found: dict[str, tuple[int | None, int]] = {}
    for key, position in read.items():
        latest = there.get(key, position)
        entries = latest.n - position.n if latest.n >= 0 and position.n >= 0 else None
        if latest.id <= position.id:
            found[key] = (0, 0)
        else:
            found[key] = (entries, latest.id[0] - position.id[0])
    return found


def positions_in(text: str | None) -> Positions:
    """An offset as progress shows it; nothing where it is of another source."""
    if not text:
        return {}
    try:
        offset: Any = json.loads(text)
    except ValueError:
        return {}
    ours = isinstance(offset, dict) and "k" in offset and offset.get("v") in VERSIONS
    return from_offset(offset) if ours else {}


class LagListener(StreamingQueryListener):
    """Tells after every batch how far a query is behind.

    Args:
        on_lag: called with what is known of each stream.
        prometheus_file: rewritten after every batch, for the text file collector of an exporter.
        mirror_group: a consumer group to be set to where the query stands. Unlike the source's
            option of this name it is set after the last batch too.
        options: those of the source, where ``mirror_group`` is to be found.
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
        self._link: Link | None = None
        if mirror_group:
            reach = {
                name: value
                for name, value in (options or {}).items()
                if name.lower() in CONNECTION_NAMES
            }
            self._link = Link(connection_from(Given(reach, WRITE)))
        self._lags: dict[tuple[str, str], Lag] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing to tell yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing has changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What was known stays known."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Compare where the query stands with where the streams end."""
        progress = event.progress
        query = progress.name or str(progress.id)
        found: list[Lag] = []
        for source in progress.sources:
            read = positions_in(source.endOffset)
            lags = lags_between(read, positions_in(source.latestOffset))
            for key, (entries, ms) in lags.items():
                lag = Lag(
                    query=query,
                    batch=progress.batchId,
                    key=key,
                    entries=entries,
                    ms=ms,
                    lost=read[key].lost,
                    rows=progress.numInputRows,
                    rows_per_s=progress.processedRowsPerSecond or 0.0,
                    batch_ms=progress.batchDuration,
                )
                found.append(lag)
                self._lags[query, key] = lag
            if self._link is not None and read:
                self._mirror(self._link, read)
        if found:
            self._tell(found)

    def _mirror(self, link: Link, read: Positions) -> None:
        try:
            mirror(link, self._group, read)
        except (HeadraceError, OSError) as error:
            log.warning("mirror_group %s: %s", self._group, error)

    def _tell(self, found: list[Lag]) -> None:
        for lag in found:
            log.info(
                "%s: batch %d, %s: %s entries and %d ms behind, %.0f rows/s",
                lag.query,
                lag.batch,
                lag.key,
                "?" if lag.entries is None else lag.entries,
                lag.ms,
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
    metric(
        "lag_seconds",
        "gauge",
        "From the last entry read to the last there is.",
        lambda lag: lag.ms / 1000,
    )
    metric("lost_entries_total", "counter", "Entries gone before being read.", lambda lag: lag.lost)
    metric("batch_seconds", "gauge", "Duration of the last batch.", lambda lag: lag.batch_ms / 1000)
    metric("rows_per_second", "gauge", "Of the last batch.", lambda lag: lag.rows_per_s)
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
