"""Classes of keyspace events, as bits and as the letters of ``notify-keyspace-events``."""

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


ALL_CLASSES: Final = (
    EVENT_GENERIC
    | EVENT_STRING
    | EVENT_LIST
    | EVENT_SET
    | EVENT_HASH
    | EVENT_ZSET
    | EVENT_EXPIRED
    | EVENT_EVICTED
    | EVENT_STREAM
    | EVENT_MODULE
    | EVENT_ARRAY
)

# In the order in which CONFIG GET shows them; what ``A`` covers comes first, and the classes up
# to ``c`` are left out beside an ``A``, the others not.
_CLASSES: Final[list[tuple[bytes, int]]] = [
    (b"g", EVENT_GENERIC),
    (b"$", EVENT_STRING),
    (b"l", EVENT_LIST),
    (b"s", EVENT_SET),
    (b"h", EVENT_HASH),
    (b"z", EVENT_ZSET),
    (b"x", EVENT_EXPIRED),
    (b"e", EVENT_EVICTED),
    (b"t", EVENT_STREAM),
    (b"d", EVENT_MODULE),
    (b"a", EVENT_ARRAY),
    (b"n", EVENT_NEW),
    (b"o", EVENT_OVERWRITTEN),
    (b"c", EVENT_TYPE_CHANGED),
]
_ALWAYS_SHOWN: Final[list[tuple[bytes, int]]] = [
    (b"K", NOTIFY_KEYSPACE),
    (b"E", NOTIFY_KEYEVENT),
    (b"m", EVENT_KEY_MISS),
    (b"S", NOTIFY_SUBKEYSPACE),
    (b"T", NOTIFY_SUBKEYEVENT),
    (b"I", NOTIFY_SUBKEYSPACE_ITEM),
    (b"V", NOTIFY_SUBKEYSPACE_EVENT),
]
_BITS: Final[dict[int, int]] = {
    letter[0]: bit for letter, bit in [*_CLASSES, *_ALWAYS_SHOWN, (b"A", ALL_CLASSES)]
}


def flags_of(letters: bytes) -> int | None:
    """Return the bits of ``letters``; None when one means nothing."""
    flags = 0
    for letter in letters:
        bit = _BITS.get(letter)
        if bit is None:
            return None
        flags |= bit
    return flags


def letters_of(flags: int) -> bytes:
    """Return the letters of ``flags``, as Redis shows them."""
    if flags & ALL_CLASSES == ALL_CLASSES:
        shown = b"A"
    else:
        shown = b"".join([letter for letter, bit in _CLASSES if flags & bit])
    return shown + b"".join([letter for letter, bit in _ALWAYS_SHOWN if flags & bit])
