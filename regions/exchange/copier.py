"""Takes a full copy from a peer, piece by piece: what was sent is checked, and written in order."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr
from xxhash import xxh3_64_hexdigest

from headrace.regions.exchange.asker import AA, Asker
from headrace.regions.knowledge.region import Region

PIECE_MAX_BYTES: Final = 4 << 20
PIECE_BYTES: Final = 1 << 20  # about what is sent at once
OUTSTANDING: Final = 4
NAME_MAX_BYTES: Final = 255


@mypyc_attr(allow_interpreted_subclasses=True)
class Receptacle:
    """Where a copy goes."""

    @abstractmethod
    def begin(self, name: bytes, size_bytes: int) -> None:
        """A copy of this length is about to come. The name is for people; it is no path."""
        raise NotImplementedError

    @abstractmethod
    def add(self, data: bytes) -> None:
        """Take the next bytes; ``Copier.written`` is called when they are."""
        raise NotImplementedError

    @abstractmethod
    def end(self) -> None:
        """That was all."""
        raise NotImplementedError


class Copier(Asker):
    """Asks one peer for a copy, over one connection.

    Attributes:
        size_bytes: how long the copy is; taken_bytes: how much of it has come.
        is_whole: all of it has come.
    """

    def __init__(
        self,
        region: Region,
        peer_region: int,
        secret: bytes,
        receptacle: Receptacle,
    ) -> None:
        super().__init__(region, peer_region, secret)
        self.size_bytes = 0
        self.taken_bytes = 0
        self.is_whole = False
        self._receptacle: Final = receptacle
        self._number = 0  # of the copy, as the peer counts; 0: it has not begun
        self._asked: Final[deque[int]] = deque()  # the places of the pieces on their way
        self._next = 0  # the place to ask for next
        self._unwritten_bytes = 0

    def begin(self) -> None:
        self.out.append([AA, b"COPY", b"BEGIN"])

    def answered(self, reply: object) -> None:
        if not isinstance(reply, list):
            self.damaged("an answer to COPY is no list")
        elif not self._number:
            self._begun(reply)
        else:
            self._take(reply)

    def written(self, count: int) -> None:
        """So many bytes are where they belong."""
        self._unwritten_bytes -= count
        self._ask()

    def _begun(self, reply: list[object]) -> None:
        number, name, size = reply if len(reply) == 3 else (None, None, None)
        if not (isinstance(number, int) and isinstance(name, bytes) and isinstance(size, int)):
            self.damaged("the beginning of a copy is none")
            return
        if number < 1 or size < 1 or not name or len(name) > NAME_MAX_BYTES:
            self.damaged("a copy has no number, no name, or nothing in it")
            return
        self._number = number
        self.size_bytes = size
        self._receptacle.begin(name, size)
        self._ask()

    def _ask(self) -> None:
        while (
            not self.failure
            and len(self._asked) < OUTSTANDING
            and self._unwritten_bytes < OUTSTANDING * PIECE_MAX_BYTES
            and self._next < self.size_bytes
        ):
            self._asked.append(self._next)
            self.out.append([AA, b"COPY", b"%d" % self._number, b"%d" % self._next])
            self._next += PIECE_BYTES

    def _take(self, reply: list[object]) -> None:
        data, checksum = reply if len(reply) == 2 else (None, None)
        if not self._asked or not isinstance(data, bytes) or not isinstance(checksum, bytes):
            self.damaged("a piece of a copy is none")
            return
        place = self._asked.popleft()
        expected = min(PIECE_BYTES, self.size_bytes - place)
        if len(data) != expected or place != self.taken_bytes:
            self.damaged("a piece of a copy has another length, or belongs elsewhere")
            return
        if xxh3_64_hexdigest(data).encode() != checksum:
            self.damaged("the checksum of a piece of a copy is another one")
            return
        self.taken_bytes += len(data)
        self._unwritten_bytes += len(data)
        self._receptacle.add(data)
        if self.taken_bytes == self.size_bytes:
            self.is_whole = True
            self._receptacle.end()
        self._ask()
