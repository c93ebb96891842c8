"""Starting a job again when it ends with an error.

Spark retries tasks, but it gives a query up when its JVM dies, or when a Python worker fails to
connect back. A job in a process of its own, started anew, goes on from its checkpoint. What a new
start would not mend (an option, lost entries, an unsafe write) ends the job all the same.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Final

from rich.console import Console

from pyspark_headrace.errors import (
    DataLossError,
    NotAStreamError,
    OptionError,
    UnsafeWriteError,
)

SUPERVISED: Final = "HEADRACE_SUPERVISED"  # set where a job is to say that a new start is no use
NO_USE: Final = 3  # the exit code that says so
STEADY_S: Final = 300.0  # who ran for so long has failed for another reason than before
MOST_DELAY_S: Final = 60.0
_FINAL: Final = (OptionError, DataLossError, UnsafeWriteError, NotAStreamError)
_FINAL_IN_TEXT: Final = re.compile(
    rf"pyspark_headrace\.errors\.(?:{'|'.join(kind.__name__ for kind in _FINAL)}): "
)
_JOB: Final = "from pyspark_headrace.pipeline import main; raise SystemExit(main())"


def is_final(error: BaseException) -> bool:
    """Return whether a job would end with this error however often it were started."""
    return isinstance(error, _FINAL) or _FINAL_IN_TEXT.search(str(error)) is not None


def job_command(words: Sequence[str]) -> list[str]:
    """Return how ``headrace-pipeline`` is started with these words."""
    return [sys.executable, "-c", _JOB, *words]


class Supervisor:
    """Runs a program until it ends well, or cannot.

    Args:
        command: the program.
        delay_s: before the second start; it doubles while the program ends soon.
        most: starts that may fail one after the other; 0 is any number.
    """

    def __init__(
        self, command: Sequence[str], console: Console, delay_s: float = 1.0, most: int = 0
    ) -> None:
        self._command: Final = list(command)
        self._console: Final = console
        self._delay_s: Final = delay_s
        self._most: Final = most
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_to_stop = False

    def run(self) -> int:
        """The exit code of the last start. SIGINT and SIGTERM end the program, and this too."""
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self._stop) for number in handled}
        try:
            return self._run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run(self) -> int:
        failures = 0
        while True:
            began_s = time.monotonic()
            self._process = subprocess.Popen(self._command, env={**os.environ, SUPERVISED: "1"})
            code = self._process.wait()
            self._process = None
            if code in (0, NO_USE) or self._is_to_end():
                return max(code, 0)
            if time.monotonic() - began_s >= STEADY_S:
                failures = 0
            failures += 1
            if self._most and failures >= self._most:
                self._console.print(f"given up after {failures} starts that failed")
                return code if code > 0 else 128 - code
            delay_s = min(self._delay_s * 2 ** min(failures - 1, 16), MOST_DELAY_S)
            self._console.print(f"the job ended with exit code {code}; again in {delay_s:g} s")
            self._sleep(delay_s)
            if self._is_to_end():
                return 0

    def _sleep(self, delay_s: float) -> None:
        until_s = time.monotonic() + delay_s
        while not self._is_to_end() and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, 0.1))

    def _is_to_end(self) -> bool:
        return self._asked_to_stop

    def _stop(self, number: int, _: FrameType | None) -> None:
        self._asked_to_stop = True
        if self._process is not None:
            self._process.send_signal(number)
