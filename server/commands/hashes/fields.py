"""Single fields: HSET, HGET, HDEL and their kin."""

from __future__ import annotations

from headrace.compat.errors import CommandError, wrong_arity
from headrace.protocol.packing import Packer
from headrace.protocol.replies import OK
from headrace.server.commands.hashes.events import FIELDS_SET
from headrace.server.commands.hashes.values import (
    changeable,
    delete_fields,
    drop_expired,
    has_expired,
    hash_at,
    living,
    made,
    note_deadlines,
)
from headrace.server.dispatch.call import Call


def hset(call: Call) -> object:
    """A deadline of a field goes. Reply: how many of the fields are new."""
    return _set_all(call)


def hmset(call: Call) -> object:
    """As HSET. Reply: OK."""
    _set_all(call)
    return OK


def _set_all(call: Call) -> int:
    argv = call.argv
    if len(argv) % 2:
        raise CommandError(wrong_arity(call.name()))
    key = argv[1]
    value = made(call, key, changeable(call, key))
    limits = call.server.data.hash_limits
    value.fit(argv, 2, limits)
    added = 0
    for at in range(2, len(argv), 2):
        if value.put(argv[at], argv[at + 1], limits):
            added += 1
    note_deadlines(call, key, value)
    call.changed(key, FIELDS_SET, argv, count=len(argv) // 2 - 1)
    if call.listened:
        call.name_parts(argv[2::2])
    return added


def hsetnx(call: Call) -> object:
    """Reply: 1 when the field was set, 0 when it was there."""
    argv = call.argv
    _, key, field, text = argv
    value = changeable(call, key)
    if value is not None:
        expired: dict[bytes, None] = {}
        if living(call, value, field, expired) is not None:
            return 0
        if drop_expired(call, key, value, expired):
            value = None
    value = made(call, key, value)
    value.put(field, text, call.server.data.hash_limits)
    note_deadlines(call, key, value)
    call.changed(key, FIELDS_SET, argv)
    if call.listened:
        call.name_parts([field])
    return 1


def hget(call: Call) -> object:
    """Reply: the value, or nil."""
    _, key, field = call.argv
    value = hash_at(call, key)
    if value is None:
        return None
    found = value.get(field)
    if found is not None and has_expired(call, value, field):
        drop_expired(call, key, value, {field: None})
        return None
    return found


def hmget(call: Call) -> object:
    """Reply: the value of each field, nil for one that is not there."""
    argv = call.argv
    key = argv[1]
    value = hash_at(call, key)
    out = Packer(call.session.resp3)
    out.array(len(argv) - 2)
    expired: dict[bytes, None] = {}
    for at in range(2, len(argv)):
        found = None if value is None else living(call, value, argv[at], expired)
        if found is None:
            out.null()
        else:
            out.text(found)
    if value is not None:
        drop_expired(call, key, value, expired)
    return out.packed()


def hdel(call: Call) -> object:
    """Reply: how many fields were there."""
    argv = call.argv
    value = changeable(call, argv[1])
    return 0 if value is None else len(delete_fields(call, argv[1], value, argv[2:], argv))


def hlen(call: Call) -> object:
    """Reply: how many fields there are, those included that are still to be swept."""
    value = hash_at(call, call.argv[1])
    return 0 if value is None else value.size()


def hstrlen(call: Call) -> object:
    """Reply: the bytes of the value; 0 without one."""
    return max(0, _length(call))


def hexists(call: Call) -> object:
    """Reply: 1 or 0."""
    return 1 if _length(call) >= 0 else 0


def _length(call: Call) -> int:
    """The length of a value; -1 where there is none."""
    _, key, field = call.argv
    value = hash_at(call, key)
    if value is None:
        return -1
    length = value.length(field)
    if length >= 0 and has_expired(call, value, field):
        drop_expired(call, key, value, {field: None})
        return -1
    return length
