"""The latest part of the stream, from which a replica goes on that was away for a short while."""

from __future__ import annotations

from collections import deque
from typing import Final


class Backlog:
    """Pieces of the stream that follow each other.

    Args:
        offset: of what comes next; the first byte of a stream has offset 1.

    Attributes:
        first: the offset of the first byte that is kept; end: that of the byte that comes next.
    """

    def __init__(self, offset: int) -> None:
        self.first = offset
        self.end = offset
        self._pieces: Final[deque[bytes]] = deque()

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self.end - self.first

    def add(self, piece: bytes, most_bytes: int) -> None:
        """Add what comes next, and forget old pieces without which there is still enough."""
        self._pieces.append(piece)
        self.end += len(piece)
        self.trim(most_bytes)

    def trim(self, most_bytes: int) -> None:
        """Forget old pieces without which ``most_bytes`` are kept."""
        pieces = self._pieces
        while pieces and self.size - len(pieces[0]) >= most_bytes:
            self.first += len(pieces.popleft())

    def holds(self, offset: int) -> bool:
        """Whether all is kept from an offset on, which may be that of the byte that comes next."""
        return self.first <= offset <= self.end

    def since(self, offset: int) -> list[bytes]:
        """The bytes from an offset on that is kept."""
        found: list[bytes] = []
        at = self.end
        for piece in reversed(self._pieces):
            if at <= offset:
                break
            at -= len(piece)
            found.append(piece if at >= offset else piece[offset - at :])
        found.reverse()
        return found
