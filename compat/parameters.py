"""Kinds of configuration parameter: how Redis reads, checks, shows and rewrites their values.

A ``Parameter`` is one entry of ``server/config/parameters.txt``. A subclass is a kind. ``parse``
takes the words that follow the name and gives the value to keep, or raises ``BadValue`` with
Redis's own reason; ``show`` gives what CONFIG GET answers; ``rewritten`` gives what CONFIG REWRITE
puts behind the name in the file. Values are never changed in place.
Source: config.c of Redis 7.0 and 7.4.
"""

from __future__ import annotations

import re
from typing import Final

from headrace.compat.numbers import parse_integer
from headrace.protocol.requests import quoted

IMMUTABLE: Final = 1 << 0  # only at start
PROTECTED: Final = 1 << 1  # at run time only as enable-protected-configs allows
SENSITIVE: Final = 1 << 2  # the value stays out of logs
HIDDEN: Final = 1 << 3  # CONFIG GET shows it by its full name only
MULTI: Final = 1 << 4  # several words
NOT_WHILE_LOADING: Final = 1 << 5
RELOADS: Final = 1 << 6  # names a file: the same name again asks to read it again

INT_MAX: Final = (1 << 31) - 1
INT_MIN: Final = -(1 << 31)
UINT_MAX: Final = (1 << 32) - 1
LONG_MAX: Final = (1 << 63) - 1
ULONG_MAX: Final = (1 << 64) - 1
KB: Final = 1 << 10
MB: Final = 1 << 20
GB: Final = 1 << 30

WRONG_COUNT: Final = "wrong number of arguments"
NOT_YES_NO: Final = "argument must be 'yes' or 'no'"
NUMBER_NOT_INTEGER: Final = "argument couldn't be parsed into an integer"
NOT_OCTAL: Final = "argument couldn't be parsed as an octal number"
NOT_MEMORY: Final = "argument must be a memory value"
NOT_MEMORY_OR_PERCENT: Final = "argument must be a memory or percent value"
BAD_OOM_VALUES: Final = "Invalid oom-score-adj-values, elements must be between -2000 and 2000."

# What a range may end with, by the names that a table has for it.
LIMITS: Final[dict[str, int]] = {
    "INT_MIN": INT_MIN,
    "INT_MAX": INT_MAX,
    "UINT_MAX": UINT_MAX,
    "LONG_MAX": LONG_MAX,
    "ULONG_MAX": ULONG_MAX,
}

# Patterns that are compiled when first needed.
_LOOSE_INTEGER: Final = rb"[ \t\n\v\f\r]*[+-]?[0-9]+\Z"
_OCTAL: Final = rb"[ \t\n\v\f\r]*[+-]?[0-7]+\Z"
_MEMORY: Final = rb"([0-9]{0,127})([a-zA-Z]*)\Z"
_UNITS: Final[dict[bytes, int]] = {
    b"": 1,
    b"b": 1,
    b"k": 1000,
    b"kb": KB,
    b"m": 1000**2,
    b"mb": MB,
    b"g": 1000**3,
    b"gb": GB,
}


class BadValue(Exception):
    """A value that a parameter does not take; ``reason`` is the text for the user."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: Final = reason


def loose_integer(word: bytes) -> int | None:
    """Return an integer as C's strtoll reads one: signs, leading zeros, nothing at all for 0."""
    if not word:
        return 0
    if re.match(_LOOSE_INTEGER, word) is None:
        return None
    return max(-LONG_MAX - 1, min(LONG_MAX, int(word)))


def memory_size(word: bytes) -> int | None:
    """Return the bytes that ``word`` means (``4kb`` is 4096, ``4k`` is 4000), or None."""
    found = re.match(_MEMORY, word)
    if found is None:
        return None
    unit = _UNITS.get(found.group(2).lower())
    if unit is None:
        return None
    digits: bytes = found.group(1)
    return (min(int(digits or b"0"), ULONG_MAX) * unit) & ULONG_MAX


