"""What the commands on arrays share: finding one, indexes, numbers of 64 bits as replies."""

from __future__ import annotations

from typing import Final

from headrace.compat.array_errors import BAD_INDEX
from headrace.compat.errors import WRONGTYPE, CommandError
from headrace.compat.numbers import INT64_MAX, parse_unsigned
from headrace.protocol.packing import Packer
from headrace.protocol.replies import BigNumber
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import KeySpec
from headrace.storage.array.array import GREATEST, Array

READ_KEY: Final = (KeySpec("RO ACCESS"),)
UPDATE_KEY: Final = (KeySpec("RW UPDATE"),)
ACL: Final = ("array",)


def array_at(call: Call, key: bytes) -> Array | None:
    """The array of a key or None, for a command that reads; raises WRONGTYPE."""
    return _as_array(call.lookup(key))


def changing(call: Call, key: bytes) -> Array | None:
    """The array of a key that is about to change, or None; raises WRONGTYPE."""
    return _as_array(call.db.get(key, call.now_ms))


def _as_array(value: object | None) -> Array | None:
    if value is None or isinstance(value, Array):
        return value
    raise CommandError(WRONGTYPE)


def created(call: Call, key: bytes) -> Array:
    """A new one, without elements yet."""
    array = Array()
    call.put(key, array)
    return array


def index_of(word: bytes, greatest: int = GREATEST) -> int:
    """The index that a word spells; raises for anything else."""
    index = parse_unsigned(word)
    if index is None or index > greatest:
        raise CommandError(BAD_INDEX)
    return index


def number(value: int) -> object:
    """A number of up to 64 bits without a sign, as a reply."""
    return value if value <= INT64_MAX else BigNumber(value)


def add_number(packer: Packer, value: int) -> None:
    """As ``number``, in a reply that is being packed."""
    if value <= INT64_MAX:
        packer.number(value)
    else:
        packer.big_number(value)
