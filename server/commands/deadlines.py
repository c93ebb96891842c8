"""What commands of several families do about deadlines and about keys that are replaced."""

from __future__ import annotations

from headrace.server.changes.events import DEADLINE_SET, DELETED, OVERWRITTEN, TYPE_CHANGED
from headrace.server.clients.session import REPLAY
from headrace.server.commands.shared_keys import shared_keys
from headrace.server.dispatch.call import Call
from headrace.storage.faces import face
from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import Replicated


def has_passed(call: Call, moment_ms: int) -> bool:
    """Whether a key given this deadline goes at once; while the AOF is loaded it stays.

    A key that has this deadline already lives to the end of that millisecond.
    """
    return moment_ms <= call.now_ms and not call.session.special & REPLAY


def delete_expired(call: Call, key: bytes) -> None:
    """Remove a key that is there because its new deadline has passed already."""
    _delete(call, key, call.server.config.lazyfree_lazy_expire)


def expired_at_once(call: Call, key: bytes, there: bool) -> None:
    """Count a value that is not stored, because its time is over, and remove what is ``there``."""
    call.server.changes.expired_keys += 1
    if there:
        _delete(call, key, call.server.config.lazyfree_lazy_server_del)


def _delete(call: Call, key: bytes, unlinks: bool) -> None:
    if remove_everywhere(call, key):
        return
    call.server.data.free_later(call.db.remove(key))
    call.changed(key, DELETED, deletion(key, unlinks))


def deletion(key: bytes, unlinks: bool) -> list[bytes]:
    """The record of a key that goes though nobody has called DEL."""
    return [b"UNLINK" if unlinks else b"DEL", key]


def set_deadline(call: Call, key: bytes, moment_ms: int, record: list[bytes] | None = None) -> None:
    """Give a key that is there a deadline.

    Args:
        record: what repeats it, if not PEXPIREAT without a condition.
    """
    if is_replicated(call, key) and not call.replaying:
        shared_keys().set_deadline(call.server, key, max(0, moment_ms))
        return
    call.db.expire_at(key, max(0, moment_ms))
    call.changed(key, DEADLINE_SET, record or [b"PEXPIREAT", key, b"%d" % moment_ms])


def is_replicated(call: Call, key: bytes) -> bool:
    """Whether a key holds what other regions have, too."""
    if call.server.data.region is None:
        return False
    found = call.db.peek(key)
    return found is not None and isinstance(found.value, Replicated)


def remove_everywhere(call: Call, key: bytes) -> bool:
    """Remove a key in all regions, if it holds what they have, too; whether it does."""
    if call.server.data.region is None or call.replaying:
        return False
    found = call.db.peek(key)
    if found is None or not isinstance(found.value, Replicated):
        return False
    shared_keys().delete(call.server, key, found.value)
    return True


def report_replaced(call: Call, db: Keyspace, key: bytes, old: object, new: object) -> None:
    """Free what a key held, and report that it holds another value now, maybe of another type."""
    call.server.data.free_later(old)
    call.changed_in(db, key, OVERWRITTEN, None, count=0)
    if face(old).type_name() != face(new).type_name():
        call.changed_in(db, key, TYPE_CHANGED, None, count=0)
