"""Requests as a client, the append-only file or a replica would send them."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_le
from mypy_extensions import i32, i64

from headrace.protocol.wire import array_header, write_bulk

# ``*0\r\n`` with the lowest byte first; a digit is added to the second byte.
_STAR_LINE: Final[i64] = 0x0A0D302A
PART_BYTES: Final = 1 << 18  # of a long request, about


def request(argv: list[bytes]) -> bytes:
    """A request: an array of bulk strings."""
    out = BytesWriter()
    write_request(out, argv)
    return out.getvalue()


def write_request(out: BytesWriter, argv: list[bytes]) -> None:
    """Append ``request(argv)`` to ``out``."""
    count: i64 = len(argv)
    if count < 10:
        write_i32_le(out, i32(_STAR_LINE + (count << 8)))
    else:
        out.write(array_header(int(count)))
    for argument in argv:
        write_bulk(out, argument)


def bulk_head(size: int) -> bytes:
    """What stands before ``size`` bytes that are sent behind it, and after which nothing stands."""
    return b"$%d\r\n" % size


def marked_head(mark: bytes) -> bytes:
    """What stands before bytes of unknown number that end with this mark."""
    return b"$EOF:%b\r\n" % mark


class LongRequest:
    """A request of very many words that come one after another; it is never moved as a whole.

    Attributes:
        size: how many words there are.
    """

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []
        self._last = BytesWriter()

    def add(self, words: list[bytes]) -> None:
        """Add words at the end."""
        out = self._last
        for word in words:
            write_bulk(out, word)
        self.size += len(words)
        if len(out) >= PART_BYTES:
            self._parts.append(out.getvalue())
            self._last = BytesWriter()

    def pieces(self, name: bytes) -> list[bytes]:
        """The request, with ``name`` before its words, in pieces that follow each other."""
        head = BytesWriter()
        head.write(array_header(self.size + 1))
        write_bulk(head, name)
        return [head.getvalue(), *self._parts, self._last.getvalue()]
