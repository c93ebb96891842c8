"""A time of day that a test sets, shared by all servers that it starts: ours and Redis.

``clock.c`` is compiled once and preloaded into each server.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from support import build

_SOURCE: Final = build.ROOT / "tests" / "support" / "clock.c"
_SIZE: Final = 24  # three integers
_HELD_NS: Final = 0  # their places
_STEP_NS: Final = 1
_SKEW_NS: Final = 2
_MIDDLE_NS: Final = 500_500
START_MS: Final = 1_800_000_000_000  # where a clock stands that was not set


def compiler() -> str | None:
    """The C compiler that makes the preloaded library, or None."""
    return shutil.which("gcc") or shutil.which("cc")


class Clock:
    """A time of day in a file that servers share.

    Args:
        now_ms: where it stands at first, in milliseconds since 1970.

    Attributes:
        environment: what a server's process needs to follow this clock.
    """

    def __init__(self, now_ms: int = START_MS) -> None:
        self._directory: Final = Path(tempfile.mkdtemp(prefix="headrace-test-clock-"))
        library = self._directory / "clock.so"
        program = compiler()
        assert program is not None
        subprocess.run(
            [
                program,
                "-O2",
                "-shared",
                "-fPIC",
                "-Wall",
                "-Werror",
                "-o",
                library,
                _SOURCE,
                "-ldl",
            ],
            check=True,
        )
        path = self._directory / "clock"
        path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._page: Final = mmap.mmap(file.fileno(), _SIZE)
        # An integer is written as a whole: servers look at the clock meanwhile.
        self._cells: Final = memoryview(self._page).cast("q")
        self.environment: Final = {"LD_PRELOAD": str(library), "HEADRACE_TEST_CLOCK": str(path)}
        self.set(now_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._cells.release()
        self._page.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def now_ms(self) -> int:
        """The time that servers see, in milliseconds since 1970."""
        return self._cells[_HELD_NS] // 1_000_000

    def set(self, now_ms: int, step_us: int = 0) -> None:
        """Let it be ``now_ms``, and ``step_us`` microseconds later after each look at the clock.

        It is the middle of that millisecond: seconds in a double are not exact, and what is cut off
        them must not be the millisecond before.
        """
        self._cells[_STEP_NS] = 0
        self._cells[_HELD_NS] = now_ms * 1_000_000 + _MIDDLE_NS
        self._cells[_STEP_NS] = step_us * 1000

    def skew(self, ms: int) -> None:
        """Let it run as the machine's does, and be so far ahead of it; negative: behind."""
        self._cells[_SKEW_NS] = ms * 1_000_000
        self._cells[_STEP_NS] = 0
        self._cells[_HELD_NS] = 0

    def advance(self, ms: int) -> None:
        """Let so much time pass at once; a negative number sets the clock back."""
        self._cells[_HELD_NS] += ms * 1_000_000


def can_be_set() -> bool:
    """Return whether this machine can make and preload the library."""
    return compiler() is not None and os.uname().sysname == "Linux"
