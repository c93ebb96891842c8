"""Fields that expire: HEXPIRE, HTTL, HPERSIST and their kin, HGETEX, HSETEX, HGETDEL."""

from __future__ import annotations

from typing import Final

from headrace.compat import type_errors
from headrace.compat.errors import INVALID_EXPIRE, CommandError, wrong_arity
from headrace.compat.numbers import INT32_MAX, parse_integer
from headrace.protocol.packing import Packer
from headrace.server.commands.hashes.fields import (
    FIELD_DEADLINES_SET,
    FIELDS_DELETED,
    FIELDS_PERSISTED,
    FIELDS_SET,
    delete_fields,
    drop_expired,
    has_same_deadline,
    living,
    made,
    note_deadlines,
    record_each,
    report,
    report_expired,
)
from headrace.server.commands.shared import drop_empty
from headrace.server.commands.shared import has_passed as is_over
from headrace.server.commands.typed_keys import hash_at, hash_to_change
from headrace.server.dispatch.args import Args, at_least, bounded, integer, upper
from headrace.server.dispatch.call import Call
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import NEVER, has_passed
from headrace.storage.keyspace import Keyspace
from headrace.storage.value import NO_PART

LAST_DEADLINE_MS: Final = (1 << 46) - 1
_EXPIRY: Final[dict[bytes, tuple[int, bool]]] = {  # milliseconds of the unit; from now on
    b"EX": (1000, True),
    b"PX": (1, True),
    b"EXAT": (1000, False),
    b"PXAT": (1, False),
}


def counted_fields(call: Call, at: int) -> list[bytes]:
    """Read ``FIELDS n field ...`` at the end of a request, as HTTL and HGETDEL have it."""
    argv = call.argv
    if upper(argv[at]) != b"FIELDS":
        raise CommandError(type_errors.FIELDS_MISSING)
    count = at_least(argv[at + 1], 1, type_errors.FIELD_COUNT_NOT_POSITIVE)
    fields = argv[at + 2 :]
    if len(fields) != count:
        raise CommandError(type_errors.FIELD_COUNT_MISMATCH)
    return fields


def counted(fields: list[bytes]) -> list[bytes]:
    """Return ``FIELDS n field ...`` of these."""
    return [b"FIELDS", b"%d" % len(fields), *fields]


def deadline_of(call: Call, word: bytes, unit_ms: int, from_now: bool) -> int:
    """Return the moment of a time in units of ``unit_ms``, counted from now or from 1970, in ms."""
    time = integer(word)
    if time < 0:
        raise CommandError(type_errors.NEGATIVE_EXPIRE_TIME)
    moment_ms = time * unit_ms + (call.now_ms if from_now else 0)
    if moment_ms > LAST_DEADLINE_MS:
        raise CommandError(INVALID_EXPIRE % call.name())
    return moment_ms


class FieldOptions:
    """The options of HGETEX and HSETEX, which may stand before the fields and behind them.

    Args:
        width: how many words there are for each field.
        alone: the option that excludes an expiry, and has no time.
        only_one: the error of two of them.

    Attributes:
        words: the fields, each with its value where there are values.
        moment_ms: the deadline; -1 where none was given.
    """

    def __init__(self, width: int, alone: bytes, only_one: bytes) -> None:
        self.words: list[bytes] = []
        self.moment_ms = -1
        self.has_alone = False
        self._width: Final = width
        self._alone: Final = alone
        self._only_one: Final = only_one

    def take(self, call: Call, args: Args, option: bytes, word: bytes) -> None:
        """Take an option; ``word`` is how it was written."""
        if option == b"FIELDS":
            self._take_fields(call, args)
        elif option == self._alone:
            self._check_alone()
            self.has_alone = True
        elif option in _EXPIRY:
            self._check_alone()
            if not args.left:
                raise CommandError(type_errors.EXPIRE_TIME_MISSING)
            unit_ms, from_now = _EXPIRY[option]
            self.moment_ms = deadline_of(call, args.word(), unit_ms, from_now)
        else:
            raise CommandError(type_errors.UNKNOWN_ARGUMENT % word)

    def _check_alone(self) -> None:
        if self.has_alone or self.moment_ms >= 0:
            raise CommandError(self._only_one)

    def _take_fields(self, call: Call, args: Args) -> None:
        if self.words:
            raise CommandError(type_errors.FIELDS_TWICE)
        if not args.left:
            raise CommandError(wrong_arity(call.name()))
        count = bounded(args.word(), 1, INT32_MAX, type_errors.INVALID_FIELD_COUNT)
        if args.left < count * self._width:
            raise CommandError(type_errors.WRONG_WORD_COUNT)
        self.words = [args.word() for _ in range(count * self._width)]


