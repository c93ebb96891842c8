"""A guard: sees to it that nothing goes on when the demo is gone, even after ``kill -9``."""

from __future__ import annotations

import subprocess
from types import TracebackType
from typing import Self


class Guard:
    """A process group, and in it a shell that waits for our end, and then ends the group.

    The shell reads a pipe that nobody writes to. Its end comes when we close it, or are gone.
    Processes join with ``Popen(..., process_group=guard.group)``. As they are not in the terminal's
    foreground group, Ctrl-C comes to the demo alone, which ends them in good order.
    """

    def __init__(self) -> None:
        self._shell = subprocess.Popen(
            ["sh", "-c", "cat > /dev/null; kill -KILL 0"], stdin=subprocess.PIPE, process_group=0
        )

    @property
    def group(self) -> int:
        """The process group to join."""
        return self._shell.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait()
