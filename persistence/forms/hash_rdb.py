"""Hashes in Redis's RDB: read in all types, small ones written packed, others as fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.rdb.hashes import PACKED_HASHES, HashPart, hash_parts
from headrace.persistence.rdb.kinds import (
    HASH,
    HASH_LISTPACK,
    MORTAL_HASH,
    MORTAL_HASH_EARLY,
    MORTAL_HASH_PACKED,
    MORTAL_HASH_PACKED_EARLY,
    VALKEY_HASH,
    VERSION_MIN,
    VERSION_PACKED,
    is_valkey_version,
)
from headrace.persistence.rdb.listpack import Listpack
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.collection import SmallLimits
from headrace.storage.hash.hash import Hash, packed_hash
from headrace.storage.hash.small import BOTH, MOST
from headrace.storage.hash.timed import NEVER, TimedPiece
from headrace.storage.packed.strings import unpack

VERSION_7_4: Final = 12  # of RDB: the first with deadlines of fields
_MORTAL: Final = (
    MORTAL_HASH_EARLY,
    MORTAL_HASH_PACKED_EARLY,
    MORTAL_HASH,
    MORTAL_HASH_PACKED,
)
_PIECES_AT_ONCE: Final = 32


def read_hash(source: RdbSource, kind: int, defaults: dict[str, int]) -> Iterator[object]:
    """Read the hash of this type that comes next; see ``RdbValues.read_rdb``.

    As in Redis, the length of fields and values says nothing where they come in one listpack.

    Raises:
        CorruptRDB: there is none.
    """
    limits = SmallLimits(
        defaults.get("hash-max-listpack-entries", 512),
        defaults.get("hash-max-listpack-value", 64),
    )
    made = Hash()
    if kind in _MORTAL:
        made.be_timed()
    for part in hash_parts(source, kind):
        if kind in PACKED_HASHES and len(part.pairs) // 2 <= min(limits.elements, MOST):
            packed = packed_hash(part.pairs, part.deadlines if kind in _MORTAL else None)
            if packed is None:
                raise source.damage("each field once")
            yield packed
            return
        for place in range(0, len(part.pairs), 2):
            if not made.put(part.pairs[place], part.pairs[place + 1], limits):
                raise source.damage("each field once")
        _expire(made, part, kind != MORTAL_HASH)
        yield None
    yield made


def _expire(made: Hash, part: HashPart, in_order: bool) -> None:
    """Set the deadlines of fields.

    Args:
        in_order: those that are equal stay in order, so the last is set first. Redis turns them
            around where fields do not stand in one piece.
    """
    places = list(range(len(part.deadlines)))
    for place in reversed(places) if in_order else places:
        deadline_ms = part.deadlines[place]
        if deadline_ms:
            made.be_timed().expire_at(part.pairs[2 * place], deadline_ms)


def hash_version(value: Hash) -> int:
    """From which version of RDB on a file can hold it."""
    return VERSION_7_4 if value.has_deadlines() else VERSION_MIN


def hash_type(value: Hash, version: int) -> int:
    """In which type a file of this version holds it: a small one comes back as it is.

    Redis asks a large one for a deadline.
    """
    is_packed = version >= VERSION_PACKED and value.is_small()
    if is_valkey_version(version) and value.has_deadlines():
        return VALKEY_HASH
    if not value.is_timed():
        return HASH_LISTPACK if is_packed else HASH
    if version < VERSION_7_4 or is_valkey_version(version):
        return HASH
    if is_packed:
        return MORTAL_HASH_PACKED
    return MORTAL_HASH if value.has_deadlines() else HASH


def write_hash(output: RdbOutput, value: Hash) -> Walk | None:
    """Write a hash in that type; what is left where that is much."""
    kind = hash_type(value, output.version)
    if kind not in PACKED_HASHES:
        return _Fields(output, value, kind)
    made = Listpack()
    rep = value.rep
    if isinstance(rep, TimedPiece):
        output.little(value.first_ms(), 8)
        for field, text, deadline_ms in rep.rows():
            made.text(field)
            made.text(text)
            made.integer(deadline_ms)
    else:
        for word in unpack(value.read(BOTH, NEVER).pieces[0]):
            made.text(word)
    output.string(made.packed())
    return None


class _Fields(Walk):
    """Writes the fields of a hash, some at a time."""

    def __init__(self, output: RdbOutput, value: Hash, kind: int) -> None:
        self._output: Final = output
        self._value: Final = value
        self._type: Final = kind
        self._first_ms: Final = value.first_ms()
        self._left: Final = value.read(BOTH, NEVER).pieces[::-1]
        if self._type == MORTAL_HASH:
            output.little(self._first_ms, 8)
        output.length(value.size())

    def step(self) -> bool:
        """See ``Walk``."""
        output = self._output
        left = self._left
        for _ in range(min(_PIECES_AT_ONCE, len(left))):
            words = unpack(left.pop())
            for place in range(0, len(words), 2):
                deadline_ms = NEVER if self._type == HASH else self._value.deadline_ms(words[place])
                never = deadline_ms == NEVER
                if self._type == MORTAL_HASH:
                    output.length(0 if never else deadline_ms - self._first_ms + 1)
                output.string(words[place])
                output.string(words[place + 1])
                if self._type == VALKEY_HASH:
                    output.little(-1 if never else deadline_ms, 8)
        return bool(left)
