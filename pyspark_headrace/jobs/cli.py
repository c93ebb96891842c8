"""``headrace-pipeline``: jobs on streams, on this machine or on a cluster.

Without ``--master`` a job runs here and needs no configuration but Java 17. Where the server is, is
said by ``--url``; a password comes from ``--password-env`` or ``--password-file``.

Exit codes: 0 done, 1 something differs or is behind, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.jobs.running import Progress, message_of, run
from pyspark_headrace.jobs.supervisor import NO_USE, SUPERVISED, is_final
from pyspark_headrace.jobs.tables import Head, print_table, span_texts, value_text
from pyspark_headrace.jobs.values import count, drawing, entry_id, report, seconds, some

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

AGREES: Final = 0
DIFFERS: Final = 1
FAILED: Final = 2
MOST_SHOWN: Final = 40
# State of any size outside of the JVM's memory; a checkpoint keeps the kind that it began with.
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

Arguments = argparse.Namespace


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="headrace-pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    jobs = top.add_subparsers(dest="job", required=True, metavar="job")
    _add_totals(jobs)
    _add_windows(jobs)
    _add_archive(jobs)
    _add_replay(jobs)
    _add_reconcile(jobs)
    _add_lag(jobs)
    _add_run(jobs)
    return top


def _job(
    jobs: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    does: Callable[[Arguments, Console], int],
    text: str,
    more: str = "",
) -> argparse.ArgumentParser:
    job = jobs.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.\n\n{more}".strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    job.set_defaults(does=does)
    server = job.add_argument_group("server")
    server.add_argument("--url", default="redis://localhost:6379", help="default: %(default)s")
    server.add_argument("--password-env", metavar="NAME", help="variable that holds the password")
    server.add_argument("--password-file", metavar="PATH", help="file that holds the password")
    return job


def _spark_options(job: argparse.ArgumentParser) -> None:
    spark = job.add_argument_group("spark")
    spark.add_argument("--master", default="", help="of a cluster; default: all cores here")
    spark.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark's"
    )


def _stream_options(job: argparse.ArgumentParser) -> None:
    which = job.add_mutually_exclusive_group(required=True)
    which.add_argument("--stream", metavar="NAMES", help="streams to read, with commas between")
    which.add_argument("--pattern", help="a glob for the names of streams to read")


def _query_options(job: argparse.ArgumentParser, required: bool = True) -> None:
    query = job.add_argument_group("query")
    query.add_argument(
        "--checkpoint",
        type=some,
        required=required,
        metavar="DIR",
        help="where it keeps how far it has come",
    )
    query.add_argument(
        "--from", dest="start", default="earliest", help="earliest, latest or JSON; when it is new"
    )
    query.add_argument("--max-per-batch", type=count, metavar="N", help="entries of a micro-batch")
    query.add_argument("--follow", action="store_true", help="go on; default: what is there now")
    query.add_argument("--trigger", default="1 second", help="with --follow (default: %(default)s)")
    query.add_argument("--go-on-after-loss", action="store_true", help="count lost entries only")


def _connection(arguments: Arguments) -> dict[str, str]:
    """The options of source and sink that lead to the server."""
    found = {"redis.url": arguments.url}
    if arguments.password_env:
        found["passwordEnv"] = arguments.password_env
    if arguments.password_file:
        found["passwordFile"] = arguments.password_file
    return found


def _reading(arguments: Arguments) -> dict[str, str]:
    which = {"subscribe": arguments.stream} if arguments.stream else {}
    if arguments.pattern:
        which = {"subscribePattern": arguments.pattern}
    return {**_connection(arguments), **which}


def _session(arguments: Arguments, console: Console) -> SparkSession:
    from pyspark_headrace.sessions import session

    settings = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    for setting in arguments.conf:
        name, equals, value = setting.partition("=")
        if not equals:
            raise HeadraceError(f"--conf {setting}: NAME=VALUE is wanted")
        settings[name] = value
    description = _described(arguments)
    with Progress(console, "starting Spark"):
        spark = session(f"headrace-pipeline {arguments.job}", arguments.master, settings)
    spark.sparkContext.setJobDescription(description)
    return spark


def _described(arguments: Arguments) -> str:
    """What Spark's web page shows of a job: its name, the streams and the server."""
    from pyspark_headrace.naming import title

    given = vars(arguments)
    names = given.get("stream") or given.get("into")
    which = {"subscribe": names} if names else {}
    if given.get("pattern"):
        which = {"subscribePattern": given["pattern"]}
    return f"{arguments.job}: {title({**_connection(arguments), **which})}"


