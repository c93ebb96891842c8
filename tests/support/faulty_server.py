"""Our server, but with a saboteur who knows when it is about to change its files.

The folder named by the first argument tells what to do: a file ``plan`` that holds ``kill 3`` ends
the process, as a crash does, before the third step from now, and ``fail 3`` lets that step fail as
on a full disk. The steps that were announced are listed in ``steps``.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path

from persistence import files
from server.cli import main

FOLDER = Path(sys.argv.pop(1))


def before(name: str, path: bytes) -> None:
    """A step is about to be taken."""
    with (FOLDER / "steps").open("a") as steps:
        steps.write(f"{name} {os.path.basename(os.fsdecode(path))}\n")
    plan = FOLDER / "plan"
    if not plan.exists():
        return
    what, number = plan.read_text().split()
    if int(number) > 1:
        plan.write_text(f"{what} {int(number) - 1}")
        return
    plan.unlink()
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


if __name__ == "__main__":
    files.steps.before = before
    sys.exit(main())
