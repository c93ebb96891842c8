"""``headrace-pipeline windows``: entries counted and added up in windows of their time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from pyspark_headrace.cli.shared import (
    AGREES,
    MOST_SHOWN,
    Arguments,
    Jobs,
    entries_of,
    job_of,
    reading,
    session_of,
    spark_options,
    stream_options,
)
from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.jobs.running import Progress
from pyspark_headrace.jobs.tables import Head, print_table, span_texts, value_text
from pyspark_headrace.jobs.values import drawing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def add(jobs: Jobs) -> None:
    """Add the job to those of the command line."""
    job = job_of(
        jobs,
        "windows",
        _run,
        "count and add up entries in windows of their time",
        "The time of an entry is that of its ID. Example:\n\n"
        '  headrace-pipeline windows --stream rides --length "1 minute" --by rider \\\n'
        "      --value distance --report rides.png",
    )
    stream_options(job)
    job.add_argument("--length", default="1 minute", help="of a window (default: %(default)s)")
    job.add_argument("--slide", default="", help="from one window to the next; default: --length")
    job.add_argument("--gap", default="", help="sessions: a window ends after so long a silence")
    job.add_argument(
        "--by", action="append", default=[], metavar="COLUMN", help="a field, _key, or SQL AS name"
    )
    job.add_argument("--value", default="", help="what to add up, a field or SQL")
    job.add_argument("--since", metavar="TIME", help="milliseconds, or 2026-01-31T12:00:00 (UTC)")
    job.add_argument("--until", metavar="TIME", help="and not this moment itself")
    job.add_argument("--out", metavar="DIR", help="write the windows as Parquet")
    job.add_argument("--report", type=drawing, metavar="FILE", help="draw them: .png, .svg or .pdf")
    job.add_argument("--draw", default="count", help="which figure (default: %(default)s)")
    spark_options(job)


def _run(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.reports import draw_windows
    from pyspark_headrace.jobs.windows import windows

    spark = session_of(arguments, console)
    options = reading(arguments)
    if arguments.since:
        options["startingTimestamp"] = arguments.since
    if arguments.until:
        options["endingTimestamp"] = arguments.until
    found = windows(
        entries_of(spark, options),
        arguments.length,
        slide=arguments.slide,
        gap=arguments.gap,
        by=arguments.by,
        value=arguments.value,
    )
    keys = found.columns[2 : found.columns.index("count")]
    if arguments.draw not in found.columns:
        raise HeadraceError(f"--draw {arguments.draw}: there is {', '.join(found.columns[2:])}")
    with Progress(console, "windows") as progress:
        progress.say("reading")
        if arguments.out:
            found.write.mode("overwrite").parquet(arguments.out)
            found = spark.read.parquet(arguments.out)
        rows = _in_utc(found).orderBy("start", *keys).collect()
    _show_windows(console, rows, found.columns, keys)
    if arguments.report:
        draw_windows(rows, keys, arguments.draw, arguments.report, arguments.value)
        console.print(f"drawn into {arguments.report}")
    return AGREES


def _in_utc(found: DataFrame) -> DataFrame:
    """The same windows, with times that Python does not move into the zone of this machine."""
    from pyspark.sql import functions as F  # noqa: N812

    bounds = ("start", "end")
    return found.withColumns({name: F.col(name).cast("timestamp_ntz") for name in bounds})


def _show_windows(
    console: Console, rows: Sequence[Row], columns: Sequence[str], keys: Sequence[str]
) -> None:
    """A table of windows, its middle left out when it is long."""
    shown = list(rows)
    if len(rows) > MOST_SHOWN:
        shown = [*rows[: MOST_SHOWN // 2], *rows[-MOST_SHOWN // 2 :]]
    day, spans = span_texts([(row["start"], row["end"]) for row in shown])
    lines: list[Sequence[str]] = [
        (*span, *(value_text(row[name]) for name in columns[2:]))
        for span, row in zip(spans, shown, strict=True)
    ]
    if len(rows) > MOST_SHOWN:
        lines.insert(MOST_SHOWN // 2, ("…",))
    heads = [Head(name, right=name not in ("start", "end", *keys)) for name in columns]
    print_table(console, heads, lines)
    left = (
        f", {len(rows) - MOST_SHOWN:,} of {len(rows):,} left out" if len(shown) < len(rows) else ""
    )
    console.print(f"times are UTC{f', on {day}' if day else ''}{left}")
