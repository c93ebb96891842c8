"""Declarations of the events of keys: commands report events, and an event says where they go.

A family of commands declares its own events in its module ``events``. Those here are of several.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat.event_classes import (
    EVENT_EVICTED,
    EVENT_EXPIRED,
    EVENT_GENERIC,
    EVENT_KEY_MISS,
    EVENT_NEW,
    EVENT_OVERWRITTEN,
    EVENT_TYPE_CHANGED,
)


@mypyc_attr(allow_interpreted_subclasses=True)
class Event:
    """One kind of change.

    Args:
        name: of the keyspace event; empty where none is published.
        kind: its class, one of the ``EVENT_`` bits.
        touches: clients that WATCH the key fail.
        wakes: clients that wait for the key may be served.
    """

    def __init__(self, name: bytes, kind: int, touches: bool = False, wakes: bool = False) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.touches: Final = touches
        self.wakes: Final = wakes


CREATED: Final = Event(b"new", EVENT_NEW, wakes=True)  # reported before the key is there
DELETED: Final = Event(b"del", EVENT_GENERIC, touches=True, wakes=True)
EXPIRED: Final = Event(b"expired", EVENT_EXPIRED, touches=True, wakes=True)
EVICTED: Final = Event(b"evicted", EVENT_EVICTED, touches=True, wakes=True)
DEADLINE_SET: Final = Event(b"expire", EVENT_GENERIC, touches=True)
PERSISTED: Final = Event(b"persist", EVENT_GENERIC, touches=True)
OVERWRITTEN: Final = Event(b"overwritten", EVENT_OVERWRITTEN)
TYPE_CHANGED: Final = Event(b"type_changed", EVENT_TYPE_CHANGED, wakes=True)
MISSED: Final = Event(b"keymiss", EVENT_KEY_MISS)  # no change, reported on request
