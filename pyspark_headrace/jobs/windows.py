"""Windows over event time, which is the time in an entry's ID.

IDs ascend within a stream, so nothing is ever late there. A watermark only has to cover how far
streams that are read together may be apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.jobs.columns import column_of, named

WATERMARK = "10 seconds"


def windows(
    entries: DataFrame,
    length: str,
    *,
    slide: str = "",
    gap: str = "",
    by: Sequence[str] = (),
    value: str = "",
    watermark: str = WATERMARK,
) -> DataFrame:
    """For each window and key: how many entries and, of a value, sum, bounds and percentiles.

    Args:
        entries: a frame of the source's with its default columns; a batch or a stream.
        length: of a window, such as ``1 minute``.
        slide: from the start of one window to that of the next; empty is ``length``.
        gap: instead of ``length``: a window lasts until nothing came for so long (a session).
        by: see ``columns.named``.
        value: a field or SQL.
        watermark: how far streams may be apart.

    Returns:
        ``start``, ``end``, the columns of ``by``, ``count``; with ``value`` also ``total``,
        ``least``, ``most``, ``median`` and ``p95``.
    """
    keys = named(entries, by)
    if gap:
        window = F.session_window("timestamp", gap).alias("window")
    else:
        window = F.window("timestamp", length, slide or length).alias("window")
    figures = [F.count(F.lit(1)).alias("count")]
    if value:
        number = column_of(entries, value).try_cast("double")
        figures += [
            F.sum(number).alias("total"),
            F.min(number).alias("least"),
            F.max(number).alias("most"),
            F.percentile_approx(number, 0.5).alias("median"),
            F.percentile_approx(number, 0.95).alias("p95"),
        ]
    grouped = entries.withWatermark("timestamp", watermark).groupBy(window, *keys).agg(*figures)
    rest = [name for name in grouped.columns if name != "window"]
    return grouped.select(
        F.col("window.start").alias("start"), F.col("window.end").alias("end"), *rest
    )


def top(counted: DataFrame, most: int, order: str = "count") -> DataFrame:
    """Of each window the ``most`` rows with the greatest ``order``; of a batch only."""
    from pyspark.sql import Window

    rank = F.row_number().over(Window.partitionBy("start", "end").orderBy(F.desc(order)))
    return counted.withColumn("rank", rank).filter(F.col("rank") <= most)
