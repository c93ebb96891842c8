"""A string, and the objects that hold one in a keyspace.

It is plain ``bytes``, or ``int`` where it spells a 64-bit integer canonically, or a ``bytearray``
once APPEND or SETRANGE has written into it. Appending to that costs the bytes appended, not the
bytes there. Redis has three forms, too: embstr, int and raw.
"""

from __future__ import annotations

from typing import Final

from headrace.storage.digest import Digest
from headrace.storage.value import Expiring, Value

STRING: Final = b"string"
_DIGEST_NUMBER: Final = 0
# Redis keeps a string in one object with its key up to so many bytes of both.
_EMBEDDED_BYTES: Final = 41
_BYTES_HEADER: Final = 33  # what a bytes object takes beside its bytes
_INT_BYTES: Final = 32


def string_bytes(value: object) -> bytes | None:
    """Return the bytes of a string value; None for a value of another type."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return b"%d" % value
    return bytes(value) if isinstance(value, bytearray) else None


def string_length(value: object) -> int:
    """Return the number of bytes of a string value; -1 for a value of another type."""
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    return len(b"%d" % value) if isinstance(value, int) else -1


class String(Value):
    """The face of a string as a keyspace holds it, made where one is asked for."""

    def __init__(self, value: object) -> None:
        self._value: Final = value

    def type_name(self) -> bytes:
        return STRING

    def encoding(self, key: bytes) -> bytes:
        value = self._value
        if isinstance(value, int):
            return b"int"
        if isinstance(value, bytes) and len(key) + len(value) <= _EMBEDDED_BYTES:
            return b"embstr"
        return b"raw"

    def size(self) -> int:
        return string_length(self._value)

    def is_empty(self) -> bool:
        """Return False: an empty string is a value."""
        return False

    def used_bytes(self, samples: int) -> int:
        if isinstance(self._value, int):
            return _INT_BYTES
        return _BYTES_HEADER + string_length(self._value)

    def copy(self) -> object:
        """Return the same object, unless it is one that is written into."""
        value = self._value
        return bytearray(value) if isinstance(value, bytearray) else value

    def freeze(self) -> object:
        value = self._value
        return bytes(value) if isinstance(value, bytearray) else value

    def effort(self) -> int:
        return 0

    def free_some(self, most: int) -> bool:
        return True

    def add_to(self, digest: Digest) -> None:
        digest.mix_type(_DIGEST_NUMBER)
        digest.mix(string_bytes(self._value) or b"")

    def attach(self, expiring: Expiring) -> None:
        """Do nothing: no part of it expires by itself."""
