"""What is too large to be let go of at once: that is done in slices, between requests."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from mypy_extensions import trait

Piece = TypeVar("Piece")


@trait
class Large:
    """What nobody uses any more: keys, blocks, iids, or chunks of pending entries, and many."""

    def free_some(self, most: int) -> bool:
        """Let go of up to about ``most`` of them; True at the end."""
        raise NotImplementedError


class Removed(Large, Generic[Piece]):
    """What was taken out of a value that stays.

    Attributes:
        count: how many entries it held, of a stream or pending ones.
        pieces: lists of them, some maybe held twice; what stands last goes first.
    """

    def __init__(self, count: int, pieces: list[Piece]) -> None:
        self.count: Final = count
        self.pieces: Final = pieces

    def free_some(self, most: int) -> bool:
        """Let go of up to ``most`` of the pieces; True at the end."""
        del self.pieces[-most:]
        return not self.pieces
