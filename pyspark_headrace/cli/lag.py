"""``headrace-pipeline lag``: how far consumer groups and mirrored queries are behind."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

from pyspark_headrace.cli.shared import (
    AGREES,
    DIFFERS,
    Arguments,
    Jobs,
    job_of,
    reading,
    stream_options,
)
from pyspark_headrace.jobs.tables import Head, print_table
from pyspark_headrace.jobs.values import count, seconds


def add(jobs: Jobs) -> None:
    """Add the job to those of the command line."""
    job = job_of(
        jobs,
        "lag",
        _run,
        "show how far consumer groups, and queries that mirror themselves, are behind",
        "Exit code 1 says that a limit is passed. It needs neither Spark nor Java.",
    )
    stream_options(job)
    job.add_argument("--watch", type=seconds, metavar="SECONDS", help="again and again")
    job.add_argument("--most-entries", type=count, metavar="N", help="a limit")
    job.add_argument("--most-ms", type=count, metavar="N", help="a limit")


def _run(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.given import READ
    from pyspark_headrace.jobs.lag import group_lags
    from pyspark_headrace.options import read_options

    options = read_options(reading(arguments), READ)
    while True:
        found = group_lags(options)
        late = 0
        names = ("stream", "group", "entries behind", "ms behind", "pending", "")
        lines = []
        for lag in found:
            too_late = (
                arguments.most_entries is not None
                and (lag.entries is None or lag.entries > arguments.most_entries)
            ) or (arguments.most_ms is not None and lag.ms > arguments.most_ms)
            late += too_late
            entries = "?" if lag.entries is None else f"{lag.entries:,}"
            mark = Text("over the limit" if too_late else "", style="red")
            lines.append((lag.key, lag.group, entries, f"{lag.ms:,}", f"{lag.pending:,}", mark))
        heads = [Head(name, right=name not in ("stream", "group", "")) for name in names]
        print_table(console, heads, lines)
        if not arguments.watch:
            return DIFFERS if late else AGREES
        time.sleep(arguments.watch)
