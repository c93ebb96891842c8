"""Do a stream, its archive, a database and the totals made of them agree, to the last digit?

Each *side* is a frame of ``key``, ``count``, ``total`` (exact) and, if there is one, ``last_id``.
``reconcile`` puts sides beside each other, one row for each key; ``corrections`` makes of one side
the records that consumers can reset from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.jobs.columns import EXACT, column_of, exact, id_pair, plain
from pyspark_headrace.jobs.totals import latest_totals

ALL: Final = "all"  # the key where there is none
PAGE_ROWS: Final = 10_000
_SIDE: Final = pa.schema(
    [
        ("key", pa.string()),
        ("count", pa.int64()),
        ("total", pa.decimal128(38, 18)),
        ("last_id", pa.string()),
    ]
)


def entries_side(
    entries: DataFrame, *, key: str = "", value: str = "", last: str = "", where: str = ""
) -> DataFrame:
    """The side of a stream or of its archive.

    Args:
        entries: a frame of the source's, or of ``archive.read_archive``.
        key: what to group by, a field or SQL; empty is one total of all.
        value: what is added up.
        last: what ``last_id`` is the greatest of, a number, such as the id of a ride; empty is the
            entry's own ID.
        where: SQL that an entry must fulfil to count.
    """
    frame = with_fields(entries)
    if where:
        frame = frame.filter(where)
    group = column_of(frame, key) if key else F.lit(ALL)
    number = column_of(frame, value) if value else F.lit(None)
    greatest = F.max(column_of(frame, last).try_cast(EXACT)) if last else F.max(id_pair())
    grouped = frame.groupBy(group.cast("string").alias("key")).agg(
        F.count(F.lit(1)).alias("count"),
        F.coalesce(F.sum(number.try_cast(EXACT)), exact(F.lit(0))).alias("total"),
        greatest.alias("last"),
    )
    text = plain(F.col("last")) if last else F.concat_ws("-", "last.id_ms", "last.id_seq")
    return grouped.select("key", "count", "total", text.alias("last_id"))


def with_fields(entries: DataFrame) -> DataFrame:
    """Entries with the column ``fields``, made of ``pairs`` where an archive has these."""
    if "fields" in entries.columns:
        return entries
    pair = F.transform(
        "pairs",
        lambda each: F.struct(each["name"].cast("string"), each["value"].cast("string")),
    )
    # Of a field that is there twice, the last one counts.
    return entries.withColumn("fields", F.map_from_entries(_last_of_each(pair)))


def _last_of_each(pairs: Column) -> Column:
    backwards = F.reverse(pairs)
    return F.aggregate(
        backwards,
        F.filter(backwards, lambda _: F.lit(False)),
        lambda kept, each: F.when(
            F.exists(kept, lambda one: one["col1"] == each["col1"]), kept
        ).otherwise(F.array_append(kept, each)),
    )


def totals_side(changes: DataFrame, key: str = "") -> DataFrame:
    """The side of a stream of change rows, see ``totals``."""
    found = latest_totals(changes, [key] if key else [])
    name = F.col(key).cast("string") if key else F.lit(ALL)
    return found.select(name.alias("key"), "count", "total", "last_id")


def database_side(spark: SparkSession, dsn: str, query: str) -> DataFrame:
    """The side of a PostgreSQL database.

    Args:
        dsn: as libpq has it; a password belongs into its environment or its password file.
        query: SQL whose columns are key, count, total and, if there is one, last id.
    """
    try:
        import psycopg
    except ImportError:
        raise ImportError(
            "a database is read with psycopg: pip install 'pyspark-headrace[postgres]'"
        ) from None
    batches: list[pa.RecordBatch] = []
    try:
        # A cursor of the server's: neither side holds all rows as objects.
        with psycopg.connect(dsn) as connection, connection.cursor("reconcile") as cursor:
            connection.read_only = True
            cursor.execute(query.encode())
            while rows := cursor.fetchmany(PAGE_ROWS):
                batches.append(_database_batch(rows))
    except psycopg.Error as error:
        raise HeadraceError(f"the database: {error}") from None
    return spark.createDataFrame(pa.Table.from_batches(batches, _SIDE))


def _database_batch(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Rows of a database as a part of a side.

    Raises:
        HeadraceError: they are no side.
    """
    width = len(rows[0])
    if width not in (3, 4):
        raise HeadraceError(
            f"the database: key, count, total and perhaps last id are wanted; the query gives "
            f"{width} columns"
        )
    try:
        columns = [
            [ALL if row[0] is None else str(row[0]) for row in rows],
            [int(row[1]) for row in rows],
            [Decimal(0 if row[2] is None else str(row[2])) for row in rows],
            [None if width == 3 or row[3] is None else str(row[3]) for row in rows],
        ]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, _SIDE.types, strict=True)]
    except (TypeError, ValueError, ArithmeticError) as error:
        raise HeadraceError(
            f"the database: a count that is no whole number, or a total beyond {EXACT}: {error}"
        ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=_SIDE)


