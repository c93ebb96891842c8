"""What happens to sets."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_SET
from headrace.server.changes.events import Event

ADDED: Final = Event(b"sadd", EVENT_SET, touches=True)
REMOVED: Final = Event(b"srem", EVENT_SET, touches=True)
TAKEN: Final = Event(b"spop", EVENT_SET, touches=True)
INTERSECTION_STORED: Final = Event(b"sinterstore", EVENT_SET, touches=True)
UNION_STORED: Final = Event(b"sunionstore", EVENT_SET, touches=True)
DIFFERENCE_STORED: Final = Event(b"sdiffstore", EVENT_SET, touches=True)
