"""What a command did, as plain data, for those who are told of it.

Keyspace notifications take ``event`` and ``event_class``, WATCH takes ``touched``, blocked readers
take ``ready``, and the count of changes takes ``dirty``. A command that changes one key in one way
makes one effect. The deterministic command that repeats the change is reported along with it, and
goes to the AOF at once (``Server.record``).
"""

from __future__ import annotations

from typing import Final

# Classes of keyspace events, as the letters of notify-keyspace-events.
EVENT_GENERIC: Final = 1 << 0  # g
EVENT_STRING: Final = 1 << 1  # $
EVENT_LIST: Final = 1 << 2  # l
EVENT_SET: Final = 1 << 3  # s
EVENT_HASH: Final = 1 << 4  # h
EVENT_ZSET: Final = 1 << 5  # z
EVENT_EXPIRED: Final = 1 << 6  # x
EVENT_EVICTED: Final = 1 << 7  # e
EVENT_STREAM: Final = 1 << 8  # t
EVENT_KEY_MISS: Final = 1 << 9  # m, not part of A
EVENT_NEW: Final = 1 << 10  # n, not part of A
EVENT_MODULE: Final = 1 << 11  # d
EVENT_OVERWRITTEN: Final = 1 << 12  # o, not part of A
EVENT_TYPE_CHANGED: Final = 1 << 13  # c, not part of A
EVENT_ARRAY: Final = 1 << 14  # a; there are no arrays here
# Channels to publish them on.
NOTIFY_KEYSPACE: Final = 1 << 30  # K
NOTIFY_KEYEVENT: Final = 1 << 31  # E


class Effect:
    """One change of one key, or of a whole database where ``key`` is None.

    Args:
        db: index of the database.
        key: the key that changed; None for FLUSHALL and the like.
        event: name of the keyspace event, empty when there is none.
        event_class: one of the ``EVENT_`` bits.
        dirty: how many changes Redis would count.
        touched: whether clients that WATCH the key must fail.
        ready: whether clients blocked on the key may be served now.
    """

    def __init__(
        self,
        db: int,
        key: bytes | None,
        event: bytes,
        event_class: int,
        dirty: int,
        touched: bool,
        ready: bool,
    ) -> None:
        self.db: Final = db
        self.key: Final = key
        self.event: Final = event
        self.event_class: Final = event_class
        self.dirty: Final = dirty
        self.touched: Final = touched
        self.ready: Final = ready