def _entries(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    from pyspark_headrace.naming import describe

    return spark.read.format(describe(spark, options)).options(**options).load()


def _stream(spark: SparkSession, arguments: Arguments, **more: str) -> DataFrame:
    from pyspark_headrace.naming import describe

    options = {**_reading(arguments), "startingOffsets": arguments.start, **more}
    if arguments.max_per_batch:
        options["maxOffsetsPerTrigger"] = str(arguments.max_per_batch)
    if arguments.go_on_after_loss:
        options["failOnDataLoss"] = "false"
    return spark.readStream.format(describe(spark, options)).options(**options).load()


def _run_batches(
    spark: SparkSession,
    console: Console,
    arguments: Arguments,
    frame: DataFrame,
    each: Callable[[DataFrame, int], None],
    mode: str,
) -> int:
    """Run a streaming query that calls ``each`` for its batches; how many entries it read."""
    writer = (
        frame.writeStream.foreachBatch(each)
        .outputMode(mode)
        .queryName(_described(arguments))
        .option("checkpointLocation", arguments.checkpoint)
    )
    if arguments.follow:
        writer = writer.trigger(processingTime=arguments.trigger)
    else:
        writer = writer.trigger(availableNow=True)
    return run(spark, console, arguments.job, writer.start())


# totals


def _add_totals(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    job = _job(
        jobs,
        "totals",
        _totals,
        "keep running totals by key, and append each change to a stream",
        "A change row holds the key, its new count and total, the last entry counted and the\n"
        "number of the batch. Example:\n\n"
        "  headrace-pipeline totals --stream rides --by rider --value distance \\\n"
        "      --into ride-totals --checkpoint /var/lib/headrace/totals",
    )
    _stream_options(job)
    job.add_argument(
        "--by", action="append", default=[], metavar="COLUMN", help="a field, _key, or SQL AS name"
    )
    job.add_argument("--value", default="", help="what to add up, a field or SQL")
    job.add_argument("--into", type=some, required=True, metavar="STREAM", help="where changes go")
    _query_options(job)
    _spark_options(job)


def _totals(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.totals import append_changes, totals

    spark = _session(arguments, console)
    changed = totals(_stream(spark, arguments), arguments.by, arguments.value)
    append = append_changes(arguments.into, _connection(arguments))
    rows = _run_batches(spark, console, arguments, changed, append, "update")
    console.print(f"{rows:,} entries counted; changes are in {arguments.into}")
    return AGREES


# windows


def _add_windows(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    job = _job(
        jobs,
        "windows",
        _windows,
        "count and add up entries in windows of their time",
        "The time of an entry is that of its ID. Example:\n\n"
        '  headrace-pipeline windows --stream rides --length "1 minute" --by rider \\\n'
        "      --value distance --report rides.png",
    )
    _stream_options(job)
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
    _spark_options(job)


def _windows(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.reports import draw_windows
    from pyspark_headrace.jobs.windows import windows

    spark = _session(arguments, console)
    options = _reading(arguments)
    if arguments.since:
        options["startingTimestamp"] = arguments.since
    if arguments.until:
        options["endingTimestamp"] = arguments.until
    found = windows(
        _entries(spark, options),
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


# archive


def _add_archive(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    job = _job(
        jobs,
        "archive",
        _archive,
        "keep streams as Parquet, with a manifest that proves that nothing is missing",
        "With --verify it only checks an archive: exit code 1 says that something is wrong.\n"
        "With --trim it removes from the streams, after checking, what is archived and what\n"
        "every consumer group has acknowledged. Example:\n\n"
        "  headrace-pipeline archive --stream rides --path /archive \\\n"
        "      --checkpoint /var/lib/headrace/archive --trim --keep 100000",
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
    _query_options(job, required=False)
    _spark_options(job)


def _archive(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.archive import archive_batches, trim_archived, verify

    if not arguments.verify:
        if not (arguments.stream or arguments.pattern):
            raise HeadraceError("which streams? Give --stream or --pattern (or --verify)")
        if not arguments.checkpoint:
            raise HeadraceError("--checkpoint is wanted: where it keeps how far it has come")
    spark = _session(arguments, console)
    if not arguments.verify:
        frame = _stream(spark, arguments, fieldsFormat="pairs")
        write = archive_batches(arguments.path, arguments.checkpoint)
        rows = _run_batches(spark, console, arguments, frame, write, "append")
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
        gone = trim_archived(spark, arguments.path, _connection(arguments), arguments.keep)
        for key, rows in gone.items():
            console.print(f"{key}: {rows:,} entries trimmed")
    return AGREES


# replay


def _add_replay(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    job = _job(
        jobs,
        "replay",
        _replay,
        "put what is archived back into a stream",
        "New IDs by default; run again with the same --run, each entry counts once. With\n"
        "--keep-ids a stream comes back as it was, as long as it has no later entries. Example:\n\n"
        "  headrace-pipeline replay --path /archive --key rides --into rides-again",
    )
    job.add_argument("--path", type=some, required=True, metavar="DIR", help="of the archive")
    job.add_argument("--key", action="append", default=[], metavar="NAME", help="only this stream")
    job.add_argument("--first", type=entry_id, default="", metavar="ID", help="from this entry on")
    job.add_argument("--last", type=entry_id, default="", metavar="ID", help="up to this entry")
    job.add_argument("--into", default="", metavar="STREAM", help="default: where it was")
    job.add_argument("--keep-ids", action="store_true", help="restore rather than append")
    job.add_argument("--run", default="", help="a name for this replay; default: made of the rest")
    _spark_options(job)


def _replay(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.archive import read_archive
    from pyspark_headrace.jobs.replay import append_new, between, restore

    spark = _session(arguments, console)
    entries = between(read_archive(spark, arguments.path), arguments.first, arguments.last)
    if arguments.key:
        entries = entries.filter(entries["key"].isin(arguments.key))
    options = _connection(arguments)
    with Progress(console, "replaying"):
        if arguments.keep_ids:
            found = restore(entries, options, arguments.into)
        else:
            parts = (arguments.path, *arguments.key, arguments.first, arguments.last)
            name = arguments.run or "|".join(parts)
            append_new(entries, arguments.into, options, name)
            found = {}
    for key, (added, known) in sorted(found.items()):
        console.print(f"{key}: {added:,} entries added, {known:,} were there")
    if not arguments.keep_ids:
        console.print(f"{entries.count():,} entries written")
    return AGREES


# reconcile


def _add_reconcile(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    job = _job(
        jobs,
        "reconcile",
        _reconcile,
        "hold a stream, its archive, a database and totals made of them against each other",
        "The first side that is given is the truth: a database, if there is one, else the\n"
        "archive, else the stream. Exit code 1 says that they differ. Example:\n\n"
        "  headrace-pipeline reconcile --stream rocket-rides --value distance --last id \\\n"
        "      --where \"fields['object'] = 'ride'\" --dsn dbname=rocket_rides \\\n"
        "      --query 'SELECT NULL, count(*), sum(distance::text::numeric), max(id) FROM rides'",
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
    _spark_options(job)


def _reconcile(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.page import write_reconciliation
    from pyspark_headrace.jobs.reconcile import corrections, reconcile
    from pyspark_headrace.jobs.reports import draw_reconciliation

    if bool(arguments.dsn) != bool(arguments.query):
        raise HeadraceError("--dsn and --query go together")
    spark = _session(arguments, console)
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
            **_connection(arguments), stream=arguments.correct
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

    options = _connection(arguments)
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
        entries = _entries(spark, {**options, "subscribe": arguments.stream})
        sides["stream"] = entries_side(entries, **of_entries)
    if arguments.totals:
        changes = _entries(spark, {**options, "subscribe": arguments.totals})
        sides["totals"] = totals_side(changes, arguments.totals_key or arguments.key)
    return sides


# lag


def _add_lag(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    job = _job(
        jobs,
        "lag",
        _lag,
        "show how far consumer groups, and queries that mirror themselves, are behind",
        "Exit code 1 says that a limit is passed. It needs neither Spark nor Java.",
    )
    _stream_options(job)
    job.add_argument("--watch", type=seconds, metavar="SECONDS", help="again and again")
    job.add_argument("--most-entries", type=count, metavar="N", help="a limit")
    job.add_argument("--most-ms", type=count, metavar="N", help="a limit")


def _lag(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.given import READ
    from pyspark_headrace.jobs.lag import group_lags
    from pyspark_headrace.options import read_options

    options = read_options(_reading(arguments), READ)
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


# run


def _add_run(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    job = jobs.add_parser(
        "run",
        help="run another job, and start it again when it fails",
        description="Run another job in a process of its own. Started again, it goes on from its "
        "checkpoint.\nWrong options and lost entries end it all the same. Example:\n\n"
        "  headrace-pipeline run --restart totals --stream rides --by rider --follow \\\n"
        "      --into ride-totals --checkpoint /var/lib/headrace/totals",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    job.set_defaults(does=_supervise)
    job.add_argument("--restart", action="store_true", help="start it again when it fails")
    job.add_argument(
        "--delay", type=seconds, default=1.0, metavar="SECONDS", help="before that; doubles"
    )
    job.add_argument(
        "--most", type=count, default=0, metavar="N", help="give up after so many in a row"
    )
    job.add_argument("words", nargs=argparse.REMAINDER, metavar="job", help="with its options")


def _supervise(arguments: Arguments, console: Console) -> int:
    from pyspark_headrace.jobs.supervisor import Supervisor, job_command

    job = parser().parse_args(arguments.words)  # a wrong option ends this here, before a start
    if job.job == "run":
        raise HeadraceError("run runs a job, not itself")
    most = arguments.most if arguments.restart else 1
    return Supervisor(job_command(arguments.words), console, arguments.delay, most).run()


def main(argv: Sequence[str] | None = None) -> int:
    """Run a job; the exit code."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    words = sys.argv[1:] if argv is None else list(argv)
    top = parser()
    for word in words:  # may be any bytes; the server and Spark want UTF-8
        shown = word.encode("utf-8", "backslashreplace").decode()
        if shown != word:
            top.error(f"{shown} is not UTF-8")
    arguments = top.parse_args(words)
    console = Console(markup=False)
    try:
        return int(arguments.does(arguments, console))
    except KeyboardInterrupt:
        return FAILED
    except (HeadraceError, PySparkException, Py4JError, ImportError, OSError) as error:
        errors = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
        errors.print(f"headrace-pipeline: {message_of(error)}")
        return NO_USE if os.environ.get(SUPERVISED) and is_final(error) else FAILED
