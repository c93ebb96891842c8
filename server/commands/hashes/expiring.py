"""Fields and their deadlines in one step: HGETEX, HSETEX, HGETDEL."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import CommandError, wrong_arity
from headrace.compat.hash_errors import ONE_EXISTENCE, ONE_EXPIRY_OR_KEEPTTL, ONE_EXPIRY_OR_PERSIST
from headrace.protocol.packing import Packer
from headrace.server.commands.collections import drop_empty
from headrace.server.commands.deadlines import has_passed as is_over
from headrace.server.commands.hashes.events import FIELD_DEADLINES_SET, FIELDS_DELETED, FIELDS_SET
from headrace.server.commands.hashes.field_args import FieldOptions, counted_fields
from headrace.server.commands.hashes.lifetimes import report_deadlines, report_persisted
from headrace.server.commands.hashes.values import (
    changeable,
    delete_fields,
    drop_expired,
    has_same_deadline,
    living,
    made,
    note_deadlines,
    record_each,
    report,
)
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import NEVER

_EXISTENCE: Final = (b"FNX", b"FXX")


def hgetex(call: Call) -> object:
    """``key [EX s|PX ms|EXAT s|PXAT ms|PERSIST] FIELDS n field ...``.

    Reply: the value of each field, or nil.
    """
    key = call.argv[1]
    value = changeable(call, key)
    options = FieldOptions(1, b"PERSIST", ONE_EXPIRY_OR_PERSIST)
    args = Args(call.argv, 2)
    while args.left:
        word = args.word()
        options.take(call, args, word.upper(), word)
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
        record = [b"HPERSIST", key, b"FIELDS", b"%d" % len(fields), *fields]
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
    """The reply for so many fields of no hash."""
    out = Packer(call.session.resp3)
    out.array(count)
    for _ in range(count):
        out.null()
    return out.packed()


def hsetex(call: Call) -> object:
    """``key [FNX|FXX] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL] FIELDS n field value ...``.

    Reply: 1, or 0 where FNX met a field that is there, or FXX one that is not: none is set.
    """
    key = call.argv[1]
    options = FieldOptions(2, b"KEEPTTL", ONE_EXPIRY_OR_KEEPTTL)
    existence = b""
    args = Args(call.argv, 2)
    while args.left:
        word = args.word()
        option = word.upper()
        if option in _EXISTENCE:
            if existence:
                raise CommandError(ONE_EXISTENCE)
            existence = option
        else:
            options.take(call, args, option, word)
    if not options.words:
        raise CommandError(wrong_arity(call.name()))
    value = changeable(call, key)
    if existence:
        if existence == b"FXX" and value is None:
            return 0
        expired: dict[bytes, None] = {}
        met = value is None or _is_met(call, value, existence, options.words[::2], expired)
        if value is not None and drop_expired(call, key, value, expired):
            value = None
        if not met:
            return 0
    _set(call, made(call, key, value), options, existence)
    return 1


def _is_met(
    call: Call, value: Hash, existence: bytes, fields: list[bytes], expired: dict[bytes, None]
) -> bool:
    """Whether FNX or FXX allow to set fields; those that have expired join ``expired``."""
    for field in fields:
        if (living(call, value, field, expired) is None) != (existence == b"FNX"):
            return False
    return True


def _set(call: Call, value: Hash, options: FieldOptions, existence: bytes) -> None:
    """Set fields, under a condition that they have met."""
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
    record = [b"HSETEX", key]
    if existence:
        record.append(existence)
    if options.has_alone:
        record.append(b"KEEPTTL")
    if moment_ms < 0:
        record += [b"FIELDS", b"%d" % len(fields), *words]
        report(call, key, FIELDS_SET, record, fields)
        note_deadlines(call, key, value)
        return
    timed = value.be_timed()
    for field in fields:
        timed.expire_at(field, max(1, moment_ms))
    record += [b"PXAT", b"%d" % moment_ms, b"FIELDS", b"%d" % len(fields), *words]
    report(call, key, FIELDS_SET, record, fields)
    call.changed(key, FIELD_DEADLINES_SET, None, count=0)
    if call.listened:
        call.name_parts(fields)
    note_deadlines(call, key, value)


def _set_for_nothing(call: Call, key: bytes, value: Hash, options: FieldOptions) -> None:
    """Set fields with a deadline that is over, which removes each of them again at once.

    One that has this deadline already stays in a large hash; see ``has_same_deadline``.
    """
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
    record = None
    if staying:
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
    """``key FIELDS n field ...``. Reply: the value of each field, or nil; they are gone."""
    key = call.argv[1]
    value = changeable(call, key)
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
        delete_fields(call, key, value, list(gone), [b"HDEL", key, *fields])
    return out.packed()
