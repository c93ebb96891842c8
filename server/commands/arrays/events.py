"""What happens to arrays."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_ARRAY
from headrace.server.changes.events import Event

SET: Final = Event(b"arset", EVENT_ARRAY, touches=True)
SEVERAL_SET: Final = Event(b"armset", EVENT_ARRAY, touches=True)
INSERTED: Final = Event(b"arinsert", EVENT_ARRAY, touches=True)
PUT_IN_RING: Final = Event(b"arring", EVENT_ARRAY, touches=True)
CURSOR_SET: Final = Event(b"arseek", EVENT_ARRAY, touches=True)
REMOVED: Final = Event(b"ardel", EVENT_ARRAY, touches=True)
RANGE_REMOVED: Final = Event(b"ardelrange", EVENT_ARRAY, touches=True)
