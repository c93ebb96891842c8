"""Streams kept as Parquet, with a manifest that proves that nothing is missing or twice.

::

    <path>/data/query=1f2e3d4c/batch=17/key=rides/date=2026-01-31/hour=12/part-....parquet
    <path>/manifest/query=1f2e3d4c/batch=17/part-....json

A micro-batch has a folder of its own, which is written anew when the batch is repeated: a re-run
changes nothing, for any reader of Parquet. Beside it goes one manifest line for each stream of the
batch: the range of IDs that Spark had planned (from the checkpoint, where it was written before the
batch ran), how many entries the plan counted, and what is in the files: how many, first, last, and
a checksum. ``verify`` checks that

- each range begins where the one before it ended,
- the files hold as many entries as were planned, within the range, and are what was written,
- no entry is there twice.

Only what passes may be trimmed from a stream, and of that only what every group has acknowledged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_headrace.connection import connection_from
from pyspark_headrace.errors import HeadraceError, ServerError
from pyspark_headrace.given import WRITE, Given
from pyspark_headrace.ids import LEAST, StreamID, format_id, parse_id
from pyspark_headrace.jobs.columns import id_pair, id_text
from pyspark_headrace.listener import positions_in
from pyspark_headrace.offsets import Positions
from pyspark_headrace.resp import Link
from pyspark_headrace.server import pairs_of
from pyspark_headrace.shape import PAIRS

log = logging.getLogger("pyspark_headrace")

ENTRY_FIELDS: Final = [
    StructField("id", StringType()),
    StructField("id_ms", LongType()),
    StructField("id_seq", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("pairs", PAIRS),
]
DATA_SCHEMA: Final = StructType(
    [
        *ENTRY_FIELDS,
        StructField("query", StringType()),
        StructField("batch", LongType()),
        StructField("key", StringType()),
        StructField("date", DateType()),
        StructField("hour", IntegerType()),
    ]
)
MANIFEST_SCHEMA: Final = StructType(
    [
        StructField("key", StringType()),
        StructField("after", StringType()),
        StructField("upto", StringType()),
        StructField("planned", LongType()),
        StructField("rows", LongType()),
        StructField("first", StringType()),
        StructField("last", StringType()),
        StructField("checksum", StringType()),
        StructField("query", StringType()),
        StructField("batch", LongType()),
    ]
)
# Of a frame of entries: what two copies of the same entries have in common, in any order.
CHECKSUM: Final = "CAST(sum(CAST(xxhash64(id, pairs) AS DECIMAL(38,0))) AS STRING)"


@dataclass(frozen=True)
class Planned:
    """What Spark's checkpoint says of a batch."""

    query: str
    start: Positions
    end: Positions


def planned_batch(spark: SparkSession, checkpoint: str, batch: int) -> Planned:
    """Read which range of each stream a batch holds; it was written down before the batch ran.

    Raises:
        HeadraceError: the checkpoint holds no such batch of this source.
    """
    query = json.loads(_text(spark, f"{checkpoint}/metadata"))["id"]
    end = _logged(spark, checkpoint, batch)
    start = _logged(spark, checkpoint, batch - 1) if batch else {}
    if not end:
        raise HeadraceError(f"{checkpoint} holds no offset of this source for batch {batch}")
    return Planned(query[:8], start, end)


def _text(spark: SparkSession, path: str) -> str:
    row = spark.read.text(path, wholetext=True).first()
    return "" if row is None else cast("str", row[0])


def _logged(spark: SparkSession, checkpoint: str, batch: int) -> Positions:
    for line in _text(spark, f"{checkpoint}/offsets/{batch}").splitlines():
        positions = positions_in(line)
        if positions:
            return positions
    return {}


def archive_batches(path: str, checkpoint: str) -> Callable[[DataFrame, int], None]:
    """Return what ``foreachBatch`` of an archiving query is to call.

    Args:
        path: of the archive.
        checkpoint: of the query; its frame is read with ``fieldsFormat=pairs``.
    """

    def write(entries: DataFrame, batch: int) -> None:
        spark = entries.sparkSession
        planned = planned_batch(spark, checkpoint, batch)
        place = f"query={planned.query}/batch={batch}"
        entries.select(
            *(field.name for field in ENTRY_FIELDS),
            "key",
            F.to_date("timestamp").alias("date"),
            F.hour("timestamp").alias("hour"),
        ).write.partitionBy("key", "date", "hour").mode("overwrite").parquet(f"{path}/data/{place}")
        lines = _manifest_lines(spark, f"{path}/data/{place}", planned, batch)
        lines.drop("query", "batch").coalesce(1).write.mode("overwrite").json(
            f"{path}/manifest/{place}"
        )

    return write


def _manifest_lines(spark: SparkSession, data: str, planned: Planned, batch: int) -> DataFrame:
    """One line for each stream of a batch, from the plan and from what is in the files."""
    found = {row["key"]: row for row in _facts(_read(spark, data)).collect()}
    rows = []
    for key, position in sorted(planned.end.items()):
        before = planned.start.get(key)
        after = LEAST if before is None else before.id
        if position.since is not None:
            after = position.since
        elif before is not None and position.id == before.id:
            continue
        fact = found.get(key)
        rows.append(
            (
                key,
                format_id(after),
                format_id(position.id),
                position.rows if position.rows >= 0 else None,
                0 if fact is None else fact["rows"],
                None if fact is None else fact["first"],
                None if fact is None else fact["last"],
                None if fact is None else fact["checksum"],
                planned.query,
                batch,
            )
        )
    return spark.createDataFrame(rows, MANIFEST_SCHEMA)


def _read(spark: SparkSession, path: str) -> DataFrame:
    """Entries of an archive or of a part of it; the folder's names have the types we gave them."""
    return spark.read.schema(DATA_SCHEMA).option("recursiveFileLookup", "false").parquet(path)


