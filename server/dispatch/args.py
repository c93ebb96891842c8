"""A cursor over the words of a request, for commands with options.

Each method takes what it names and moves on, or raises Redis's error; nothing indexes ``argv``.
"""

from __future__ import annotations

from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, CommandError, not_between
from headrace.compat.numbers import INT32_MAX, INT32_MIN, parse_integer


class Args:
    """The words of ``argv`` from ``start`` on.

    Attributes:
        at: index of the next word.
    """

    def __init__(self, argv: list[bytes], start: int = 1) -> None:
        self.argv = argv
        self.at = start

    @property
    def left(self) -> int:
        """How many words are left."""
        return len(self.argv) - self.at

    def word(self) -> bytes:
        """The next word; raises a syntax error when there is none."""
        if self.at >= len(self.argv):
            raise CommandError(SYNTAX)
        word = self.argv[self.at]
        self.at += 1
        return word

    def option(self) -> bytes:
        """The next word in upper case: the name of an option."""
        return self.word().upper()

    def flag(self, name: bytes) -> bool:
        """Whether the next word is ``name`` (upper case here, any case there); takes it if so."""
        if self.at < len(self.argv) and self.argv[self.at].upper() == name:
            self.at += 1
            return True
        return False

    def integer(self, error: bytes = NOT_AN_INTEGER) -> int:
        """The next word as a signed 64-bit integer; raises ``error`` for anything else."""
        value = parse_integer(self.word())
        if value is None:
            raise CommandError(error)
        return value

    def int32(self, error: bytes = b"") -> int:
        """The next word as a signed 32-bit integer.

        Args:
            error: what to raise for anything else; empty for Redis's texts that say what is wrong.
        """
        value = self.integer(error or NOT_AN_INTEGER)
        if not INT32_MIN <= value <= INT32_MAX:
            raise CommandError(error or not_between(INT32_MIN, INT32_MAX))
        return value

    def end(self) -> None:
        """Raise a syntax error when words are left."""
        if self.at < len(self.argv):
            raise CommandError(SYNTAX)
