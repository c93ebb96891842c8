"""Values between Lua and the server: arguments, replies of commands, results of scripts.

A value of several parts crosses as one flat list, because one long call costs less than many short
ones. A string stands for itself there, and before any other part stands a number that says what it
is; ``lua/sandbox.lua`` has the other end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from headrace.compat.errors import c_text
from headrace.protocol.doubles import double
from headrace.protocol.packing import Packer, bulk_text, flat_items, unpacked
from headrace.protocol.replies import (
    Attributed,
    BigNumber,
    Decimal,
    ErrorReply,
    Map,
    NullArray,
    Packed,
    Push,
    Set,
    Status,
    Verbatim,
)
from headrace.server.scripting.busy import Busy
from headrace.server.scripting.errors import LibraryError, ScriptError
from headrace.server.scripting.memory import VALUE_BYTES, Memory, text_bytes

_INT64: Final = 1 << 63
# The numbers that C's strtod reads.
_DECIMAL: Final = re.compile(
    rb"[ \t-\r]*([+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan(?:\(\w*\))?))"
    rb"[ \t-\r]*\Z",
    re.IGNORECASE,
)
_HEXADECIMAL: Final = re.compile(
    rb"[ \t-\r]*([+-]?0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)(?:p[+-]?\d+)?)[ \t-\r]*\Z", re.IGNORECASE
)

Operation = Callable[[tuple[Any, ...]], object]


class Native:
    """A function of a library, as Lua calls it; ``complain`` adds the words of Lua to an error."""

    def __init__(self, run: Operation, complain: Any, memory: Memory) -> None:
        self._run: Final = run
        self._complain = complain
        self._memory: Final = memory

    def call(self, *words: Any) -> object:
        """Run it. Raises: LibraryError, with the full text."""
        self._memory.check(text_bytes(words))
        try:
            return self._run(words)
        except LibraryError as error:
            raise LibraryError(self._complain(error.argument, error.text)) from None

    def release(self) -> None:
        """Drop the references to the interpreter, which holds this one; no call may follow."""
        self._complain = None


def refused(index: int, why: str) -> LibraryError:
    """Return the error for the argument at ``index``, which is counted from 0."""
    return LibraryError(why.encode("latin-1"), index + 1)


def kind_of(words: tuple[Any, ...], index: int) -> str:
    """Return Lua's name for the type of the argument at a place."""
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
    """Return the number that a string is for Lua. It ends at a NUL, as every string of C."""
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
    """Return the number at a place, which may be spelled as a string. Raises: LibraryError."""
    word = words[index] if index < len(words) else None
    if isinstance(word, int | float) and not isinstance(word, bool):
        return word
    if isinstance(word, bytes):
        number = number_of(word)
        if number is not None:
            return number
    raise refused(index, f"number expected, got {kind_of(words, index)}")


def whole(number: float) -> int:
    """Return the 64-bit integer that C makes of a double; the least one where none fits."""
    return int(number) if -_INT64 <= number < _INT64 else -_INT64


def whole_at(words: tuple[Any, ...], index: int, default: int | None = None) -> int:
    """Return the whole part of the number at a place. Raises: LibraryError."""
    if default is not None and (index >= len(words) or words[index] is None):
        return default
    return whole(number_at(words, index))


def spelled(number: float) -> bytes:
    """Return a number as ``tostring`` writes it."""
    if number != number:
        return b"-nan" if math.copysign(1.0, number) < 0 else b"nan"
    return b"%.14g" % number


def text_at(words: tuple[Any, ...], index: int) -> bytes:
    """Return the string at a place, or a number as text. Raises: LibraryError."""
    word = words[index] if index < len(words) else None
    if isinstance(word, bytes):
        return word
    if isinstance(word, int | float) and not isinstance(word, bool):
        return spelled(word)
    raise refused(index, f"string expected, got {kind_of(words, index)}")


# The markers that stand before a part, and what follows each.
FAILED: Final = 0  # the run failed: a text or an exception, the chunk, the line
NUMBER: Final = 1
NULL: Final = 2
YES: Final = 3
NO: Final = 4
LIST: Final = 5  # how many items
STATUS: Final = 6
ERROR: Final = 7
DOUBLE: Final = 8
MAP: Final = 9  # how many pairs
SET: Final = 10  # how many members
BIG: Final = 11  # its digits
VERBATIM: Final = 12  # three letters, the text
COUNTED_ERROR: Final = 13  # an error that the statistics have

