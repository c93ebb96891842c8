"""What happens to streams and their groups."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_STREAM
from headrace.server.changes.events import Event

XADDED: Final = Event(b"xadd", EVENT_STREAM, touches=True, wakes=True)
XTRIMMED: Final = Event(b"xtrim", EVENT_STREAM, touches=True)
XDELETED: Final = Event(b"xdel", EVENT_STREAM, touches=True)
LAST_ID_SET: Final = Event(b"xsetid", EVENT_STREAM)
GROUP_CREATED: Final = Event(b"xgroup-create", EVENT_STREAM)
GROUP_CREATED_WITH_STREAM: Final = Event(b"xgroup-create", EVENT_STREAM, touches=True)
GROUP_ID_SET: Final = Event(b"xgroup-setid", EVENT_STREAM)
GROUP_MODE_SET: Final = Event(b"xgroup-setmode", EVENT_STREAM, wakes=True)
GROUP_DESTROYED: Final = Event(b"xgroup-destroy", EVENT_STREAM, wakes=True)
CONSUMER_CREATED: Final = Event(b"xgroup-createconsumer", EVENT_STREAM)
CONSUMER_DELETED: Final = Event(b"xgroup-delconsumer", EVENT_STREAM)

# Redis publishes nothing for these, and they touch no key that is watched.
PENDING_CHANGED: Final = Event(b"", EVENT_STREAM)  # deliveries, claims, acknowledgements
PENDING_RELEASED: Final = Event(b"", EVENT_STREAM, wakes=True)
PRODUCERS_CHANGED: Final = Event(b"", EVENT_STREAM)  # iids, and how long they are remembered
