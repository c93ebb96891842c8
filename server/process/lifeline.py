"""The server ends with the process that started it, even if that is killed: for tests.

``HEADRACE_LIFELINE`` is ``DESCRIPTOR`` or ``DESCRIPTOR:FOLDER``. The other end of that pipe is held
by whoever started the server. When it is closed the server ends at once with nothing saved, and
deletes the folder, if that is the one of its data.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from typing import Final

VARIABLE: Final = "HEADRACE_LIFELINE"


class Lifeline:
    """The pipe, if there is one; a process that this one starts has none."""

    def __init__(self) -> None:
        number, _, self._folder = os.environ.pop(VARIABLE, "").partition(":")
        self._fd: Final = int(number) if number.isdigit() else -1
        if self._fd >= 0:
            os.set_inheritable(self._fd, False)

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch it."""
        if self._fd >= 0:
            loop.add_reader(self._fd, self._look)

    def _look(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(self._fd, 1):
                if self._folder and os.path.realpath(self._folder) == os.path.realpath("."):
                    shutil.rmtree(self._folder, ignore_errors=True)
                os._exit(0)
