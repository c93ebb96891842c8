"""What happens to bitmaps."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_STRING
from headrace.server.changes.events import Event

BITS_SET: Final = Event(b"setbit", EVENT_STRING, touches=True)
COMBINED: Final = Event(b"set", EVENT_STRING, touches=True)
