"""Commands that change a string in place: APPEND, SETRANGE, INCR and its kin, and INCREX.

INCREX is a counter with bounds and an expiry, in one step. Source: redis.io/commands/increx (8.8),
redis pull requests 15045 and 15237 with their tests.
"""

from __future__ import annotations

from headrace.compat import errors, long_double
from headrace.compat.errors import CommandError
from headrace.compat.long_double import LongDouble
from headrace.compat.numbers import INT64_MAX, INT64_MIN, encode_string, is_int64, parse_integer
from headrace.protocol.replies import Decimal
from headrace.server.changes.events import PERSISTED
from headrace.server.commands.shared import delete_expired
from headrace.server.commands.strings.strings import (
    APPENDED,
    INCREASED,
    INCREASED_BY_FLOAT,
    RANGE_SET,
    StringOptions,
    report_deadline,
    set_record,
)
from headrace.server.commands.typed_keys import check_length, in_place, lengthen, writable
from headrace.server.dispatch.args import Args, integer
from headrace.server.dispatch.call import Call
from headrace.storage.entry import Entry
from headrace.storage.key_table import NO_EXPIRY
from headrace.storage.string.string import string_bytes, string_length


def incr(call: Call) -> object:
    """Reply: the number after adding one; a missing key counts as 0."""
    return _add(call, 1)


def decr(call: Call) -> object:
    """Reply: the number after taking one away."""
    return _add(call, -1)


def incrby(call: Call) -> object:
    """Reply: the sum."""
    return _add(call, integer(call.argv[2]))


def decrby(call: Call) -> object:
    """Reply: the difference."""
    operand = integer(call.argv[2])
    if operand == INT64_MIN:
        raise CommandError(errors.NEGATE_OVERFLOW)
    return _add(call, -operand)


def _add(call: Call, operand: int) -> object:
    key = call.argv[1]
    found = writable(call, key)
    total = operand if found is None else integer_of(found.value) + operand
    if not is_int64(total):
        raise CommandError(errors.ADD_OVERFLOW)
    replace(call, key, found, total)
    call.changed(key, INCREASED, call.argv)
    return total


def integer_of(value: object) -> int:
    """Return the number that a string spells; raises for one that spells none."""
    if isinstance(value, int):
        return value
    number = parse_integer(string_bytes(value) or b"")
    if number is None:
        raise CommandError(errors.NOT_AN_INTEGER)
    return number


def replace(call: Call, key: bytes, found: Entry | None, value: object) -> None:
    """Set a string that is ``found`` or missing; a deadline stays."""
    if found is None:
        call.put(key, value)
    else:
        call.db.replace(key, value, call.now_ms)


def incrbyfloat(call: Call) -> object:
    """Recorded as the SET of its result, so that nothing depends on how it was computed.

    Reply: the sum, in decimal without an exponent.
    """
    key = call.argv[1]
    found = writable(call, key)
    augend = long_double.from_integer(0) if found is None else long_double_of(found.value)
    addend = long_double.parse(call.argv[2])
    if augend is None or addend is None:
        raise CommandError(errors.NOT_A_FLOAT)
    total = long_double.add(augend, addend)
    if total.infinite:
        raise CommandError(errors.ADD_NOT_FINITE)
    text = long_double.text(total)
    replace(call, key, found, text)
    call.changed(key, INCREASED_BY_FLOAT, set_record(call, key, text, -1, True))
    return text


def long_double_of(value: object) -> LongDouble | None:
    """Return the number that a string spells for INCRBYFLOAT, or None."""
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
    offset = integer(call.argv[2])
    if offset < 0:
        raise CommandError(errors.NEGATIVE_OFFSET)
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


class _Options:
    """The options of INCREX; the bounds are not looked at yet.

    Attributes:
        by: ``BYINT``, ``BYFLOAT`` or empty.
        increment: of an integer; ``float_increment``: of ``BYFLOAT``, None without it.
        lower, upper: bounds; one that was not given is None.
        saturate: stop at the bound rather than leave everything as it is.
        enx: a deadline that is there stays.
    """

    def __init__(self) -> None:
        self.by = b""
        self.increment = 1
        self.float_increment: LongDouble | None = None
        self.lower: bytes | None = None
        self.upper: bytes | None = None
        self.saturate = False
        self.enx = False
        self.expiry = StringOptions()


def increx(call: Call) -> object:
    """Without options the key counts up by one; recorded as a SET with an absolute deadline.

    A sum out of bounds, or out of what the type holds, leaves the value and its deadline alone;
    SATURATE takes the nearest bound instead.

    Reply: the value afterwards and what was added to it: integers, after BYFLOAT doubles.
    """
    options = _options(call.argv)
    if options.float_increment is not None:
        return _add_float(call, options, options.float_increment)
    return _add_integer(call, options)


