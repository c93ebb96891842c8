"""Deadlines of keys: EXPIRE and its kin, TTL and its kin, PERSIST."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    EXPIRE_GT_LT,
    EXPIRE_NX_EXCLUDES,
    NOT_AN_INTEGER,
    CommandError,
    invalid_expire,
    unsupported_option,
)
from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_integer
from headrace.server.changes.events import PERSISTED
from headrace.server.commands.deadlines import (
    delete_expired,
    has_passed,
    is_replicated,
    set_deadline,
)
from headrace.server.commands.shared_keys import shared_keys
from headrace.server.dispatch.call import Call
from headrace.storage.entry import NO_EXPIRY

_NX: Final = 1
_XX: Final = 2
_GT: Final = 4
_LT: Final = 8
_CONDITIONS: Final[dict[bytes, int]] = {b"NX": _NX, b"XX": _XX, b"GT": _GT, b"LT": _LT}


def expire(call: Call) -> object:
    """Reply: 1, or 0 when nothing was set."""
    return _expire(call, 1000, call.now_ms)


def pexpire(call: Call) -> object:
    """Reply: as EXPIRE."""
    return _expire(call, 1, call.now_ms)


def expireat(call: Call) -> object:
    """Reply: as EXPIRE."""
    return _expire(call, 1000, 0)


def pexpireat(call: Call) -> object:
    """Reply: as EXPIRE."""
    return _expire(call, 1, 0)


def _expire(call: Call, unit_ms: int, base_ms: int) -> object:
    """Set a deadline of so many units after ``base_ms``; one that has passed deletes the key.

    Source: expire.c, expireGenericCommand.
    """
    key = call.argv[1]
    conditions = _conditions(call.argv)
    count = parse_integer(call.argv[2])
    if count is None:
        raise CommandError(NOT_AN_INTEGER)
    moment_ms = count * unit_ms
    if moment_ms < INT64_MIN or moment_ms > INT64_MAX - base_ms:
        raise CommandError(invalid_expire(call.name()))
    moment_ms += base_ms
    found = call.db.entry(key, call.now_ms)
    if found is None or (conditions and not _allowed(conditions, found.expire_ms, moment_ms)):
        return 0
    call.db.touch(key, call.now_ms)
    if has_passed(call, moment_ms):
        delete_expired(call, key)
    else:
        record = call.argv
        if unit_ms != 1 or base_ms:
            record = [b"PEXPIREAT", key, b"%d" % moment_ms, *record[3:]]
        set_deadline(call, key, moment_ms, record)
    return 1


def _conditions(argv: list[bytes]) -> int:
    """The conditions that follow the time, as bits."""
    found = 0
    for word in argv[3:]:
        bit = _CONDITIONS.get(word.upper())
        if bit is None:
            raise CommandError(unsupported_option(word))
        found |= bit
    if found & _NX and found != _NX:
        raise CommandError(EXPIRE_NX_EXCLUDES)
    if found & _GT and found & _LT:
        raise CommandError(EXPIRE_GT_LT)
    return found


def _allowed(conditions: int, current_ms: int, moment_ms: int) -> bool:
    """Whether a key may get a new deadline; one without a deadline lives for ever."""
    if current_ms == NO_EXPIRY:
        return not conditions & (_XX | _GT)
    if conditions & _NX:
        return False
    if conditions & _GT and moment_ms <= current_ms:
        return False
    return not (conditions & _LT and moment_ms >= current_ms)


def ttl(call: Call) -> object:
    """Reply: seconds to live, rounded; -1 without a deadline, -2 without the key."""
    return _deadline(call, 1000, call.now_ms)


def pttl(call: Call) -> object:
    """Reply: as TTL, in milliseconds."""
    return _deadline(call, 1, call.now_ms)


def expiretime(call: Call) -> object:
    """Reply: as TTL, in seconds since 1970."""
    return _deadline(call, 1000, 0)


def pexpiretime(call: Call) -> object:
    """Reply: as TTL, in milliseconds since 1970."""
    return _deadline(call, 1, 0)


def _deadline(call: Call, unit_ms: int, base_ms: int) -> object:
    found = call.counted_entry(call.argv[1])
    if found is None:
        return -2
    if found.expire_ms == NO_EXPIRY:
        return -1
    left_ms = max(0, found.expire_ms - base_ms)
    if unit_ms == 1:
        return left_ms
    # Half a second is not added first: the latest deadline there is would overflow.
    return left_ms // 1000 + (1 if left_ms % 1000 >= 500 else 0)


def persist(call: Call) -> object:
    """Reply: 1 when a deadline was taken away, else 0."""
    key = call.argv[1]
    found = call.db.entry(key, call.now_ms)
    if found is None or found.expire_ms == NO_EXPIRY:
        return 0
    if is_replicated(call, key) and not call.replaying:
        shared_keys().set_deadline(call.server, key, NO_EXPIRY)
        return 1
    call.db.persist(key)
    call.changed(key, PERSISTED, call.argv)
    return 1
