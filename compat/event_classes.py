"""Classes of keyspace events: the letters of ``notify-keyspace-events``."""

from __future__ import annotations

from typing import Final

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
EVENT_ARRAY: Final = 1 << 14  # a

# Channels to publish them on.
NOTIFY_KEYSPACE: Final = 1 << 30  # K
NOTIFY_KEYEVENT: Final = 1 << 31  # E
# Those that name the fields of hashes, too (Redis 8.8).
NOTIFY_SUBKEYSPACE: Final = 1 << 26  # S
NOTIFY_SUBKEYEVENT: Final = 1 << 27  # T
NOTIFY_SUBKEYSPACE_ITEM: Final = 1 << 28  # I
NOTIFY_SUBKEYSPACE_EVENT: Final = 1 << 29  # V
