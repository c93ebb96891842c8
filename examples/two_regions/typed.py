"""Lines of the standard input; in a terminal they are shown by whoever shows the rest, too."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Self

ERASE = ("\x7f", "\b")


class Typed:
    """Lines as they come.

    Attributes:
        begun: what has been typed of the next one.
    """

    def __init__(self) -> None:
        self.begun = ""
        self._fd = sys.stdin.fileno()
        self._lines: list[str] = []
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        if os.isatty(self._fd):
            self._before = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def line(self, timeout_s: float) -> str | None:
        """The next line; ``end`` once there is no more; None where none is whole by then."""
        if not self._lines and select.select([self._fd], [], [], timeout_s)[0]:
            data = os.read(self._fd, 4096)
            if not data:
                return "end"
            for character in data.decode("utf-8", "replace"):
                self._take(character)
        return self._lines.pop(0) if self._lines else None

    def _take(self, character: str) -> None:
        if character in "\r\n":
            self._lines.append(self.begun.strip())
            self.begun = ""
        elif character == "\x04":
            self._lines.append("end")
        elif character in ERASE:
            self.begun = self.begun[:-1]
        elif character.isprintable():
            self.begun += character
