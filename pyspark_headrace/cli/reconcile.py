"""``headrace-pipeline reconcile``: a stream held against its archive, a database and totals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.console import Console

from pyspark_headrace.cli.shared import (
    AGREES,
    DIFFERS,
    MOST_SHOWN,
    Arguments,
    Jobs,
    connection,
    entries_of,
    job_of,
    session_of,
    spark_options,
)
from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.given import READ, WRITE
from pyspark_headrace.jobs.running import Progress
from pyspark_headrace.jobs.tables import Head, print_table
from pyspark_headrace.jobs.values import report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


def add(jobs: Jobs) -> None:
    """Add the job to those of the command line."""
    job = job_of(
        jobs,
        "reconcile",
        _run,
        "hold a stream, its archive, a database and totals made of them against each other",
        "The first side that is given is the truth: a database, if there is one, else the\n"
        "archive, else the stream. Exit code 1 says that they differ. Example:\n\n"
        "  headrace-pipeline reconcile --stream rocket-rides --value distance --last id \\\n"
        "      --where \"fields['object'] = 'ride'\" --dsn dbname=rocket_rides \\\n"
        "      --query 'SELECT NULL, count(*), sum(distance::text::numeric), max(id) FROM rides'",
        (READ, WRITE),
    )
    job.add_argument("--stream", metavar="NAMES", help="the stream")
    job.add_argument("--archive", metavar="DIR", help="its archive")
    job.add_argument("--dsn", help="a PostgreSQL database; its password is not given here")
    job.add_argument("--query", help="SQL for key, count, total and perhaps last id")
    job.add_argument("--totals", metavar="STREAM", help="a stream of the job totals")
    job.add_argument("--key", default="", help="of entries: a field or SQL; default: one total")
    job.add_argument("--totals-key", default="", help="in the stream of totals (default: --key)")
    job.add_argument("--value", default="", help="what is added up, a field or SQL")
    job.add_argument(
        "--last", default="", help="whose greatest is last_id; default: the entry's ID"
    )
    job.add_argument("--where", default="", help="SQL: which entries count")
    job.add_argument("--tolerance", type=float, default=0.0, help="of totals (default: none)")
    job.add_argument(
        "--report", type=report, metavar="FILE", help="write it: .html, .png, .svg or .pdf"
    )
    job.add_argument(
        "--correct",
        metavar="STREAM",
        help="where something differs, append records that consumers can reset from",
    )
    spark_options(job)


def _run(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.page import write_reconciliation
    from pyspark_headrace.jobs.reconcile import corrections, reconcile
    from pyspark_headrace.jobs.reports import draw_reconciliation

    if bool(arguments.dsn) != bool(arguments.query):
        raise HeadraceError("--dsn and --query go together")
    spark = session_of(arguments, console)
    sides = _sides(spark, arguments)
    if len(sides) < 2:
        raise HeadraceError("two sides are wanted, of --dsn, --archive, --stream and --totals")
    with Progress(console, "reconciling") as progress:
        progress.say(", ".join(sides))
        found = reconcile(sides, arguments.tolerance).cache()
        rows = found.orderBy("agrees", "key").collect()
    _show_sides(console, [row for row in rows if not row["agrees"]] or rows[:1], list(sides))
    if arguments.report:
        by_page = arguments.report.endswith(".html")
        report = write_reconciliation if by_page else draw_reconciliation
        report(rows, list(sides), arguments.report)
        console.print(f"{'written' if by_page else 'drawn'} into {arguments.report}")
    wrong = [row["key"] for row in rows if not row["agrees"]]
    if not wrong:
        console.print(f"{len(rows):,} keys, all agree: {', '.join(sides)}")
        return AGREES
    console.print(f"{len(wrong):,} of {len(rows):,} keys differ")
    if arguments.correct:
        truth = next(iter(sides))
        right = corrections(sides[truth].filter(sides[truth]["key"].isin(wrong)))
        right.write.format("headrace").options(
            **connection(arguments, WRITE), stream=arguments.correct
        ).mode("append").save()
        console.print(f"corrections made of {truth} are in {arguments.correct}")
    return DIFFERS


def _show_sides(console: Console, rows: Sequence[Row], sides: Sequence[str]) -> None:
    """A line for each side of each key, and in words what differs, with the whole key."""
    names = ("key", "side", "entries", "total", "last id")
    lines = []
    for row in rows[:MOST_SHOWN]:
        for number, side in enumerate(sides):
            count, total, last = (row[f"{what}_{side}"] for what in ("count", "total", "last_id"))
            lines.append(
                (
                    "" if number else str(row["key"]),
                    side,
                    f"{count or 0:,}",
                    f"{(total or Decimal(0)).normalize():f}",
                    last or "",
                )
            )
    print_table(console, [Head(name, right=name in ("entries", "total")) for name in names], lines)
    for row in rows[:MOST_SHOWN]:
        if not row["agrees"]:
            console.print(f"{row['key']}: {row['difference']}", soft_wrap=True)
    if len(rows) > MOST_SHOWN:
        console.print(f"... and {len(rows) - MOST_SHOWN:,} more")


def _sides(spark: SparkSession, arguments: Arguments) -> dict[str, DataFrame]:
    from pyspark_headrace.jobs.archive import read_archive
    from pyspark_headrace.jobs.reconcile import database_side, entries_side, totals_side

    options = connection(arguments, READ)
    of_entries = {
        "key": arguments.key,
        "value": arguments.value,
        "last": arguments.last,
        "where": arguments.where,
    }
    sides: dict[str, DataFrame] = {}
    if arguments.dsn:
        sides["database"] = database_side(spark, arguments.dsn, arguments.query)
    if arguments.archive:
        sides["archive"] = entries_side(read_archive(spark, arguments.archive), **of_entries)
    if arguments.stream:
        entries = entries_of(spark, {**options, "subscribe": arguments.stream})
        sides["stream"] = entries_side(entries, **of_entries)
    if arguments.totals:
        changes = entries_of(spark, {**options, "subscribe": arguments.totals})
        sides["totals"] = totals_side(changes, arguments.totals_key or arguments.key)
    return sides
