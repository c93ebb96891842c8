"""What kinds of value there are, and how a string is kept.

A string is ``bytes``, or ``int`` where it spells a 64-bit integer canonically, or a ``bytearray``
once APPEND or SETRANGE has written into it: appending then costs the bytes appended, not the bytes
there. Redis tells these three apart too: embstr, int and raw.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.stream.stream import Stream

STRING: Final = b"string"
STREAM: Final = b"stream"

# Redis keeps a string in one object with its key up to so many bytes of both.
_EMBEDDED_BYTES: Final = 41


def type_name(value: object) -> bytes:
    """The name of a value's type, as TYPE answers it."""
    return STREAM if isinstance(value, Stream) else STRING


def string_bytes(value: object) -> bytes | None:
    """The bytes of a string value; None for a value of another type."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return b"%d" % value
    return bytes(value) if isinstance(value, bytearray) else None


def string_length(value: object) -> int:
    """The number of bytes of a string value; -1 for a value of another type."""
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    return len(b"%d" % value) if isinstance(value, int) else -1


def encoding(key: bytes, value: object) -> bytes:
    """The name of the representation of a key's value, as OBJECT ENCODING answers it."""
    if isinstance(value, Stream):
        return STREAM
    if isinstance(value, int):
        return b"int"
    if isinstance(value, bytes) and len(key) + len(value) <= _EMBEDDED_BYTES:
        return b"embstr"
    return b"raw"


def copy_value(value: object) -> object:
    """A value that changes to the original leave alone."""
    if isinstance(value, Stream):
        return value.copy()
    return bytearray(value) if isinstance(value, bytearray) else value
