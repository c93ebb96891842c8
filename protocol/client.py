"""Requests to another server, and the replies that come back: bytes in, values out.

The other side may be any program that has taken a port over. So whatever it sends is bounded:
strings, the number of items, the depth, and all of one reply together. Room is made only for what
has arrived.

A reply becomes ``bytes``, ``int``, a list, or ``ReplyError``; a status is ``bytes``. RESP2 has no
more, except that something is missing, which is no answer to these requests.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_le
from mypy_extensions import i32, i64

from headrace.protocol.wire import array_header, write_bulk

# ``*0\r\n`` with the lowest byte first; a digit is added to the second byte.
_STAR_LINE: Final[i64] = 0x0A0D302A
PART_BYTES: Final = 1 << 18  # of a long request, about


def request(argv: list[bytes]) -> bytes:
    """Return a request: an array of bulk strings."""
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
    """Return the line before ``size`` bytes that follow it, and after which nothing stands."""
    return b"$%d\r\n" % size


def marked_head(mark: bytes) -> bytes:
    """Return the line before bytes of unknown number that end with this mark."""
    return b"$EOF:%b\r\n" % mark


class LongRequest:
    """A request of ``size`` words that come one after another; it is never moved as a whole."""

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
        """Return the request, with ``name`` before its words, in pieces that follow each other."""
        head = BytesWriter()
        head.write(array_header(self.size + 1))
        write_bulk(head, name)
        return [head.getvalue(), *self._parts, self._last.getvalue()]


LINE_MAX_BYTES: Final = 64 * 1024
ITEMS_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 4
_CRLF: Final = b"\r\n"
_PLUS: Final = 0x2B
_MINUS: Final = 0x2D
_COLON: Final = 0x3A
_DOLLAR: Final = 0x24
_STAR: Final = 0x2A
_KEPT_BYTES: Final = 64 * 1024  # what has been read is cut off the buffer when it is longer


class BadReply(Exception):
    """The bytes are no valid reply; the text says why. Nothing more can be read then."""


class ReplyError:
    """An error reply: ``CODE text``, without the dash."""

    def __init__(self, line: bytes) -> None:
        self.line: Final = line


class _Open:
    def __init__(self, missing: int) -> None:
        self.items: Final[list[object]] = []
        self.missing = missing


class ReplyReader:
    """Cuts a stream of bytes into replies of at most ``max_bytes``, all strings together."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._buffer = bytearray()
        self._at = 0  # what is before it has been read
        self._scanned = 0  # no line end is before it
        self._bulk_size = -1  # of the current string; -1: its header is still to come
        self._open: list[_Open] = []  # the arrays that the next value lies in, outermost first
        self._taken_bytes = 0  # of the current reply, in front of the place

    @property
    def pending_bytes(self) -> int:
        """Return how many bytes are held that are no whole reply."""
        return self._taken_bytes + len(self._buffer) - self._at

    def feed(self, data: bytes) -> None:
        """Add what arrived."""
        self._buffer += data

    def take(self) -> object | None:
        """Return the next whole reply; None where more bytes are needed. Raises: BadReply."""
        while True:
            value = self._value()
            if value is None:
                self._shorten()
                if self.pending_bytes > self.max_bytes + LINE_MAX_BYTES:
                    raise BadReply("a reply is too long")
                return None
            if isinstance(value, _Open):
                if value.missing:
                    self._open.append(value)
                    if len(self._open) > DEPTH_MAX:
                        raise BadReply("a reply is too deep")
                    continue
                value = value.items
            while self._open:
                outer = self._open[-1]
                outer.items.append(value)
                outer.missing -= 1
                if outer.missing:
                    break
                self._open.pop()
                value = outer.items
            else:
                self._taken_bytes = 0
                self._shorten()
                return value

    def _value(self) -> object | None:
        """Return the next string, number or beginning of an array; None where it is not whole."""
        if self._bulk_size >= 0:
            return self._bulk()
        line = self._line()
        if line is None:
            return None
        kind = line[0] if line else 0
        if kind == _PLUS:
            return line[1:]
        if kind == _MINUS:
            return ReplyError(line[1:])
        if kind == _COLON:
            return _integer(line)
        if kind == _DOLLAR:
            size = _integer(line)
            if not 0 <= size <= self.max_bytes - self._taken_bytes:
                raise BadReply("a string is too long")
            self._bulk_size = size
            return self._bulk()
        if kind == _STAR:
            count = _integer(line)
            if not 0 <= count <= ITEMS_MAX:
                raise BadReply("an array is too long")
            return _Open(count)
        raise BadReply("no reply begins like this")

    def _line(self) -> bytes | None:
        buffer = self._buffer
        end = buffer.find(_CRLF, max(self._at, self._scanned - 1))
        if end < 0:
            self._scanned = len(buffer)
            if len(buffer) - self._at > LINE_MAX_BYTES:
                raise BadReply("a line is too long")
            return None
        line = bytes(buffer[self._at : end])
        self._advance(end + 2)
        return line

    def _bulk(self) -> bytes | None:
        buffer = self._buffer
        end = self._at + self._bulk_size
        if len(buffer) < end + 2:
            return None
        if buffer[end : end + 2] != _CRLF:
            raise BadReply("a string has another length than it says")
        with memoryview(buffer) as view:
            data = bytes(view[self._at : end])
        self._bulk_size = -1
        self._advance(end + 2)
        return data

    def _advance(self, end: int) -> None:
        self._taken_bytes += end - self._at
        self._at = end
        self._scanned = end

    def _shorten(self) -> None:
        if self._at >= len(self._buffer) or self._at > _KEPT_BYTES:
            del self._buffer[: self._at]
            self._scanned -= self._at
            self._at = 0


def _integer(line: bytes) -> int:
    digits = line[1:]
    if not 0 < len(digits) <= 20 or not digits.removeprefix(b"-").isdigit():
        raise BadReply("a number is none")
    return int(digits)
