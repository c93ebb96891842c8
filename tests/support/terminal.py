"""A program on a terminal of its own, as a person would use it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from support.waiting import DEADLINE_S

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Starts a program on a pseudo terminal; every wait has a deadline.

    Args:
        words: the command line.
        home: the folder that the program takes for the user's own.
    """

    def __init__(self, words: list[str], home: Path, columns: int = 250) -> None:
        self._words = words
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self._master = master
        try:
            self._process = subprocess.Popen(
                words,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                env={**os.environ, "TERM": "xterm", "HOME": str(home)},
            )
        finally:
            os.close(slave)
        self._seen = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, pattern: str, timeout_s: float = DEADLINE_S) -> re.Match[str]:
        """Wait until the program has shown ``pattern``; what was shown up to it is forgotten."""
        deadline = time.monotonic() + timeout_s
        while True:
            shown = ESCAPES.sub(b"", self._seen).replace(b"\r", b"").decode(errors="replace")
            found = re.search(pattern, shown)
            if found is not None:
                self._seen = shown[found.end() :].encode()
                return found
            left = deadline - time.monotonic()
            assert left > 0, f"{self._words} did not show {pattern!r}, but:\n{shown}"
            readable, _, _ = select.select([self._master], [], [], left)
            if readable:
                try:
                    self._seen += os.read(self._master, 65536)
                except OSError:  # the program has ended
                    raise AssertionError(
                        f"{self._words} ended without {pattern!r}:\n{shown}"
                    ) from None

    def wait(self, timeout_s: float = DEADLINE_S) -> int:
        """Wait until the program has ended; its exit code."""
        return self._process.wait(timeout_s)
