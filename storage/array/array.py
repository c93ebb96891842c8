"""An array: strings by index, an unsigned 64-bit number, of which only those that are there count.

Elements lie in pieces of 32 (``piece``). Most arrays are short: the array itself has the piece
while there is one alone, and ``Slices`` has them from the second one on, until none is left.

A cursor says where ARINSERT puts the next element.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.storage.array.piece import ALL, SLOTS, element, mask_of, with_element, without
from headrace.storage.array.slices import Slices
from headrace.storage.collection import Collection
from headrace.storage.digest import Digest

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
_PIECE_BYTES: Final = 33


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
        self._only = b""  # the piece that is there alone
        self._number = 0  # its own
        self._slices: Slices | None = None  # what holds the pieces where there have been more
        self._count = 0
        self.cursor = 0

    # Elements

    def piece(self, number: int) -> bytes:
        """The piece of a number, which is that of its first index by 32."""
        slices = self._slices
        if slices is not None:
            return slices.get(number)
        return self._only if number == self._number else b""

    def next_piece(self, number: int, reverse: bool) -> int:
        """The number of the next piece with elements before or behind one; -1 for none."""
        slices = self._slices
        if slices is not None:
            return slices.next(number, reverse)
        only = self._number
        return only if self._only and (only < number if reverse else only > number) else -1

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
        """The greatest index and one; 0 without elements."""
        if not self._count:
            return 0
        slices = self._slices
        number = self._number if slices is None else slices.last()
        return (number << PIECE_BITS) + mask_of(self.piece(number)).bit_length()

    def redis_slices(self) -> list[int]:
        """The numbers of the slices of 4,096 that have elements, in order."""
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
        """How many pieces have elements."""
        return int(bool(self._only)) if self._slices is None else self._slices.piece_count()

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
        if self._slices is None:
            return _ARRAY_BYTES + _PIECE_BYTES + len(self._only)
        return _ARRAY_BYTES + self._slices.used_bytes()

    def copy(self) -> Array:
        """See ``Value``."""
        other = Array()
        other._only = self._only
        other._number = self._number
        other._slices = None if self._slices is None else self._slices.copy()
        other._count = self._count
        other.cursor = self.cursor
        return other

    def effort(self) -> int:
        """See ``Value``."""
        slices = 0 if self._slices is None else len(self._slices)
        return slices if slices > 1 else 0

    def free_some(self, most: int) -> bool:
        """See ``Value``."""
        return self._slices is None or self._slices.free_some(most)

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
