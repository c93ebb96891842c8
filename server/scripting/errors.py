"""What goes wrong in a script, as exceptions that Lua carries."""

from __future__ import annotations


class ScriptError(Exception):
    """An error that a script may catch, as a table.

    Args:
        text: the error as a client would see it, with its code.
        counted: the statistics of errors have it already.
    """

    def __init__(self, text: bytes, counted: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.counted = counted


class LibraryError(ScriptError):
    """An error that a script may catch, as a string: what Lua's own functions raise.

    Args:
        text: what is wrong.
        argument: with which argument, counted from 1; 0 for none.
    """

    def __init__(self, text: bytes, argument: int = 0) -> None:
        super().__init__(text)
        self.argument = argument
