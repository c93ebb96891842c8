"""A row of elements with two open ends, for lists that are not tiny.

::

    left, turned round | piece | piece | ... | piece | right

The elements in the middle are packed. Those at an end are objects in a Python list, so that a push
or a pop there costs a few nanoseconds. When an end has many, those inside are packed; when it has
none left, some are unpacked. The largest step is one piece.

Pieces are cut where Redis cuts: a *node* is what one node of its quicklist would hold, of which the
row keeps the size that it has there. ``left`` belongs to the first node, and ``right`` to the last,
which may be the same one. Each node has a place, even if its piece is empty because all of it
stands in an open end. So OBJECT ENCODING answers what Redis answers, since a quicklist turns back
to a listpack when its only node is small.

In a row of many nodes, those far from both ends are kept slim: their pieces begin with ``SLIM``.
They are made wide where they are changed, or come near to an end.

Elements are found by position. The first one has the position ``base``, which falls when something
is put in front of it and rises when it goes. So the positions of the others, and the ``starts`` of
the nodes with them, stay what they are while the ends change, and a node is found by bisection.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, extend, pop, vec
from mypy_extensions import i64, mypyc_attr, u8

from headrace.storage.list.piece import (
    UNKNOWN,
    NodeLimits,
    listpack_bytes,
    numbers_of,
    place_of,
    reversed_pack,
    with_other,
    with_string,
    without,
)
from headrace.storage.packed.strings import (
    EMPTY_BYTES,
    are_short,
    empty_buffer,
    next_at,
    next_slim,
    pack,
    string_at,
    text_bytes,
    unpack,
    wide,
    write_slim,
)

_OPEN_MAX: Final = 256  # elements of an open end: then the inner ones are packed
_SEALED: Final = 192  # so many of them
_OPENED: Final = 64  # elements that are unpacked at once
_SEALED_TO_READ: Final = 24  # elements of an open end: asked for so many, it is packed first
_SPARE_PLACES: Final = 32
_SUMMED: Final[i64] = 1024  # nodes of which the sizes are added up
_WIDE: Final = 4  # nodes at each end that are not slim
SLIM: Final[i64] = 0  # what a slim piece begins with, where another begins with a dollar
ALONE: Final = -1  # the size of a node that is one string, and no listpack


@mypyc_attr(acyclic=True)
class Row:
    """Elements in order.

    Attributes:
        is_listpack: Redis has them in one listpack, whatever their number; ``grow`` and ``shrink``
            say when.
        limits: of its nodes, once it is no listpack.
        base: the position of the first element.
        left: the first elements, the last of them first; right: the last ones.
        pieces: the others, a piece for each node, which ``piece`` makes wide; those before ``low``
            are no nodes any more.
        starts: the position of the first element of each node, but of the first node.
        sizes: what Redis's node takes, in bytes, or ``ALONE``.

    Invariants: there is a node; only a single one may be empty.
    """

    def __init__(self, limits: NodeLimits, piece: bytes, count: i64, size: i64) -> None:
        self.limits = limits
        self.is_listpack = True
        self.count: i64 = count
        self.base: i64 = 0
        self.low: i64 = 0
        self.left: list[bytes] = []
        self.right: list[bytes] = []
        self.pieces: list[bytes] = [piece]
        self.starts = vec[i64]([0])
        self.sizes = vec[i64]([size])
        self._marks: list[bytes] | None = None  # of pieces that were looked into by index

    def copy(self) -> Row:
        """Return an equal row, which shares the pieces."""
        twin = Row(self.limits, b"", self.count, 0)
        twin.is_listpack = self.is_listpack
        twin.base = self.base
        twin.left = self.left.copy()
        twin.right = self.right.copy()
        low = self.low
        twin.pieces = self.pieces[low:]
        twin.starts = self.starts[low:]
        twin.sizes = self.sizes[low:]
        return twin

    def piece(self, place: i64) -> bytes:
        """Return the elements of a node, packed, but those that stand in an open end."""
        piece = self.pieces[place]
        return wide(piece, 1, len(piece)) if _is_slim(piece) else piece

    def slim(self, place: i64) -> None:
        """Make the piece of a node slim, unless that is near to an end or has a long string."""
        if not self.low + _WIDE <= place < len(self.pieces) - _WIDE:
            return
        piece = self.pieces[place]
        if piece and not _is_slim(piece) and are_short(piece, 0):
            out = empty_buffer()
            out.append(u8(SLIM))
            write_slim(out, piece, 0)
            self.pieces[place] = out.getvalue()

    # What Redis has in its place, and files

    def nodes(self) -> int:
        """Return how many nodes Redis has."""
        return len(self.pieces) - int(self.low)

    def content_bytes(self) -> i64:
        """Return the bytes of the elements in Redis's nodes; of very many, some stand for all."""
        nodes: i64 = len(self.pieces) - self.low
        looked_at = min(nodes, _SUMMED)
        total: i64 = 0
        number: i64 = 0
        while number < looked_at:
            place = self.low + number * nodes // looked_at
            size = self.sizes[place]
            total += size if size != ALONE else i64(self.node_bytes(place))
            number += 1
        return total * nodes // looked_at

    def node_bytes(self, place: i64) -> int:
        """Return the bytes of Redis's node, of a string that is alone its length."""
        size = self.sizes[place]
        return int(size) if size != ALONE else len(self.get(self._start(place) - self.base))

    def node_count(self, place: i64) -> int:
        """Return how many elements a node has."""
        return int(self._end(place) - self._start(place))

    def grow(self, limits: NodeLimits, added_bytes: i64, added: i64) -> None:
        """Change the encoding, if need be, before ``added`` elements of so many bytes come."""
        if self.is_listpack and limits.are_exceeded(
            self.sizes[self.low] + added_bytes, self.count + added
        ):
            self.is_listpack = False
            self.limits = limits

    def shrink(self, limits: NodeLimits, shrinking: bool = True) -> None:
        """Change the encoding, if need be, after removals or, not ``shrinking``, additions."""
        if not self.is_listpack and len(self.pieces) - self.low == 1:
            size = self.sizes[self.low]
            if size != ALONE and limits.make_listpack(size, self.count, shrinking):
                self.is_listpack = True

    # The ends

    def push_right(self, string: bytes) -> None:
        """Add an element behind all others."""
        last: i64 = len(self.pieces) - 1
        if self.is_listpack or self._has_room(last, string):
            self.sizes[last] += text_bytes(string)
        elif self.count:
            self._seal_right()
            self.pieces.append(b"")
            last += 1
            self.slim(last - _WIDE)
            self.starts = append(self.starts, self.base + self.count)
            self.sizes = append(self.sizes, self._size_of_first(string))
        else:
            self.sizes[last] = self._size_of_first(string)
        right = self.right
        right.append(string)
        self.count += 1
        if len(right) >= _OPEN_MAX:
            self._set_piece(last, self.piece(last) + pack(right[:_SEALED]))
            del right[:_SEALED]

    def push_left(self, string: bytes) -> None:
        """Add an element before all others."""
        low = self.low
        if self.is_listpack or self._has_room(low, string):
            self.sizes[low] += text_bytes(string)
        elif self.count:
            self._seal_left()
            self.starts[low] = self.base
            if not low:
                self._make_places()
                low = self.low
            low -= 1
            self.low = low
            self.slim(low + _WIDE)
            self.sizes[low] = self._size_of_first(string)
        else:
            self.sizes[low] = self._size_of_first(string)
        left = self.left
        left.append(string)
        self.base -= 1
        self.count += 1
        if len(left) >= _OPEN_MAX:
            self._set_piece(low, reversed_pack(left[:_SEALED]) + self.piece(low))
            del left[:_SEALED]

    def pop_right(self) -> bytes:
        """Take away the last element, which must be there, and return it."""
        right = self.right
        if not right:
            self._open_right()
            right = self.right
        string = right.pop()
        count = self.count - 1
        self.count = count
        last: i64 = len(self.pieces) - 1
        if last > self.low and self.starts[last] == self.base + count:
            self._drop_last()
        elif self.sizes[last] != ALONE:
            self.sizes[last] -= text_bytes(string)
        return string

    def pop_left(self) -> bytes:
        """Take away the first element, which must be there, and return it."""
        left = self.left
        if not left:
            self._open_left()
            left = self.left
        string = left.pop()
        self.count -= 1
        base = self.base + 1
        self.base = base
        low = self.low
        if low + 1 < len(self.pieces) and self.starts[low + 1] == base:
            self._drop_first()
        elif self.sizes[low] != ALONE:
            self.sizes[low] -= text_bytes(string)
        return string

    def _has_room(self, place: i64, string: bytes) -> bool:
        size = self.sizes[place]
        if size == ALONE or not self.count:
            return False
        return self.limits.have_room(size, self._end(place) - self._start(place), string)

    def _size_of_first(self, string: bytes) -> i64:
        return ALONE if self.limits.is_alone(string) else EMPTY_BYTES + text_bytes(string)

    def _start(self, place: i64) -> i64:
        return self.base if place == self.low else self.starts[place]

    def _end(self, place: i64) -> i64:
        place += 1
        return self.starts[place] if place < len(self.pieces) else self.base + self.count

    def _piece_start(self, place: i64) -> i64:
        return self.base + len(self.left) if place == self.low else self.starts[place]

    def _open_right(self) -> None:
        last: i64 = len(self.pieces) - 1
        piece = self.piece(last)
        if not piece:  # all of the only node stands on the left
            left = self.left
            half = (len(left) + 1) // 2
            self.right = left[:half]
            self.right.reverse()
            del left[:half]
            return
        there = self.base + self.count - self._piece_start(last)
        if there <= _OPENED:
            self.right = unpack(piece)
            self._set_piece(last, b"")
        else:
            at = next_at(piece, 0, there - _OPENED)
            self.right = unpack(piece[at:])
            self._set_piece(last, piece[:at])

    def _open_left(self) -> None:
        low = self.low
        piece = self.piece(low)
        if not piece:  # all of the only node stands on the right
            right = self.right
            half = (len(right) + 1) // 2
            self.left = right[:half]
            self.left.reverse()
            del right[:half]
            return
        there = self._end(low) - self.base
        if low + 1 == len(self.pieces):
            there -= len(self.right)
        if there <= _OPENED:
            self.left = unpack(piece)
            self._set_piece(low, b"")
        else:
            at = next_at(piece, 0, _OPENED)
            self.left = unpack(piece[:at])
            self._set_piece(low, piece[at:])
        self.left.reverse()

    def _seal_right(self) -> None:
        if self.right:
            last: i64 = len(self.pieces) - 1
            self._set_piece(last, self.piece(last) + pack(self.right))
            self.right = []

    def _seal_left(self) -> None:
        if self.left:
            self._set_piece(self.low, reversed_pack(self.left) + self.piece(self.low))
            self.left = []

    # Places

    def _set_piece(self, place: i64, piece: bytes) -> None:
        self.pieces[place] = piece
        marks = self._marks
        if marks is not None and place < len(marks):
            marks[place] = UNKNOWN

    def _drop_last(self) -> None:
        self._set_piece(len(self.pieces) - 1, b"")
        self.pieces.pop()
        self.starts, _ = pop(self.starts)
        self.sizes, _ = pop(self.sizes)

    def _drop_first(self) -> None:
        self._set_piece(self.low, b"")
        self.low += 1
        if self.low > _SPARE_PLACES and 2 * self.low > len(self.pieces):
            self._tighten()

    def _tighten(self) -> None:
        low = self.low
        del self.pieces[:low]
        self._marks = None
        self.starts = self.starts[low:]
        self.sizes = self.sizes[low:]
        self.low = 0

    def _make_places(self) -> None:
        more = len(self.pieces) // 2 + 1
        self.pieces = [b""] * more + self.pieces
        self._marks = None
        none = [0] * more
        self.starts = extend(vec[i64](none), self.starts)
        self.sizes = extend(vec[i64](none), self.sizes)
        self.low = more

    def _forget_nodes(self) -> None:
        """Begin with one empty node, because there are no elements."""
        self.low = 0
        self.left = []
        self.right = []
        self.pieces = [b""]
        self._marks = None
        self.starts = vec[i64]([0])
        self.sizes = vec[i64]([EMPTY_BYTES])

    def _place_of(self, position: i64) -> i64:
        starts = self.starts
        low = self.low
        high: i64 = len(self.pieces)
        while high - low > 1:
            middle = (low + high) >> 1
            if starts[middle] <= position:
                low = middle
            else:
                high = middle
        return low

    # Reading

    def _at(self, place: i64, number: i64) -> i64:
        marks = self._marks
        if marks is None:
            marks = self._marks = []
        return place_of(marks, place, self.pieces[place], number)

    def get(self, index: i64) -> bytes:
        """Return the element with ``index`` elements before it."""
        left = self.left
        before: i64 = len(left)
        if index < before:
            return left[before - 1 - index]
        behind = self.count - index
        right = self.right
        there: i64 = len(right)
        if behind <= there:
            return right[there - behind]
        position = self.base + index
        place = self._place_of(position)
        piece = self.pieces[place]
        number = position - self._piece_start(place)
        if _is_slim(piece):
            at = next_slim(piece, 1, number)
            return piece[at + 1 : at + 1 + piece[at]]
        return string_at(piece, self._at(place, number))

    def whole(self) -> bytes:
        """Return all elements, packed."""
        found: list[bytes] = []
        self.add_packed(found, 0, self.count)
        return b"".join(found)

    def add_packed(self, found: list[bytes], index: i64, count: i64) -> None:
        """Add ``count`` elements from ``index`` on, packed, in one or more pieces.

        An open end that is mostly asked for is packed, because it may be asked for again.
        """
        end = index + count
        opened: i64 = len(self.left)
        if index < opened:
            stop = min(opened, end)
            if stop - index >= _SEALED_TO_READ:
                self._seal_left()
            else:
                found.append(reversed_pack(self.left[opened - stop : opened - index]))
                index = stop
        opened = len(self.right)
        sealed = self.count - opened
        tail = b""
        if end > sealed:
            start = max(sealed, index)
            if end - start >= _SEALED_TO_READ:
                self._seal_right()
            else:
                tail = pack(self.right[start - sealed : end - sealed])
                end = start
        if index < end:
            self._add_sealed(found, index, end)
        if tail:
            found.append(tail)

    def _add_sealed(self, found: list[bytes], index: i64, end: i64) -> None:
        """Add the elements from ``index`` up to and without ``end``, which are all packed."""
        position = self.base + index
        end += self.base
        place = self._place_of(position)
        while position < end:
            piece = self.pieces[place]
            skipped = position - self._piece_start(place)
            stop = self._end(place)
            if place + 1 == len(self.pieces):
                stop -= len(self.right)
            if _is_slim(piece):
                low = next_slim(piece, 1, skipped)
                high: i64 = len(piece)
                if end < stop:
                    high = next_slim(piece, low, end - position)
                found.append(wide(piece, low, high))
                position = stop
                place += 1
                continue
            low = self._at(place, skipped) if skipped else 0
            if end < stop:
                found.append(piece[low : self._at(place, skipped + end - position)])
                return
            found.append(piece[low:] if low else piece)
            position = stop
            place += 1

    def positions(
        self, string: bytes, limit: i64, forward: bool, rank: i64, most: i64
    ) -> list[int]:
        """Return the indexes of elements equal to ``string``, in the order of the search.

        Args:
            limit: so many elements are looked at.
            forward: from the first on, else from the last.
            rank: the first one that counts: 1 is the first that is found.
            most: how many at most; 0 is all.
        """
        self.seal()
        found: list[int] = []
        skipped = rank - 1
        places: i64 = len(self.pieces) - self.low
        seen: i64 = 0
        number: i64 = 0
        while number < places and seen < limit:
            place = self.low + number if forward else len(self.pieces) - 1 - number
            start = self.starts[place]
            size = self._end(place) - start
            numbers = numbers_of(self.piece(place), 0, string)
            if numbers:
                if not forward:
                    numbers.reverse()
                for each in numbers:
                    offset: i64 = each
                    if seen + (offset if forward else size - 1 - offset) >= limit:
                        return found
                    if skipped:
                        skipped -= 1
                        continue
                    found.append(int(start - self.base + offset))
                    if most and len(found) >= most:
                        return found
            seen += size
            number += 1
        return found

    # Changes in the middle

    def seal(self) -> None:
        """Pack the open ends."""
        self._seal_left()
        self._seal_right()
        self.starts[self.low] = self.base

    def set(self, index: i64, string: bytes) -> None:
        """Replace the element with ``index`` elements before it."""
        place = self._place_of(self.base + index)
        alone = not self.is_listpack and self.limits.is_alone(string)
        if (self.sizes[place] == ALONE) != alone:
            self.seal()
            self._set_other_kind(place, self.base + index, string, alone)
            return
        opened: i64 = len(self.left)
        behind = self.count - index
        there: i64 = len(self.right)
        if index < opened:
            old = self.left[opened - 1 - index]
            self.left[opened - 1 - index] = string
        elif behind <= there:
            old = self.right[there - behind]
            self.right[there - behind] = string
        else:
            piece = self.piece(place)
            at = next_at(piece, 0, self.base + index - self._piece_start(place))
            old = string_at(piece, at)
            changed = with_other(piece, at, string)
            if len(changed) == len(piece):  # all others stand where they stood
                self.pieces[place] = changed
            else:
                self._set_piece(place, changed)
        if not alone:
            self.sizes[place] += text_bytes(string) - text_bytes(old)

    def _set_other_kind(self, place: i64, position: i64, string: bytes, alone: bool) -> None:
        """Replace an element that is alone by one that is not, or the other way round."""
        if not alone:
            self._insert(place, 0, string, True)
            self._delete_node(place)
            return
        start = self.starts[place]
        count = self._end(place) - start
        offset = position - start
        if offset != count - 1:
            self._split(place, offset + 1)
        self._add_node(place + 1, pack([string]), position + 1, ALONE)
        self._move(place + 2, 1)
        self.count += 1
        if offset == 0:
            self._delete_node(place)
            return
        piece = self.piece(place)
        at = next_at(piece, 0, offset)
        self.sizes[place] -= text_bytes(string_at(piece, at))
        self._set_piece(place, piece[:at])
        self._move(place + 1, -1)
        self.count -= 1
        self._merge_around(place + 1)

    def insert(self, index: i64, string: bytes, after: bool) -> None:
        """Put an element before or behind the one with ``index`` elements before it."""
        self.seal()
        place = self._place_of(self.base + index)
        if self.is_listpack:
            self._insert_into(place, self.base + index + (1 if after else 0), string)
            return
        self._insert(place, self.base + index - self.starts[place], string, after)

    def _insert(self, place: i64, offset: i64, string: bytes, after: bool) -> None:
        """Insert as Redis does, which looks for room in the node and then in the one beside it."""
        position = self.starts[place] + offset + (1 if after else 0)
        at_end = position == self._end(place) if after else offset == 0
        beside = place + 1 if after else place - 1
        if self._takes(place, string):
            self._insert_into(place, position, string)
        elif at_end and self._takes(beside, string):
            self._insert_into(beside, position, string)
        elif at_end:
            self._insert_node(place + 1 if after else place, position, string)
        else:
            self._split(place, position - self.starts[place])
            if self.limits.is_alone(string):
                self._insert_node(place + 1, position, string)
            elif after:
                self._insert_into(place + 1, position, string)
                self._merge_around(place)
            else:
                self._insert_into(place, position, string)
                self._merge_around(place + 1)

    def _takes(self, place: i64, string: bytes) -> bool:
        return self.low <= place < len(self.pieces) and self._has_room(place, string)

    def _insert_into(self, place: i64, position: i64, string: bytes) -> None:
        piece = self.piece(place)
        at = next_at(piece, 0, position - self.starts[place])
        self._set_piece(place, with_string(piece, at, string))
        self.sizes[place] += text_bytes(string)
        self._move(place + 1, 1)
        self.count += 1

    def _insert_node(self, place: i64, position: i64, string: bytes) -> None:
        self._add_node(place, pack([string]), position, self._size_of_first(string))
        self._move(place + 1, 1)
        self.count += 1

    def _add_node(self, place: i64, piece: bytes, start: i64, size: i64) -> None:
        self.pieces.insert(place, piece)
        self._marks = None
        starts = append(self.starts[:place], start)
        self.starts = extend(starts, self.starts[place:])
        sizes = append(self.sizes[:place], size)
        self.sizes = extend(sizes, self.sizes[place:])

    def _delete_node(self, place: i64) -> None:
        gone = self._end(place) - self.starts[place]
        self._remove_place(place)
        self._move(place, -gone)
        self.count -= gone

    def _remove_place(self, place: i64) -> None:
        self.pieces.pop(place)
        self._marks = None
        self.starts, _ = pop(self.starts, place)
        self.sizes, _ = pop(self.sizes, place)

    def _move(self, place: i64, by: i64) -> None:
        starts = self.starts
        end: i64 = len(starts)
        while place < end:
            starts[place] += by
            place += 1

    def _split(self, place: i64, offset: i64) -> None:
        """Split a node in two, the second of which begins at the element ``offset``."""
        piece = self.piece(place)
        at = next_at(piece, 0, offset)
        size = listpack_bytes(unpack(piece[at:]))
        self._set_piece(place, piece[:at])
        self.sizes[place] -= size - EMPTY_BYTES
        self._add_node(place + 1, piece[at:], self.starts[place] + offset, size)

    def _merge_around(self, place: i64) -> None:
        """Merge two nodes near a place where one was split, as Redis does."""
        if self._merge(place - 2):
            place -= 1
        self._merge(place + 1)
        if self._merge(place - 1):
            place -= 1
        self._merge(place)

    def _merge(self, place: i64) -> bool:
        """Merge the node at a place and the next, if both are there and Redis would."""
        if not self.low <= place < len(self.pieces) - 1:
            return False
        size = self.sizes[place]
        other_size = self.sizes[place + 1]
        if size == ALONE or other_size == ALONE:
            return False
        if not self.limits.let_merge(size, other_size, self._end(place + 1) - self.starts[place]):
            return False
        self._set_piece(place, self.piece(place) + self.piece(place + 1))
        self.sizes[place] += other_size - EMPTY_BYTES
        self._remove_place(place + 1)
        return True

    # Removal

    def remove(self, string: bytes, most: i64, forward: bool) -> int:
        """Remove up to ``most`` (0: all) elements equal to ``string``; return how many have gone.

        ``forward`` removes the first ones, else the last ones go.
        """
        self.seal()
        removed: i64 = 0
        element_bytes = text_bytes(string)
        place = self.low if forward else len(self.pieces) - 1
        while self.low <= place < len(self.pieces):
            numbers = numbers_of(self.piece(place), 0, string)
            if most and len(numbers) > most - removed:
                left: i64 = most - removed
                numbers = numbers[:left] if forward else numbers[len(numbers) - left :]
            gone: i64 = len(numbers)
            if gone:
                removed += gone
                piece = without(self.piece(place), 0, len(string), numbers)
                self._set_piece(place, piece)
                if self.sizes[place] != ALONE:
                    self.sizes[place] -= gone * element_bytes
                self._move(place + 1, -gone)
                self.count -= gone
                if most and removed == most:
                    break
            place += 1 if forward else -1
        if removed:
            self._drop_empty()
        return int(removed)

    def _drop_empty(self) -> None:
        kept = [number for number in range(self.low, len(self.pieces)) if self.pieces[number]]
        if not kept:
            self._forget_nodes()
        elif len(kept) < len(self.pieces):
            self.pieces = [self.pieces[number] for number in kept]
            self._marks = None
            self.starts = vec[i64]([self.starts[number] for number in kept])
            self.sizes = vec[i64]([self.sizes[number] for number in kept])
            self.low = 0

    def cut(self, first: i64, last: i64) -> None:
        """Remove ``first`` elements from the beginning and ``last`` from the end, but not all."""
        if first <= _OPENED:
            while first > 0:
                self.pop_left()
                first -= 1
        if last <= _OPENED:
            while last > 0:
                self.pop_right()
                last -= 1
        if not first and not last:
            return
        self.seal()
        if first:
            self._cut_first(first)
        if last:
            self._cut_last(last)

    def _cut_first(self, gone: i64) -> None:
        base = self.base + gone
        place = self._place_of(base)
        piece = self.piece(place)
        at = next_at(piece, 0, base - self.starts[place])
        if at and self.sizes[place] != ALONE:
            self.sizes[place] -= listpack_bytes(unpack(piece[:at])) - EMPTY_BYTES
        self._set_piece(place, piece[at:])
        self.base = base
        self.count -= gone
        self.low = place
        self._tighten()

    def _cut_last(self, gone: i64) -> None:
        self.count -= gone
        end = self.base + self.count
        place = self._place_of(end - 1)
        piece = self.piece(place)
        at = next_at(piece, 0, end - self._start(place))
        if at < len(piece) and self.sizes[place] != ALONE:
            self.sizes[place] -= listpack_bytes(unpack(piece[at:])) - EMPTY_BYTES
        self._set_piece(place, piece[:at])
        stop = place + 1
        del self.pieces[stop:]
        self._marks = None
        self.starts = self.starts[:stop]
        self.sizes = self.sizes[:stop]


def row_of(
    limits: NodeLimits, is_listpack: bool, pieces: list[bytes], counts: list[int], sizes: list[int]
) -> Row:
    """Return a row of known nodes, none empty, with the element count and ``Row.sizes`` of each."""
    row = Row(limits, b"", 0, 0)
    row.is_listpack = is_listpack
    row.pieces = pieces
    row.sizes = vec[i64](sizes)
    starts = vec[i64]()
    total: i64 = 0
    for count in counts:
        starts = append(starts, total)
        total += count
    row.starts = starts
    row.count = total
    for place in range(len(pieces)):
        row.slim(place)
    return row


def _is_slim(piece: bytes) -> bool:
    return len(piece) > 0 and piece[0] == SLIM
