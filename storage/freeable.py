"""What may be too much to free at once, and is freed in slices, between requests."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, Generic, TypeVar

from mypy_extensions import mypyc_attr

Piece = TypeVar("Piece")


@mypyc_attr(acyclic=True, allow_interpreted_subclasses=True)
class Freeable:
    """What consists of pieces: keys, blocks, iids, or chunks of pending entries."""

    def effort(self) -> int:
        """About how many pieces there are to free; 0 where it may simply be dropped."""
        return 1  # who makes one that is no value has asked for slices

    @abstractmethod
    def free_some(self, most: int) -> bool:
        """Free up to about ``most`` pieces of what nobody uses any more; True at the end."""
        raise NotImplementedError


class Removed(Freeable, Generic[Piece]):
    """What was taken out of a value that stays.

    Attributes:
        count: how many entries it held, of a stream or pending ones.
        pieces: lists of them, some maybe held twice; what stands last goes first.
    """

    def __init__(self, count: int, pieces: list[Piece]) -> None:
        self.count: Final = count
        self.pieces: Final = pieces

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` of the pieces; True at the end."""
        del self.pieces[-most:]
        return not self.pieces
