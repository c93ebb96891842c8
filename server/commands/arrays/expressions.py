"""Regular expressions in ARGREP. They are imported when somebody uses one, because few do."""

from __future__ import annotations

from typing import Final

from headrace.compat import regex
from headrace.compat.errors import CommandError
from headrace.compat.type_errors import bad_regex
from headrace.server.commands.arrays.searching import Predicate


class Expression(Predicate):
    """A regular expression fits somewhere in an element.

    Raises:
        CommandError: the pattern is none.
    """

    def __init__(self, pattern: bytes, ignore_case: bool) -> None:
        try:
            self._regex: Final = regex.Regex(pattern, ignore_case)
        except regex.BadRegex as error:
            raise CommandError(bad_regex(error.text)) from None

    def holds(self, string: bytes) -> bool:
        """It fits somewhere in the element."""
        return self._regex.fits(string)