def _options(argv: list[bytes]) -> _Options:
    options = _Options()
    args = Args(argv, 2)
    while args.left:
        option = args.option()
        if option in (b"BYINT", b"BYFLOAT") and not options.by:
            options.by = option
            _take_increment(options, args.word())
        elif option == b"LBOUND" and options.lower is None:
            options.lower = args.word()
        elif option == b"UBOUND" and options.upper is None:
            options.upper = args.word()
        elif option == b"SATURATE" and not options.saturate:
            options.saturate = True
        elif option == b"ENX" and not options.enx:
            options.enx = True
        elif options.expiry.ttl or not options.expiry.take_ttl(args, option, b"PERSIST"):
            raise CommandError(errors.SYNTAX)
        if options.enx and options.expiry.ttl == b"PERSIST":
            raise CommandError(errors.SYNTAX)
    return options


def _take_increment(options: _Options, word: bytes) -> None:
    if options.by == b"BYINT":
        options.increment = _integer(word, b"Increment")
        return
    options.float_increment = _float(word, b"Increment")
    if options.float_increment.infinite:
        raise CommandError(errors.INCREMENT_INFINITE)


def _deadline_ms(call: Call, options: _Options) -> int:
    """Return when the key is to expire; checked after the numbers, as in Redis."""
    if options.enx and not options.expiry.ttl:
        raise CommandError(errors.ENX_WITHOUT_EXPIRY)
    return options.expiry.deadline_ms(call)


def _add_integer(call: Call, options: _Options) -> object:
    operand = options.increment
    lower = INT64_MIN if options.lower is None else _integer(options.lower, b"LBOUND")
    upper = INT64_MAX if options.upper is None else _integer(options.upper, b"UBOUND")
    bounded = options.lower is not None or options.upper is not None
    if bounded and lower > upper:
        raise CommandError(errors.BOUNDS_CROSSED)
    moment_ms = _deadline_ms(call, options)
    found = writable(call, call.argv[1])
    old = 0 if found is None else integer_of(found.value)
    total = old + operand
    if not (lower <= total <= upper if bounded else is_int64(total)):
        if not options.saturate:
            return [old, 0]
        total = min(max(total, lower), upper)
    applied = total - old
    if not is_int64(applied):
        raise CommandError(errors.APPLIED_OVERFLOW)
    _set(call, options, found, total, b"%d" % total, moment_ms)
    return [total, applied]


def _integer(word: bytes, what: bytes) -> int:
    value = parse_integer(word)
    if value is None:
        raise CommandError(errors.NUMBER_NOT_INTEGER % what)
    return value


def _add_float(call: Call, options: _Options, operand: LongDouble) -> object:
    lower = long_double.LEAST if options.lower is None else _float(options.lower, b"LBOUND")
    upper = long_double.GREATEST if options.upper is None else _float(options.upper, b"UBOUND")
    if long_double.exceeds(lower, upper):
        raise CommandError(errors.BOUNDS_CROSSED)
    moment_ms = _deadline_ms(call, options)
    found = writable(call, call.argv[1])
    old = long_double.from_integer(0) if found is None else long_double_of(found.value)
    if old is None:
        raise CommandError(errors.NOT_A_FLOAT)
    if old.infinite:
        raise CommandError(errors.VALUE_INFINITE)
    total = long_double.add(old, operand)
    low = long_double.exceeds(lower, total) or long_double.exceeds(long_double.LEAST, total)
    if low or total.infinite or long_double.exceeds(total, upper):
        if not options.saturate:
            return [Decimal(long_double.text(old)), Decimal(b"0")]
        total = lower if low else upper
    applied = long_double.add(total, long_double.negated(old))
    if applied.infinite:
        raise CommandError(errors.APPLIED_INFINITE)
    text = long_double.text(total)
    _set(call, options, found, text, text, moment_ms)
    return [Decimal(text), Decimal(long_double.text(applied))]


def _float(word: bytes, what: bytes) -> LongDouble:
    value = long_double.parse(word)
    if value is None:
        raise CommandError(errors.NUMBER_NOT_FLOAT % what)
    return value


def _set(
    call: Call,
    options: _Options,
    found: Entry | None,
    value: object,
    text: bytes,
    moment_ms: int,
) -> None:
    """Set the sum with its deadline; a moment that is over removes the key instead."""
    key = call.argv[1]
    if options.enx and found is not None and found.expire_ms != NO_EXPIRY:
        moment_ms = -1
    if moment_ms >= 0 and options.expiry.has_passed(call, moment_ms):
        call.server.changes.expired_keys += 1
        if found is not None:
            delete_expired(call, key)
        return
    replace(call, key, found, value)
    event = INCREASED_BY_FLOAT if options.by == b"BYFLOAT" else INCREASED
    if moment_ms >= 0:
        call.db.expire_at(key, moment_ms)
        call.changed(key, event, set_record(call, key, text, moment_ms))
        report_deadline(call, key)
        return
    persisted = options.expiry.ttl == b"PERSIST" and call.db.persist(key)
    call.changed(key, event, set_record(call, key, text, -1, not persisted))
    if persisted:
        call.changed(key, PERSISTED, None, count=0)
