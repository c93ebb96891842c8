"""What happens to places, besides what happens to sorted sets."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_ZSET
from headrace.server.changes.events import Event

RADIUS_STORED: Final = Event(b"georadiusstore", EVENT_ZSET, touches=True)
SEARCH_STORED: Final = Event(b"geosearchstore", EVENT_ZSET, touches=True)
