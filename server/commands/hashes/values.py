"""What the commands on hashes share: finding one, and fields that have expired."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import WRONGTYPE, CommandError
from headrace.server.changes.events import Event
from headrace.server.commands.collections import drop_empty
from headrace.server.commands.hashes.events import FIELDS_DELETED, FIELDS_EXPIRED
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import KeySpec
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import NEVER, has_passed

READ_KEY: Final = (KeySpec("RO ACCESS"),)
UPDATE_KEY: Final = (KeySpec("RW UPDATE"),)


def hash_at(call: Call, key: bytes) -> Hash | None:
    """The hash of a key, or None, for a command that reads; raises WRONGTYPE."""
    value = call.lookup(key)
    if value is None or isinstance(value, Hash):
        return value
    raise CommandError(WRONGTYPE)


def changeable(call: Call, key: bytes) -> Hash | None:
    """The hash of a key that may be about to change, or None; raises WRONGTYPE."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, Hash):
        return value
    raise CommandError(WRONGTYPE)


def made(call: Call, key: bytes, found: Hash | None) -> Hash:
    """The hash that was found, or a new one, empty so far."""
    if found is not None:
        return found
    fresh = Hash()
    call.put(key, fresh)
    return fresh


def has_expired(call: Call, value: Hash, field: bytes) -> bool:
    """Whether the time of a field is over; while a file is loaded, it says itself what has gone."""
    return (
        value.is_timed()
        and has_passed(value.deadline_ms(field), call.now_ms)
        and call.db.expire_enabled
    )


def living(call: Call, value: Hash, field: bytes, expired: dict[bytes, None]) -> bytes | None:
    """The value of a field, or None; where it has expired, it joins ``expired``."""
    found = value.get(field)
    if found is not None and has_expired(call, value, field):
        expired[field] = None
        return None
    return found


def has_same_deadline(value: Hash, field: bytes, moment_ms: int) -> bool:
    """Whether a large hash has this deadline for a field: Redis leaves that field as it is.

    It shows in the last millisecond of the field's life, in which another one goes.
    """
    return moment_ms != NEVER and not value.is_small() and value.deadline_ms(field) == moment_ms


def drop_expired(call: Call, key: bytes, value: Hash, expired: dict[bytes, None]) -> bool:
    """Remove fields that were met expired, unless they have to stay; whether the key went."""
    if not expired or call.db.expire_held:
        return False
    call.db.before_change(key)
    for field in expired:
        value.remove(field)
    report_expired(call, key, value, list(expired))
    return drop_empty(call, key, value)


def report_expired(
    call: Call, key: bytes, value: Hash, expired: list[bytes], by_command: bool = True
) -> None:
    """Report fields that have been removed because they had expired.

    Args:
        by_command: their records are part of what a command did.
    """
    changes = call.server.changes
    changes.expired_parts += len(expired)
    if by_command:
        record_each(call, key, expired)
    elif expired and changes.recorded:
        records = [[b"HDEL", key, field] for field in expired]
        changes.record_alike(call.db.index, records, True, None)
    report(call, key, FIELDS_EXPIRED, None, expired)
    note_deadlines(call, key, value)


def record_each(call: Call, key: bytes, fields: list[bytes]) -> None:
    """Record that fields are gone whose time is over: one HDEL for each, as in Redis."""
    if call.recorded:
        for field in fields:
            call.record([b"HDEL", key, field])


def report(
    call: Call, key: bytes, event: Event, record: list[bytes] | None, fields: list[bytes]
) -> None:
    """Report a change of some fields of a hash."""
    call.changed(key, event, record, count=len(fields))
    if call.listened:
        call.name_parts(fields)


def note_deadlines(call: Call, key: bytes, value: Hash) -> None:
    """Let the keyspace know when the first field of a hash expires, which may have changed."""
    if value.is_timed():
        call.db.note_parts(key, value)


def delete_fields(
    call: Call, key: bytes, value: Hash, fields: list[bytes], record: list[bytes] | None
) -> list[bytes]:
    """Remove fields, and report those that were there, which are returned; maybe the key goes.

    Args:
        record: what repeats it; None where they go because they were given a deadline that has
            passed. See ``record_each``.
    """
    gone = [field for field in fields if value.remove(field)]
    if gone:
        if record is None:
            record_each(call, key, gone)
        report(call, key, FIELDS_DELETED, record, gone)
        if not drop_empty(call, key, value):
            note_deadlines(call, key, value)
    return gone
