"""What jobs on the command line share: options, a Spark session, frames and a query."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.console import Console

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.given import EVERYWHERE, READ, STREAM, Given, uses_of
from pyspark_headrace.identity import safe_rows
from pyspark_headrace.jobs.running import Progress, run
from pyspark_headrace.jobs.values import count, option_and_value, some

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AGREES: Final = 0
DIFFERS: Final = 1
FAILED: Final = 2
MOST_SHOWN: Final = 40
# State of any size outside of the JVM's memory; a checkpoint keeps the kind that it began with.
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Options that have a flag of their own.
_SERVER: Final = {
    "redis.url": (
        "--url",
        "URL",
        "redis://..., rediss://... for TLS; default: the variable HEADRACE_URL, or localhost",
    ),
    "passwordEnv": ("--password-env", "NAME", "variable that holds the password"),
    "passwordFile": ("--password-file", "PATH", "file that holds the password"),
    "tlsCaFile": ("--tls-ca-file", "PATH", "certificates to trust; default: the system's"),
    "tlsCertFile": ("--tls-cert-file", "PATH", "a certificate to show to the server"),
    "tlsKeyFile": ("--tls-key-file", "PATH", "its key"),
}

Arguments: TypeAlias = argparse.Namespace
Jobs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def job_of(
    jobs: Jobs,
    name: str,
    does: Callable[[Arguments, Console], int],
    text: str,
    more: str = "",
    uses: tuple[str, ...] = (READ,),
) -> argparse.ArgumentParser:
    """The parser of a job that talks to a server, and does this.

    Args:
        uses: what of the source and the sink it makes use of, see ``given.NAMES``.
    """
    job = jobs.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.\n\n{more}".strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    job.set_defaults(does=does, uses=uses)
    server = job.add_argument_group("server")
    for option, (flag, metavar, what) in _SERVER.items():
        server.add_argument(flag, dest=option, metavar=metavar, help=what)
    server.add_argument(
        "--option",
        action="append",
        type=option_and_value,
        default=[],
        dest="options",
        metavar="NAME=VALUE",
        help="of the source or the sink, as docs/spark.md lists them; again and again",
    )
    return job


def check_options(arguments: Arguments) -> None:
    """Look at the options of source and sink before anything is started.

    Raises:
        OptionError: there is no such option, or it means nothing to the job.
    """
    Given(dict(arguments.options), *arguments.uses)


def spark_options(job: argparse.ArgumentParser) -> None:
    """What a job that starts Spark takes."""
    spark = job.add_argument_group("spark")
    spark.add_argument("--master", default="", help="of a cluster; default: all cores here")
    spark.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark's"
    )


def stream_options(job: argparse.ArgumentParser) -> None:
    """Which streams a job reads."""
    which = job.add_mutually_exclusive_group(required=True)
    which.add_argument("--stream", metavar="NAMES", help="streams to read, with commas between")
    which.add_argument("--pattern", help="a glob for the names of streams to read")


def query_options(job: argparse.ArgumentParser, required: bool = True) -> None:
    """What a job takes that is a streaming query."""
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


def connection(arguments: Arguments, *uses: str) -> dict[str, str]:
    """The options that lead to the server, and those given for some uses."""
    given = vars(arguments)
    found = {option: given[option] for option in _SERVER if given[option]}
    for name, value in arguments.options:
        of = uses_of(name)
        if of == EVERYWHERE or set(of) & set(uses):
            found[name] = value
    return found


def reading(arguments: Arguments, use: str = READ) -> dict[str, str]:
    """The options of the source that name its streams and lead to the server."""
    which = {"subscribe": arguments.stream} if arguments.stream else {}
    if arguments.pattern:
        which = {"subscribePattern": arguments.pattern}
    return {**which, **connection(arguments, use)}


def remembering(console: Console, options: dict[str, str], rows: Mapping[str, int]) -> int:
    """Let streams remember what is written, if need be, and say how much that is.

    Args:
        options: of the sink, that lead to the server.
        rows: for each stream how many rows a batch may have.

    Returns:
        How many rows a batch may have, so that all of them are known again.
    """
    from pyspark_headrace.memory import let_remember, look_at, window_for
    from pyspark_headrace.options import write_options
    from pyspark_headrace.resp import Link
    from pyspark_headrace.server import has_commands

    given = write_options(options)
    least = max(rows.values(), default=0)
    if given.identity in ("none", "marker"):
        return least
    link = Link(given.connection)
    try:
        if not has_commands(link, "XCFGSET"):
            console.print("the server has no XADD IDMP: what is repeated is there twice")
            return least
        for stream, most in rows.items():
            window = window_for(most, given.producers)
            key = stream.encode()
            found = look_at(link, key)
            if given.configure_idmp:
                found = let_remember(link, key, found, window)
            safe = safe_rows(given.producers, found.window)
            least = min(least, safe)
            console.print(
                f"{stream} remembers what is written for {found.duration_s:,} s (idmp-duration), "
                f"and {safe:,} rows at a time (idmp-maxsize)"
            )
    finally:
        link.close()
    return least


def session_of(arguments: Arguments, console: Console) -> SparkSession:
    """A Spark session for the job.

    Raises:
        HeadraceError: a setting is none.
    """
    from pyspark_headrace.sessions import VARIABLES, session

    settings = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    # On a cluster, others have another environment.
    for setting, variable in VARIABLES.items():
        if variable in os.environ:
            settings[setting] = os.environ[variable]
    for setting in arguments.conf:
        name, equals, value = setting.partition("=")
        if not equals:
            raise HeadraceError(f"--conf {setting}: NAME=VALUE is wanted")
        settings[name] = value
    description = described(arguments)
    with Progress(console, "starting Spark"):
        spark = session(f"headrace-pipeline {arguments.job}", arguments.master, settings)
    spark.sparkContext.setJobDescription(description)
    return spark


def described(arguments: Arguments) -> str:
    """Return what Spark's web page shows of a job: its name, the streams and the server."""
    from pyspark_headrace.naming import title

    given = vars(arguments)
    names = given.get("stream") or given.get("into")
    which = {"subscribe": names} if names else {}
    if given.get("pattern"):
        which = {"subscribePattern": given["pattern"]}
    return f"{arguments.job}: {title({**connection(arguments), **which})}"


def entries_of(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """The entries of streams, as a batch."""
    from pyspark_headrace.naming import describe

    return spark.read.format(describe(spark, options)).options(**options).load()


def stream_of(spark: SparkSession, arguments: Arguments, **more: str) -> DataFrame:
    """The entries of the streams that are to be followed."""
    from pyspark_headrace.naming import describe

    options = {"startingOffsets": arguments.start, **reading(arguments, STREAM), **more}
    if arguments.max_per_batch:
        options["maxOffsetsPerTrigger"] = str(arguments.max_per_batch)
    if arguments.go_on_after_loss:
        options["failOnDataLoss"] = "false"
    return spark.readStream.format(describe(spark, options)).options(**options).load()


def run_batches(
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
        .queryName(described(arguments))
        .option("checkpointLocation", arguments.checkpoint)
    )
    if arguments.follow:
        writer = writer.trigger(processingTime=arguments.trigger)
    else:
        writer = writer.trigger(availableNow=True)
    return run(spark, console, arguments.job, writer.start())
