"""Hashes in Redis's RDB: read in all types, written as fields and values, with deadlines if any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.persistence.forms.form import Walk
from headrace.persistence.rdb.hashes import HashPart, hash_parts
from headrace.persistence.rdb.kinds import (
    HASH,
    MORTAL_HASH,
    MORTAL_HASH_EARLY,
    MORTAL_HASH_PACKED,
    MORTAL_HASH_PACKED_EARLY,
    VALKEY_HASH,
    VERSION_MIN,
    is_valkey_version,
)
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.source import RdbSource
from headrace.storage.hash.cutting import BOTH
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import NEVER
from headrace.storage.limits import SmallLimits
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
    """In which type a file of this version holds it; Redis asks a large one for a deadline."""
    if is_valkey_version(version):
        return VALKEY_HASH if value.has_deadlines() else HASH
    if version < VERSION_7_4 or not value.is_timed():
        return HASH
    return MORTAL_HASH if value.is_small() or value.has_deadlines() else HASH


class HashRdb(Walk):
    """Writes the fields of a hash, some at a time."""

    def __init__(self, output: RdbOutput, value: Hash) -> None:
        self._output: Final = output
        self._value: Final = value
        self._type: Final = hash_type(value, output.version)
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
            if self._type == MORTAL_HASH and self._value.is_small():
                words = _turned(self._value, words)
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


def _turned(value: Hash, words: list[bytes]) -> list[bytes]:
    """Fields and values, those around that end at the same time: so they come back in order."""
    found: list[bytes] = []
    at = 0
    while at < len(words):
        deadline_ms = value.deadline_ms(words[at])
        end = at + 2
        while deadline_ms != NEVER and end < len(words):
            if value.deadline_ms(words[end]) != deadline_ms:
                break
            end += 2
        for place in range(end - 2, at - 1, -2):
            found += words[place : place + 2]
        at = end
    return found
