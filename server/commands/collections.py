"""What the commands on all collections share: keys go with their last element, and results."""

from __future__ import annotations

from headrace.server.changes.events import DELETED, Event
from headrace.server.commands.storing import store
from headrace.server.dispatch.call import Call
from headrace.storage.collection import Collection


def drop_empty(call: Call, key: bytes, value: Collection) -> bool:
    """Remove a key whose value has lost its last element, and report that; whether it was so.

    It is called behind the report of what removed the element. That one's record does the same
    when it is run again, so there is none here.
    """
    if not value.is_empty():
        return False
    call.db.remove(key)
    call.changed(key, DELETED, None, count=0)
    return True


def store_result(
    call: Call, key: bytes, value: Collection, event: Event, record: list[bytes]
) -> None:
    """Set a key to what a command has made, whatever the key held; without elements it goes.

    Where it goes, it is reported as deleted even if it had expired before, as Redis does.

    Args:
        event: what is reported where there are elements.
        record: what repeats either.
    """
    if value.is_empty():
        call.delete(key, record, expired_too=True)
        return
    store(call, key, value)
    call.changed(key, event, record)
