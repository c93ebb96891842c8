"""An archive, or any frame of entries, back into a stream.

``append_new`` lets the server choose IDs, and says with each entry which old one it is: as long as
the stream remembers, a second run adds nothing. ``restore`` keeps the IDs: then a second run adds
nothing however late, and a stream comes back as it was, but only where there are no later entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.client import Words
from pyspark_headrace.connection import Connection, connection_from
from pyspark_headrace.errors import ServerError, UnsafeWriteError
from pyspark_headrace.given import WRITE, Given
from pyspark_headrace.ids import LEAST, SIGNED_MAX, StreamID, parse_id
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server

Row = dict[str, Any]

DEPTH: Final = 500


def append_new(
    entries: DataFrame, stream: str, options: Mapping[str, str], run: str = "replay"
) -> None:
    """Append entries under new IDs, in the order of their old ones.

    Args:
        entries: with ``key``, ``id``, ``id_ms``, ``id_seq`` and ``pairs`` (or ``fields``).
        stream: where to; empty is the stream each entry was in.
        options: of the sink.
        run: names this replay: run again under the same name, entries count once.
    """
    whole = "pairs" if "pairs" in entries.columns else "fields"
    key = F.lit(stream) if stream else F.col("key")
    ordered = entries.select(
        key.alias("key"), F.concat_ws("/", "key", "id").alias("_iid"), whole, "id_ms", "id_seq"
    )
    # Entries of one stream in one partition, one behind the other: their order is the stream's.
    ordered = ordered.repartition("key").sortWithinPartitions("key", "id_ms", "id_seq")
    ordered.drop("id_ms", "id_seq").write.format("headrace").options(
        **{**options, "runId": run}
    ).mode("append").save()


def restore(
    entries: DataFrame, options: Mapping[str, str], stream: str = ""
) -> dict[str, tuple[int, int]]:
    """Put entries back under the IDs they had.

    Args:
        entries: with ``key``, ``id``, ``id_ms``, ``id_seq`` and ``pairs``.
        options: that lead to the server.
        stream: where to; empty is the stream each entry was in.

    Returns:
        For each stream how many entries were added, and how many were there.

    Raises:
        UnsafeWriteError: (inside of Spark's own error) an entry would come to stand before one
            that the stream has; nothing of it is lost, but it cannot be put there.
    """
    connection = connection_from(Given(dict(options), WRITE))
    key = F.lit(stream) if stream else F.col("key")
    ordered = (
        entries.select(key.alias("key"), "id", "id_ms", "id_seq", "pairs")
        .repartition("key")
        .sortWithinPartitions("key", "id_ms", "id_seq")
    )
    counted = ordered.mapInArrow(_Restorer(connection), "key string, added long, known long")
    found: dict[str, tuple[int, int]] = {}
    for name, added, known in counted.collect():
        before = found.get(name, (0, 0))
        found[name] = (before[0] + added, before[1] + known)
    return found


class _Restorer:
    """Runs in a task: the rows of each stream come in order."""

    def __init__(self, connection: Connection) -> None:
        self._connection: Final = connection

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for key, added, known in self._put_back(batches):
            yield pa.RecordBatch.from_pydict({"key": [key], "added": [added], "known": [known]})

    def _put_back(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, int, int]]:
        link = Link(self._connection)
        try:
            waiting: list[Row] = []
            for row in chain.from_iterable(batch.to_pylist() for batch in batches):
                if waiting and (row["key"] != waiting[0]["key"] or len(waiting) >= DEPTH):
                    yield _put_back(link, waiting)
                    waiting = []
                waiting.append(row)
            if waiting:
                yield _put_back(link, waiting)
        finally:
            link.close()


def _put_back(link: Link, rows: Sequence[Row]) -> tuple[str, int, int]:
    """Add entries of one stream, in order of their IDs; those that are there are left alone."""
    key: str = rows[0]["key"]
    top = Server(link).figures([key])[key].last
    there = [row for row in rows if parse_id(row["id"]) <= top]
    new = [row for row in rows if parse_id(row["id"]) > top]
    _must_be_there(link, key, there)
    commands: list[Words] = []
    for row in new:
        words: list[str | bytes] = ["XADD", key, row["id"]]
        for pair in row["pairs"]:
            words += (bytes(pair["name"]), bytes(pair["value"]))
        commands.append(words)
    replies = link.pipeline(commands) if commands else []
    known = len(there)
    for row, reply in zip(new, replies, strict=True):
        if isinstance(reply, ServerError):
            # A connection that broke may have brought it there before; or somebody else writes.
            if "equal or smaller" not in str(reply):
                raise reply
            _must_be_there(link, key, [row])
            known += 1
    return key, len(rows) - known, known


def _must_be_there(link: Link, key: str, rows: Sequence[Row]) -> None:
    commands = [("XRANGE", key, row["id"], row["id"]) for row in rows]
    replies = link.pipeline(commands) if commands else []
    for row, reply in zip(rows, replies, strict=True):
        found = cast("list[Any]", reply)
        if not found:
            raise UnsafeWriteError(
                f"stream {key} has later entries, so {row['id']} cannot be put back in its place; "
                "restore into an empty stream, or append under new IDs"
            )
        words = [bytes(each) for pair in row["pairs"] for each in (pair["name"], pair["value"])]
        if found[0][1] != words:
            raise UnsafeWriteError(f"stream {key} has another entry {row['id']}")


def between(entries: DataFrame, first: str = "", last: str = "") -> DataFrame:
    """The entries from one ID to another, both included; empty is no bound."""
    low = parse_id(first) if first else LEAST
    found = entries.filter(_at_least(low)) if first else entries
    if last:
        high = parse_id(last, SIGNED_MAX)
        found = found.filter(
            (F.col("id_ms") < high[0])
            | ((F.col("id_ms") == high[0]) & (F.col("id_seq") <= high[1]))
        )
    return found


def _at_least(low: StreamID) -> Column:
    return (F.col("id_ms") > low[0]) | ((F.col("id_ms") == low[0]) & (F.col("id_seq") >= low[1]))