def memory_text(size: int) -> bytes:
    """Return ``size`` in the largest unit that divides it, as CONFIG REWRITE writes it."""
    for unit, name in ((GB, b"gb"), (MB, b"mb"), (KB, b"kb")):
        if size and size % unit == 0:
            return b"%d%b" % (size // unit, name)
    return b"%d" % size


class Parameter:
    """One parameter; a subclass per kind.

    Args:
        name: as in redis.conf.
        limits: the words behind its kind, which say what values it takes.

    Attributes:
        default: the value when nothing sets it.
        flags: of the bits above.
        alias: an older name that Redis understands too.
        doc: what it does, for ``docs/configuration.md``; empty when it does nothing here.
        unsupported: why a value other than the default is refused; empty when it is not.
    """

    def __init__(self, name: str, limits: list[str]) -> None:
        self.name: Final = name
        self.wire: Final = name.encode()
        self.attribute: Final = name.replace("-", "_")
        self.default: object = None
        self.flags = 0
        self.alias = b""
        self.doc = ""
        self.unsupported = ""

    def first(self, words: list[bytes]) -> object:
        """Return the value that the words of its default mean. Raises: BadValue."""
        return self.parse(words, None)

    def read(self, words: list[bytes], current: object) -> object:
        """Return the value that ``words`` mean, given the ``current`` one. Raises: BadValue."""
        if not self.flags & MULTI and len(words) != 1:
            raise BadValue(WRONG_COUNT)
        value = self.parse(words, current)
        if self.unsupported and value != self.default:
            raise BadValue(self.unsupported)
        return value

    def parse(self, words: list[bytes], current: object) -> object:
        """Return the value as ``read``, without the checks that all kinds share."""
        raise NotImplementedError

    def show(self, value: object) -> bytes:
        """Return ``value`` as CONFIG GET answers it: bytes, if a kind keeps nothing else."""
        return text(value)

    def rewritten(self, value: object) -> bytes:
        """Return ``value`` as it is written behind the name in a configuration file."""
        return self.show(value)

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        """Return the lines of a rewritten file, each with whether a new one is needed."""
        return [(b"%b %b" % (self.wire, self.rewritten(value)), value != self.default)]

    def range_text(self) -> str:
        """Return the values that it takes, for the documentation."""
        return ""


class YesNo(Parameter):
    """``yes`` or ``no``; kept as a bool."""

    def parse(self, words: list[bytes], current: object) -> object:
        word = words[0].lower()
        if word not in (b"yes", b"no"):
            raise BadValue(NOT_YES_NO)
        return word == b"yes"

    def show(self, value: object) -> bytes:
        return b"yes" if value else b"no"

    def range_text(self) -> str:
        return "yes, no"


class Integer(Parameter):
    """An integer between ``low`` and ``high``, both included: ``0 INT_MAX``.

    With ``clamp 1 500`` behind it a value in that range is moved into a narrower one.
    """

    def __init__(self, name: str, limits: list[str]) -> None:
        super().__init__(name, limits)
        ends = [self.end(word) for word in limits if word != "clamp"]
        self.low: Final = ends[0]
        self.high: Final = ends[1]
        self.clamp: Final = (ends[2], ends[3]) if len(ends) > 2 else None

    def end(self, word: str) -> int:
        """Return the end of a range that a word of the table means."""
        return LIMITS[word] if word in LIMITS else int(word)

    def parse(self, words: list[bytes], current: object) -> object:
        value = parse_integer(words[0])
        if value is None:
            raise BadValue(NUMBER_NOT_INTEGER)
        self.check(value)
        if self.clamp is not None:
            return max(self.clamp[0], min(self.clamp[1], value))
        return value

    def check(self, value: int) -> None:
        """Raise BadValue when ``value`` is out of range."""
        if not self.low <= value <= self.high:
            raise BadValue(f"argument must be between {self.low} and {self.high} inclusive")

    def show(self, value: object) -> bytes:
        return b"%d" % number(value)

    def range_text(self) -> str:
        low, high = self.clamp or (self.low, self.high)
        if high >= INT_MAX:
            return "any integer" if low <= INT_MIN else f"{low} or more"
        return f"{low} to {high}"


class Memory(Integer):
    """A number of bytes, with a unit or without; kept as an int."""

    def end(self, word: str) -> int:
        return LIMITS[word] if word in LIMITS else memory_size(word.encode()) or 0

    def parse(self, words: list[bytes], current: object) -> object:
        value = memory_size(words[0])
        if value is None:
            raise BadValue(NOT_MEMORY)
        self.check(value)
        return value

    def rewritten(self, value: object) -> bytes:
        return memory_text(number(value))

    def range_text(self) -> str:
        low = memory_text(self.low).decode()
        if self.high >= INT_MAX:
            return f"memory size, {low} or more"
        return f"memory size, {low} to {memory_text(self.high).decode()}"


class MemoryOrPercent(Integer):
    """A number of bytes, or a percentage of ``maxmemory``, which is kept as a negative int."""

    def parse(self, words: list[bytes], current: object) -> object:
        word = words[0]
        value = memory_size(word)
        if value is None:
            percent = parse_integer(word[:-1]) if word[-1:] == b"%" else None
            if percent is None or percent < 0:
                raise BadValue(NOT_MEMORY_OR_PERCENT)
            value = -percent
        elif value > LONG_MAX:
            value -= ULONG_MAX + 1
        if value < self.low:
            raise BadValue(f"percentage argument must be less or equal to {-self.low}")
        return value

    def show(self, value: object) -> bytes:
        size = number(value)
        return b"%d" % size if size >= 0 else b"%d%%" % -size

    def rewritten(self, value: object) -> bytes:
        size = number(value)
        return memory_text(size) if size >= 0 else self.show(value)

    def range_text(self) -> str:
        return f"memory size, or 0% to {-self.low}% of `maxmemory`"


class Octal(Integer):
    """Permission bits, read and shown in base eight."""

    def end(self, word: str) -> int:
        return int(word, 8)

    def parse(self, words: list[bytes], current: object) -> object:
        word = words[0]
        if word and re.match(_OCTAL, word) is None:
            raise BadValue(NOT_OCTAL)
        value = int(word or b"0", 8)
        if not self.low <= value <= self.high:
            raise BadValue(f"argument must be between {self.low:o} and {self.high:o} inclusive")
        return value

    def show(self, value: object) -> bytes:
        return b"%o" % number(value)

    def range_text(self) -> str:
        return f"{self.low:o} to {self.high:o} (octal)"


class Choice(Parameter):
    """One of some words; kept as it stands in ``choices``, whatever the case it came in.

    ``relative=yes`` means ``yes`` and is shown as that.
    """

    def __init__(self, name: str, limits: list[str]) -> None:
        super().__init__(name, limits)
        pairs = [limit.encode().partition(b"=") for limit in limits]
        self.choices: Final = tuple([word for word, _, _ in pairs])
        self.synonyms: Final = {word: other for word, _, other in pairs if other}

    def parse(self, words: list[bytes], current: object) -> object:
        if len(words) != 1:
            raise BadValue(self.refusal())
        return self.one(words[0])

    def one(self, word: bytes) -> bytes:
        """Return the choice that ``word`` is."""
        lowered = word.lower()
        for choice in self.choices:
            if choice.lower() == lowered:
                return self.synonyms.get(choice, choice)
        raise BadValue(self.refusal())

    def refusal(self) -> str:
        """Return the reason that lists the choices."""
        names = ", ".join([choice.decode() for choice in self.choices])
        return f"argument(s) must be one of the following: {names}"

    def range_text(self) -> str:
        return ", ".join([choice.decode() for choice in self.choices])


class ChoiceSet(Choice):
    """Some of some words, such as ``nosave now``; kept as they are shown, joined by spaces.

    The first choice stands for "none of the others". ``save`` and ``nosave`` exclude each other.
    """

    def parse(self, words: list[bytes], current: object) -> object:
        if not words:
            raise BadValue(self.refusal())
        named = [self.one(word) for word in words]
        if b"save" in named and b"nosave" in named:
            raise BadValue("shutdown options SAVE and NOSAVE can't be used simultaneously")
        chosen = [choice for choice in self.choices[1:] if choice in named]
        return b" ".join(chosen) if chosen else self.choices[0]

    def range_text(self) -> str:
        return f"{super().range_text()} (several may be given)"


class Text(Parameter):
    """Any bytes; ``filename`` or ``dirname``: no path; ``not-empty``: at least one."""

    def __init__(self, name: str, limits: list[str]) -> None:
        super().__init__(name, limits)
        self.may_be_empty: Final = "not-empty" not in limits
        self.base_name_of: Final = "".join([word for word in limits if word != "not-empty"])

    def parse(self, words: list[bytes], current: object) -> object:
        word = words[0]
        if not word and not self.may_be_empty:
            raise BadValue(f"{self.name} can't be empty")
        if self.base_name_of and (b"/" in word or b"\\" in word):
            raise BadValue(f"{self.name} can't be a path, just a {self.base_name_of}")
        return word

    def rewritten(self, value: object) -> bytes:
        return quoted(text(value))

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        """Return no line at all for an empty value that is the default."""
        return super().lines(value) if value or self.default else []

    def range_text(self) -> str:
        return f"{self.base_name_of} without a path" if self.base_name_of else "text"


class OomScores(Parameter):
    """Three integers between -2000 and 2000; kept as a list."""

    def parse(self, words: list[bytes], current: object) -> object:
        if len(words) != 3:
            raise BadValue(WRONG_COUNT)
        values: list[int] = []
        for word in words:
            value = loose_integer(word)
            if value is None or not -2000 <= value <= 2000:
                raise BadValue(BAD_OOM_VALUES)
            values.append(value)
        return values

    def show(self, value: object) -> bytes:
        assert isinstance(value, list)
        return b" ".join([b"%d" % each for each in value])

    def range_text(self) -> str:
        return "three integers, -2000 to 2000"


class ReplicaOf(Parameter):
    """The server to follow: host and port with a space between, or empty bytes for none."""

    def parse(self, words: list[bytes], current: object) -> object:
        if len(words) != 2:
            raise BadValue(WRONG_COUNT)
        if words[0].lower() != b"no" or words[1].lower() != b"one":
            port = loose_integer(words[1])
            if port is None or not 0 <= port <= 65535:
                raise BadValue("Invalid master port")
            return b"%b %d" % (words[0], port)
        return b""

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        """Return no line where there is no server to follow."""
        return super().lines(value) if value else []

    def range_text(self) -> str:
        return "`<host> <port>`, or `no one`"


def number(value: object) -> int:
    """Return ``value``, which is an int."""
    assert isinstance(value, int)
    return value


def text(value: object) -> bytes:
    """Return ``value``, which is bytes."""
    assert isinstance(value, bytes)
    return value
