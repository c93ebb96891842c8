"""``headrace-pipeline replay``: what is archived, put back into a stream."""

from __future__ import annotations

from rich.console import Console

from pyspark_headrace.cli.shared import (
    AGREES,
    Arguments,
    Jobs,
    connection,
    job_of,
    remembering,
    session_of,
    spark_options,
)
from pyspark_headrace.errors import OptionError
from pyspark_headrace.given import WRITE
from pyspark_headrace.identity import with_memory
from pyspark_headrace.jobs.running import Progress
from pyspark_headrace.jobs.values import entry_id, some


def add(jobs: Jobs) -> None:
    """Add the job to those of the command line."""
    job = job_of(
        jobs,
        "replay",
        _run,
        "put what is archived back into a stream",
        "New IDs by default; run again with the same --run, each entry counts once. With\n"
        "--keep-ids a stream comes back as it was, as long as it has no later entries. Example:\n\n"
        "  headrace-pipeline replay --path /archive --key rides --into rides-again\n\n"
        "The stream is set to remember rows for a day, if it remembers none yet. The same --run\n"
        "later than that is refused; another one appends anew.",
        (WRITE,),
    )
    job.add_argument("--path", type=some, required=True, metavar="DIR", help="of the archive")
    job.add_argument("--key", action="append", default=[], metavar="NAME", help="only this stream")
    job.add_argument("--first", type=entry_id, default="", metavar="ID", help="from this entry on")
    job.add_argument("--last", type=entry_id, default="", metavar="ID", help="up to this entry")
    job.add_argument("--into", default="", metavar="STREAM", help="default: where it was")
    job.add_argument("--keep-ids", action="store_true", help="restore rather than append")
    job.add_argument("--run", default="", help="a name for this replay; default: made of the rest")
    spark_options(job)


def _run(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.archive import read_archive
    from pyspark_headrace.jobs.replay import append_new, between, restore

    spark = session_of(arguments, console)
    entries = between(read_archive(spark, arguments.path), arguments.first, arguments.last)
    if arguments.key:
        entries = entries.filter(entries["key"].isin(arguments.key))
    if arguments.keep_ids:
        with Progress(console, "replaying"):
            found = restore(entries, connection(arguments), arguments.into)
        for key, (added, known) in sorted(found.items()):
            console.print(f"{key}: {added:,} entries added, {known:,} were there")
        return AGREES
    rows = {str(key): int(count) for key, count in entries.groupBy("key").count().collect()}
    count = sum(rows.values())
    into = {arguments.into: count} if arguments.into else dict(sorted(rows.items()))
    options = with_memory(connection(arguments, WRITE))
    safe = remembering(console, options, into)
    if count > safe:
        raise OptionError(
            f"of {count:,} entries {safe:,} are sure to be known again, if this is repeated; "
            "replay them in parts (--key, --first, --last), or with --keep-ids"
        )
    parts = (arguments.path, *arguments.key, arguments.first, arguments.last)
    with Progress(console, "replaying"):
        append_new(entries, arguments.into, options, arguments.run or "|".join(parts))
    console.print(f"{count:,} entries written")
    return AGREES
