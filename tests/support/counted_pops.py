"""Our server, which counts how often the function of BLPOP is run: ``BLPOPS`` tells."""

from __future__ import annotations

import sys

import headrace.server.commands.families  # noqa: F401  (the command table)
from headrace.server.cli import main
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import TABLE, Command, add_row

blpop = TABLE[b"blpop"].run
runs = 0


def counted(call: Call) -> object:
    global runs
    runs += 1
    assert blpop is not None
    return blpop(call)


TABLE[b"blpop"].run = counted


def blpops(call: Call) -> object:
    """``BLPOPS``. Reply: how often BLPOP was run."""
    return runs


add_row(Command(b"blpops", "", 1, 0, (), (), ()))
TABLE[b"blpops"].run = blpops

if __name__ == "__main__":
    sys.exit(main())
