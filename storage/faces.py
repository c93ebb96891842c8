"""Where the face of a value is found: the one place that knows which plain objects are values."""

from __future__ import annotations

from typing import Final

from headrace.storage.string.string import String
from headrace.storage.value import Value

_PLAIN: Final[dict[type, type[String]]] = {bytes: String, int: String, bytearray: String}


def face(value: object) -> Value:
    """What answers for a value as a keyspace holds it."""
    if isinstance(value, Value):
        return value
    return _PLAIN[type(value)](value)


def frozen(value: object) -> object:
    """As ``face(value).freeze()``, without a face for most strings: there are many."""
    return value if isinstance(value, (bytes, int)) else face(value).freeze()
