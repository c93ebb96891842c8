"""The pieces of an array that has elements in more than one: they lie in slices of 32 pieces.

A slice without elements is not there, and a piece without elements is empty, so gaps cost next to
nothing. ``Order`` finds the next slice behind a gap of any length.

A copy shares all slices. Each slice knows whose it is, and who is about to change one that is not
his own copies its 32 references first. Both get a new name as an owner when a copy is made, so
from then on none of the slices belongs to either.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.storage.array.order import Order

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
        owner: who may change it.
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
        """How many slices there are."""
        return len(self._slices)

    def get(self, number: int) -> bytes:
        """The piece with this number."""
        found = self._slices.get(number >> _BITS)
        at = number & (_PIECES - 1)
        return b"" if found is None or at >= len(found.pieces) else found.pieces[at]

    def next(self, number: int, reverse: bool) -> int:
        """The number of the next piece with elements before or behind one; -1 for none."""
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
        """The number of the last piece with elements; -1 for none."""
        place = self._order.last()
        if place < 0:
            return -1
        number = (place << _BITS) + _PIECES - 1
        return number if self.get(number) else self.next(number, True)

    def numbers(self) -> list[int]:
        """The numbers of the slices, in order."""
        return self._order.numbers()

    def piece_count(self) -> int:
        """How many pieces have elements."""
        return sum([each.used for each in self._slices.values()])

    def used_bytes(self) -> int:
        """About how much memory they take."""
        return _SLICES_BYTES + _SLICE_BYTES * len(self._slices) + self._content_bytes

    def copy(self) -> Slices:
        """The same pieces, of somebody else."""
        other = Slices()
        other._slices = self._slices.copy()
        other._order = self._order.copy()
        other._content_bytes = self._content_bytes
        self._owner = _Owner()
        return other

    def free_some(self, most: int) -> bool:
        """Drop so many slices of those that nobody uses any more; True when none is left."""
        for _ in range(min(most, len(self._slices))):
            self._slices.popitem()
        return not self._slices


def _taken_by(piece: bytes) -> int:
    """What a piece takes, and its place."""
    return 8 + _PIECE_BYTES + len(piece) if piece else 0
