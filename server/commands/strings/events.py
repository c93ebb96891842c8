"""What happens to strings."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_STRING
from headrace.server.changes.events import Event

SET: Final = Event(b"set", EVENT_STRING, touches=True)
APPENDED: Final = Event(b"append", EVENT_STRING, touches=True)
RANGE_SET: Final = Event(b"setrange", EVENT_STRING, touches=True)
INCREASED: Final = Event(b"incrby", EVENT_STRING, touches=True)
INCREASED_BY_FLOAT: Final = Event(b"incrbyfloat", EVENT_STRING, touches=True)
