"""The subcommands of ``headrace``: their arguments and their exit codes."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from headrace.persistence.errors import PersistenceError, advice
from headrace.server.tools import READERS, VALKEY

if TYPE_CHECKING:
    _Tools = argparse._SubParsersAction[argparse.ArgumentParser]

_CODES: Final = (
    "Exit codes: 0 all is well; 1 something is damaged or was refused; 2 wrong arguments."
)
# The modules of tools that are in a wing: ``add_tool`` and ``run_tool``.
_OF_WINGS: Final = {
    "console": "headrace.console.cli",
    "regions": "headrace.regions.tools.cli",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the words of all subcommands."""
    top = argparse.ArgumentParser(prog="headrace", epilog=_CODES)
    tools = top.add_subparsers(dest="tool", required=True, metavar="TOOL")
    _add_checks(tools)
    _add_export(tools)
    _add_import(tools)
    for module in _OF_WINGS.values():
        import_module(module).add_tool(tools)
    _add_verify(tools)
    return top


def _add_checks(tools: _Tools) -> None:
    check = tools.add_parser(
        "check-aof",
        help="go through an append-only folder or file",
        description="Goes through an append-only folder, ours or Redis's, or a single file of "
        "commands, and tells whether it is valid. Changes nothing without --fix.",
        epilog=_CODES,
    )
    check.add_argument(
        "--fix",
        action="store_true",
        help="cut off what is damaged at the end of the last file; it is kept beside it",
    )
    check.add_argument("path", metavar="DIR|FILE")

    snapshot = tools.add_parser(
        "check-snapshot",
        help="go through a snapshot",
        description="Goes through a snapshot, every entry of it, and tells what it holds.",
        epilog=_CODES,
    )
    snapshot.add_argument("path", metavar="FILE")


def _add_export(tools: _Tools) -> None:
    export = tools.add_parser(
        "export",
        help="write data in a form that Redis reads",
        description="Writes what an append-only folder or a snapshot holds as an RDB file or as "
        "commands. No server may use the folder meanwhile. The source is not changed, and OUT must "
        "not exist.",
        epilog=_CODES,
    )
    export.add_argument(
        "--to",
        required=True,
        choices=("rdb", "redis-aof", "resp"),
        help="rdb: a file that Redis and Valkey load at their start (dump.rdb). "
        "resp: one file of commands, for redis-cli --pipe (OUT may be -). "
        "redis-aof: a folder to start redis-server on with --dir OUT --appendonly yes",
    )
    export.add_argument(
        "--from", dest="source", default=".", metavar="DIR|FILE", help="default: this folder"
    )
    export.add_argument(
        "--redis",
        default="",
        choices=(*READERS, VALKEY),
        metavar="VERSION",
        help="with --to rdb: the Redis that is to read it, one of "
        f"{', '.join(READERS)}, or {VALKEY} for Valkey 9; default: the oldest Redis that can hold "
        "all, and Valkey reads what Redis 7.2 reads",
    )
    export.add_argument("out", metavar="OUT")


def _add_import(tools: _Tools) -> None:
    take = tools.add_parser(
        "import",
        help="take over data of Redis or Valkey",
        description="Reads a folder or file of Redis or Valkey: its dir, its append-only folder "
        "with a base of commands or of RDB form, a single append-only file, or an RDB file. Writes "
        "a new folder to start headrace in. What is not supported here is named and refused.",
        epilog=_CODES,
    )
    take.add_argument("source", metavar="FROM")
    take.add_argument("--dir", required=True, help="the new folder; it must be empty, or not there")
    take.add_argument(
        "--as",
        dest="form",
        default="appendonly",
        choices=("appendonly", "snapshot"),
        help="what to write: an append-only folder (the default), or dump.hrs",
    )
    take.add_argument(
        "--skip-unsupported", action="store_true", help="leave out what is not supported here"
    )


def _add_verify(tools: _Tools) -> None:
    verify = tools.add_parser(
        "verify",
        help="compare Headrace with another server",
        description="Starts a Headrace and a proxy in front of it and of another server, which "
        "should be empty. What clients of the proxy send goes to both, and the first reply that "
        "differs is shown. A program finds the proxy in REDIS_URL.",
        epilog="Exit codes: 0 all is well; 1 something differs; 2 wrong arguments, or the other "
        "server cannot be compared; else the program's.",
    )
    verify.add_argument("--against", required=True, metavar="URL", help="redis://host:port")
    verify.add_argument("--port", type=int, default=0, help="of the proxy; default: a free one")
    verify.add_argument("--commands", default="", metavar="FILE", help="commands to send; -: stdin")
    verify.add_argument("program", nargs="*", metavar="-- PROGRAM", help="such as -- pytest tests")


def run_tool(words: list[str]) -> int:
    """Run the subcommand that ``words`` begin with; return the exit code."""
    closed = _open_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # names of files may be no text
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = parser().parse_args(words)
    if closed and arguments.tool == "export" and arguments.out == "-":
        print("The output cannot be written: standard output is closed.", file=sys.stderr)
        return 1
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except PersistenceError as error:
        print(error, file=sys.stderr)
    except (BrokenPipeError, KeyboardInterrupt):  # the reader of our output has enough
        pass
    except MemoryError:
        print("There is not enough memory for what these files hold.", file=sys.stderr)
    except OSError as failure:  # of our own output; files report theirs before
        print(f"The output cannot be written: {advice(failure)}", file=sys.stderr)
    return 1


def _open_streams() -> bool:
    """Print into nothing where a stream is closed; return whether standard output is.

    Otherwise a file that is opened later would take its place.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free
    closed = sys.stdout is None
    if closed:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    return closed


def _run(arguments: argparse.Namespace) -> int:
    # Late: the arguments are checked at once, and most tools need little.
    if arguments.tool == "check-aof":
        from headrace.server.tools.check import check_aof

        return check_aof(os.fsencode(arguments.path), arguments.fix)
    if arguments.tool == "check-snapshot":
        from headrace.server.tools.check import check_snapshot

        return check_snapshot(os.fsencode(arguments.path))
    if arguments.tool in _OF_WINGS:
        code: int = import_module(_OF_WINGS[arguments.tool]).run_tool(arguments)
        return code
    if arguments.tool == "verify":
        return _verify(arguments)
    from headrace.server.tools import convert

    if arguments.tool == "export":
        return convert.export(
            arguments.to, os.fsencode(arguments.source), os.fsencode(arguments.out), arguments.redis
        )
    return convert.import_(
        os.fsencode(arguments.source),
        os.fsencode(arguments.dir),
        arguments.form,
        arguments.skip_unsupported,
    )


def _verify(arguments: argparse.Namespace) -> int:
    from headrace.verify import verify

    try:
        return verify(
            arguments.against, arguments.port, arguments.commands, list(arguments.program)
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
