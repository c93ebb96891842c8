"""``headrace-pipeline totals``: running totals by key, and a stream of their changes."""

from __future__ import annotations

from rich.console import Console

from pyspark_headrace.cli.shared import (
    AGREES,
    Arguments,
    Jobs,
    connection,
    job_of,
    query_options,
    run_batches,
    session_of,
    spark_options,
    stream_of,
    stream_options,
)
from pyspark_headrace.jobs.values import some


def add(jobs: Jobs) -> None:
    """Add the job to those of the command line."""
    job = job_of(
        jobs,
        "totals",
        _run,
        "keep running totals by key, and append each change to a stream",
        "A change row holds the key, its new count and total, the last entry counted and the\n"
        "number of the batch. Example:\n\n"
        "  headrace-pipeline totals --stream rides --by rider --value distance \\\n"
        "      --into ride-totals --checkpoint /var/lib/headrace/totals",
    )
    stream_options(job)
    job.add_argument(
        "--by", action="append", default=[], metavar="COLUMN", help="a field, _key, or SQL AS name"
    )
    job.add_argument("--value", default="", help="what to add up, a field or SQL")
    job.add_argument("--into", type=some, required=True, metavar="STREAM", help="where changes go")
    query_options(job)
    spark_options(job)


def _run(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.totals import append_changes, totals

    spark = session_of(arguments, console)
    changed = totals(stream_of(spark, arguments), arguments.by, arguments.value)
    append = append_changes(arguments.into, connection(arguments))
    rows = run_batches(spark, console, arguments, changed, append, "update")
    console.print(f"{rows:,} entries counted; changes are in {arguments.into}")
    return AGREES