NO_FIELD: Final = -2
NO_DEADLINE: Final = -1
REFUSED: Final = 0
SET: Final = 1
DELETED: Final = 2
_CONDITIONS: Final = (b"NX", b"XX", b"GT", b"LT")
_SECOND_MS: Final = 1000


def hexpire(call: Call) -> object:
    """Recorded as absolute, of the fields set.

    Reply: for each field -2 where there is none, 0 where the condition is not met, 1 where the
    deadline was set, 2 where the field went at once because that moment is over.
    """
    return _expire(call, _SECOND_MS, True)


def hpexpire(call: Call) -> object:
    """Reply: as HEXPIRE."""
    return _expire(call, 1, True)


def hexpireat(call: Call) -> object:
    """Reply: as HEXPIRE."""
    return _expire(call, _SECOND_MS, False)


def hpexpireat(call: Call) -> object:
    """Reply: as HEXPIRE."""
    return _expire(call, 1, False)


def _expire(call: Call, unit_ms: int, from_now: bool) -> object:
    """Run ``key time [NX|XX|GT|LT] FIELDS n field ...``."""
    argv = call.argv
    key = argv[1]
    value = hash_to_change(call, key)
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
        old_ms = value.time_of(field)
        if old_ms < 0 or field in gone:
            replies.append(NO_FIELD)
        elif not _is_met(condition, old_ms, moment_ms):
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
    """Report that fields have got a deadline; ``recorded`` may name missing fields as well."""
    record: list[bytes] | None = None
    if call.recorded:
        record = [b"HPEXPIREAT", key, b"%d" % moment_ms]
        if condition:
            record.append(condition)
        record += counted(recorded)
    report(call, key, FIELD_DEADLINES_SET, record, fields)
    note_deadlines(call, key, value)


def _condition_and_fields(argv: list[bytes]) -> tuple[bytes, list[bytes]]:
    """Read ``[NX|XX|GT|LT] FIELDS n field ...``; of all errors, two conditions are the last."""
    if argv[3] == b"FIELDS" and parse_integer(argv[4]) == len(argv) - 5:  # mostly so
        return b"", argv[5:]
    condition = b""
    two = False
    fields: list[bytes] = []
    args = Args(argv, 3)
    while args.left:
        word = args.word()
        option = upper(word)
        if option in _CONDITIONS:
            two = two or (condition != b"" and condition != option)
            condition = option
        elif option == b"FIELDS":
            if fields:
                raise CommandError(type_errors.FIELDS_TWICE)
            if args.left < 2:
                raise CommandError(type_errors.FIELDS_WITHOUT_COUNT)
            count = bounded(args.word(), 1, INT32_MAX, type_errors.NUM_FIELDS_NOT_POSITIVE)
            if count > args.left:
                raise CommandError(type_errors.WRONG_WORD_COUNT)
            fields = [args.word() for _ in range(count)]
        else:
            raise CommandError(type_errors.UNKNOWN_ARGUMENT % word)
    if not fields:
        raise CommandError(type_errors.FIELDS_MISSING_AFTER_TIME)
    if two:
        raise CommandError(type_errors.TWO_CONDITIONS)
    return condition, fields


