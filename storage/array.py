"""An array: strings by index, an unsigned 64-bit number; only those that are set take room.

Elements lie in pieces of 32. Most arrays are short: the array itself has the piece while there is
one alone, and ``Slices`` has them from the second one on, until none is left. In a piece bit n of
the number is set where the n-th element is there; a piece without elements is empty::

    which are there u32, packed strings

Slices have 32 pieces each. A slice without elements is not there, so gaps cost next to nothing.

``Order`` has the numbers of the slices, and finds the next one behind a gap of any length. They
stand in rows of up to 512 in a list. A number goes into the row that it belongs to; a row that is
full is cut in two, and one that is empty goes. A first number alone has no row, because most arrays
have one slice.

A copy shares all slices. An array that is about to change a slice of another owner copies its 32
references first. Both get a new name as an owner when a copy is made, so that from then on none of
the slices belongs to either.

A cursor says where ARINSERT puts the next element.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64, mypyc_attr

from headrace.storage.collection import Collection
from headrace.storage.digest import Digest
from headrace.storage.packed.strings import next_at, packed_string, string_at

_MOST: Final = 512


@mypyc_attr(acyclic=True)
class Order:
    """Different numbers, from the least to the greatest."""

    def __init__(self) -> None:
        self._rows: list[list[int]] = []
        self._firsts: list[int] = []  # the first number of each row, or the only one of all

    def add(self, number: int) -> None:
        """Add one that is not there. Complexity: O(log n), and what a row and its list take."""
        if not self._rows:
            if not self._firsts:
                self._firsts.append(number)
                return
            self._rows.append([self._firsts[0]])
        at = max(0, bisect_right(self._firsts, number) - 1)
        row = self._rows[at]
        row.insert(bisect_left(row, number), number)
        if len(row) > _MOST:
            # A row that grows at its end stays full.
            cut = _MOST if row[-1] == number else _MOST // 2
            self._rows.insert(at + 1, row[cut:])
            self._firsts.insert(at + 1, row[cut])
            del row[cut:]
        self._firsts[at] = row[0]

    def remove(self, number: int) -> None:
        """Remove one that is there."""
        if not self._rows:
            self._firsts.clear()
            return
        at = bisect_right(self._firsts, number) - 1
        row = self._rows[at]
        del row[bisect_left(row, number)]
        if row:
            self._firsts[at] = row[0]
        else:
            del self._rows[at]
            del self._firsts[at]

    def last(self) -> int:
        """Return the greatest number; -1 where there is none."""
        if self._rows:
            return self._rows[-1][-1]
        return self._firsts[0] if self._firsts else -1

    def at_or_after(self, number: int) -> int:
        """Return the least number that is not below this one; -1 where there is none."""
        if not self._rows:
            return self._firsts[0] if self._firsts and self._firsts[0] >= number else -1
        at = max(0, bisect_right(self._firsts, number) - 1)
        while at < len(self._rows):
            row = self._rows[at]
            place = bisect_left(row, number)
            if place < len(row):
                return row[place]
            at += 1
        return -1

    def at_or_before(self, number: int) -> int:
        """Return the greatest number that is not above this one; -1 where there is none."""
        at = bisect_right(self._firsts, number) - 1
        if at < 0:
            return -1
        if not self._rows:
            return self._firsts[0]
        row = self._rows[at]
        return row[bisect_right(row, number) - 1]

    def numbers(self) -> list[int]:
        """Return all numbers."""
        if not self._rows:
            return self._firsts.copy()
        found: list[int] = []
        for row in self._rows:
            found += row
        return found

    def copy(self) -> Order:
        """Return another one of the same numbers."""
        other = Order()
        other._rows = [row.copy() for row in self._rows]
        other._firsts = self._firsts.copy()
        return other


SLOTS: Final = 32
HEAD: Final = 4
ALL: Final = 0xFFFFFFFF


def mask_of(piece: bytes) -> int:
    """Return a mask of the elements that are there."""
    return int(read_i32_le(piece, 0)) & ALL if piece else 0


def element(piece: bytes, slot: int) -> bytes | None:
    """Return the element of a slot, or None."""
    mask = mask_of(piece)
    if not (mask >> slot) & 1:
        return None
    return string_at(piece, next_at(piece, HEAD, _rank(mask, slot)))


def elements(piece: bytes) -> list[tuple[int, bytes]]:
    """Return the slots that are set, and what they hold."""
    mask = mask_of(piece)
    found: list[tuple[int, bytes]] = []
    at: i64 = HEAD
    for slot in range(SLOTS):
        if (mask >> slot) & 1:
            found.append((slot, string_at(piece, at)))
            at = next_at(piece, at)
    return found


def with_element(piece: bytes, slot: int, string: bytes) -> bytes:
    """Return the piece with a slot set."""
    mask = mask_of(piece)
    if not mask:
        return _head(1 << slot) + packed_string(string)
    start = next_at(piece, HEAD, _rank(mask, slot))
    end = next_at(piece, start) if (mask >> slot) & 1 else start
    mask |= 1 << slot
    return b"%b%b%b%b" % (_head(mask), piece[HEAD:start], packed_string(string), piece[end:])


def without(piece: bytes, gone: int) -> bytes:
    """Return the piece without the elements of a mask."""
    mask = mask_of(piece)
    left = mask & ~gone & ALL
    if left == mask:
        return piece
    if not left:
        return b""
    kept = [_head(left)]
    at: i64 = HEAD
    for slot in range(SLOTS):
        if (mask >> slot) & 1:
            end = next_at(piece, at)
            if (left >> slot) & 1:
                kept.append(piece[at:end])
            at = end
    return b"".join(kept)


def _head(mask: int) -> bytes:
    return mask.to_bytes(HEAD, "little")


def _rank(mask: int, slot: int) -> int:
    return (mask & ((1 << slot) - 1)).bit_count()


_PIECES: Final = 32
_BITS: Final = 5
_SLICES_BYTES: Final = 470  # without its slices, about
_SLICE_BYTES: Final = 130  # of a slice without its pieces, about
_PIECE_BYTES: Final = 33


@mypyc_attr(acyclic=True)
class _Owner:
    """The name of one array, for its slices."""


@mypyc_attr(acyclic=True)
class _Slice:
    """32 pieces in a row.

    Attributes:
        owner: the array that may change it.
        pieces: up to the last one that has been put, so that few elements take little.
        used: how many of its pieces have elements.
    """

    def __init__(self, owner: _Owner, pieces: list[bytes], used: int) -> None:
        self.owner: Final = owner
        self.pieces: Final = pieces
        self.used = used


@mypyc_attr(acyclic=True)
class Slices:
    """Pieces by number."""

    def __init__(self) -> None:
        self._slices: dict[int, _Slice] = {}
        self._order = Order()
        self._owner = _Owner()
        self._content_bytes = 0  # what the pieces take

    def __len__(self) -> int:
        return len(self._slices)

    def get(self, number: int) -> bytes:
        """Return the piece with this number."""
        found = self._slices.get(number >> _BITS)
        at = number & (_PIECES - 1)
        return b"" if found is None or at >= len(found.pieces) else found.pieces[at]

    def next(self, number: int, reverse: bool) -> int:
        """Return the number of the next piece with elements before or behind one; -1 for none."""
        step = -1 if reverse else 1
        number += step
        while number >= 0:
            found = self._slices.get(number >> _BITS)
            if found is None:
                if reverse:
                    at = self._order.at_or_before(number >> _BITS)
                    number = (at << _BITS) + _PIECES - 1
                else:
                    at = self._order.at_or_after(number >> _BITS)
                    number = at << _BITS
                if at < 0:
                    return -1
            elif self.get(number):
                return number
            else:
                number += step
        return -1

    def put(self, number: int, piece: bytes) -> None:
        """Put a piece in the place of another one; either may be empty."""
        place = number >> _BITS
        found = self._slices.get(place)
        if found is None:
            if not piece:
                return
            found = _Slice(self._owner, [], 0)
            self._slices[place] = found
            self._order.add(place)
        elif found.owner is not self._owner:
            found = _Slice(self._owner, found.pieces.copy(), found.used)
            self._slices[place] = found
        at = number & (_PIECES - 1)
        pieces = found.pieces
        if at >= len(pieces):
            pieces += [b""] * (at + 1 - len(pieces))
        found.used += bool(piece) - bool(pieces[at])
        self._content_bytes += _taken_by(piece) - _taken_by(pieces[at])
        pieces[at] = piece
        if not found.used:
            del self._slices[place]
            self._order.remove(place)

    def last(self) -> int:
        """Return the number of the last piece with elements; -1 for none."""
        place = self._order.last()
        if place < 0:
            return -1
        number = (place << _BITS) + _PIECES - 1
        return number if self.get(number) else self.next(number, True)

    def numbers(self) -> list[int]:
        """Return the numbers of the slices, in order."""
        return self._order.numbers()

    def piece_count(self) -> int:
        """Return how many pieces have elements."""
        return sum([each.used for each in self._slices.values()])

    def used_bytes(self) -> int:
        """Return about how many bytes they take."""
        return _SLICES_BYTES + _SLICE_BYTES * len(self._slices) + self._content_bytes

    def copy(self) -> Slices:
        """Return the same pieces with another owner."""
        other = Slices()
        other._slices = self._slices.copy()
        other._order = self._order.copy()
        other._content_bytes = self._content_bytes
        self._owner = _Owner()
        return other

    def free_some(self, most: int) -> bool:
        """Drop so many slices of those that are no longer used; True when none is left."""
        for _ in range(min(most, len(self._slices))):
            self._slices.popitem()
        return not self._slices


def _taken_by(piece: bytes) -> int:
    """Return the bytes that a piece takes, and its place."""
    return 8 + _PIECE_BYTES + len(piece) if piece else 0


ARRAY: Final = b"array"
GREATEST: Final = (1 << 64) - 2  # the greatest index
EXHAUSTED: Final = (1 << 64) - 1  # the cursor behind it
PIECE_BITS: Final = 5
_REDIS_SLICE_BITS: Final = 12
_SLICE_BITS: Final = 10
_DIGEST_NUMBER: Final = 7
_DIGEST_HOLE: Final = b"(null)"
_DIGEST_HOLES: Final = 1 << 20  # that are gone through one by one, in one gap
_ARRAY_BYTES: Final = 80  # of an array without its pieces, about


class Walk:
    """The pieces of a range, both ends included, one after another, without the empty ones.

    ``base`` is the index of the first slot of ``piece``; ``mask`` has its elements in the range.
    """

    def __init__(self, array: Array, low: int, high: int, reverse: bool) -> None:
        self._array: Final = array
        self._low: Final = low
        self._high: Final = high
        self._reverse: Final = reverse
        self._next: int = (high if reverse else low) >> PIECE_BITS  # the piece to look at
        self.base = 0
        self.piece = b""
        self.mask = 0

    def step(self) -> bool:
        """Go to the next piece; False where there is none."""
        number = self._next
        while (self._low >> PIECE_BITS) <= number <= (self._high >> PIECE_BITS):
            piece = self._array.piece(number)
            if not piece:
                number = self._array.next_piece(number, self._reverse)
                if number < 0:
                    return False
                continue
            base = number << PIECE_BITS
            self.mask = mask_of(piece)
            if base < self._low:
                self.mask &= ALL << (self._low - base)
            if base + SLOTS - 1 > self._high:
                self.mask &= ALL >> (base + SLOTS - 1 - self._high)
            number += -1 if self._reverse else 1
            if self.mask:
                self._next = number
                self.base = base
                self.piece = piece
                return True
        return False


@mypyc_attr(acyclic=True)
class Array(Collection):
    """Strings by index; ``cursor`` is the index of the next insertion, or ``EXHAUSTED``."""

    def __init__(self) -> None:
        self._only = b""  # the piece that is there alone
        self._number = 0  # its own
        self._slices: Slices | None = None  # what holds the pieces where there have been more
        self._count = 0
        self.cursor = 0

    # Elements

    def piece(self, number: int) -> bytes:
        """Return the piece of a number, which is that of its first index by 32."""
        slices = self._slices
        if slices is not None:
            return slices.get(number)
        return self._only if number == self._number else b""

    def next_piece(self, number: int, reverse: bool) -> int:
        """Return the number of the next piece with elements before or behind one; -1 for none."""
        slices = self._slices
        if slices is not None:
            return slices.next(number, reverse)
        only = self._number
        return only if self._only and (only < number if reverse else only > number) else -1

    def get(self, index: int) -> bytes | None:
        """Return the element of an index, or None."""
        piece = self.piece(index >> PIECE_BITS)
        return element(piece, index & (SLOTS - 1)) if piece else None

    def put(self, index: int, string: bytes) -> bool:
        """Set an element; return whether there was none."""
        number = index >> PIECE_BITS
        piece = self.piece(number)
        slot = index & (SLOTS - 1)
        self.set_piece(number, with_element(piece, slot, string))
        return not (mask_of(piece) >> slot) & 1

    def remove(self, index: int) -> bool:
        """Remove an element; False where there was none."""
        number = index >> PIECE_BITS
        piece = self.piece(number)
        bit = 1 << (index & (SLOTS - 1))
        if not mask_of(piece) & bit:
            return False
        self.set_piece(number, without(piece, bit))
        return True

    def remove_range(self, low: int, high: int) -> int:
        """Remove all elements of a range, both ends included; return how many there were."""
        before = self._count
        walk = Walk(self, low, high, False)
        while walk.step():
            self.set_piece(walk.base >> PIECE_BITS, without(walk.piece, walk.mask))
        return before - self._count

    def set_piece(self, number: int, piece: bytes) -> None:
        """Put a piece in the place of another one; either may be empty."""
        self._count += mask_of(piece).bit_count() - mask_of(self.piece(number)).bit_count()
        slices = self._slices
        if slices is None:
            if number == self._number or not self._only:
                self._number = number
                self._only = piece
                return
            if not piece:
                return
            slices = Slices()
            slices.put(self._number, self._only)
            self._slices = slices
            self._only = b""
        slices.put(number, piece)
        if not len(slices):
            self._slices = None

    def length(self) -> int:
        """Return the greatest index and one; 0 without elements."""
        if not self._count:
            return 0
        slices = self._slices
        number = self._number if slices is None else slices.last()
        return (number << PIECE_BITS) + mask_of(self.piece(number)).bit_length()

    def redis_slices(self) -> list[int]:
        """Return the numbers of the slices of 4,096 that have elements, in order."""
        slices = self._slices
        if slices is None:
            return [self._number << PIECE_BITS >> _REDIS_SLICE_BITS] if self._only else []
        shift = _REDIS_SLICE_BITS - _SLICE_BITS
        found: list[int] = []
        for number in slices.numbers():
            if not found or found[-1] != number >> shift:
                found.append(number >> shift)
        return found

    def piece_count(self) -> int:
        """Return how many pieces have elements."""
        return int(bool(self._only)) if self._slices is None else self._slices.piece_count()

    # The face

    def type_name(self) -> bytes:
        return ARRAY

    def encoding(self, key: bytes) -> bytes:
        return b"sliced-array"

    def size(self) -> int:
        return self._count

    def used_bytes(self, samples: int) -> int:
        if self._slices is None:
            return _ARRAY_BYTES + _PIECE_BYTES + len(self._only)
        return _ARRAY_BYTES + self._slices.used_bytes()

    def copy(self) -> Array:
        other = Array()
        other._only = self._only
        other._number = self._number
        other._slices = None if self._slices is None else self._slices.copy()
        other._count = self._count
        other.cursor = self.cursor
        return other

    def effort(self) -> int:
        slices = 0 if self._slices is None else len(self._slices)
        return slices if slices > 1 else 0

    def free_some(self, most: int) -> bool:
        return self._slices is None or self._slices.free_some(most)

    def add_to(self, digest: Digest) -> None:
        """Add as Redis does, but a gap of millions counts by its length and not by each index."""
        digest.mix_type(_DIGEST_NUMBER)
        expected = 0
        walk = Walk(self, 0, GREATEST, False)
        while walk.step():
            for slot in range(SLOTS):
                if (walk.mask >> slot) & 1:
                    _mix_gap(digest, walk.base + slot - expected)
                    digest.mix(element(walk.piece, slot) or b"")
                    expected = walk.base + slot + 1


def _mix_gap(digest: Digest, length: int) -> None:
    if length > _DIGEST_HOLES:
        digest.mix(b"%d" % length)
        return
    for _ in range(length):
        digest.mix(_DIGEST_HOLE)
