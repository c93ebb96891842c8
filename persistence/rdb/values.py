"""Values of Redis's types, read from RDB in parts of some hundred elements.

A small value is one packed string and one part. The elements come in the order of the file; the
caller that puts them into a value sees duplicates. No memory is reserved because of a length in the
file, so a false length costs nothing.

**Arrays** (Redis 8.8) say how many elements there are, and where the last one was inserted, if
ARINSERT or ARRING did. Then each: its place, and its value as a text, an integer or a double.

**Hashes** may be plain, or have deadlines of fields, or a shape. Redis 7.4 brought deadlines. Type
24 says the earliest one first, and with each field how far its own lies behind that, plus one; 0 is
none. Type 25 is a listpack of fields, values and deadlines. Release candidates had both without the
earliest one (22, 23). Valkey 9 writes a deadline of its own behind each value, -1 for none.

Redis 8.10 writes the field names of hashes that HIMPORT made once for many (a shape): in a file in
front of all keys, under a number; in a payload with the hash.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.persistence.rdb import kinds
from headrace.persistence.rdb.kinds import Broken
from headrace.persistence.rdb.packings import (
    intset_integers,
    listpack_texts,
    ziplist_texts,
    zipmap_texts,
)
from headrace.persistence.rdb.primitives import RdbSource


@mypyc_attr(allow_interpreted_subclasses=True)
class RdbValues:
    """Values of one type, which RDB files may know by several numbers.

    Attributes:
        rdb_types: those numbers; none where Redis has no such type.
    """

    def __init__(self, rdb_types: tuple[int, ...]) -> None:
        self.rdb_types: Final = rdb_types

    @abstractmethod
    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        """Read the next value in parts: None after some of it, at last the value.

        The value is as a keyspace holds it, and commands could have made it. All of it is checked,
        because it may come from a stranger. Raises CorruptRDB if there is none.

        Args:
            number: of the type, one of ``rdb_types``.
            defaults: what new values get, by the names of parameters, where the file says nothing,
                and up to which sizes values are small.
        """

    def take_note(self, value: object, name: bytes, source: RdbSource) -> None:
        """Read a note of ours behind a value, which says what Redis's form has no place for.

        ``value`` is the result of ``read_rdb``, ``source`` holds the text. Unknown names are
        skipped. Raises CorruptRDB if the text has no meaning.
        """


def whole(parts: Iterator[object]) -> object:
    """Return the value that ``RdbValues.read_rdb`` reads, in one go."""
    value: object = None
    for last in parts:
        value = last
    return value


AT_ONCE: Final = 256
LIST_KINDS: Final = (kinds.LIST, kinds.LIST_ZIPLIST, kinds.LIST_QUICKLIST, kinds.LIST_QUICKLIST_2)
SET_KINDS: Final = (kinds.SET, kinds.SET_INTSET, kinds.SET_LISTPACK)
PACKED_SORTED_SETS: Final = (kinds.SORTED_SET_ZIPLIST, kinds.SORTED_SET_LISTPACK)
SORTED_SET_KINDS: Final = (kinds.SORTED_SET_TEXT, kinds.SORTED_SET, *PACKED_SORTED_SETS)
PLAIN_NODE: Final = 1  # one element as it is
PACKED_NODE: Final = 2
_DOUBLE: Final = Struct("<d")
_NOT_A_NUMBER: Final = 253  # as the length of a score's text
_INFINITE: Final = 254
_INFINITE_NEGATIVE: Final = 255
_SCORE_MOST: Final = 128  # bytes of a score's text that any server writes


class ListPart:
    """Some elements of a list: a node, where it is written as nodes.

    ``is_plain``: it is one element as it is, however long.
    """

    def __init__(self, strings: list[bytes], is_plain: bool) -> None:
        self.strings: Final = strings
        self.is_plain: Final = is_plain


def unpacked(source: RdbSource, read: Callable[[bytes], list[bytes]], what: str) -> list[bytes]:
    """Return what the next string holds, maybe nothing. Raises CorruptRDB if it is no ``what``."""
    packed = source.string()
    try:
        return read(packed)
    except (Broken, IndexError) as error:
        raise source.damage(f"a sound {what}") from error


def some_unpacked(
    source: RdbSource, read: Callable[[bytes], list[bytes]], what: str
) -> list[bytes]:
    """Return what the next string holds. Raises CorruptRDB if it is no ``what``, or empty."""
    found = unpacked(source, read, what)
    if not found:
        raise source.damage(f"a {what} that holds something")
    return found


def strings(source: RdbSource, count: int) -> Iterator[list[bytes]]:
    """Yield the ``count`` strings that come next."""
    while count > 0:
        most = min(count, AT_ONCE)
        yield [source.string() for _ in range(most)]
        count -= most


def list_parts(source: RdbSource, kind: int) -> Iterator[ListPart]:
    """Yield the elements of the list of this type that comes next, from the left, less empty nodes.

    Raises CorruptRDB if there is none, EmptyValue if it has no elements.
    """
    count = 1 if kind == kinds.LIST_ZIPLIST else source.many(1)
    if kind == kinds.LIST and count:
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
    if kind != kinds.LIST_QUICKLIST_2:
        return ListPart(unpacked(source, ziplist_texts, "ziplist"), False)
    container = source.length()
    if container == PLAIN_NODE:
        return ListPart([source.string()], True)
    if container == PACKED_NODE:
        return ListPart(unpacked(source, listpack_texts, "listpack"), False)
    raise source.damage("a node of a list")


def set_parts(source: RdbSource, kind: int) -> Iterator[list[bytes]]:
    """Yield the members of the set of this type that comes next, in the order of the file.

    Raises CorruptRDB if there is none, EmptyValue if it has no members.
    """
    if kind == kinds.SET_INTSET:
        yield some_unpacked(source, _spelled, "intset")
    elif kind == kinds.SET_LISTPACK:
        members = unpacked(source, listpack_texts, "listpack")
        if not members:
            raise source.empty("set")
        yield members
    else:
        yield from strings(source, set_count(source))


def set_count(source: RdbSource) -> int:
    """Return how many members follow, of the next set of type ``SET``.

    Raises CorruptRDB if there is none, EmptyValue if it has no members.
    """
    count = source.many(1)
    if not count:
        raise source.empty("set")
    return count


def _spelled(packed: bytes) -> list[bytes]:
    return [b"%d" % number for number in intset_integers(packed)]


def sorted_set_parts(source: RdbSource, kind: int) -> Iterator[tuple[list[bytes], list[float]]]:
    """Yield members and scores of the sorted set of this type that comes next, in file order.

    Large ones are written from the highest score to the lowest, small ones the other way. Raises
    CorruptRDB if there is none, EmptyValue if it has no members.
    """
    if kind in PACKED_SORTED_SETS:
        read, what = (
            (ziplist_texts, "ziplist")
            if kind == kinds.SORTED_SET_ZIPLIST
            else (listpack_texts, "listpack")
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
            scores.append(_text_score(source) if kind == kinds.SORTED_SET_TEXT else _double(source))
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


NEVER_INSERTED: Final = -1
_TEXT: Final = 0
_INTEGER: Final = 1
_FLOAT: Final = 2
_SHORT_TEXT: Final = 3


class ArrayHead:
    """``count``: how many elements follow, not 0; ``inserted_at``: where the last was inserted."""

    def __init__(self, source: RdbSource) -> None:
        self.count: Final = source.many(3)
        if not self.count:
            raise source.damage("an array that holds something")
        inserted = source.length()
        self.inserted_at: Final = source.length() if inserted else NEVER_INSERTED


class ArrayPart:
    """Elements of an array: ``places``, from the lowest, and ``values``, floats as in the file."""

    def __init__(self) -> None:
        self.places: Final[list[int]] = []
        self.values: Final[list[bytes | int | float]] = []


def array_parts(source: RdbSource, count: int) -> Iterator[ArrayPart]:
    """Yield the ``count`` elements that come next. Raises CorruptRDB if there are none."""
    above = -1
    while count > 0:
        most = min(count, AT_ONCE)
        count -= most
        part = ArrayPart()
        for _ in range(most):
            place = source.length()
            if place <= above:
                raise source.damage("elements in order")
            above = place
            part.places.append(place)
            part.values.append(_value(source))
        yield part


def _value(source: RdbSource) -> bytes | int | float:
    tag = source.byte()
    if tag in (_TEXT, _SHORT_TEXT):
        return source.string()
    if tag == _INTEGER:
        return source.signed(8)
    if tag == _FLOAT:
        number: float = _DOUBLE.unpack(source.raw(8))[0]
        return number
    raise source.damage("an element of an array")


DEADLINE_MAX_MS: Final = 2**46 - 1
HASH_KINDS: Final = (
    kinds.HASH,
    kinds.HASH_ZIPMAP,
    kinds.HASH_ZIPLIST,
    kinds.HASH_LISTPACK,
    kinds.MORTAL_HASH_EARLY,
    kinds.MORTAL_HASH_PACKED_EARLY,
    kinds.MORTAL_HASH,
    kinds.MORTAL_HASH_PACKED,
    kinds.SHAPED_HASH_PACKED_ALONE,
    kinds.SHAPED_HASH_PACKED,
    kinds.SHAPED_HASH_ALONE,
    kinds.SHAPED_HASH,
    kinds.VALKEY_HASH,
)
PACKED_HASHES: Final = (
    kinds.HASH_ZIPLIST,
    kinds.HASH_LISTPACK,
    kinds.MORTAL_HASH_PACKED_EARLY,
    kinds.MORTAL_HASH_PACKED,
)
_NAMES_LISTPACK: Final = 0
_NAMES_STRINGS: Final = 1
_PACKED: Final[dict[int, tuple[Callable[[bytes], list[bytes]], str]]] = {
    kinds.HASH_ZIPLIST: (ziplist_texts, "ziplist"),
    kinds.HASH_LISTPACK: (listpack_texts, "listpack"),
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
    """Yield the fields of the hash of this type that comes next, in the order of the file.

    Raises CorruptRDB if there is none, EmptyValue if it has no fields.
    """
    if kind == kinds.HASH_ZIPMAP:
        yield HashPart(some_unpacked(source, zipmap_texts, "zipmap"), [])
    elif kind in _PACKED:
        read, what = _PACKED[kind]
        pairs = unpacked(source, read, what)
        if not pairs:
            raise source.empty("hash")
        if len(pairs) % 2:
            raise source.damage("a value for each field")
        yield HashPart(pairs, [])
    elif kind == kinds.HASH:
        for pairs in strings(source, 2 * _count(source, 2)):
            yield HashPart(pairs, [])
    elif kind in (kinds.MORTAL_HASH_PACKED, kinds.MORTAL_HASH_PACKED_EARLY):
        if kind == kinds.MORTAL_HASH_PACKED:
            source.raw(8)
        yield _packed_with_deadlines(source)
    elif kind in (kinds.MORTAL_HASH, kinds.MORTAL_HASH_EARLY):
        yield from _with_deadlines(source, source.little(8) - 1 if kind == kinds.MORTAL_HASH else 0)
    elif kind == kinds.VALKEY_HASH:
        yield from _of_valkey(source)
    else:
        yield HashPart(_shaped(source, kind), [])


def read_shape(source: RdbSource) -> None:
    """Read field names that hashes of a file share. Raises CorruptRDB if there are none."""
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
    triples = unpacked(source, listpack_texts, "listpack")
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
    """Return fields and values in turn of a hash whose field names stand apart."""
    names: list[bytes] | None
    if kind in (kinds.SHAPED_HASH_ALONE, kinds.SHAPED_HASH_PACKED_ALONE):
        form = source.length()
        if form == _NAMES_LISTPACK:
            names = some_unpacked(source, listpack_texts, "listpack")
        elif form == _NAMES_STRINGS:
            names = _names(source)
        else:
            raise source.damage("names of fields")
    elif kind == kinds.SHAPED_HASH:
        names = source.shapes.get(source.length())
    else:
        names = None
    if kind in (kinds.SHAPED_HASH_PACKED, kinds.SHAPED_HASH_PACKED_ALONE):
        number, *values = some_unpacked(source, listpack_texts, "listpack")
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
