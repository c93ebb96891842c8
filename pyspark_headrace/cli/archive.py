"""``headrace-pipeline archive``: streams kept as Parquet, checked and trimmed."""

from __future__ import annotations

from rich.console import Console

from pyspark_headrace.cli.shared import (
    AGREES,
    DIFFERS,
    Arguments,
    Jobs,
    connection,
    job_of,
    query_options,
    run_batches,
    session_of,
    spark_options,
    stream_of,
)
from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.given import STREAM
from pyspark_headrace.jobs.running import Progress
from pyspark_headrace.jobs.tables import Head, print_table, value_text
from pyspark_headrace.jobs.values import count, some


def add(jobs: Jobs) -> None:
    """Add the job to those of the command line."""
    job = job_of(
        jobs,
        "archive",
        _run,
        "keep streams as Parquet, with a manifest that proves that nothing is missing",
        "With --verify it only checks an archive: exit code 1 says that something is wrong.\n"
        "With --trim it removes from the streams, after checking, what is archived and what\n"
        "every consumer group has acknowledged. Example:\n\n"
        "  headrace-pipeline archive --stream rides --path /archive \\\n"
        "      --checkpoint /var/lib/headrace/archive --trim --keep 100000",
        (STREAM,),
    )
    which = job.add_mutually_exclusive_group()
    which.add_argument("--stream", metavar="NAMES", help="streams to keep, with commas between")
    which.add_argument("--pattern", help="a glob for the names of streams to keep")
    which.add_argument("--verify", action="store_true", help="check, and do nothing else")
    job.add_argument("--path", type=some, required=True, metavar="DIR", help="of the archive")
    job.add_argument("--trim", action="store_true", help="trim what is archived and acknowledged")
    job.add_argument(
        "--keep", type=count, default=0, metavar="N", help="with --trim: the newest entries stay"
    )
    query_options(job, required=False)
    spark_options(job)


def _run(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.archive import archive_batches, trim_archived, verify

    if not arguments.verify:
        if not (arguments.stream or arguments.pattern):
            raise HeadraceError("which streams? Give --stream or --pattern (or --verify)")
        if not arguments.checkpoint:
            raise HeadraceError("--checkpoint is wanted: where it keeps how far it has come")
    spark = session_of(arguments, console)
    if not arguments.verify:
        frame = stream_of(spark, arguments, fieldsFormat="pairs")
        write = archive_batches(arguments.path, arguments.checkpoint)
        rows = run_batches(spark, console, arguments, frame, write, "append")
        console.print(f"{rows:,} entries archived in {arguments.path}")
    with Progress(console, "checking the archive"):
        problems = verify(spark, arguments.path).orderBy("query", "batch").limit(100).collect()
    if problems:
        names = ("query", "batch", "key", "problem")
        heads = [Head(name, right=name == "batch") for name in names]
        print_table(console, heads, [[value_text(row[name]) for name in names] for row in problems])
        return DIFFERS
    console.print("the archive is whole: its ranges chain, nothing is missing, nothing is twice")
    if arguments.trim:
        gone = trim_archived(spark, arguments.path, connection(arguments), arguments.keep)
        for key, rows in gone.items():
            console.print(f"{key}: {rows:,} entries trimmed")
    return AGREES
