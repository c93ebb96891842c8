"""Values of Redis's types, read from RDB in parts of some hundred elements.

A small value is one packed string and one part. The elements are as they stand there: whether one
is there twice is up to whoever puts them into a value. Nothing is reserved by what a length says,
so a length that lies costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

from headrace.persistence.rdb import listpack, ziplist
from headrace.persistence.rdb.broken import Broken
from headrace.persistence.rdb.intset import integers
from headrace.persistence.rdb.kinds import (
    LIST,
    LIST_QUICKLIST,
    LIST_QUICKLIST_2,
    LIST_ZIPLIST,
    SET,
    SET_INTSET,
    SET_LISTPACK,
    SORTED_SET,
    SORTED_SET_LISTPACK,
    SORTED_SET_TEXT,
    SORTED_SET_ZIPLIST,
)
from headrace.persistence.rdb.source import RdbSource

AT_ONCE: Final = 256
LIST_KINDS: Final = (LIST, LIST_ZIPLIST, LIST_QUICKLIST, LIST_QUICKLIST_2)
SET_KINDS: Final = (SET, SET_INTSET, SET_LISTPACK)
SORTED_SET_KINDS: Final = (
    SORTED_SET_TEXT,
    SORTED_SET,
    SORTED_SET_ZIPLIST,
    SORTED_SET_LISTPACK,
)
_PLAIN_NODE: Final = 1  # one element as it is
_PACKED_NODE: Final = 2
_DOUBLE: Final = Struct("<d")
_NOT_A_NUMBER: Final = 253  # as the length of a score's text
_INFINITE: Final = 254
_INFINITE_NEGATIVE: Final = 255
_SCORE_MOST: Final = 128  # bytes of a score's text that anybody writes


def unpacked(source: RdbSource, read: Callable[[bytes], list[bytes]], what: str) -> list[bytes]:
    """What the string that comes next holds.

    Raises:
        CorruptRDB: it is no ``what``, or an empty one.
    """
    packed = source.string()
    try:
        found = read(packed)
    except (Broken, IndexError) as error:
        raise source.damage(f"a sound {what}") from error
    if not found:
        raise source.damage(f"a {what} that holds something")
    return found


def strings(source: RdbSource, count: int) -> Iterator[list[bytes]]:
    """The ``count`` strings that come next."""
    while count > 0:
        most = min(count, AT_ONCE)
        yield [source.string() for _ in range(most)]
        count -= most


def list_parts(source: RdbSource, kind: int) -> Iterator[list[bytes]]:
    """The elements of the list of this type that comes next, from the left.

    Raises:
        CorruptRDB: there is none.
    """
    if kind == LIST_ZIPLIST:
        yield unpacked(source, ziplist.texts, "ziplist")
        return
    count = source.many(1)
    if not count:
        raise source.damage("a list that holds something")
    if kind == LIST:
        yield from strings(source, count)
        return
    for _ in range(count):
        if kind == LIST_QUICKLIST:
            yield unpacked(source, ziplist.texts, "ziplist")
            continue
        container = source.length()
        if container == _PLAIN_NODE:
            yield [source.string()]
        elif container == _PACKED_NODE:
            yield unpacked(source, listpack.texts, "listpack")
        else:
            raise source.damage("a node of a list")


def set_parts(source: RdbSource, kind: int) -> Iterator[list[bytes]]:
    """The members of the set of this type that comes next, in the order of the file.

    Raises:
        CorruptRDB: there is none.
    """
    if kind == SET_INTSET:
        yield unpacked(source, _spelled, "intset")
    elif kind == SET_LISTPACK:
        yield unpacked(source, listpack.texts, "listpack")
    else:
        count = source.many(1)
        if not count:
            raise source.damage("a set that holds something")
        yield from strings(source, count)


def _spelled(packed: bytes) -> list[bytes]:
    return [b"%d" % number for number in integers(packed)]


def sorted_set_parts(source: RdbSource, kind: int) -> Iterator[tuple[list[bytes], list[float]]]:
    """Members and scores of the sorted set of this type that comes next, in the order of the file.

    Large ones stand there from the highest score to the lowest, small ones the other way.

    Raises:
        CorruptRDB: there is none.
    """
    if kind in (SORTED_SET_ZIPLIST, SORTED_SET_LISTPACK):
        read, what = (
            (ziplist.texts, "ziplist")
            if kind == SORTED_SET_ZIPLIST
            else (listpack.texts, "listpack")
        )
        both = unpacked(source, read, what)
        if len(both) % 2:
            raise source.damage("a score for each member")
        yield both[::2], [_score(source, text) for text in both[1::2]]
        return
    count = source.many(2)
    if not count:
        raise source.damage("a sorted set that holds something")
    while count > 0:
        most = min(count, AT_ONCE)
        members: list[bytes] = []
        scores: list[float] = []
        for _ in range(most):
            members.append(source.string())
            scores.append(_text_score(source) if kind == SORTED_SET_TEXT else _double(source))
        yield members, scores
        count -= most


def _double(source: RdbSource) -> float:
    score: float = _DOUBLE.unpack(source.raw(8))[0]
    if math.isnan(score):
        raise source.damage("a score that is a number")
    return score


def _text_score(source: RdbSource) -> float:
    size = source.byte()
    if size == _INFINITE:
        return math.inf
    if size == _INFINITE_NEGATIVE:
        return -math.inf
    if size == _NOT_A_NUMBER:
        raise source.damage("a score that is a number")
    return _score(source, source.raw(size))


def _score(source: RdbSource, text: bytes) -> float:
    if len(text) <= _SCORE_MOST and b"_" not in text:
        try:
            score = float(text)
        except ValueError:
            score = math.nan
        if not math.isnan(score):
            return score
    raise source.damage("a score that is a number")
