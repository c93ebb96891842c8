"""The face of a value, and the memory of a key: its name, its place, its value and its deadline.

These are figures of the server's own making, so that the same data always comes to the same sum.
They were measured with a million keys, and say what the objects take, as they are allocated.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.storage.string.string import STRING, String
from headrace.storage.value import Value


def face(value: object) -> Value:
    """Return the face of a value as a keyspace holds it."""
    if isinstance(value, Value):
        return value
    if isinstance(value, (bytes, int, bytearray)):
        return String(value)
    raise TypeError(f"not a value: {type(value).__name__}")


def type_name(value: object) -> bytes:
    """Return the name of the type of a value."""
    return value.type_name() if isinstance(value, Value) else STRING


def frozen(value: object) -> object:
    """Return ``face(value).freeze()``, without a face for most strings: there are many."""
    return value if isinstance(value, (bytes, int)) else face(value).freeze()


ENTRY_BYTES: Final[i64] = 56  # the place of a key in its table, and what allocating it wastes
EXPIRY_BYTES: Final[i64] = 8  # of a deadline
_OBJECT_BYTES: Final[i64] = 33  # what an object of ``bytes`` takes beside its own
SAMPLES: Final = 5  # parts of a value that stand for all, where it does not know its sum


def cost_of(key: bytes, value: object, has_deadline: bool, samples: int = SAMPLES) -> i64:
    """Return about how many bytes a key takes; ``samples`` are as in ``Value.used_bytes``.

    With the default, the complexity is O(1) for every value.
    """
    size: i64 = len(key)
    size += ENTRY_BYTES + _OBJECT_BYTES
    if has_deadline:
        size += EXPIRY_BYTES
    if isinstance(value, bytes):
        return size + _OBJECT_BYTES + i64(len(value))
    if isinstance(value, Value):
        return size + i64(value.used_bytes(samples))
    return size + i64(face(value).used_bytes(samples))