_ALONE: Final[dict[object, object]] = {
    NULL: None,
    YES: True,
    NO: False,
}  # what such a part stands for without others
_MOST_VALUES: Final = 7900  # that a Lua function takes
_AT_ONCE: Final = 256  # long values that are handed over at most between two looks at the clock
_LONG_BYTES: Final = 40  # Lua may take long for those of this length: it hashes some letters only


def reply_of(left: object, resp3: bool, plain: bool, failures: list[bytes]) -> object:
    """Return the reply to what a run has left.

    Args:
        failures: takes the errors in it that are not counted yet.
        resp3: the protocol of the client.
        plain: the script has not asked for RESP3, so true is 1 and false is nothing.
    """
    if isinstance(left, bytes) or isinstance(left, int):  # noqa: SIM101  (a union would be made)
        return left
    if isinstance(left, float):
        return whole(left)
    parts: Sequence[Any] = left if isinstance(left, tuple) else list(left.values())  # type: ignore[attr-defined]
    kind = parts[0]
    if kind == STATUS:
        return Status(_one_line(c_text(parts[1])))
    if kind in (ERROR, COUNTED_ERROR):
        error = c_text(parts[1])
        if kind == ERROR:
            failures.append(error)
        return ErrorReply(error)
    if kind == YES:
        return 1 if plain else True
    if kind == NO:
        return None if plain else False
    if kind == NULL:
        return None
    return _packed(parts, resp3, plain, failures)


def _one_line(text: bytes) -> bytes:
    return text.replace(b"\r", b" ").replace(b"\n", b" ")


def _packed(parts: Sequence[Any], resp3: bool, plain: bool, failures: list[bytes]) -> Packed:
    out = Packer(resp3)
    at = 0
    size = len(parts)
    while at < size:
        kind = parts[at]
        if isinstance(kind, bytes):
            out.text(kind)
            at += 1
            continue
        if kind == NUMBER:
            out.number(whole(parts[at + 1]))
        elif kind == LIST:
            out.array(parts[at + 1])
        elif kind == NULL or (kind == NO and plain):
            out.null()
            at += 1
            continue
        elif kind in (YES, NO):
            out.reply(1 if plain else kind == YES)
            at += 1
            continue
        elif kind == STATUS:
            out.reply(Status(_one_line(c_text(parts[at + 1]))))
        elif kind in (ERROR, COUNTED_ERROR):
            error = c_text(parts[at + 1])
            if kind == ERROR:
                failures.append(error)
            out.reply(ErrorReply(error))
        elif kind == DOUBLE:
            out.double(float(parts[at + 1]))
        elif kind == MAP:
            out.map(parts[at + 1])
        elif kind == SET:
            out.set(parts[at + 1])
        elif kind == BIG:
            out.big_digits(_one_line(parts[at + 1]))
        else:
            out.reply(Verbatim(parts[at + 2], c_text(parts[at + 1])[:3].ljust(3)))
            at += 1
        at += 2
    return out.packed()


