"""Errors of scripts, as exceptions that Lua carries."""

from __future__ import annotations


class ScriptError(Exception):
    """An error that a script may catch, as a table.

    ``text`` is the error with its code; ``counted``: the statistics of errors have it already.
    """

    def __init__(self, text: bytes, counted: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.counted = counted


class LibraryError(ScriptError):
    """An error that a script may catch, as a string, as Lua's own functions raise it.

    ``argument`` is the number of the wrong argument, from 1; 0 for none.
    """

    def __init__(self, text: bytes, argument: int = 0) -> None:
        super().__init__(text)
        self.argument = argument
