"""Fields whose time has come are removed by and by, whether anybody asks for them or not."""

from __future__ import annotations

from headrace.server.commands.collections import drop_empty
from headrace.server.commands.hashes.values import report_expired
from headrace.server.dispatch.call import Call
from headrace.storage.hash.hash import Hash
from headrace.storage.keyspace import Keyspace
from headrace.storage.value import NO_PART


def sweep_fields(call: Call, db: Keyspace, now_ms: int, most: int) -> int:
    """Remove up to ``most`` expired fields of one hash of a database, and report it.

    Returns: about how much was done; 0 when no field of the database is due.
    """
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
