"""Lists, as the keyspace holds them.

A list is one ``bytes`` while it is tiny, and else a ``Row``, because that is fast. OBJECT ENCODING
answers as Redis does: ``listpack`` while all of it would be in one node, and from then on
``quicklist``, until the only node that is left has half the size that it may have.

A small one is one ``bytes``, which a push or a pop copies; so it stays below a kilobyte::

    number of elements, u8 | the elements, packed
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr, u8

from headrace.storage.collection import Collection
from headrace.storage.digest import Digest
from headrace.storage.list.piece import (
    NodeLimits,
    listpack_bytes,
    numbers_of,
    with_other,
    with_string,
    without,
)
from headrace.storage.list.row import Row, row_of
from headrace.storage.packed.strings import (
    EMPTY_BYTES,
    empty_buffer,
    next_at,
    string_at,
    unpack,
    write_string,
)

START: Final = 1  # where the elements begin
MOST_BYTES: Final = 1024
MOST_ELEMENTS: Final = 64
_STRING_BYTES: Final = 10  # that a string takes beside its own, at most, if it is small enough
EMPTY: Final = b"\0"
_COUNTS: Final = [bytes([number]) for number in range(MOST_ELEMENTS + 1)]


def count_of(small: bytes) -> i64:
    """Return how many elements there are."""
    return small[0]


def takes(small: bytes, added_bytes: i64, added: i64) -> bool:
    """Return whether so many elements, and bytes of them, may be added."""
    size = len(small) + added_bytes + _STRING_BYTES * added
    return size <= MOST_BYTES and count_of(small) + added <= MOST_ELEMENTS


def small_of(piece: bytes, count: i64) -> bytes:
    """Return the small form of packed elements."""
    return _COUNTS[count] + piece


def pushed_right(small: bytes, strings: list[bytes], first: i64) -> bytes:
    """Return it with the elements ``strings[first:]`` added, one after the other."""
    out = empty_buffer()
    out.write(small)
    added: i64 = len(strings) - first
    out[0] = u8(small[0] + added)
    while first < len(strings):
        write_string(out, strings[first])
        first += 1
    return out.getvalue()


def pushed_left(small: bytes, strings: list[bytes], first: i64) -> bytes:
    """Return it with the elements ``strings[first:]`` added, each of them in front of all."""
    out = empty_buffer()
    number: i64 = len(strings)
    out.append(int(count_of(small) + number - first))
    while number > first:
        number -= 1
        write_string(out, strings[number])
    out.write(small[START:])
    return out.getvalue()


def popped_left(small: bytes) -> tuple[bytes, bytes]:
    """Return the first element, and what is left without it."""
    at = next_at(small, START)
    return string_at(small, START), _COUNTS[count_of(small) - 1] + small[at:]


def popped_right(small: bytes) -> tuple[bytes, bytes]:
    """Return the last element, and what is left without it."""
    left = count_of(small) - 1
    at = next_at(small, START, left)
    out = empty_buffer()
    out.write(small)
    out[0] = u8(left)
    out.truncate(at)
    return string_at(small, at), out.getvalue()


def get(small: bytes, index: i64) -> bytes:
    """Return the element with ``index`` elements before it."""
    return string_at(small, next_at(small, START, index))


def part(small: bytes, index: i64, count: i64) -> bytes:
    """Return ``count`` elements from ``index`` on, packed."""
    low = next_at(small, START, index)
    if index + count == count_of(small):
        return small[low:]
    return small[low : next_at(small, low, count)]


def all_of(small: bytes) -> list[bytes]:
    """Return the elements."""
    return unpack(small[START:])


def cut(small: bytes, first: i64, last: i64) -> bytes:
    """Return it without the ``first`` elements at the beginning and ``last`` at the end."""
    left = count_of(small) - first - last
    return _COUNTS[left] + part(small, first, left)


def replaced(small: bytes, index: i64, string: bytes) -> bytes:
    """Return it with another element in place of the one with ``index`` elements before it."""
    return with_other(small, next_at(small, START, index), string)


def inserted(small: bytes, index: i64, string: bytes) -> bytes:
    """Return it with an element added with ``index`` elements before it."""
    grown = with_string(small, next_at(small, START, index), string)
    return _COUNTS[count_of(small) + 1] + grown[START:]


def removed(small: bytes, string: bytes, most: i64, forward: bool) -> bytes:
    """Return it without up to ``most`` elements (0: all) that are equal to ``string``."""
    numbers = numbers_of(small, START, string)
    there: i64 = len(numbers)
    if not there:
        return small
    if most and there > most:
        numbers = numbers[:most] if forward else numbers[there - most :]
        there = most
    rest = without(small, START, len(string), numbers)
    return _COUNTS[count_of(small) - there] + rest[START:]


LIST: Final = b"list"
LISTPACK: Final = b"listpack"
QUICKLIST: Final = b"quicklist"
_DIGEST_NUMBER: Final = 1
_BELOW_ELEMENTS: Final = 16  # a row with no more, and no more bytes, is packed into one piece
_BELOW_BYTES: Final = 400
_LIST_BYTES: Final = 32
_BYTES_BYTES: Final = 33  # what an object of ``bytes`` takes beside its own
_ROW_BYTES: Final = 480
_NODE_BYTES: Final = 24 + _BYTES_BYTES
_MORE_BYTES: Final = 5  # that an element takes here beside what it takes in Redis's node
_FREED_AT_ONCE: Final = 16  # nodes


@mypyc_attr(acyclic=True)
class List(Collection):
    """Elements in order; ``rep`` is ``bytes``, as the module describes, or a ``Row``."""

    def __init__(self) -> None:
        self.rep: object = EMPTY

    # Its face

    def type_name(self) -> bytes:
        return LIST

    def encoding(self, key: bytes) -> bytes:
        rep = self.rep
        return QUICKLIST if isinstance(rep, Row) and not rep.is_listpack else LISTPACK

    def size(self) -> int:
        return int(self.length())

    def length(self) -> i64:
        """Return how many elements there are."""
        rep = self.rep
        if isinstance(rep, Row):
            return rep.count
        assert isinstance(rep, bytes)
        return count_of(rep)

    def used_bytes(self, samples: int) -> int:
        """Return as ``Value`` if all elements were packed, which reading may have done."""
        rep = self.rep
        if isinstance(rep, bytes):
            return _LIST_BYTES + _BYTES_BYTES + len(rep)
        assert isinstance(rep, Row)
        content = int(rep.content_bytes()) + _MORE_BYTES * self.size()
        return _LIST_BYTES + _ROW_BYTES + _NODE_BYTES * rep.nodes() + content

    def copy(self) -> List:
        """Copy as ``Value``. Complexity: O(nodes), some nanoseconds for each."""
        twin = List()
        rep = self.rep
        twin.rep = rep.copy() if isinstance(rep, Row) else rep
        return twin

    def effort(self) -> int:
        rep = self.rep
        if isinstance(rep, Row) and len(rep.pieces) > _FREED_AT_ONCE:
            return len(rep.pieces)
        return 0

    def free_some(self, most: int) -> bool:
        rep = self.rep
        if not isinstance(rep, Row):
            return True
        del rep.pieces[-most:]
        return not rep.pieces

    def add_to(self, digest: Digest) -> None:
        digest.mix_type(_DIGEST_NUMBER)
        for string in self.strings():
            digest.mix(string)

    def quicklist(self) -> tuple[int, int, int]:
        """Return Redis's number of nodes, ``fill``, and their bytes; no nodes: a listpack."""
        rep = self.rep
        if not isinstance(rep, Row) or rep.is_listpack:
            return 0, 0, 0
        size = 0
        for place in range(int(rep.low), len(rep.pieces)):
            size += rep.node_bytes(place)
        return rep.nodes(), rep.limits.fill, size

    # Reading

    def strings(self) -> list[bytes]:
        """Return all elements."""
        return unpack(b"".join(self.packed(0, self.length())))

    def get(self, index: i64) -> bytes:
        """Return the element with ``index`` elements before it; there is one."""
        rep = self.rep
        if isinstance(rep, Row):
            return rep.get(index)
        assert isinstance(rep, bytes)
        return get(rep, index)

    def packed(self, index: i64, count: i64) -> list[bytes]:
        """Return ``count`` elements from ``index`` on, which are there, packed in pieces."""
        found: list[bytes] = []
        self.add_packed(found, index, count)
        return found

    def add_packed(self, found: list[bytes], index: i64, count: i64) -> None:
        """Add what ``packed`` returns to ``found``."""
        rep = self.rep
        if isinstance(rep, Row):
            rep.add_packed(found, index, count)
        else:
            assert isinstance(rep, bytes)
            found.append(part(rep, index, count))

    def positions(
        self, string: bytes, limit: i64, forward: bool, rank: i64, most: i64
    ) -> list[int]:
        """Return the indexes of elements equal to ``string``; arguments as ``Row.positions``."""
        rep = self.rep
        if isinstance(rep, Row):
            return rep.positions(string, limit, forward, rank, most)
        assert isinstance(rep, bytes)
        numbers = numbers_of(rep, START, string)
        if forward:
            found = [number for number in numbers if number < limit]
        else:
            end = count_of(rep) - limit
            found = [number for number in numbers if number >= end]
            found.reverse()
        found = found[rank - 1 :]
        return found[:most] if most else found

    # The ends

    def push(self, strings: list[bytes], first: i64, right: bool, limits: NodeLimits) -> None:
        """Add ``strings[first:]`` one after the other, each behind or before all others."""
        added: i64 = len(strings) - first
        added_bytes: i64 = 0
        number = first
        while number < len(strings):
            added_bytes += len(strings[number])
            number += 1
        rep = self.rep
        if isinstance(rep, bytes):
            if self._stays_small(rep, added_bytes, added, limits):
                if right:
                    self.rep = pushed_right(rep, strings, first)
                else:
                    self.rep = pushed_left(rep, strings, first)
                return
            rep = self._become_row(limits)
        assert isinstance(rep, Row)
        rep.grow(limits, added_bytes, added)
        if right:
            while first < len(strings):
                rep.push_right(strings[first])
                first += 1
        else:
            while first < len(strings):
                rep.push_left(strings[first])
                first += 1

    def pop(self, right: bool, limits: NodeLimits) -> bytes:
        """Take away the element at an end, which must be there, and return it."""
        string = self.take(right)
        rep = self.rep
        if isinstance(rep, Row) and (rep.count <= _BELOW_ELEMENTS or not rep.is_listpack):
            self._shrink(rep, limits)
        return string

    def take(self, right: bool) -> bytes:
        """Take an element as ``pop``, where something is added before ``shrink``."""
        rep = self.rep
        if isinstance(rep, bytes):
            string, rest = popped_right(rep) if right else popped_left(rep)
            self.rep = rest
            return string
        assert isinstance(rep, Row)
        return rep.pop_right() if right else rep.pop_left()

    def pop_some(self, count: i64, right: bool, limits: NodeLimits) -> list[bytes]:
        """Take so many elements away, the outermost first, which are there, and return them."""
        strings = self.take_some(count, right)
        self.shrink(limits)
        return strings

    def take_some(self, count: i64, right: bool) -> list[bytes]:
        """Take elements as ``pop_some``, where something is added before ``shrink``."""
        rep = self.rep
        if isinstance(rep, bytes):
            if right:
                strings = unpack(part(rep, count_of(rep) - count, count))
                strings.reverse()
                self.rep = cut(rep, 0, count)
            else:
                strings = unpack(part(rep, 0, count))
                self.rep = cut(rep, count, 0)
            return strings
        assert isinstance(rep, Row)
        strings = []
        while count > 0:
            strings.append(rep.pop_right() if right else rep.pop_left())
            count -= 1
        return strings

    def shrink(self, limits: NodeLimits) -> None:
        """Take the form that Redis has after elements were taken."""
        rep = self.rep
        if isinstance(rep, Row):
            self._shrink(rep, limits)

    # Changes in the middle

    def set(self, index: i64, string: bytes, limits: NodeLimits) -> None:
        """Replace the element with ``index`` elements before it; there is one."""
        rep = self.rep
        if isinstance(rep, bytes):
            if self._stays_small(rep, len(string), 1, limits):
                self.rep = replaced(rep, index, string)
                return
            rep = self._become_row(limits)
        assert isinstance(rep, Row)
        rep.grow(limits, len(string), 1)
        rep.set(index, string)
        self._shrink(rep, limits)

    def insert(self, index: i64, string: bytes, after: bool, limits: NodeLimits) -> None:
        """Put an element before or behind the one with ``index`` elements before it."""
        rep = self.rep
        if isinstance(rep, bytes):
            if self._stays_small(rep, len(string), 1, limits):
                self.rep = inserted(rep, index + 1 if after else index, string)
                return
            rep = self._become_row(limits)
        assert isinstance(rep, Row)
        rep.grow(limits, len(string), 1)
        rep.insert(index, string, after)

    def expect(self, string: bytes, limits: NodeLimits) -> None:
        """Make room for an element that may come; Redis does so even if none comes."""
        rep = self.rep
        if isinstance(rep, bytes):
            if self._stays_small(rep, len(string), 1, limits):
                return
            rep = self._become_row(limits)
        assert isinstance(rep, Row)
        rep.grow(limits, len(string), 1)

    def remove(self, string: bytes, most: i64, forward: bool, limits: NodeLimits) -> int:
        """Remove up to ``most`` (0: all) elements equal to ``string``; return how many have gone.

        ``forward`` removes the first ones, else the last ones go.
        """
        rep = self.rep
        if isinstance(rep, bytes):
            self.rep = left = removed(rep, string, most, forward)
            return int(count_of(rep) - count_of(left))
        assert isinstance(rep, Row)
        gone = rep.remove(string, most, forward)
        if gone:
            self._shrink(rep, limits)
        return gone

    def cut(self, first: i64, last: i64, limits: NodeLimits) -> None:
        """Remove ``first`` elements from the beginning, and ``last`` from the end."""
        rep = self.rep
        if isinstance(rep, bytes):
            self.rep = cut(rep, first, last)
            return
        assert isinstance(rep, Row)
        if first + last >= rep.count:
            self.rep = EMPTY
            return
        rep.cut(first, last)
        self._shrink(rep, limits)

    # Its two forms

    def _stays_small(self, rep: bytes, added_bytes: i64, added: i64, limits: NodeLimits) -> bool:
        """Return whether a tiny list stays one when so many elements come, or one is replaced."""
        return takes(rep, added_bytes, added) and count_of(rep) + added <= limits.most_elements

    def _become_row(self, limits: NodeLimits) -> Row:
        rep = self.rep
        assert isinstance(rep, bytes)
        count = count_of(rep)
        size = listpack_bytes(all_of(rep)) if count else EMPTY_BYTES
        row = Row(limits, rep[START:], count, size)
        self.rep = row
        return row

    def _shrink(self, row: Row, limits: NodeLimits) -> None:
        row.shrink(limits)
        if row.is_listpack and row.count <= _BELOW_ELEMENTS and row.sizes[row.low] <= _BELOW_BYTES:
            self._become_small(row)

    def _become_small(self, row: Row) -> None:
        self.rep = small_of(row.whole(), row.count)


def list_of(strings: list[bytes], limits: NodeLimits) -> List:
    """Return a list made at once, of a command's result or from another server's file."""
    row = Row(limits, b"", 0, EMPTY_BYTES)
    row.is_listpack = False
    for string in strings:
        row.push_right(string)
    return _made_at_once(row, limits)


def list_of_nodes(
    pieces: list[bytes], counts: list[int], sizes: list[int], limits: NodeLimits
) -> List:
    """Return a list from another server's file, with its nodes there; see ``row_of``."""
    return _made_at_once(row_of(limits, False, pieces, counts, sizes), limits)


def _made_at_once(row: Row, limits: NodeLimits) -> List:
    made = List()
    row.shrink(limits, False)
    made.rep = row
    if row.is_listpack and row.count <= MOST_ELEMENTS:
        piece = row.whole()
        if len(piece) <= MOST_BYTES // 2:
            made.rep = small_of(piece, row.count)
    return made
