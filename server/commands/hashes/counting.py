"""HINCRBY and HINCRBYFLOAT."""

from __future__ import annotations

from headrace.compat import long_double
from headrace.compat.errors import (
    ADD_NOT_FINITE,
    ADD_OVERFLOW,
    NOT_A_FLOAT,
    NOT_AN_INTEGER,
    CommandError,
)
from headrace.compat.hash_errors import FIELD_NOT_FLOAT, FIELD_NOT_INTEGER, INCREMENT_NOT_FINITE
from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_integer
from headrace.server.changes.events import Event
from headrace.server.commands.hashes.events import FIELD_INCREASED, FIELD_INCREASED_BY_FLOAT
from headrace.server.commands.hashes.values import changeable, drop_expired, living, made, report
from headrace.server.dispatch.call import Call
from headrace.storage.hash.hash import Hash


def hincrby(call: Call) -> object:
    """A missing field counts as 0; a deadline stays. Reply: the sum."""
    operand = parse_integer(call.argv[3])
    if operand is None:
        raise CommandError(NOT_AN_INTEGER)
    value, old = _before(call)
    total = operand
    if old is not None:
        number = parse_integer(old)
        if number is None:
            raise CommandError(FIELD_NOT_INTEGER)
        total += number
    if not INT64_MIN <= total <= INT64_MAX:
        raise CommandError(ADD_OVERFLOW)
    _after(call, value, b"%d" % total, FIELD_INCREASED, call.argv)
    return total


def hincrbyfloat(call: Call) -> object:
    """As HINCRBY, and recorded as its result. Reply: the sum, as INCRBYFLOAT writes it."""
    _, key, field, word = call.argv
    addend = long_double.parse(word)
    if addend is None:
        raise CommandError(NOT_A_FLOAT)
    if addend.infinite:
        raise CommandError(INCREMENT_NOT_FINITE)
    value, old = _before(call)
    total = addend
    if old is not None:
        augend = long_double.parse(old)
        if augend is None:
            raise CommandError(FIELD_NOT_FLOAT)
        total = long_double.add(augend, addend)
    if total.infinite:
        raise CommandError(ADD_NOT_FINITE)
    text = long_double.text(total)
    record = [b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"1", field, text]
    _after(call, value, text, FIELD_INCREASED_BY_FLOAT, record)
    return text


def _before(call: Call) -> tuple[Hash | None, bytes | None]:
    """The hash and the value of the field to be counted up, if they are there."""
    key, field = call.argv[1], call.argv[2]
    value = changeable(call, key)
    if value is None:
        return None, None
    expired: dict[bytes, None] = {}
    old = living(call, value, field, expired)
    if drop_expired(call, key, value, expired):
        value = None
    return value, old


def _after(call: Call, value: Hash | None, text: bytes, event: Event, record: list[bytes]) -> None:
    """Set the field, and report it."""
    key, field = call.argv[1], call.argv[2]
    made(call, key, value).put(field, text, call.server.data.hash_limits, keeps=True)
    report(call, key, event, record, [field])
