"""Hashes in RDB, read in parts: plain ones, those with deadlines of fields, and shaped ones.

Redis 7.4 brought deadlines. Type 24 says the earliest one first, and with each field how far its
own lies behind that, plus one; 0 is none. Type 25 is a listpack of fields, values and deadlines.
Release candidates had both without the earliest one (22, 23). Valkey 9 writes a deadline of its own
behind each value, -1 for none.

Redis 8.10 writes the field names of hashes that HIMPORT made once for many (a shape): in a file in
front of all keys, under a number; in a payload with the hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from headrace.persistence.rdb import listpack, ziplist, zipmap
from headrace.persistence.rdb.kinds import (
    HASH,
    HASH_LISTPACK,
    HASH_ZIPLIST,
    HASH_ZIPMAP,
    MORTAL_HASH,
    MORTAL_HASH_EARLY,
    MORTAL_HASH_PACKED,
    MORTAL_HASH_PACKED_EARLY,
    SHAPED_HASH,
    SHAPED_HASH_ALONE,
    SHAPED_HASH_PACKED,
    SHAPED_HASH_PACKED_ALONE,
    VALKEY_HASH,
)
from headrace.persistence.rdb.parts import AT_ONCE, some_unpacked, strings, unpacked
from headrace.persistence.rdb.source import RdbSource

DEADLINE_MAX_MS: Final = 2**46 - 1
HASH_KINDS: Final = (
    HASH,
    HASH_ZIPMAP,
    HASH_ZIPLIST,
    HASH_LISTPACK,
    MORTAL_HASH_EARLY,
    MORTAL_HASH_PACKED_EARLY,
    MORTAL_HASH,
    MORTAL_HASH_PACKED,
    SHAPED_HASH_PACKED_ALONE,
    SHAPED_HASH_PACKED,
    SHAPED_HASH_ALONE,
    SHAPED_HASH,
    VALKEY_HASH,
)
PACKED_HASHES: Final = (HASH_ZIPLIST, HASH_LISTPACK, MORTAL_HASH_PACKED_EARLY, MORTAL_HASH_PACKED)
_NAMES_LISTPACK: Final = 0
_NAMES_STRINGS: Final = 1
_PACKED: Final[dict[int, tuple[Callable[[bytes], list[bytes]], str]]] = {
    HASH_ZIPLIST: (ziplist.texts, "ziplist"),
    HASH_LISTPACK: (listpack.texts, "listpack"),
}


class HashPart:
    """Some fields of a hash.

    Attributes:
        pairs: fields and values in turn.
        deadlines: of each field in ms since 1970, 0 for none; empty where none of them has one.
    """

    def __init__(self, pairs: list[bytes], deadlines: list[int]) -> None:
        self.pairs: Final = pairs
        self.deadlines: Final = deadlines


def hash_parts(source: RdbSource, kind: int) -> Iterator[HashPart]:
    """The hash of this type that comes next, in the order of the file.

    Raises:
        CorruptRDB: there is none.
        EmptyValue: it has no fields.
    """
    if kind == HASH_ZIPMAP:
        yield HashPart(some_unpacked(source, zipmap.texts, "zipmap"), [])
    elif kind in _PACKED:
        read, what = _PACKED[kind]
        pairs = unpacked(source, read, what)
        if not pairs:
            raise source.empty("hash")
        if len(pairs) % 2:
            raise source.damage("a value for each field")
        yield HashPart(pairs, [])
    elif kind == HASH:
        for pairs in strings(source, 2 * _count(source, 2)):
            yield HashPart(pairs, [])
    elif kind in (MORTAL_HASH_PACKED, MORTAL_HASH_PACKED_EARLY):
        if kind == MORTAL_HASH_PACKED:
            source.raw(8)
        yield _packed_with_deadlines(source)
    elif kind in (MORTAL_HASH, MORTAL_HASH_EARLY):
        yield from _with_deadlines(source, source.little(8) - 1 if kind == MORTAL_HASH else 0)
    elif kind == VALKEY_HASH:
        yield from _of_valkey(source)
    else:
        yield HashPart(_shaped(source, kind), [])


def read_shape(source: RdbSource) -> None:
    """Take note of field names that hashes of a file share.

    Raises:
        CorruptRDB: there are none.
    """
    number = source.length()
    source.shapes[number] = _names(source)


def _names(source: RdbSource) -> list[bytes]:
    count = source.many(1)
    if not count:
        raise source.damage("names of fields")
    return [source.string() for _ in range(count)]


def _count(source: RdbSource, least_bytes: int) -> int:
    count = source.many(least_bytes)
    if not count:
        raise source.empty("hash")
    return count


def _packed_with_deadlines(source: RdbSource) -> HashPart:
    triples = unpacked(source, listpack.texts, "listpack")
    if not triples:
        raise source.empty("hash")
    if len(triples) % 3:
        raise source.damage("a value and a deadline for each field")
    pairs: list[bytes] = []
    deadlines: list[int] = []
    for place in range(0, len(triples), 3):
        pairs += triples[place : place + 2]
        text = triples[place + 2]
        if len(text) > 20 or not text.isdigit():
            raise source.damage("a deadline")
        deadlines.append(_deadline(source, int(text)))
    return HashPart(pairs, deadlines)


def _with_deadlines(source: RdbSource, before_first_ms: int) -> Iterator[HashPart]:
    count = _count(source, 3)
    while count > 0:
        most = min(count, AT_ONCE)
        count -= most
        pairs: list[bytes] = []
        deadlines: list[int] = []
        for _ in range(most):
            offset = source.length()
            deadlines.append(_deadline(source, offset + before_first_ms) if offset else 0)
            pairs.append(source.string())
            pairs.append(source.string())
        yield HashPart(pairs, deadlines)


def _of_valkey(source: RdbSource) -> Iterator[HashPart]:
    count = _count(source, 10)
    while count > 0:
        most = min(count, AT_ONCE)
        count -= most
        pairs: list[bytes] = []
        deadlines: list[int] = []
        for _ in range(most):
            pairs.append(source.string())
            pairs.append(source.string())
            moment_ms = source.signed(8)
            deadlines.append(0 if moment_ms == -1 else _deadline(source, moment_ms))
        yield HashPart(pairs, deadlines)


def _deadline(source: RdbSource, moment_ms: int) -> int:
    if not 0 <= moment_ms <= DEADLINE_MAX_MS:
        raise source.damage("a deadline of a field")
    return moment_ms


def _shaped(source: RdbSource, kind: int) -> list[bytes]:
    """Fields and values in turn of a hash whose field names stand apart."""
    names: list[bytes] | None
    if kind in (SHAPED_HASH_ALONE, SHAPED_HASH_PACKED_ALONE):
        form = source.length()
        if form == _NAMES_LISTPACK:
            names = some_unpacked(source, listpack.texts, "listpack")
        elif form == _NAMES_STRINGS:
            names = _names(source)
        else:
            raise source.damage("names of fields")
    elif kind == SHAPED_HASH:
        names = source.shapes.get(source.length())
    else:
        names = None
    if kind in (SHAPED_HASH_PACKED, SHAPED_HASH_PACKED_ALONE):
        number, *values = some_unpacked(source, listpack.texts, "listpack")
        if names is None and number.isdigit():
            names = source.shapes.get(int(number))
    elif names is not None:
        values = [source.string() for _ in names]
    if names is None:
        raise source.damage("the number of a list of field names")
    if len(names) != len(values):
        raise source.damage("a value for each field")
    pairs: list[bytes] = []
    for name, value in zip(names, values, strict=True):
        pairs.append(name)
        pairs.append(value)
    return pairs
