"""The command line: ``headrace [file | -] [--option value ...]``, in redis-server's grammar.

A first word that names a tool runs that tool instead (``server.tools``); a configuration file of
such a name is still found as ``./check-aof``.
"""

# Slow imports are made where they are needed, so that small requests are answered at once.

from __future__ import annotations

import gc
import os
import sys

from headrace.server import tools
from headrace.server.build import PYTHON_VERSION, REDIS_VERSION, VERSION, build_kind

USAGE = """\
Usage: headrace [file | -] [--option value ...]
       headrace --help | -h
       headrace --version | -v
{tools}
Starts the server with the configuration of a file (with -: of standard input) and of the options,
which have the last word. Any parameter of the file can be an option. Memory sizes take units:
4kb is 4096 bytes, 4k is 4000. --dev is for tests: nothing is saved, and clients of this machine
may use DEBUG, which moves the clock and makes faults.

Examples:
  headrace                                    on port 6379 of this machine, in memory
  headrace --appendonly yes --dir /srv/data   keeps its data
  headrace /etc/headrace.conf --port 6380     a file, and a port of its own
  echo 'port 6380' | headrace -               configuration from standard input
"""


def main() -> int:
    """Run what the command line of ``headrace`` asks for; return the exit code."""
    words = [os.fsencode(word) for word in sys.argv[1:]]
    if words[:1] in ([b"-v"], [b"--version"]):
        print(version_text())
        return 0
    if words[:1] in ([b"-h"], [b"--help"]):
        print(help_text(), end="")
        return 0
    if words and os.fsdecode(words[0]) in tools.NAMES:
        from headrace.server.tools.cli import run_tool

        return run_tool(sys.argv[1:])
    gc.disable()  # until all is there: what is imported stays
    from headrace.server.process.lean import import_libraries

    import_libraries()
    from headrace.server.start import start

    return start(words)


def version_text() -> str:
    """Return the Redis we match, the kind of build and our version, in one line.

    Programs look in it for redis-server's words, and take the first number for the version. A link
    of that name says them alone.
    """
    name = "" if os.path.basename(sys.argv[0]) == "redis-server" else "Headrace, as "
    return (
        f"{name}Redis server v={REDIS_VERSION} sha=00000000:0 malloc=libc "
        f"bits={sys.maxsize.bit_length() + 1} build={build_kind()} headrace={VERSION} "
        f"python={PYTHON_VERSION}"
    )


def help_text() -> str:
    """Return how to call, and all parameters with their defaults."""
    import textwrap

    from headrace.server.config.parameters import SECTIONS

    parts = [USAGE.replace("{tools}", tools.SUMMARY)]
    for title, rows in SECTIONS:
        parts.append(f"\n{title}:\n")
        for row in rows:
            default = row.show(row.default).decode()
            head = f"  --{row.name}"
            values = row.range_text().replace("`", "")
            about = f"{row.doc} ({values}; default: {default or 'empty'})".replace("`", "")
            parts.append(head + "\n")
            parts.append(
                textwrap.fill(about, 96, initial_indent=" " * 8, subsequent_indent=" " * 8) + "\n"
            )
    parts.append("\nParameters of Redis that mean nothing here are accepted and logged.\n")
    return "".join(parts)
