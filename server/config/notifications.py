"""The letters of ``notify-keyspace-events`` and the bits that they stand for."""

from __future__ import annotations

from typing import Final

from headrace.compat.event_classes import (
    EVENT_ARRAY,
    EVENT_EVICTED,
    EVENT_EXPIRED,
    EVENT_GENERIC,
    EVENT_HASH,
    EVENT_KEY_MISS,
    EVENT_LIST,
    EVENT_MODULE,
    EVENT_NEW,
    EVENT_OVERWRITTEN,
    EVENT_SET,
    EVENT_STREAM,
    EVENT_STRING,
    EVENT_TYPE_CHANGED,
    EVENT_ZSET,
    NOTIFY_KEYEVENT,
    NOTIFY_KEYSPACE,
    NOTIFY_SUBKEYEVENT,
    NOTIFY_SUBKEYSPACE,
    NOTIFY_SUBKEYSPACE_EVENT,
    NOTIFY_SUBKEYSPACE_ITEM,
)

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
    """The bits of ``letters``; None when one means nothing."""
    flags = 0
    for letter in letters:
        bit = _BITS.get(letter)
        if bit is None:
            return None
        flags |= bit
    return flags


def letters_of(flags: int) -> bytes:
    """The letters of ``flags``, as Redis shows them."""
    if flags & ALL_CLASSES == ALL_CLASSES:
        shown = b"A"
    else:
        shown = b"".join([letter for letter, bit in _CLASSES if flags & bit])
    return shown + b"".join([letter for letter, bit in _ALWAYS_SHOWN if flags & bit])
