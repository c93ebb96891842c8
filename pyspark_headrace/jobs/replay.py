"""An archive, or any frame of entries, back into a stream.

``append_new`` lets the server choose IDs, and says with each entry which old one it is: as long as
the stream remembers, a second run adds nothing, and later it is refused. ``restore`` keeps the IDs:
then a second run adds nothing however late, and a stream comes back as it was, but only where there
are no later entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf

from pyspark_headrace.client import Words
from pyspark_headrace.connection import Connection, connection_from
from pyspark_headrace.errors import ServerError, UnsafeWriteError
from pyspark_headrace.given import WRITE, Given
from pyspark_headrace.identity import with_memory
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
        options: of the sink; streams remember for a day, if they do not say otherwise.
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
        **{**with_memory(options), "runId": run}
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

    def put_back(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return _put_back_all(connection, batches)

    # Not mapInArrow, which wants pandas. Spark keeps the order for what it may not repeat.
    added = arrow_udf(put_back, "boolean")  # type: ignore[call-overload]  # known by its types
    added = added.asNondeterministic()("key", "id", "pairs")
    counted = ordered.select("key", added.alias("added")).groupBy("key")
    rows = counted.agg(F.count_if("added"), F.count_if(~F.col("added"))).collect()
    return {name: (added, known) for name, added, known in rows}


def _put_back_all(
    connection: Connection, batches: Iterator[tuple[pa.Array, ...]]
) -> Iterator[pa.Array]:
    """For each row of a task whether it was added; rows of a stream come in order."""
    link = Link(connection)
    try:
        for columns in batches:
            rows = pa.RecordBatch.from_arrays(list(columns), ["key", "id", "pairs"]).to_pylist()
            found: list[bool] = []
            for _, mine in groupby(rows, itemgetter("key")):
                while window := list(islice(mine, DEPTH)):
                    found += _put_back(link, window)
            yield pa.array(found, pa.bool_())
    finally:
        link.close()


def _put_back(link: Link, rows: Sequence[Row]) -> list[bool]:
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
    found = [False] * len(there)
    for row, reply in zip(new, replies, strict=True):
        found.append(not isinstance(reply, ServerError))
        if isinstance(reply, ServerError):
            # A connection that broke may have brought it there before; or somebody else writes.
            if "equal or smaller" not in str(reply):
                raise reply
            _must_be_there(link, key, [row])
    return found


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
