"""What happens to HyperLogLogs."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_STRING
from headrace.server.changes.events import Event

ADDED: Final = Event(b"pfadd", EVENT_STRING, touches=True)
ESTIMATED: Final = Event(b"", EVENT_STRING, touches=True)  # the string holds its estimate now
MADE_DENSE: Final = Event(b"", EVENT_STRING)