def reconcile(sides: Mapping[str, DataFrame], tolerance: float = 0.0) -> DataFrame:
    """Sides beside each other.

    Args:
        sides: by name; the first one is what the others are measured by.
        tolerance: how far totals may be apart and still agree.

    Returns:
        ``key``; for each side ``count_<name>``, ``total_<name>`` and ``last_id_<name>``; ``agrees``
        and, in words, the ``difference`` from the first side.
    """
    names = list(sides)
    joined: DataFrame | None = None
    for name, side in sides.items():
        mine = side.select(
            "key",
            F.col("count").alias(f"count_{name}"),
            F.col("total").cast(EXACT).alias(f"total_{name}"),
            F.col("last_id").alias(f"last_id_{name}"),
        )
        joined = mine if joined is None else joined.join(mine, "key", "full_outer")
    if joined is None:
        raise ValueError("nothing to compare")
    differences = [_difference(names[0], name, tolerance) for name in names[1:]]
    text = F.array_join(F.array_compact(F.array(*differences)), "; ") if differences else F.lit("")
    return joined.withColumn("difference", text).withColumn("agrees", F.col("difference") == "")


def _difference(first: str, other: str, tolerance: float) -> Column:
    """In words what ``other`` has otherwise than ``first``; null when nothing."""
    counts = [F.coalesce(F.col(f"count_{name}"), F.lit(0)) for name in (first, other)]
    sums = [F.coalesce(F.col(f"total_{name}"), exact(F.lit(0))) for name in (first, other)]
    apart = sums[1] - sums[0]
    agrees = (counts[0] == counts[1]) & (F.abs(apart) <= F.lit(str(tolerance)).cast(EXACT))
    text = F.concat(
        F.lit(f"{other}: "),
        F.format_string("%+d", counts[1] - counts[0]),
        F.lit(" entries, "),
        plain(apart),
        F.lit(f" against {first}"),
    )
    return F.when(agrees, F.lit(None)).otherwise(text)


def corrections(side: DataFrame) -> DataFrame:
    """Return what to put into a log so that its consumers start again from the right totals.

    Returns:
        A frame for the sink: ``object`` and ``action`` (``total``, ``correct``), the key as
        ``name`` where there is one, ``total_distance``, ``ride_count`` and ``last_ride_id``, and an
        identity made of them.
    """
    total = plain(F.col("total"))
    return side.select(
        F.concat_ws("|", F.lit("correct"), "key", "count", total, "last_id").alias("_iid"),
        F.lit("total").alias("object"),
        F.lit("correct").alias("action"),
        F.when(F.col("key") != ALL, F.col("key")).alias("name"),
        total.alias("total_distance"),
        F.col("count").alias("ride_count"),
        F.col("last_id").alias("last_ride_id"),
    )
