"""A cursor over the words of a request, for commands with options; integers, timeouts as moments.

Each method takes what it names and moves on, or raises Redis's error; nothing indexes ``argv``.
"""

from __future__ import annotations

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.long_double import milliseconds, parse
from headrace.compat.numbers import INT32_MAX, INT32_MIN, INT64_MAX, parse_integer


def integer(word: bytes, error: bytes = errors.NOT_AN_INTEGER) -> int:
    """Return the signed 64-bit integer that a word spells; raises ``error`` for none."""
    number = parse_integer(word)
    if number is None:
        raise CommandError(error)
    return number


def at_least(word: bytes, least: int, error: bytes) -> int:
    """Return the integer that a word spells; raises ``error`` for a smaller one, too."""
    number = integer(word, error)
    if number < least:
        raise CommandError(error)
    return number


def bounded(word: bytes, least: int, most: int, error: bytes) -> int:
    """Return the integer that a word spells; raises ``error`` for one out of these bounds, too."""
    number = at_least(word, least, error)
    if number > most:
        raise CommandError(error)
    return number


def deadline_of(word: bytes, now_ms: int) -> int:
    """Return the moment ``word`` ms ahead, or 0, never, for a timeout of 0; raises CommandError."""
    timeout_ms = integer(word, errors.TIMEOUT_NOT_INTEGER)
    if timeout_ms == 0:
        return 0
    if timeout_ms < 0:
        raise CommandError(errors.TIMEOUT_NEGATIVE)
    deadline_ms = timeout_ms + now_ms
    if deadline_ms > INT64_MAX:
        raise CommandError(errors.TIMEOUT_OUT_OF_RANGE)
    return deadline_ms


def deadline_of_seconds(word: bytes, now_ms: int) -> int:
    """Return ``deadline_of`` for seconds, as a fraction or hexadecimal; raises CommandError."""
    seconds = parse(word)
    if seconds is None:
        raise CommandError(errors.TIMEOUT_NOT_A_FLOAT)
    timeout_ms = milliseconds(seconds)
    if timeout_ms is None or timeout_ms > INT64_MAX:
        raise CommandError(errors.TIMEOUT_OUT_OF_RANGE)
    if timeout_ms < 0:
        raise CommandError(errors.TIMEOUT_NEGATIVE)
    if timeout_ms == 0:
        return 0
    if timeout_ms + now_ms > INT64_MAX:
        raise CommandError(errors.TIMEOUT_OUT_OF_RANGE)
    return timeout_ms + now_ms


def upper(word: bytes) -> bytes:
    """Return a word in upper case, in which options mostly are."""
    for char in word:
        if char >= 0x61:
            return word.upper()
    return word


class Args:
    """The words of ``argv`` from ``start`` on; ``at`` is the index of the next one."""

    def __init__(self, argv: list[bytes], start: int = 1) -> None:
        self.argv = argv
        self.at = start

    @property
    def left(self) -> int:
        """Return how many words are left."""
        return len(self.argv) - self.at

    def word(self) -> bytes:
        """Return the next word; raises a syntax error when there is none."""
        if self.at >= len(self.argv):
            raise CommandError(errors.SYNTAX)
        word = self.argv[self.at]
        self.at += 1
        return word

    def option(self) -> bytes:
        """Return the next word in upper case: the name of an option."""
        return upper(self.word())

    def flag(self, name: bytes) -> bool:
        """Return whether the next word is ``name`` (upper case) in any case; takes it if so."""
        if self.at < len(self.argv) and upper(self.argv[self.at]) == name:
            self.at += 1
            return True
        return False

    def integer(self, error: bytes = errors.NOT_AN_INTEGER) -> int:
        """Return the next word as a signed 64-bit integer; raises ``error`` for anything else."""
        return integer(self.word(), error)

    def int32(self, error: bytes = b"") -> int:
        """Return the next word as a signed 32-bit integer.

        Args:
            error: what to raise for anything else; empty for Redis's texts that say what is wrong.
        """
        value = self.integer(error or errors.NOT_AN_INTEGER)
        if not INT32_MIN <= value <= INT32_MAX:
            raise CommandError(error or errors.NOT_BETWEEN % (INT32_MIN, INT32_MAX))
        return value

    def end(self) -> None:
        """Raise a syntax error when words are left."""
        if self.at < len(self.argv):
            raise CommandError(errors.SYNTAX)
