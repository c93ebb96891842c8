"""What ARGREP asks of elements, regular expressions left out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import glob


@mypyc_attr(allow_interpreted_subclasses=False)
class Predicate:
    """What an element may be like."""

    @abstractmethod
    def holds(self, string: bytes) -> bool:
        """Whether it is."""
        raise NotImplementedError


class Text(Predicate):
    """An element is a text, or has it within."""

    def __init__(self, text: bytes, whole: bool, ignore_case: bool) -> None:
        self._text: Final = text.lower() if ignore_case else text
        self._whole: Final = whole
        self._ignore_case: Final = ignore_case

    def holds(self, string: bytes) -> bool:
        """The text is the element, or within it."""
        if self._ignore_case:
            string = string.lower()
        return string == self._text if self._whole else self._text in string


class Glob(Predicate):
    """A pattern with wildcards takes an element."""

    def __init__(self, pattern: bytes, ignore_case: bool) -> None:
        self._glob: Final[glob.Glob] = glob.compiled(pattern, ignore_case)

    def holds(self, string: bytes) -> bool:
        """The pattern takes the element."""
        return self._glob.matches(string)
