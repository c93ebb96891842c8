"""Runs our server with a saboteur who sees each step in which its files change.

The folder named by the first argument tells what to do: a file ``plan`` that holds ``kill 3`` ends
the process, as a crash does, before the third step from now. ``fail 3`` lets that step fail as on a
full disk, ``break 3`` as nobody expects. ``tear 3`` holds it up until the next record is being
written, and ends the process when half of that is in the file. The steps are listed in ``steps``.
Records that are added to an incr file, and their syncs, are no steps; while there is a file
``slow``, such a sync takes long, so that records are written in a thread. The rest is the server's
command line.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv.pop(1))
STEPS = ("writev", "fsync", "rename", "unlink", "mkdir")
SLOW_S = 0.1
WRITE_COMES_S = 0.7  # in another thread than the one that is held up
WRITER_ENDS_S = 0.1  # where the event loop is held up, only a write under way is waited for

real_open = os.open
real_write = os.write
real_sync = os.fdatasync
tearing = threading.Event()
in_loop: Iterator[type[BaseException]] = itertools.cycle([MemoryError, ValueError])
in_thread: Iterator[type[BaseException]] = itertools.cycle(
    [MemoryError, SystemExit, RuntimeError, KeyboardInterrupt]
)


def is_loop() -> bool:
    return threading.current_thread() is threading.main_thread()


def before(name: str, path: str) -> None:
    """A step is about to be taken."""
    if path.startswith(str(FOLDER)):
        return
    with (FOLDER / "steps").open("a") as steps:
        steps.write(f"{name} {os.path.basename(path)}\n")
    plan = FOLDER / "plan"
    if not plan.exists():
        return
    what, number = plan.read_text().split()
    if int(number) > 1:
        plan.write_text(f"{what} {int(number) - 1}")
        return
    os.remove(plan)
    if what == "tear":
        tearing.set()
        time.sleep(WRITER_ENDS_S if is_loop() else WRITE_COMES_S)
    if what in ("kill", "tear"):
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "break":
        raise next(in_loop if is_loop() else in_thread)(path)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def path_of(target: object) -> str:
    if isinstance(target, int):
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/self/fd/{target}")
        return ""
    return os.fsdecode(target)  # type: ignore[arg-type]


def watched(name: str) -> Callable[..., Any]:
    operation: Callable[..., Any] = getattr(os, name)

    def call(target: Any, *rest: Any, **named: Any) -> Any:
        if name != "mkdir" or not os.path.exists(target):
            before(name, path_of(rest[0] if name == "rename" else target))
        return operation(target, *rest, **named)

    return call


def watched_open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
    if flags & os.O_CREAT and not os.path.exists(path):
        before("create", path_of(path))
    return real_open(path, flags, *rest, **named)


def watched_write(fd: int, data: Any) -> int:
    if tearing.is_set() and ".incr" in path_of(fd):
        real_write(fd, bytes(data)[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return real_write(fd, data)


def slow_sync(fd: Any) -> None:
    if (FOLDER / "slow").exists():
        time.sleep(SLOW_S)
    real_sync(fd)


for each in STEPS:
    setattr(os, each, watched(each))
os.open = watched_open
os.write = watched_write
os.fdatasync = slow_sync

from headrace.server.cli import main  # noqa: E402  (late: it shall find what is watched)

sys.exit(main())
