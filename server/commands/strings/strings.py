"""Reading and setting one string: GET, SET and their kin."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import NOT_AN_INTEGER, SYNTAX, WRONGTYPE, CommandError
from headrace.compat.numbers import encode_string, parse_integer
from headrace.protocol.replies import OK
from headrace.server.changes.events import PERSISTED
from headrace.server.commands.deadlines import delete_expired, expired_at_once, set_deadline
from headrace.server.commands.storing import store
from headrace.server.commands.string_keys import string_at
from headrace.server.commands.strings.conditional import holds
from headrace.server.commands.strings.events import SET
from headrace.server.commands.strings.values import (
    ALWAYS,
    IF_MISSING,
    IF_THERE,
    StringOptions,
    deadline_ms,
    report_deadline,
    store_until,
)
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import KeySpec
from headrace.storage.string.string import string_length

READ_KEY: Final = (KeySpec("RO ACCESS"),)
UPDATE_KEY: Final = (KeySpec("RW ACCESS UPDATE"),)


def get(call: Call) -> object:
    """Reply: the value, or nil."""
    return string_at(call, call.argv[1])


def set_(call: Call) -> object:
    """Recorded as ``_record`` says.

    With a deadline that has passed the key goes, and nothing is stored.

    Reply: OK, or nil when the condition kept the key as it was; with GET the old value or nil.
    Source: t_string.c, setGenericCommand.
    """
    argv = call.argv
    key = argv[1]
    if len(argv) == 3:
        store(call, key, encode_string(argv[2]))
        call.changed(key, SET, argv)
        return OK
    options = _set_options(argv)
    moment_ms = options.deadline_ms(call)
    reply: object = OK
    if options.get:
        reply = string_at(call, key)
    if options.condition != ALWAYS and not _may_set(call, key, options):
        return reply if options.get else None
    if moment_ms < 0:
        store(call, key, encode_string(argv[2]), bool(options.ttl))
        call.changed(key, SET, _record(argv, options, moment_ms))
    elif options.has_passed(call, moment_ms):
        expired_at_once(call, key, call.db.entry(key, call.now_ms) is not None)
    else:
        _set_until(call, key, argv[2], moment_ms, _record(argv, options, moment_ms))
    return reply


def _record(argv: list[bytes], options: StringOptions, moment_ms: int) -> list[bytes]:
    """As it came, but with an absolute deadline, or else without GET.

    What compares is left out: it has held, and Redis before 8.4 does not know it.
    """
    if moment_ms >= 0:
        is_exact = options.ttl == b"PXAT" and not options.compares
        return argv if is_exact else [*argv[:3], b"PXAT", b"%d" % moment_ms]
    if options.compares:
        return [*argv[:3], b"KEEPTTL"] if options.ttl else argv[:3]
    if options.get:
        return argv[:3] + [word for word in argv[3:] if word.upper() != b"GET"]
    return argv


def _set_options(argv: list[bytes]) -> StringOptions:
    """``[NX|XX|IFEQ v|IFNE v|IFDEQ d|IFDNE d] [GET] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL]``."""
    options = StringOptions()
    args = Args(argv, 3)
    while args.left:
        option = args.option()
        if option == b"GET":
            options.get = True
        elif not (
            options.take_existence(option)
            or options.take_ttl(args, option, b"KEEPTTL")
            or options.take_comparison(args, option)
        ):
            raise CommandError(SYNTAX)
    return options


def _may_set(call: Call, key: bytes, options: StringOptions) -> bool:
    found = call.db.entry(key, call.now_ms)
    if options.condition == IF_MISSING:
        return found is None
    if options.condition == IF_THERE:
        return found is not None
    return holds(found, options.condition, options.expected, WRONGTYPE)


def _set_until(call: Call, key: bytes, value: bytes, moment_ms: int, record: list[bytes]) -> None:
    store_until(call, key, encode_string(value), moment_ms)
    call.changed(key, SET, record)
    report_deadline(call, key)


def setnx(call: Call) -> object:
    """Reply: 1 when it was set, 0 when the key was there."""
    argv = call.argv
    key = argv[1]
    if call.db.entry(key, call.now_ms) is not None:
        return 0
    store(call, key, encode_string(argv[2]))
    call.changed(key, SET, argv)
    return 1


def setex(call: Call) -> object:
    """Reply: OK."""
    return _setex(call, b"EX")


def psetex(call: Call) -> object:
    """Reply: OK."""
    return _setex(call, b"PX")


def _setex(call: Call, unit: bytes) -> object:
    _, key, time, value = call.argv
    moment_ms = deadline_ms(call, unit, time)
    record = [b"SET", key, value, b"PXAT", b"%d" % moment_ms]
    _set_until(call, key, value, moment_ms, record)
    return OK


def getset(call: Call) -> object:
    """Reply: the old value or nil."""
    _, key, value = call.argv
    old = string_at(call, key)
    store(call, key, encode_string(value))
    call.changed(key, SET, [b"SET", key, value])
    return old


def getdel(call: Call) -> object:
    """Reply: the value or nil; the key is gone."""
    value = string_at(call, call.argv[1])
    if value is not None:
        call.delete(call.argv[1])
    return value


def getex(call: Call) -> object:
    """Reply: the value or nil.

    Source: t_string.c, getexCommand: the time is read only when the key is there.
    """
    key = call.argv[1]
    options = StringOptions()
    args = Args(call.argv, 2)
    while args.left:
        if not options.take_ttl(args, args.option(), b"PERSIST"):
            raise CommandError(SYNTAX)
    value = string_at(call, key)
    if value is None:
        return None
    moment_ms = options.deadline_ms(call)
    if moment_ms >= 0:
        if options.has_passed(call, moment_ms):
            delete_expired(call, key)
        else:
            set_deadline(call, key, moment_ms)
    elif options.ttl and call.db.persist(key):
        call.changed(key, PERSISTED, [b"PERSIST", key])
    return value


def strlen(call: Call) -> object:
    """Reply: the bytes of the value; 0 without a key."""
    value = call.lookup(call.argv[1])
    if value is None:
        return 0
    size = string_length(value)
    if size < 0:
        raise CommandError(WRONGTYPE)
    return size


def getrange(call: Call) -> object:
    """Both ends are included, negative ones are counted from the end of the string.

    Reply: the part, empty when there is none.
    """
    start = parse_integer(call.argv[2])
    end = parse_integer(call.argv[3])
    if start is None or end is None:
        raise CommandError(NOT_AN_INTEGER)
    value = call.lookup(call.argv[1])
    if value is None:
        return b""
    if isinstance(value, int):
        value = b"%d" % value
    if not isinstance(value, (bytes, bytearray)):
        raise CommandError(WRONGTYPE)
    if start < 0 and end < start:
        return b""
    size = len(value)
    first = max(0, start + size) if start < 0 else start
    last = max(0, end + size) if end < 0 else end
    return bytes(value[first : min(last, size - 1) + 1]) if first <= last else b""
