"""Descriptors that are kept for what is opened late, because clients may have taken all others.

What few servers need is imported when it is first asked for, and Lua's libraries are read with the
first script. An import looks for files before it opens them, and so it is known when one begins:
the finder of this module is asked first, finds nothing, and lets go of what it holds. That
is held again as soon as the event loop goes on.
"""

from __future__ import annotations

import os
import sys
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

COUNT: Final = 4  # an import opens one file at a time, and a library that it loads maybe another
RETRY_S: Final = 1.0


class SpareFiles:
    """Holds descriptors while a server runs.

    Args:
        loop: runs what is to be done later.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._held: list[int] = []
        self._is_open = True

    def begin(self) -> None:
        """Hold descriptors, and free them for each import from now on."""
        sys.meta_path.insert(0, self)
        self._hold()

    def end(self) -> None:
        """Hold nothing more."""
        sys.meta_path.remove(self)
        self._is_open = False
        self._let_go()

    def lend(self) -> None:
        """Let go of all for this turn of the event loop: files are about to be opened."""
        if self._held:
            self._let_go()
            self._loop.call_soon_threadsafe(self._hold)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find nothing; others will, and open its file."""
        self.lend()
        return None

    def _hold(self) -> None:
        """Hold as many as are lacking; those that are not to be had are asked for again."""
        try:
            while self._is_open and len(self._held) < COUNT:
                self._held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            self._loop.call_later(RETRY_S, self._hold)

    def _let_go(self) -> None:
        held, self._held = self._held, []
        for descriptor in held:
            os.close(descriptor)
