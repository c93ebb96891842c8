"""The limit of an interpreter's memory, so that no script takes all the memory of the server.

Its memory is checked from time to time, and before it is given much. A script that has more than
the limit is ended. Lua itself refuses only what goes far beyond, because the process would not
survive a refusal in the middle of a handover.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headrace.compat import server_errors as errors
from headrace.server.scripting.errors import ScriptError

LIMIT_BYTES: Final = 1 << 30
FAR_BEYOND_BYTES: Final = 2 * LIMIT_BYTES
SMALL_BYTES: Final = 1 << 16  # what is handed over without a look
VALUE_BYTES: Final = 128  # the most that a part of a reply takes beside its text


class Memory:
    """The memory of an interpreter; ``exceeded`` if the running script has to end because of it."""

    def __init__(self) -> None:
        self._lua: Any = None
        self._used_bytes: Any = None
        self.exceeded = False

    def watch(self, lua: Any) -> None:
        """Limit this interpreter."""
        self._lua = lua
        self._used_bytes = lua.get_memory_used

    def forget(self) -> None:
        """Drop the interpreter, which is not run any more."""
        self._lua = None
        self._used_bytes = None

    def used_bytes(self) -> int:
        """Return the bytes that it holds."""
        used: int = self._used_bytes()
        return used

    def is_exceeded(self) -> bool:
        """Return whether the running script has to end."""
        if self.used_bytes() > LIMIT_BYTES:
            self.exceeded = True
        return self.exceeded

    def check(self, more_bytes: int) -> None:
        """Check that a script can be given so much. Raises: ScriptError; it has to end then."""
        if more_bytes > SMALL_BYTES and self.used_bytes() + more_bytes > LIMIT_BYTES:
            self.exceeded = True
        if self.exceeded:
            raise ScriptError(errors.NOT_ENOUGH_MEMORY)

    def begin(self, more_bytes: int) -> None:
        """Check that a script can begin with so much. Raises: ScriptError."""
        if self.used_bytes() + more_bytes <= LIMIT_BYTES // 2:
            return
        self._lua.gccollect()
        if self.used_bytes() + more_bytes > LIMIT_BYTES:
            raise ScriptError(errors.NOT_ENOUGH_MEMORY)

    def end(self) -> None:
        """End a script that had taken too much."""
        self.exceeded = False
        self._lua.gccollect()


def text_bytes(words: Sequence[object]) -> int:
    """Return the length of all strings among some values."""
    size = 0
    for word in words:
        if isinstance(word, bytes):
            size += len(word)
    return size
