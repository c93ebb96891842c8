"""``headrace-pipeline``: jobs on streams, on this machine or on a cluster.

Without ``--master`` a job runs here and needs no configuration but Java 17. Where the server is, is
said by ``--url`` or the variable HEADRACE_URL; a password comes from ``--password-env``,
``--password-file`` or the variable HEADRACE_PASSWORD.

Exit codes: 0 done, 1 something differs or is behind, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rich.console import Console

from pyspark_headrace import __version__
from pyspark_headrace.cli import archive, lag, reconcile, replay, totals, windows
from pyspark_headrace.cli.shared import FAILED, Arguments, Jobs, check_options
from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.jobs.running import message_of
from pyspark_headrace.jobs.supervisor import NO_USE, SUPERVISED, is_final
from pyspark_headrace.jobs.values import count, seconds


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="headrace-pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    jobs = top.add_subparsers(dest="job", required=True, metavar="job")
    totals.add(jobs)
    windows.add(jobs)
    archive.add(jobs)
    replay.add(jobs)
    reconcile.add(jobs)
    lag.add(jobs)
    _add_run(jobs)
    return top


def _add_run(jobs: Jobs) -> None:
    job = jobs.add_parser(
        "run",
        help="run another job, and start it again when it fails",
        description="Run another job in a process of its own. Started again, it goes on from its "
        "checkpoint.\nWrong options and lost entries end it all the same. Example:\n\n"
        "  headrace-pipeline run --restart totals --stream rides --by rider --follow \\\n"
        "      --into ride-totals --checkpoint /var/lib/headrace/totals",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    job.set_defaults(does=_supervise, options=[], uses=())
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
        check_options(arguments)
        return int(arguments.does(arguments, console))
    except KeyboardInterrupt:
        return FAILED
    except (HeadraceError, PySparkException, Py4JError, ImportError, OSError) as error:
        errors = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
        errors.print(f"headrace-pipeline: {message_of(error)}")
        return NO_USE if os.environ.get(SUPERVISED) and is_final(error) else FAILED