def _facts(entries: DataFrame, *by: str) -> DataFrame:
    return entries.groupBy(*by, "key").agg(
        F.count(F.lit(1)).alias("rows"),
        id_text(F.min(id_pair())).alias("first"),
        id_text(F.max(id_pair())).alias("last"),
        F.expr(CHECKSUM).alias("checksum"),
    )


def read_archive(spark: SparkSession, path: str) -> DataFrame:
    """All entries of an archive: ``key``, ``id``, ``id_ms``, ``id_seq``, ``timestamp``, ``pairs``,
    and where they lie."""
    return _read(spark, f"{path}/data")


def read_manifest(spark: SparkSession, path: str) -> DataFrame:
    """The manifest, a row for each stream of each batch."""
    return spark.read.schema(MANIFEST_SCHEMA).json(f"{path}/manifest")


def verify(spark: SparkSession, path: str) -> DataFrame:
    """Return what is wrong with an archive; no row is the proof that nothing is.

    Returns:
        ``query``, ``batch``, ``key`` and ``problem``.
    """
    manifest = read_manifest(spark, path)
    chain = Window.partitionBy("query", "key").orderBy("batch")
    linked = manifest.withColumn("before", F.lag("upto").over(chain))
    facts = _facts(read_archive(spark, path), "query", "batch").select(
        "query",
        "batch",
        "key",
        F.col("rows").alias("real_rows"),
        F.col("checksum").alias("real_checksum"),
    )
    joined = linked.join(facts, ["query", "batch", "key"], "full_outer")
    there = F.coalesce("real_rows", F.lit(0))
    problem = (
        F.when(F.col("upto").isNull(), F.lit("files without a manifest line"))
        .when(
            F.col("before").isNotNull()
            & (F.col("before") != F.col("after"))
            & (F.col("after") != "0-0"),
            F.concat(
                F.lit("begins after "), "after", F.lit(", the batch before ended with "), "before"
            ),
        )
        .when(
            there != F.col("rows"),
            F.concat(there.cast("string"), F.lit(" entries, "), "rows", F.lit(" were written")),
        )
        .when(
            F.col("planned").isNotNull() & (F.col("planned") != F.col("rows")),
            F.concat("rows", F.lit(" entries, "), "planned", F.lit(" were planned")),
        )
        .when(
            ~F.col("real_checksum").eqNullSafe(F.col("checksum")),
            F.lit("the files hold something else than was written"),
        )
        .when(_beyond("first", "after", False), F.lit("the first entry is before the range"))
        .when(_beyond("upto", "last", True), F.lit("the last entry is behind the range"))
    )
    wrong = joined.withColumn("problem", problem).filter("problem IS NOT NULL")
    twice = (
        read_archive(spark, path)
        .groupBy("query", "key", "id")
        .agg(F.count(F.lit(1)).alias("copies"), F.max("batch").alias("batch"))
        .filter("copies > 1")
        .withColumn("problem", F.concat(F.lit("entry "), "id", F.lit(" is there more than once")))
    )
    columns = ["query", "batch", "key", "problem"]
    return wrong.select(*columns).unionByName(twice.select(*columns))


def _beyond(greater: str, less: str, or_equal: bool) -> Column:
    """Return whether an ID that should be greater than another is not."""
    one, other = (_pair_of(F.col(name)) for name in (greater, less))
    return one < other if or_equal else one <= other


def _pair_of(text: Column) -> Column:
    halves = F.split(text, "-")
    return F.struct(halves[0].cast("decimal(20,0)"), halves[1].cast("decimal(20,0)"))


def trim_archived(
    spark: SparkSession, path: str, options: Mapping[str, str], keep: int = 0
) -> dict[str, int]:
    """Trim from the streams what is archived and what no group still needs.

    Args:
        options: that lead to the server.
        keep: how many of the newest entries stay in any case.

    Returns:
        For each stream how many entries went.

    Raises:
        HeadraceError: the archive is not whole.
    """
    problems = verify(spark, path).limit(1).collect()
    if problems:
        raise HeadraceError(f"nothing is trimmed: {problems[0].asDict()}")
    ends: dict[str, StreamID] = {}
    for row in read_manifest(spark, path).select("key", "upto").collect():
        ends[row["key"]] = max(ends.get(row["key"], LEAST), parse_id(row["upto"]))
    link = Link(connection_from(Given(dict(options), WRITE)))
    try:
        return {key: _trim(link, key, end, keep) for key, end in sorted(ends.items())}
    finally:
        link.close()


def _trim(link: Link, key: str, archived: StreamID, keep: int) -> int:
    """Remove entries up to and with an ID, as far as every group is done with them."""
    least = (archived[0], archived[1] + 1)
    for group in cast("list[object]", link.call("XINFO", "GROUPS", key)):
        facts = pairs_of(group)
        read = parse_id(cast("bytes", facts["last-delivered-id"]))
        least = min(least, (read[0], read[1] + 1))
        pending = cast("list[object]", link.call("XPENDING", key, cast("bytes", facts["name"])))
        if pending[1] is not None:
            least = min(least, parse_id(cast("bytes", pending[1])))
    if keep:
        newest = cast("list[list[bytes]]", link.call("XREVRANGE", key, "+", "-", "COUNT", keep))
        if newest:
            least = min(least, parse_id(newest[-1][0]))
    words = ("XTRIM", key, "MINID", "=", format_id(least))
    try:
        # A group that was made a moment ago counts too; servers before 8.2 cannot be asked that.
        return cast("int", link.call(*words, "ACKED"))
    except ServerError as error:
        if "syntax error" not in str(error):
            raise
        return cast("int", link.call(*words))
