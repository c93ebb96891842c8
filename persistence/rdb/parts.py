"""Values of Redis's types, read from RDB in parts of some hundred elements.

A small value is one packed string and one part. The elements come as they stand in the file. Who
puts them into a value sees whether one is there twice. No memory is reserved because of a length
in the file, so a false length costs nothing.
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
PACKED_SORTED_SETS: Final = (SORTED_SET_ZIPLIST, SORTED_SET_LISTPACK)
SORTED_SET_KINDS: Final = (SORTED_SET_TEXT, SORTED_SET, *PACKED_SORTED_SETS)
PLAIN_NODE: Final = 1  # one element as it is
PACKED_NODE: Final = 2
_DOUBLE: Final = Struct("<d")
_NOT_A_NUMBER: Final = 253  # as the length of a score's text
_INFINITE: Final = 254
_INFINITE_NEGATIVE: Final = 255
_SCORE_MOST: Final = 128  # bytes of a score's text that anybody writes


class ListPart:
    """Some elements of a list: a node, where it is written as nodes.

    Attributes:
        is_plain: it is one element as it is, however long.
    """

    def __init__(self, strings: list[bytes], is_plain: bool) -> None:
        self.strings: Final = strings
        self.is_plain: Final = is_plain


def unpacked(source: RdbSource, read: Callable[[bytes], list[bytes]], what: str) -> list[bytes]:
    """What the string that comes next holds, maybe nothing.

    Raises:
        CorruptRDB: it is no ``what``.
    """
    packed = source.string()
    try:
        return read(packed)
    except (Broken, IndexError) as error:
        raise source.damage(f"a sound {what}") from error


def some_unpacked(
    source: RdbSource, read: Callable[[bytes], list[bytes]], what: str
) -> list[bytes]:
    """What the string that comes next holds, which no server ever left empty.

    Raises:
        CorruptRDB: it is no ``what``, or an empty one.
    """
    found = unpacked(source, read, what)
    if not found:
        raise source.damage(f"a {what} that holds something")
    return found


def strings(source: RdbSource, count: int) -> Iterator[list[bytes]]:
    """The ``count`` strings that come next."""
    while count > 0:
        most = min(count, AT_ONCE)
        yield [source.string() for _ in range(most)]
        count -= most


def list_parts(source: RdbSource, kind: int) -> Iterator[ListPart]:
    """The elements of the list of this type that comes next, from the left.

    Nodes that are empty are passed.

    Raises:
        CorruptRDB: there is none.
        EmptyValue: it has no elements.
    """
    count = 1 if kind == LIST_ZIPLIST else source.many(1)
    if kind == LIST and count:
        for some in strings(source, count):
            yield ListPart(some, False)
        return
    found = False
    for _ in range(count):
        node = _node(source, kind)
        if node.strings:
            found = True
            yield node
    if not found:
        raise source.empty("list")


def _node(source: RdbSource, kind: int) -> ListPart:
    """The node of a list that comes next."""
    if kind != LIST_QUICKLIST_2:
        return ListPart(unpacked(source, ziplist.texts, "ziplist"), False)
    container = source.length()
    if container == PLAIN_NODE:
        return ListPart([source.string()], True)
    if container == PACKED_NODE:
        return ListPart(unpacked(source, listpack.texts, "listpack"), False)
    raise source.damage("a node of a list")


def set_parts(source: RdbSource, kind: int) -> Iterator[list[bytes]]:
    """The members of the set of this type that comes next, in the order of the file.

    Raises:
        CorruptRDB: there is none.
        EmptyValue: it has no members.
    """
    if kind == SET_INTSET:
        yield some_unpacked(source, _spelled, "intset")
    elif kind == SET_LISTPACK:
        members = unpacked(source, listpack.texts, "listpack")
        if not members:
            raise source.empty("set")
        yield members
    else:
        yield from strings(source, set_count(source))


def set_count(source: RdbSource) -> int:
    """How many members the set of type ``SET`` has that comes next; they follow.

    Raises:
        CorruptRDB: there is none.
        EmptyValue: it has no members.
    """
    count = source.many(1)
    if not count:
        raise source.empty("set")
    return count


def _spelled(packed: bytes) -> list[bytes]:
    return [b"%d" % number for number in integers(packed)]


def sorted_set_parts(source: RdbSource, kind: int) -> Iterator[tuple[list[bytes], list[float]]]:
    """Members and scores of the sorted set of this type that comes next, in the order of the file.

    Large ones stand there from the highest score to the lowest, small ones the other way.

    Raises:
        CorruptRDB: there is none.
        EmptyValue: it has no members.
    """
    if kind in PACKED_SORTED_SETS:
        read, what = (
            (ziplist.texts, "ziplist")
            if kind == SORTED_SET_ZIPLIST
            else (listpack.texts, "listpack")
        )
        both = unpacked(source, read, what)
        if not both:
            raise source.empty("sorted set")
        if len(both) % 2:
            raise source.damage("a score for each member")
        yield both[::2], [_score(source, text) for text in both[1::2]]
        return
    count = source.many(2)
    if not count:
        raise source.empty("sorted set")
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
