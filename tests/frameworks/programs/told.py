"""What a program tells the test that runs it: lines in a file that all of its workers write to."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

PORT: Final = int(os.environ["HEADRACE_PORT"])
_FILE: Final = os.environ["HEADRACE_TOLD"]
_HOLDS: Final = os.environ.get("HEADRACE_HOLDS") == "1"
_FAILS: Final = os.environ.get("HEADRACE_FAILS", "")


def tell(line: str) -> None:
    """Append a line, whole."""
    with open(_FILE, "a") as file:
        file.write(f"{os.getpid()} {line}\n")


def begin(number: int) -> None:
    """A job begins; in a worker that is to be killed it goes no further."""
    tell(f"begun {number}")
    while _HOLDS:
        time.sleep(1)


def fail(number: int) -> None:
    """Job 0 is one that nobody can do, if the test says so: it raises, or it kills its worker."""
    if number == 0 and _FAILS == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 0 and _FAILS == "raises":
        raise ValueError("nobody can do this")
