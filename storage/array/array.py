"""An array: strings by index, an unsigned 64-bit number, of which only those that are there count.

Elements lie in slices of 1,024, a slice in pieces of 32 (``piece``). A slice without elements is
not there, and a piece without elements is empty, so gaps cost next to nothing. ``Order`` finds the
next slice behind a gap of any length.

A copy shares all slices. Each slice knows whose it is, and an array that is about to change one
that is not its own copies its 32 references first. Both arrays get a new name as an owner when a
copy is made, so from then on none of the slices belongs to either.

A cursor says where ARINSERT puts the next element.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.storage.array.order import Order
from headrace.storage.array.piece import ALL, SLOTS, element, mask_of, with_element, without
from headrace.storage.collection import Collection
from headrace.storage.digest import Digest

ARRAY: Final = b"array"
GREATEST: Final = (1 << 64) - 2  # the greatest index
EXHAUSTED: Final = (1 << 64) - 1  # the cursor behind it
SLICE_BITS: Final = 10
_PIECES: Final = 32
PIECE_BITS: Final = 5
_REDIS_SLICE_BITS: Final = 12
_DIGEST_NUMBER: Final = 7
_DIGEST_HOLE: Final = b"(null)"
_DIGEST_HOLES: Final = 1 << 20  # that are gone through one by one, in one gap
_ARRAY_BYTES: Final = 550  # of an array without its slices, about
_SLICE_BYTES: Final = 130  # of a slice without its pieces, about
_PIECE_BYTES: Final = 33


@mypyc_attr(acyclic=True)
class _Owner:
    """The name of one array, for its slices."""


@mypyc_attr(acyclic=True)
class _Slice:
    """1,024 elements in a row.

    Attributes:
        owner: the array that may change it.
        pieces: up to the last one that has been put, so that few elements take little.
        used: how many of its pieces have elements.
    """

    def __init__(self, owner: _Owner, pieces: list[bytes], used: int) -> None:
        self.owner: Final = owner
        self.pieces: Final = pieces
        self.used = used


class Walk:
    """The pieces of a range, one after another, those without elements left out.

    Args:
        low, high: the range, both included.
        reverse: the last one first.

    Attributes:
        piece: the piece that the walk has reached.
        base: the index of its first slot.
        mask: its elements that lie within the range.
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
    """Strings by index.

    Attributes:
        cursor: the index of the next insertion, or ``EXHAUSTED``.
    """

    def __init__(self) -> None:
        self._slices: dict[int, _Slice] = {}
        self._order = Order()
        self._count = 0
        self._owner = _Owner()
        self.cursor = 0

    # Elements

    def piece(self, number: int) -> bytes:
        """The piece of a number, which is that of its first index by 32."""
        found = self._slices.get(number >> PIECE_BITS)
        at = number & (_PIECES - 1)
        return b"" if found is None or at >= len(found.pieces) else found.pieces[at]

    def next_piece(self, number: int, reverse: bool) -> int:
        """The number of the next piece with elements before or behind one; -1 for none."""
        step = -1 if reverse else 1
        number += step
        while number >= 0:
            found = self._slices.get(number >> PIECE_BITS)
            if found is None:
                if reverse:
                    at = self._order.at_or_before(number >> PIECE_BITS)
                    number = (at << PIECE_BITS) + _PIECES - 1
                else:
                    at = self._order.at_or_after(number >> PIECE_BITS)
                    number = at << PIECE_BITS
                if at < 0:
                    return -1
            elif self.piece(number):
                return number
            else:
                number += step
        return -1

    def get(self, index: int) -> bytes | None:
        """The element of an index, or None."""
        piece = self.piece(index >> PIECE_BITS)
        return element(piece, index & (SLOTS - 1)) if piece else None

    def put(self, index: int, string: bytes) -> bool:
        """Set an element; whether there was none."""
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
        """Remove all elements of a range, both ends included; how many there were."""
        before = self._count
        walk = Walk(self, low, high, False)
        while walk.step():
            self.set_piece(walk.base >> PIECE_BITS, without(walk.piece, walk.mask))
        return before - self._count

    def set_piece(self, number: int, piece: bytes) -> None:
        """Put a piece in the place of another one; either may be empty."""
        place = number >> PIECE_BITS
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
        old = pieces[at]
        pieces[at] = piece
        found.used += bool(piece) - bool(old)
        self._count += mask_of(piece).bit_count() - mask_of(old).bit_count()
        if not found.used:
            del self._slices[place]
            self._order.remove(place)

    def length(self) -> int:
        """The greatest index and one; 0 without elements."""
        last = self._order.last()
        if last < 0:
            return 0
        number = (last << PIECE_BITS) + _PIECES - 1
        if not self.piece(number):
            number = self.next_piece(number, True)
        return (number << PIECE_BITS) + mask_of(self.piece(number)).bit_length()

    def redis_slices(self) -> list[int]:
        """The numbers of the slices of 4,096 that have elements, in order."""
        shift = _REDIS_SLICE_BITS - SLICE_BITS
        found: list[int] = []
        for number in self._order.numbers():
            if not found or found[-1] != number >> shift:
                found.append(number >> shift)
        return found

    def piece_count(self) -> int:
        """How many pieces have elements."""
        return sum([each.used for each in self._slices.values()])

    # The face

    def type_name(self) -> bytes:
        """See ``Value``."""
        return ARRAY

    def encoding(self, key: bytes) -> bytes:
        """See ``Value``."""
        return b"sliced-array"

    def size(self) -> int:
        """See ``Value``."""
        return self._count

    def used_bytes(self, samples: int) -> int:
        """See ``Value``."""
        numbers = self._order.numbers()
        looked = numbers[:samples] if samples else numbers
        total = 0
        for number in looked:
            total += _SLICE_BYTES + 8 * len(self._slices[number].pieces)
            for piece in self._slices[number].pieces:
                if piece:
                    total += _PIECE_BYTES + len(piece)
        return _ARRAY_BYTES + (total * len(numbers) // len(looked) if looked else 0)

    def copy(self) -> Array:
        """See ``Value``."""
        other = Array()
        other._slices = self._slices.copy()
        other._order = self._order.copy()
        other._count = self._count
        other.cursor = self.cursor
        self._owner = _Owner()
        return other

    def effort(self) -> int:
        """See ``Value``."""
        return len(self._slices) if len(self._slices) > 1 else 0

    def free_some(self, most: int) -> bool:
        """See ``Value``."""
        for _ in range(min(most, len(self._slices))):
            self._slices.popitem()
        return not self._slices

    def add_to(self, digest: Digest) -> None:
        """As Redis does, but a gap of millions counts by its length and not by each index."""
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
