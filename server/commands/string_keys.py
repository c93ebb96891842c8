"""Keys that hold strings: how commands of several families find and change them."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import STRING_TOO_LONG, WRONGTYPE, CommandError
from headrace.server.clients.session import REPLAY
from headrace.server.dispatch.call import Call
from headrace.storage.entry import Entry
from headrace.storage.string.string import string_bytes

_ZEROS: Final = bytes(1 << 16)


def string_at(call: Call, key: bytes) -> bytes | None:
    """The bytes of a string or None, for a command that reads; raises WRONGTYPE."""
    value = call.lookup(key)
    if value is None or isinstance(value, bytes):
        return value
    text = string_bytes(value)
    if text is None:
        raise CommandError(WRONGTYPE)
    return text


def buffer_at(call: Call, key: bytes) -> bytes | bytearray | None:
    """As ``string_at``, without a copy of a string that is written into; it is only to be read."""
    value = call.lookup(key)
    if value is None or isinstance(value, (bytes, bytearray)):
        return value
    text = string_bytes(value)
    if text is None:
        raise CommandError(WRONGTYPE)
    return text


def writable(call: Call, key: bytes) -> Entry | None:
    """The entry of a string that is about to change, or None; raises WRONGTYPE."""
    found = call.db.entry(key, call.now_ms)
    if found is None or isinstance(found.value, (bytes, int, bytearray)):
        return found
    raise CommandError(WRONGTYPE)


def in_place(call: Call, found: Entry) -> bytearray:
    """The string of an entry in the form that can be written into; counts as an access."""
    value = found.value
    if isinstance(value, bytearray):
        call.db.touch(found.key, call.now_ms)
    else:
        value = bytearray(string_bytes(value) or b"")
        call.db.replace(found.key, value, call.now_ms)
    return value


def lengthen(target: bytearray, size: int) -> None:
    """Fill a string up with zeros to at least ``size`` bytes.

    One short piece of zeros is added again and again, because a long one would have to be made.
    """
    lacking = size - len(target)
    while lacking > 0:
        target += _ZEROS[:lacking]
        lacking -= len(_ZEROS)


def check_length(call: Call, size: int) -> None:
    """Refuse a string that would be longer than the configuration allows."""
    if size > call.server.config.proto_max_bulk_len and not call.session.special & REPLAY:
        raise CommandError(STRING_TOO_LONG)
