"""What happens to keys of any type; more of that is in ``server.changes.events``."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_GENERIC
from headrace.server.changes.events import Event

RENAMED_FROM: Final = Event(b"rename_from", EVENT_GENERIC, touches=True, wakes=True)
RENAMED_TO: Final = Event(b"rename_to", EVENT_GENERIC, touches=True, wakes=True)
MOVED_FROM: Final = Event(b"move_from", EVENT_GENERIC, touches=True, wakes=True)
MOVED_TO: Final = Event(b"move_to", EVENT_GENERIC, touches=True, wakes=True)
COPIED_TO: Final = Event(b"copy_to", EVENT_GENERIC, touches=True, wakes=True)
RESTORED: Final = Event(b"restore", EVENT_GENERIC, touches=True, wakes=True)
