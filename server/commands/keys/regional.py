"""What commands on keys do in a region, where a key holds what other regions have, too.

A key is renamed, copied or restored by effects that remove what the new name held, and add what it
is to hold. Other regions may add to the old name meanwhile: what they have added stays there.
"""

from __future__ import annotations

from headrace.compat.errors import CommandError
from headrace.server.changes.events import DELETED
from headrace.server.clients.session import IN_MULTI
from headrace.server.commands.deadlines import is_replicated, remove_everywhere
from headrace.server.commands.keys.events import COPIED_TO, RENAMED_FROM, RENAMED_TO, RESTORED
from headrace.server.dispatch.call import Call
from headrace.server.regions.effects import (
    check_transaction,
    delete_all,
    rebuild,
    set_deadline,
)
from headrace.storage.entry import NO_EXPIRY, Entry
from headrace.storage.faces import face
from headrace.storage.sharing import Replicated
from headrace.storage.value import Value


def in_region(call: Call) -> bool:
    """Whether a command is to make effects; what is read from a file makes none."""
    return call.server.data.region is not None and not call.replaying


def delete_in_region(call: Call, name: bytes) -> int:
    """DEL or UNLINK; how many keys were there."""
    db = call.db
    replicated: dict[bytes, Entry] = {}
    others: dict[bytes, None] = {}
    for key in call.argv[1:]:
        found = db.entry(key, call.now_ms)
        if found is None:
            continue
        if isinstance(found.value, Replicated):
            replicated[key] = found
        else:
            others[key] = None
    delete_all(call.server, list(replicated.values()), bool(call.session.special & IN_MULTI))
    for key in others:
        call.server.data.free_later(db.remove(key))
        call.changed(key, DELETED, None)
    if others:
        call.record([name, *others])
    return len(replicated) + len(others)


def renamed_in_region(call: Call, found: Entry) -> bool:
    """RENAME of a key that is there; False where it is done as without regions."""
    source, target = call.argv[1], call.argv[2]
    value = found.value
    if not isinstance(value, Replicated):
        remove_everywhere(call, target)
        return False
    moment_ms = found.expire_ms
    plain = _checked(call, value.plain())
    remove_everywhere(call, source)
    _put(call, target, plain, moment_ms)
    call.changed(source, RENAMED_FROM, None)
    call.changed(target, RENAMED_TO, None, count=0)
    return True


def copied_in_region(call: Call, value: object, moment_ms: int) -> bool:
    """COPY of a value; False where it is done as without regions."""
    target = call.argv[2]
    if not isinstance(value, Replicated):
        call.refuse_other_keys()
        remove_everywhere(call, target)
        return False
    _put(call, target, _checked(call, value.plain()), moment_ms)
    call.changed(target, COPIED_TO, None)
    return True


def restored_in_region(call: Call, key: bytes, value: object, moment_ms: int) -> bool:
    """RESTORE of a value; False where it is done as without regions."""
    if not isinstance(value, Value) or face(value).type_name() != b"stream":
        call.refuse_other_keys()
        remove_everywhere(call, key)
        return False
    _put(call, key, _checked(call, value), moment_ms or NO_EXPIRY)
    call.changed(key, RESTORED, None)
    return True


def _checked(call: Call, value: Value) -> Value:
    """``value``, if it fits into one transaction.

    Raises:
        CommandError: it does not.
    """
    line = check_transaction(call.server, value.used_bytes(0))
    if line:
        raise CommandError(line)
    return value


def _put(call: Call, key: bytes, value: Value, moment_ms: int) -> None:
    """Let a key hold a plain value, in all regions."""
    server = call.server
    if not remove_everywhere(call, key) and call.db.entry(key, call.now_ms) is not None:
        server.data.free_later(call.db.remove(key))
        call.record([b"DEL", key])
    rebuild(server, key, value)
    if moment_ms != NO_EXPIRY and is_replicated(call, key):
        set_deadline(server, key, moment_ms)
