"""What the commands on HyperLogLogs share: finding one, to read it or to change it."""

from __future__ import annotations

from headrace.compat.errors import CommandError
from headrace.compat.hyperloglog_errors import NOT_A_SKETCH
from headrace.server.commands.string_keys import buffer_at, in_place, writable
from headrace.server.dispatch.call import Call
from headrace.storage.string.hyperloglog.sketch import EMPTY, is_sketch


def is_sketch_at(call: Call, key: bytes) -> bool:
    """Whether there is the HyperLogLog of a key, for a command that reads; raises WRONGTYPE."""
    return _readable(call, key) is not None


def sketch_at(call: Call, key: bytes) -> bytes | None:
    """The HyperLogLog of a key or None, for a command that reads; raises WRONGTYPE."""
    value = _readable(call, key)
    return None if value is None else bytes(value)


def _readable(call: Call, key: bytes) -> bytes | bytearray | None:
    value = buffer_at(call, key)
    if value is not None and not is_sketch(value):
        raise CommandError(NOT_A_SKETCH)
    return value


def changing(call: Call, key: bytes) -> bytearray | None:
    """The HyperLogLog of a key that is about to change, or None; raises WRONGTYPE."""
    found = writable(call, key)
    if found is None:
        return None
    value = found.value
    if isinstance(value, int) or not isinstance(value, (bytes, bytearray)) or not is_sketch(value):
        raise CommandError(NOT_A_SKETCH)
    return in_place(call, found)


def created(call: Call, key: bytes) -> bytearray:
    """A new one, without elements."""
    sketch = bytearray(EMPTY)
    call.put(key, sketch)
    return sketch
