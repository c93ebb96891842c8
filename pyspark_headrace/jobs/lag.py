"""How far groups are behind: those of consumers, and those that mirror a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pyspark_headrace.options import ReadOptions
from pyspark_headrace.planner import Planner
from pyspark_headrace.resources import rows_of
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server


@dataclass(frozen=True)
class GroupLag:
    """One group of one stream.

    Attributes:
        entries: that it has not been given; None where the server does not know.
        ms: between the last entry it was given and the last one there is.
        pending: given, and not acknowledged.
    """

    key: str
    group: str
    entries: int | None
    ms: int
    pending: int


def group_lags(options: ReadOptions) -> list[GroupLag]:
    """The lag of every group of the streams that are subscribed to. Needs no Spark session."""
    link = Link(options.connection)
    try:
        found = []
        for key in Planner(options, Server(link)).streams():
            for row in rows_of(link, "groups", key):
                lag = cast("int | None", row["lag"])
                found.append(
                    GroupLag(
                        key,
                        str(row["group"]),
                        lag,
                        0 if lag == 0 else cast("int", row["lag_ms"]),
                        cast("int", row["pending"]),
                    )
                )
        return found
    finally:
        link.close()
