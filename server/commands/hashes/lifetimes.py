"""Deadlines of fields: HEXPIRE and its kin, HTTL and its kin, HPERSIST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.compat.errors import CommandError
from headrace.compat.hash_errors import (
    FIELDS_MISSING_AFTER_TIME,
    FIELDS_TWICE,
    FIELDS_WITHOUT_COUNT,
    NUM_FIELDS_NOT_POSITIVE,
    TWO_CONDITIONS,
    WRONG_WORD_COUNT,
    unknown_argument,
)
from headrace.compat.numbers import INT32_MAX, parse_integer
from headrace.server.commands.deadlines import has_passed as is_over
from headrace.server.commands.hashes.events import FIELD_DEADLINES_SET, FIELDS_PERSISTED
from headrace.server.commands.hashes.field_args import counted_fields, deadline_of
from headrace.server.commands.hashes.values import (
    changeable,
    delete_fields,
    has_expired,
    has_same_deadline,
    hash_at,
    note_deadlines,
    report,
)
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import NEVER

NO_FIELD: Final = -2
NO_DEADLINE: Final = -1
REFUSED: Final = 0
SET: Final = 1
DELETED: Final = 2
_CONDITIONS: Final = (b"NX", b"XX", b"GT", b"LT")
_SECOND_MS: Final = 1000


def hexpire(call: Call) -> object:
    """See ``_expire``."""
    return _expire(call, _SECOND_MS, True)


def hpexpire(call: Call) -> object:
    """See ``_expire``."""
    return _expire(call, 1, True)


def hexpireat(call: Call) -> object:
    """See ``_expire``."""
    return _expire(call, _SECOND_MS, False)


def hpexpireat(call: Call) -> object:
    """See ``_expire``."""
    return _expire(call, 1, False)


def _expire(call: Call, unit_ms: int, from_now: bool) -> object:
    """``key time [NX|XX|GT|LT] FIELDS n field ...``. Recorded as absolute, of the fields set.

    Reply: for each field -2 where there is none, 0 where the condition is not met, 1 where the
    deadline was set, 2 where the field went at once because that moment is over.
    """
    argv = call.argv
    key = argv[1]
    value = changeable(call, key)
    moment_ms = deadline_of(call, argv[2], unit_ms, from_now)
    condition, fields = _condition_and_fields(argv)
    if value is None:
        return [NO_FIELD] * len(fields)
    timed = value.be_timed()
    past = is_over(call, moment_ms)
    replies: list[object] = []
    chosen: list[bytes] = []
    gone: dict[bytes, None] = {}
    for field in fields:
        if value.length(field) < 0 or field in gone:
            replies.append(NO_FIELD)
        elif not _is_met(condition, value.deadline_ms(field), moment_ms):
            replies.append(REFUSED)
        elif past and not has_same_deadline(value, field, moment_ms):
            replies.append(DELETED)
            gone[field] = None
        else:
            replies.append(SET)
            chosen.append(field)
            if not past:
                timed.expire_at(field, max(1, moment_ms))
    if gone:
        call.server.changes.expired_parts += len(gone)
        delete_fields(call, key, value, list(gone), None)
    if chosen and past:
        report(call, key, FIELD_DEADLINES_SET, None, chosen)
    elif chosen:
        report_deadlines(call, key, value, chosen, chosen, moment_ms, condition)
    return replies


def report_deadlines(
    call: Call,
    key: bytes,
    value: Hash,
    fields: list[bytes],
    recorded: list[bytes],
    moment_ms: int,
    condition: bytes = b"",
) -> None:
    """Report that fields have got a deadline, under a condition that they have met.

    Args:
        recorded: the fields that the record names: those, and maybe some that are not there.
    """
    record = [b"HPEXPIREAT", key, b"%d" % moment_ms]
    if condition:
        record.append(condition)
    record += [b"FIELDS", b"%d" % len(recorded), *recorded]
    report(call, key, FIELD_DEADLINES_SET, record, fields)
    note_deadlines(call, key, value)


def _condition_and_fields(argv: list[bytes]) -> tuple[bytes, list[bytes]]:
    """``[NX|XX|GT|LT] FIELDS n field ...``, in any order.

    Two conditions are the last mistake to be reported.
    """
    condition = b""
    two = False
    fields: list[bytes] = []
    args = Args(argv, 3)
    while args.left:
        word = args.word()
        option = word.upper()
        if option in _CONDITIONS:
            two = two or (condition != b"" and condition != option)
            condition = option
        elif option == b"FIELDS":
            if fields:
                raise CommandError(FIELDS_TWICE)
            if args.left < 2:
                raise CommandError(FIELDS_WITHOUT_COUNT)
            count = parse_integer(args.word())
            if count is None or not 1 <= count <= INT32_MAX:
                raise CommandError(NUM_FIELDS_NOT_POSITIVE)
            if count > args.left:
                raise CommandError(WRONG_WORD_COUNT)
            fields = [args.word() for _ in range(count)]
        else:
            raise CommandError(unknown_argument(word))
    if not fields:
        raise CommandError(FIELDS_MISSING_AFTER_TIME)
    if two:
        raise CommandError(TWO_CONDITIONS)
    return condition, fields


def _is_met(condition: bytes, old_ms: int, new_ms: int) -> bool:
    """Whether a condition allows a deadline in place of another one; none is later than any."""
    if not condition:
        return True
    if old_ms == NEVER:
        return condition in (b"NX", b"LT")
    if condition == b"GT":
        return new_ms > old_ms
    if condition == b"LT":
        return new_ms < old_ms
    return condition == b"XX"


def _ask(call: Call, answer: Callable[[int, int], int]) -> object:
    """``key FIELDS n field ...``: for each field -2 without it, -1 without a deadline.

    In the last millisecond of a field's life, a small hash says -2; a large one answers, as in
    Redis.

    Args:
        answer: what to say to a deadline, and the time now.
    """
    value = hash_at(call, call.argv[1])
    fields = counted_fields(call, 2)
    if value is None:
        return [NO_FIELD] * len(fields)
    over_ms = call.now_ms if value.is_small() else call.now_ms - 1
    replies: list[object] = []
    for field in fields:
        deadline_ms = value.deadline_ms(field)
        if value.length(field) < 0 or 0 < deadline_ms <= over_ms:
            replies.append(NO_FIELD)
        elif deadline_ms == NEVER:
            replies.append(NO_DEADLINE)
        else:
            replies.append(answer(deadline_ms, call.now_ms))
    return replies


def _seconds_left(deadline_ms: int, now_ms: int) -> int:
    return (deadline_ms - now_ms + _SECOND_MS - 1) // _SECOND_MS


def _milliseconds_left(deadline_ms: int, now_ms: int) -> int:
    return deadline_ms - now_ms


def _second(deadline_ms: int, now_ms: int) -> int:
    return (deadline_ms + _SECOND_MS - 1) // _SECOND_MS


def _millisecond(deadline_ms: int, now_ms: int) -> int:
    return deadline_ms


def httl(call: Call) -> object:
    """Reply: the seconds that each field has left; see ``_ask``."""
    return _ask(call, _seconds_left)


def hpttl(call: Call) -> object:
    """Reply: the milliseconds that each field has left; see ``_ask``."""
    return _ask(call, _milliseconds_left)


def hexpiretime(call: Call) -> object:
    """Reply: the deadline of each field in seconds; see ``_ask``."""
    return _ask(call, _second)


def hpexpiretime(call: Call) -> object:
    """Reply: the deadline of each field in milliseconds; see ``_ask``."""
    return _ask(call, _millisecond)


def hpersist(call: Call) -> object:
    """Reply: for each field -2 where there is none, -1 where it has no deadline, else 1."""
    key = call.argv[1]
    value = changeable(call, key)
    fields = counted_fields(call, 2)
    if value is None:
        return [NO_FIELD] * len(fields)
    replies: list[object] = []
    chosen: list[bytes] = []
    for field in fields:
        if value.length(field) < 0 or has_expired(call, value, field):
            replies.append(NO_FIELD)
        elif value.deadline_ms(field) == NEVER:
            replies.append(NO_DEADLINE)
        else:
            value.be_timed().expire_at(field, NEVER)
            replies.append(SET)
            chosen.append(field)
    if chosen:
        report_persisted(call, key, value, chosen, call.argv)
    return replies


def report_persisted(
    call: Call, key: bytes, value: Hash, fields: list[bytes], record: list[bytes]
) -> None:
    """Report that fields have lost their deadlines."""
    report(call, key, FIELDS_PERSISTED, record, fields)
    note_deadlines(call, key, value)
