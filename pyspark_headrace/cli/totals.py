"""``headrace-pipeline totals``: running totals by key, and a stream of their changes."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from pyspark_headrace.cli.shared import (
    AGREES,
    Arguments,
    Jobs,
    connection,
    job_of,
    query_options,
    remembering,
    run_batches,
    session_of,
    spark_options,
    stream_of,
    stream_options,
)
from pyspark_headrace.errors import OptionError
from pyspark_headrace.given import STREAM, WRITE
from pyspark_headrace.identity import with_memory
from pyspark_headrace.jobs.values import some

MOST_PER_BATCH: Final = 100_000  # each entry may change another key; a stream knows these again


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
        "      --into ride-totals --checkpoint /var/lib/headrace/totals\n\n"
        "The stream of changes is set to remember rows for a day, if it remembers none yet. A\n"
        "batch that is repeated later is refused; --option failOnForgotten=false writes it.\n"
        f"A batch has {MOST_PER_BATCH:,} entries at most, if --max-per-batch says nothing else.",
        (STREAM, WRITE),
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

    most = arguments.max_per_batch or MOST_PER_BATCH
    options = with_memory(connection(arguments, WRITE))
    safe = remembering(console, options, {arguments.into: most})
    if not arguments.max_per_batch:
        arguments.max_per_batch = min(most, safe)
    elif safe < most:
        raise OptionError(
            f"--max-per-batch {most}: {arguments.into} is sure to know {safe:,} rows of a batch "
            "again; fewer are wanted, or more producers (--option idmpProducers=N)"
        )
    spark = session_of(arguments, console)
    changed = totals(stream_of(spark, arguments), arguments.by, arguments.value)
    append = append_changes(arguments.into, options)
    rows = run_batches(spark, console, arguments, changed, append, "update")
    console.print(f"{rows:,} entries counted; changes are in {arguments.into}")
    return AGREES