class Builders:
    """The functions of one interpreter that make values for scripts, from ``lua/sandbox.lua``."""

    def __init__(self, made: Any, table_from: Any, busy: Busy) -> None:
        self._busy: Final = busy
        self._extend: Final = made[b"extend"]
        self._status: Final = made[b"status"]
        self._list: Final = made[b"list"]
        self._value_of: Final = made[b"value_of"]
        self._value_of_list: Final = made[b"value_of_list"]
        self._table_from: Final = table_from

    def value(self, reply: object, resp3: bool, memory: Memory) -> object:
        """Return a script's value of a reply that is no error. Raises: ScriptError, out of memory.

        ``resp3`` is what the script has asked for, and the reply was packed for.
        """
        if isinstance(reply, bytes):
            memory.check(len(reply))
            return reply
        if isinstance(reply, int) and not isinstance(reply, bool):
            return reply
        if reply is None or isinstance(reply, NullArray):
            return None if resp3 else False
        if isinstance(reply, Status):
            return self._status(reply.line[1:-2])
        if isinstance(reply, Packed):
            text = bulk_text(reply.wire)
            if text is not None:
                memory.check(len(text))
                return text
            items = flat_items(reply.wire, None if resp3 else False)
            if items is not None and not (resp3 and None in items):
                # Strings, numbers and booleans need no marker.
                memory.check(len(reply.wire) + VALUE_BYTES * len(items))
                if _is_quick(items, len(reply.wire)):
                    return self._list(*items)
                return self.table(items)
        parts: list[object] = []
        flatten(parts, unpacked(reply), resp3)
        size = text_bytes(parts)
        memory.check(size + VALUE_BYTES * len(parts))
        if len(parts) == 1:
            return _ALONE.get(parts[0], parts[0])
        if _is_quick(parts, size):
            return self._value_of(*parts)
        return self._value_of_list(self.table(parts))

    def table(self, items: list[Any]) -> object:
        """Return a table of very many values, or long ones. Raises: ScriptError, if it has to end.

        Lua 5.1 hashes at most 32 letters of a string. Strings that are alike in these collide, and
        it walks past all of them for each. So it is asked in between whether to go on.
        """
        made = self._table_from(())
        at = 0
        count = _AT_ONCE
        while at < len(items):
            if self._busy.is_to_end():
                raise ScriptError(self._busy.refusal())
            count = max(1, count // 4) if self._busy.was_long else min(_AT_ONCE, 2 * count)
            self._extend(made, at, *items[at : at + count])
            at += count
        return made


def _is_quick(items: list[Any], size_bytes: int) -> bool:
    """Return whether values of ``size_bytes`` are few or short enough for one call."""
    count = len(items)
    return count <= _AT_ONCE or (count < _MOST_VALUES and size_bytes < _LONG_BYTES * count)


def flatten(parts: list[object], reply: object, resp3: bool) -> None:
    """Append a reply, in which nothing is packed, in the form for a script."""
    if isinstance(reply, bytes):
        parts.append(reply)
    elif isinstance(reply, bool):
        if resp3:
            parts.append(YES if reply else NO)
        else:
            parts += (NUMBER, int(reply))
    elif isinstance(reply, int):
        parts.append(NUMBER)
        parts.append(reply)
    elif isinstance(reply, list | tuple):
        _flatten_items(parts, list(reply), resp3)
    elif reply is None or isinstance(reply, NullArray):
        parts.append(NULL if resp3 else NO)
    elif isinstance(reply, Status):
        parts += (STATUS, reply.line[1:-2])
    elif isinstance(reply, ErrorReply):
        parts += (ERROR, reply.text)
    else:
        _flatten_rare(parts, reply, resp3)


def _flatten_items(parts: list[object], items: list[object], resp3: bool) -> None:
    parts.append(LIST)
    parts.append(len(items))
    for item in items:
        flatten(parts, item, resp3)


def _flatten_rare(parts: list[object], reply: object, resp3: bool) -> None:
    if isinstance(reply, Map):
        if resp3:
            parts += (MAP, len(reply.pairs))
        else:
            parts += (LIST, 2 * len(reply.pairs))
        for name, value in reply.pairs:
            flatten(parts, name, resp3)
            flatten(parts, value, resp3)
    elif isinstance(reply, Set) and resp3:
        parts += (SET, len(reply.items))
        for item in reply.items:
            flatten(parts, item, resp3)
    elif isinstance(reply, Set | Push):
        _flatten_items(parts, reply.items, resp3)
    elif isinstance(reply, float):
        parts += (DOUBLE, reply) if resp3 else (double(reply),)
    elif isinstance(reply, Decimal):
        parts += (DOUBLE, float(reply.digits)) if resp3 else (reply.digits,)
    elif isinstance(reply, BigNumber):
        digits = b"%d" % reply.value
        parts += (BIG, digits) if resp3 else (digits,)
    elif isinstance(reply, Verbatim):
        parts += (VERBATIM, reply.kind, reply.text) if resp3 else (reply.text,)
    elif isinstance(reply, Attributed):
        flatten(parts, reply.reply, resp3)
    else:
        raise TypeError(f"not a reply value: {type(reply).__name__}")