def _is_met(condition: bytes, old_ms: int, new_ms: int) -> bool:
    """Return whether a condition allows a new deadline; no deadline counts as later than any."""
    if not condition:
        return True
    if old_ms == NEVER:
        return condition in (b"NX", b"LT")
    if condition == b"GT":
        return new_ms > old_ms
    if condition == b"LT":
        return new_ms < old_ms
    return condition == b"XX"


def _deadlines(call: Call, unit_ms: int, base_ms: int) -> object:
    """Run ``key FIELDS n field ...``: time left after ``base_ms`` in units, rounded up.

    In the last millisecond of a field's life, a small hash says -2; a large one answers, as in
    Redis.
    """
    value = hash_at(call, call.argv[1])
    fields = counted_fields(call, 2)
    if value is None:
        return [NO_FIELD] * len(fields)
    over_ms = call.now_ms if value.is_small() else call.now_ms - 1
    replies: list[object] = []
    for field in fields:
        deadline_ms = value.time_of(field)
        if deadline_ms < 0 or 0 < deadline_ms <= over_ms:
            replies.append(NO_FIELD)
        elif deadline_ms == NEVER:
            replies.append(NO_DEADLINE)
        else:
            replies.append((deadline_ms - base_ms + unit_ms - 1) // unit_ms)
    return replies


def httl(call: Call) -> object:
    """Reply: the seconds that each field has left; -1 without a deadline, -2 without the field."""
    return _deadlines(call, _SECOND_MS, call.now_ms)


def hpttl(call: Call) -> object:
    """Reply: as HTTL, in milliseconds."""
    return _deadlines(call, 1, call.now_ms)


def hexpiretime(call: Call) -> object:
    """Reply: as HTTL, in seconds since 1970."""
    return _deadlines(call, _SECOND_MS, 0)


def hpexpiretime(call: Call) -> object:
    """Reply: as HTTL, in milliseconds since 1970."""
    return _deadlines(call, 1, 0)


def hpersist(call: Call) -> object:
    """Reply: for each field -2 where there is none, -1 where it has no deadline, else 1."""
    key = call.argv[1]
    value = hash_to_change(call, key)
    fields = counted_fields(call, 2)
    if value is None:
        return [NO_FIELD] * len(fields)
    replies: list[object] = []
    chosen: list[bytes] = []
    for field in fields:
        deadline_ms = value.time_of(field)
        if deadline_ms < 0 or (has_passed(deadline_ms, call.now_ms) and call.db.expire_enabled):
            replies.append(NO_FIELD)
        elif deadline_ms == NEVER:
            replies.append(NO_DEADLINE)
        else:
            value.be_timed().expire_at(field, NEVER)
            replies.append(SET)
            chosen.append(field)
    if chosen:
        report_persisted(call, key, value, chosen, call.argv)
    return replies


def report_persisted(
    call: Call, key: bytes, value: Hash, fields: list[bytes], record: list[bytes] | None
) -> None:
    """Report that fields have lost their deadlines."""
    report(call, key, FIELDS_PERSISTED, record, fields)
    note_deadlines(call, key, value)


_EXISTENCE: Final = (b"FNX", b"FXX")


def hgetex(call: Call) -> object:
    """Run ``[EX s|PX ms|EXAT s|PXAT ms|PERSIST] FIELDS n field ...``. Reply: each value, or nil."""
    key = call.argv[1]
    value = hash_to_change(call, key)
    options = FieldOptions(1, b"PERSIST", type_errors.ONE_EXPIRY_OR_PERSIST)
    args = Args(call.argv, 2)
    while args.left:
        word = args.word()
        options.take(call, args, upper(word), word)
    fields = options.words
    if not fields:
        raise CommandError(wrong_arity(call.name()))
    if value is None:
        return _nothing(call, len(fields))
    past = options.moment_ms >= 0 and is_over(call, options.moment_ms)
    out = Packer(call.session.resp3)
    out.array(len(fields))
    expired: dict[bytes, None] = {}
    chosen: list[bytes] = []
    gone: dict[bytes, None] = {}
    if options.moment_ms >= 0 or options.has_alone:
        value.be_timed()
    for field in fields:
        found = None if field in gone else living(call, value, field, expired)
        if found is None:
            out.null()
            continue
        out.text(found)
        if past and has_same_deadline(value, field, options.moment_ms):
            chosen.append(field)
        elif past:
            gone[field] = None
        elif options.moment_ms >= 0:
            value.be_timed().expire_at(field, max(1, options.moment_ms))
            chosen.append(field)
        elif options.has_alone and value.deadline_ms(field) != NEVER:
            value.be_timed().expire_at(field, NEVER)
            chosen.append(field)
    if drop_expired(call, key, value, expired) or not (chosen or gone):
        return out.packed()
    if past:
        call.server.changes.expired_parts += len(gone)
        _end(call, key, value, list(gone), chosen)
    elif options.has_alone:
        record = [b"HPERSIST", key, *counted(fields)] if call.recorded else None
        report_persisted(call, key, value, chosen, record)
    else:
        report_deadlines(call, key, value, chosen, fields, options.moment_ms)
    return out.packed()


def _end(call: Call, key: bytes, value: Hash, gone: list[bytes], staying: list[bytes]) -> None:
    """Remove fields whose deadline is over; of others that have it, Redis reports instead."""
    if not staying:
        delete_fields(call, key, value, gone, None)
        return
    for field in gone:
        value.remove(field)
    record_each(call, key, gone)
    report(call, key, FIELD_DEADLINES_SET, None, staying)
    note_deadlines(call, key, value)


def _nothing(call: Call, count: int) -> object:
    """Return the reply for ``count`` fields of a hash that is not there."""
    out = Packer(call.session.resp3)
    out.array(count)
    for _ in range(count):
        out.null()
    return out.packed()


def hsetex(call: Call) -> object:
    """Run ``key [FNX|FXX] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL] FIELDS n field value ...``.

    Reply: 1, or 0 where FNX met a field that is there, or FXX one that is not: none is set.
    """
    key = call.argv[1]
    options = FieldOptions(2, b"KEEPTTL", type_errors.ONE_EXPIRY_OR_KEEPTTL)
    existence = b""
    args = Args(call.argv, 2)
    while args.left:
        word = args.word()
        option = upper(word)
        if option in _EXISTENCE:
            if existence:
                raise CommandError(type_errors.ONE_EXISTENCE)
            existence = option
        else:
            options.take(call, args, option, word)
    if not options.words:
        raise CommandError(wrong_arity(call.name()))
    value = hash_to_change(call, key)
    if existence:
        if existence == b"FXX" and value is None:
            return 0
        expired: dict[bytes, None] = {}
        met = value is None or _condition_holds(call, value, existence, options.words[::2], expired)
        if value is not None and drop_expired(call, key, value, expired):
            value = None
        if not met:
            return 0
    _set(call, made(call, key, value), options, existence)
    return 1


def _condition_holds(
    call: Call, value: Hash, existence: bytes, fields: list[bytes], expired: dict[bytes, None]
) -> bool:
    """Return whether FNX or FXX allow to set fields; those that have expired join ``expired``."""
    for field in fields:
        if (living(call, value, field, expired) is None) != (existence == b"FNX"):
            return False
    return True


def _set(call: Call, value: Hash, options: FieldOptions, existence: bytes) -> None:
    key = call.argv[1]
    words = options.words
    fields = words[::2]
    moment_ms = options.moment_ms
    limits = call.server.data.hash_limits
    value.fit(words, 0, limits)
    if moment_ms >= 0 and is_over(call, moment_ms):
        _set_for_nothing(call, key, value, options)
        return
    for at in range(0, len(words), 2):
        value.put(words[at], words[at + 1], limits, keeps=options.has_alone)
    if moment_ms >= 0:
        timed = value.be_timed()
        for field in fields:
            timed.expire_at(field, max(1, moment_ms))
    report(call, key, FIELDS_SET, _record(call, options, existence), fields)
    if moment_ms >= 0:
        call.changed(key, FIELD_DEADLINES_SET, None, count=0)
        if call.listened:
            call.name_parts(fields)
    note_deadlines(call, key, value)


def _record(call: Call, options: FieldOptions, existence: bytes) -> list[bytes] | None:
    """Return the HSETEX that repeats one, its deadline absolute; None where none is taken."""
    if not call.recorded:
        return None
    record = [b"HSETEX", call.argv[1]]
    if existence:
        record.append(existence)
    if options.has_alone:
        record.append(b"KEEPTTL")
    if options.moment_ms >= 0:
        record += [b"PXAT", b"%d" % options.moment_ms]
    return [*record, b"FIELDS", b"%d" % (len(options.words) // 2), *options.words]


def _set_for_nothing(call: Call, key: bytes, value: Hash, options: FieldOptions) -> None:
    """Set and remove fields whose deadline is over; a large hash keeps one that has it already."""
    words = options.words
    limits = call.server.data.hash_limits
    value.be_timed()
    gone: dict[bytes, None] = {}
    staying: list[bytes] = []
    for at in range(0, len(words), 2):
        field = words[at]
        value.put(field, words[at + 1], limits, keeps=True)
        if has_same_deadline(value, field, options.moment_ms):
            staying += words[at : at + 2]
        else:
            value.remove(field)
            gone[field] = None
    record: list[bytes] | None = None
    if staying and call.recorded:
        record = [b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"%d" % (len(staying) // 2), *staying]
    report(call, key, FIELDS_SET, record, words[::2])
    call.server.changes.expired_parts += len(gone)
    if gone:
        record_each(call, key, list(gone))
        call.changed(key, FIELDS_DELETED, None, count=0)
    else:
        call.changed(key, FIELD_DEADLINES_SET, None, count=0)
    if call.listened:
        call.name_parts(words[::2])
    if not drop_empty(call, key, value):
        note_deadlines(call, key, value)


def hgetdel(call: Call) -> object:
    """Run ``key FIELDS n field ...``. Reply: the value of each field, or nil; they are gone."""
    key = call.argv[1]
    value = hash_to_change(call, key)
    fields = counted_fields(call, 2)
    if value is None:
        return _nothing(call, len(fields))
    out = Packer(call.session.resp3)
    out.array(len(fields))
    expired: dict[bytes, None] = {}
    gone: dict[bytes, None] = {}
    for field in fields:
        found = None if field in gone else living(call, value, field, expired)
        if found is None:
            out.null()
        else:
            out.text(found)
            gone[field] = None
    if not drop_expired(call, key, value, expired):
        record = [b"HDEL", key, *fields] if call.recorded else None
        delete_fields(call, key, value, list(gone), record)
    return out.packed()


def sweep_fields(call: Call, db: Keyspace, now_ms: int, most: int) -> int:
    """Remove up to ``most`` expired fields of one hash; return about the work, 0 if none is due."""
    key = db.parts.next_due(now_ms)
    if key is None:
        return 1 if db.parts.is_due(now_ms) else 0
    call.db = db
    call.now_ms = now_ms
    value = db.value_of(key, now_ms)
    if not isinstance(value, Hash):
        db.parts.watch(key, NO_PART)
        return 1
    db.before_change(key)
    expired = value.take_due(now_ms, most)
    if not expired:
        db.note_parts(key, value)
        return 1
    report_expired(call, key, value, expired, by_command=False)
    drop_empty(call, key, value)
    return len(expired)
