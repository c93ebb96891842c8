"""Running totals: for each key how many entries, their sum, and the last one counted.

``totals`` is the aggregate, over a batch or a stream of entries. A streaming query of it gives,
with ``append_changes``, one *change row* into a stream for each key that a micro-batch has changed:
the key, its new count and total, and the number of the batch. A change row that is written again,
because its batch was repeated, is known again by the batch and the key. ``latest_totals`` gives
back, from such a stream, what counts now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.identity import with_memory
from pyspark_headrace.jobs.columns import EXACT, column_of, exact, id_pair, id_text, named, plain

FIGURES = ("count", "total", "last_id")


def totals(entries: DataFrame, by: Sequence[str] = (), value: str = "") -> DataFrame:
    """For each key: ``count``, ``total`` (exact) and ``last_id``.

    Args:
        entries: a frame of the source's with its default columns.
        by: what makes the key, see ``columns.named``; nothing is one total of all.
        value: what is added up, a field or SQL; entries where it is null, or no number, count but
            add nothing. Empty: ``total`` is 0.
    """
    number = (column_of(entries, value) if value else F.lit(None)).try_cast(EXACT)
    return entries.groupBy(*named(entries, by)).agg(
        F.count(F.lit(1)).alias("count"),
        F.coalesce(F.sum(number), exact(F.lit(0))).alias("total"),
        id_text(F.max(id_pair())).alias("last_id"),
    )


def append_changes(stream: str, options: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """Return what ``foreachBatch`` of a streaming query of ``totals``, in update mode, is to call.

    Args:
        stream: where the change rows go.
        options: of the sink; the stream remembers for a day, if they do not say otherwise.
    """
    given = {**with_memory(options), "stream": stream}

    def append(changed: DataFrame, batch: int) -> None:
        keys = [name for name in changed.columns if name not in FIGURES]
        changed.select(
            F.concat_ws("|", F.lit("total"), *(F.col(name).cast("string") for name in keys)).alias(
                "_iid"
            ),
            *keys,
            "count",
            plain(F.col("total")).alias("total"),
            "last_id",
            F.lit(batch).alias("batch"),
        ).write.format("headrace").options(**given).mode("append").save()

    return append


def latest_totals(changes: DataFrame, by: Sequence[str] = ()) -> DataFrame:
    """The totals that count now, from a stream of change rows.

    Args:
        changes: a frame of the source's with its default columns.
        by: the names of the columns that make the key.
    """
    last = F.max_by(F.col("fields"), id_pair()).alias("fields")
    keys = [F.col("fields")[name].alias(name) for name in by]
    newest = changes.groupBy(*keys).agg(last)
    return newest.select(
        *by,
        F.col("fields")["count"].cast("long").alias("count"),
        exact(F.col("fields")["total"]).alias("total"),
        F.col("fields")["last_id"].alias("last_id"),
    )
