"""Setting a key to a value, whatever it held before."""

from __future__ import annotations

from headrace.server.commands.deadlines import remove_everywhere, report_replaced
from headrace.server.dispatch.call import Call
from headrace.storage.sharing import Replicated
from headrace.storage.value import Value


def store(call: Call, key: bytes, value: object, keep_ttl: bool = False) -> None:
    """Set ``key`` whatever it held; without ``keep_ttl`` a deadline goes."""
    db = call.db
    old = db.value_of(key, call.now_ms)
    if old is None:
        call.put(key, value)
        return
    if isinstance(old, Replicated):
        _store_over(call, key, value)
        return
    if isinstance(value, Value):
        value.attach(db.expiring)
    db.replace(key, value, call.now_ms)
    if db.volatile and not keep_ttl:
        db.persist(key)
    is_plain = isinstance(old, (bytes, int))
    if not is_plain or isinstance(value, Value):
        db.note_parts(key, value)
    if not is_plain or call.server.changes.has_listeners:
        report_replaced(call, call.db, key, old, value)


def _store_over(call: Call, key: bytes, value: object) -> None:
    """As ``store``, where other regions have what the key holds."""
    call.refuse_other_keys()
    remove_everywhere(call, key)
    call.put(key, value)
