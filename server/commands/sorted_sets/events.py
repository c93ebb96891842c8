"""What happens to sorted sets."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import EVENT_ZSET
from headrace.server.changes.events import Event

INCREASED: Final = Event(b"zincr", EVENT_ZSET, touches=True)
REMOVED: Final = Event(b"zrem", EVENT_ZSET, touches=True)
RANKS_REMOVED: Final = Event(b"zremrangebyrank", EVENT_ZSET, touches=True)
SCORES_REMOVED: Final = Event(b"zremrangebyscore", EVENT_ZSET, touches=True)
NAMES_REMOVED: Final = Event(b"zremrangebylex", EVENT_ZSET, touches=True)
LEAST_POPPED: Final = Event(b"zpopmin", EVENT_ZSET, touches=True)
GREATEST_POPPED: Final = Event(b"zpopmax", EVENT_ZSET, touches=True)
RANGE_STORED: Final = Event(b"zrangestore", EVENT_ZSET, touches=True)
UNION_STORED: Final = Event(b"zunionstore", EVENT_ZSET, touches=True)
INTERSECTION_STORED: Final = Event(b"zinterstore", EVENT_ZSET, touches=True)
DIFFERENCE_STORED: Final = Event(b"zdiffstore", EVENT_ZSET, touches=True)
