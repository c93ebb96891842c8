"""What happens to lists."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_LIST
from headrace.server.changes.events import Event

# Whoever waits for a number of elements may have enough of them.
PUSHED_LEFT: Final = Event(b"lpush", EVENT_LIST, touches=True, wakes=True)
PUSHED_RIGHT: Final = Event(b"rpush", EVENT_LIST, touches=True, wakes=True)
INSERTED: Final = Event(b"linsert", EVENT_LIST, touches=True, wakes=True)
POPPED_LEFT: Final = Event(b"lpop", EVENT_LIST, touches=True)
POPPED_RIGHT: Final = Event(b"rpop", EVENT_LIST, touches=True)
SET: Final = Event(b"lset", EVENT_LIST, touches=True)
REMOVED: Final = Event(b"lrem", EVENT_LIST, touches=True)
TRIMMED: Final = Event(b"ltrim", EVENT_LIST, touches=True)


def pushed(right: bool) -> Event:
    """Elements were added at an end."""
    return PUSHED_RIGHT if right else PUSHED_LEFT


def popped(right: bool) -> Event:
    """Elements were taken away at an end."""
    return POPPED_RIGHT if right else POPPED_LEFT
