"""What happens to hashes."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_HASH
from headrace.server.changes.events import Event

FIELDS_SET: Final = Event(b"hset", EVENT_HASH, touches=True)
FIELDS_DELETED: Final = Event(b"hdel", EVENT_HASH, touches=True)
FIELDS_EXPIRED: Final = Event(b"hexpired", EVENT_HASH, touches=True)
FIELD_INCREASED: Final = Event(b"hincrby", EVENT_HASH, touches=True)
FIELD_INCREASED_BY_FLOAT: Final = Event(b"hincrbyfloat", EVENT_HASH, touches=True)
FIELD_DEADLINES_SET: Final = Event(b"hexpire", EVENT_HASH, touches=True)
FIELDS_PERSISTED: Final = Event(b"hpersist", EVENT_HASH, touches=True)
