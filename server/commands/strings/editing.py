"""Changing a string where it is: APPEND, SETRANGE, INCR and its kin."""

from __future__ import annotations

from headrace.compat import long_double
from headrace.compat.errors import (
    ADD_NOT_FINITE,
    ADD_OVERFLOW,
    NEGATE_OVERFLOW,
    NEGATIVE_OFFSET,
    NOT_A_FLOAT,
    NOT_AN_INTEGER,
    CommandError,
)
from headrace.compat.long_double import LongDouble
from headrace.compat.numbers import INT64_MAX, INT64_MIN, encode_string, parse_integer
from headrace.server.commands.string_keys import check_length, in_place, lengthen, writable
from headrace.server.commands.strings.events import (
    APPENDED,
    INCREASED,
    INCREASED_BY_FLOAT,
    RANGE_SET,
)
from headrace.server.dispatch.call import Call
from headrace.storage.entry import Entry
from headrace.storage.string.string import string_bytes, string_length


def incr(call: Call) -> object:
    """Reply: the number after adding one; a missing key counts as 0."""
    return _add(call, 1)


def decr(call: Call) -> object:
    """Reply: the number after taking one away."""
    return _add(call, -1)


def incrby(call: Call) -> object:
    """Reply: the sum."""
    return _add(call, _operand(call))


def decrby(call: Call) -> object:
    """Reply: the difference."""
    operand = _operand(call)
    if operand == INT64_MIN:
        raise CommandError(NEGATE_OVERFLOW)
    return _add(call, -operand)


def _operand(call: Call) -> int:
    value = parse_integer(call.argv[2])
    if value is None:
        raise CommandError(NOT_AN_INTEGER)
    return value


def _add(call: Call, operand: int) -> object:
    key = call.argv[1]
    found = writable(call, key)
    total = operand if found is None else integer_of(found.value) + operand
    if not INT64_MIN <= total <= INT64_MAX:
        raise CommandError(ADD_OVERFLOW)
    replace(call, key, found, total)
    call.changed(key, INCREASED, call.argv)
    return total


def integer_of(value: object) -> int:
    """The number that a string spells; raises for one that spells none."""
    if isinstance(value, int):
        return value
    number = parse_integer(string_bytes(value) or b"")
    if number is None:
        raise CommandError(NOT_AN_INTEGER)
    return number


def replace(call: Call, key: bytes, found: Entry | None, value: object) -> None:
    """Set a string that is ``found`` or missing; a deadline stays."""
    if found is None:
        call.put(key, value)
    else:
        call.db.replace(key, value, call.now_ms)


def incrbyfloat(call: Call) -> object:
    """Reply: the sum, in decimal without an exponent.

    Recorded as the SET of its result, so that nothing depends on how it was computed.
    """
    key = call.argv[1]
    found = writable(call, key)
    augend = long_double.from_integer(0) if found is None else long_double_of(found.value)
    addend = long_double.parse(call.argv[2])
    if augend is None or addend is None:
        raise CommandError(NOT_A_FLOAT)
    total = long_double.add(augend, addend)
    if total.infinite:
        raise CommandError(ADD_NOT_FINITE)
    text = long_double.text(total)
    replace(call, key, found, text)
    call.changed(key, INCREASED_BY_FLOAT, [b"SET", key, text, b"KEEPTTL"])
    return text


def long_double_of(value: object) -> LongDouble | None:
    """The number that a string spells for INCRBYFLOAT, or None."""
    if isinstance(value, int):
        return long_double.from_integer(value)
    return long_double.parse(string_bytes(value) or b"")


def append(call: Call) -> object:
    """Reply: the length afterwards."""
    key = call.argv[1]
    more = call.argv[2]
    found = writable(call, key)
    if found is None:
        call.put(key, encode_string(more))
        size = len(more)
    else:
        size = string_length(found.value) + len(more)
        check_length(call, size)
        target = in_place(call, found)
        target += more
    call.changed(key, APPENDED, call.argv)
    return size


def setrange(call: Call) -> object:
    """An empty value changes nothing. Reply: the length afterwards."""
    key = call.argv[1]
    value = call.argv[3]
    offset = parse_integer(call.argv[2])
    if offset is None:
        raise CommandError(NOT_AN_INTEGER)
    if offset < 0:
        raise CommandError(NEGATIVE_OFFSET)
    found = writable(call, key)
    if not value:
        return 0 if found is None else string_length(found.value)
    check_length(call, offset + len(value))
    if found is None:
        target = bytearray(offset + len(value))
        call.put(key, target)
    else:
        target = in_place(call, found)
        lengthen(target, offset)
    target[offset : offset + len(value)] = value
    call.changed(key, RANGE_SET, call.argv)
    return len(target)
