"""What the functions of our libraries make of what a script hands them, and their complaints."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from headrace.server.scripting.errors import LibraryError
from headrace.server.scripting.memory import Memory, text_bytes

_INT64: Final = 1 << 63
# What C's strtod reads as a number.
_DECIMAL: Final = re.compile(
    rb"[ \t-\r]*([+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan(?:\(\w*\))?))"
    rb"[ \t-\r]*\Z",
    re.IGNORECASE,
)
_HEXADECIMAL: Final = re.compile(
    rb"[ \t-\r]*([+-]?0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)(?:p[+-]?\d+)?)[ \t-\r]*\Z",
    re.IGNORECASE,
)

Operation = Callable[[tuple[Any, ...]], object]


class Native:
    """A function of a library, as Lua calls it.

    Args:
        run: takes what a script hands over.
        complain: words an error: ``complaints.native`` of ``lua/complaints.lua``.
        memory: that of the interpreter.
    """

    def __init__(self, run: Operation, complain: Any, memory: Memory) -> None:
        self._run: Final = run
        self._complain = complain
        self._memory: Final = memory

    def call(self, *words: Any) -> object:
        """Run it. Raises: LibraryError, with all that its text says."""
        self._memory.check(text_bytes(words))
        try:
            return self._run(words)
        except LibraryError as error:
            raise LibraryError(self._complain(error.argument, error.text)) from None

    def release(self) -> None:
        """Let go of the interpreter, which holds this one: it is not to be called any more."""
        self._complain = None


def refused(index: int, why: str) -> LibraryError:
    """The error for the argument at ``index``, which is counted from 0."""
    return LibraryError(why.encode("latin-1"), index + 1)


def kind_of(words: tuple[Any, ...], index: int) -> str:
    """What Lua calls that which stands at a place."""
    if index >= len(words):
        return "no value"
    word = words[index]
    if word is None:
        return "nil"
    if isinstance(word, bool):
        return "boolean"
    if isinstance(word, bytes):
        return "string"
    kind: str | None = import_module("lupa.lua51").lua_type(word)
    return kind or "number"


def number_of(text: bytes) -> float | None:
    """The number that a string is for Lua. It ends at a NUL, as every string of C."""
    text = text.split(b"\0", 1)[0]
    found = _DECIMAL.match(text)
    if found:
        digits = found[1]
        sign = -1.0 if digits[:1] == b"-" else 1.0
        return math.copysign(math.nan, sign) if b"(" in digits else float(digits)
    found = _HEXADECIMAL.match(text)
    if found:
        try:
            return float.fromhex(found[1].decode())
        except OverflowError:
            return -math.inf if found[1][:1] == b"-" else math.inf
    return None


def number_at(words: tuple[Any, ...], index: int) -> int | float:
    """The number at a place, which may be spelled as a string. Raises: LibraryError."""
    word = words[index] if index < len(words) else None
    if isinstance(word, int | float) and not isinstance(word, bool):
        return word
    if isinstance(word, bytes):
        number = number_of(word)
        if number is not None:
            return number
    raise refused(index, f"number expected, got {kind_of(words, index)}")


def whole(number: float) -> int:
    """What C makes of a double where it wants 64 bits: the least integer where they do not do."""
    return int(number) if -_INT64 <= number < _INT64 else -_INT64


def whole_at(words: tuple[Any, ...], index: int, default: int | None = None) -> int:
    """The whole part of the number at a place. Raises: LibraryError."""
    if default is not None and (index >= len(words) or words[index] is None):
        return default
    return whole(number_at(words, index))


def spelled(number: float) -> bytes:
    """A number as ``tostring`` writes it."""
    if number != number:
        return b"-nan" if math.copysign(1.0, number) < 0 else b"nan"
    return b"%.14g" % number


def text_at(words: tuple[Any, ...], index: int) -> bytes:
    """The string at a place, or a number as ``tostring`` writes it. Raises: LibraryError."""
    word = words[index] if index < len(words) else None
    if isinstance(word, bytes):
        return word
    if isinstance(word, int | float) and not isinstance(word, bool):
        return spelled(word)
    raise refused(index, f"string expected, got {kind_of(words, index)}")
