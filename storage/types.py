"""What kinds of value there are, and how a string is kept.

A string is ``bytes``, or ``int`` where it spells a 64-bit integer canonically, or a ``bytearray``
once APPEND or SETRANGE has written into it: appending then costs the bytes appended, not the bytes
there. Redis tells these three apart too: embstr (raw above 44 bytes), int and raw.
"""

from __future__ import annotations

from typing import Final

from storage.stream.stream import Stream

STRING: Final = b"string"
STREAM: Final = b"stream"

_EMBEDDED_BYTES: Final = 44  # the longest string that Redis keeps in its object


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


def encoding(value: object) -> bytes:
    """The name of a value's representation, as OBJECT ENCODING answers it."""
    if isinstance(value, Stream):
        return STREAM
    if isinstance(value, int):
        return b"int"
    if isinstance(value, bytes) and len(value) <= _EMBEDDED_BYTES:
        return b"embstr"
    return b"raw"


def copy_value(value: object) -> object:
    """A value that changes to the original leave alone."""
    if isinstance(value, Stream):
        return value.copy()
    return bytearray(value) if isinstance(value, bytearray) else value
