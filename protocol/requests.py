"""Bytes to requests: hiredis for what is well formed, an exact parser for everything else.

Redis takes requests of one shape, ``*n`` and then n times ``$size``, with canonical decimal
numbers, or a line of inline words. hiredis reads that shape fast, but it reads replies, and
accepts more. So a chunk goes to hiredis first, and what came out is counted: written the
canonical way, the requests have a known length. When that is the length of the chunk, they are
what the peer sent. When the chunk ends in the middle of a request, the rest of it, from a known
offset, goes to the exact parser, as does a chunk that does not add up or does not start with
``*``. The exact parser keeps its place between chunks, so a request that arrives one byte at a
time, or half a gigabyte long, is never scanned twice.

The exact parser gives the errors of Redis's networking.c (processInlineBuffer and
processMultibulkBuffer), text for text.
"""

from __future__ import annotations

from typing import Final

from hiredis import ProtocolError as HiredisError
from hiredis import Reader

from protocol.inline import split_words

INLINE_MAX_BYTES: Final = 64 * 1024
MULTIBULK_MAX: Final = 2**31 - 1
UNAUTHENTICATED_MULTIBULK_MAX: Final = 10
UNAUTHENTICATED_BULK_MAX_BYTES: Final = 16 * 1024
_STAR: Final = 0x2A
_DOLLAR: Final = 0x24


class ProtocolError(Exception):
    """The bytes are broken; ``text`` follows ``ERR Protocol error: `` and the peer is closed."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text: Final = text


class RequestParser:
    """Fed with bytes, asked for requests.

    ``trusted`` is False until the peer has authenticated where a password is asked for: then
    requests come one at a time and are bounded in length.
    """

    def __init__(self, max_bulk_bytes: int = 512 * 1024 * 1024) -> None:
        self.max_bulk_bytes = max_bulk_bytes
        self.trusted = True
        self._reader = Reader()
        self._chunk = b""  # bytes that start at a request, not looked at yet
        self._buffer = bytearray()  # bytes that the exact parser is in the middle of
        self._args: list[bytes] = []
        self._missing = 0  # arguments that the request at hand still lacks
        self._bulk_size = -1  # length of the argument at hand; -1: its header is still to come
        self._scanned = 0  # bytes of the buffer known to hold no line end

    def feed(self, data: bytes) -> None:
        """Add what arrived; nothing is parsed before ``take``."""
        if self._buffer or self._missing:
            if self._chunk:
                self._buffer += self._chunk
                self._chunk = b""
            self._buffer += data
        elif self._chunk:
            self._buffer += self._chunk
            self._buffer += data
            self._chunk = b""
        else:
            self._chunk = data

    @property
    def pending_bytes(self) -> int:
        """How much is held that is no request yet, in bytes."""
        size = len(self._chunk) + len(self._buffer)
        for argument in self._args:
            size += len(argument)
        return size

    def take(self) -> list[list[bytes]]:
        """The next complete requests, oldest first; empty when more bytes are needed.

        Raises:
            ProtocolError: at the place where the bytes are broken, after the requests before it
                have been returned by earlier calls.
        """
        chunk = self._chunk
        if chunk:
            if self.trusted and chunk[0] == _STAR and not self._missing:
                self._chunk = b""
                requests = self._take_fast(chunk)
                if requests:
                    return requests
            else:
                self._chunk = b""
                self._buffer += chunk
        if not self._buffer:
            return []
        request = self._take_exact()
        if request is None:
            return []
        if self._buffer:
            self._chunk = bytes(self._buffer)
            self._buffer.clear()
            self._scanned = 0
        return [request]

    def _take_fast(self, chunk: bytes) -> list[list[bytes]]:
        """All requests that hiredis finds; what is left over moves to the exact parser's buffer."""
        reader = self._reader
        requests: list[list[bytes]] = []
        total = 0
        whole = True
        try:
            reader.feed(chunk)
            while True:
                request = reader.gets()
                if request is False:
                    break
                size = _canonical_size(request)
                if size < 0:
                    whole = False
                    break
                total += size
                if request:
                    requests.append(request)
        except HiredisError:
            whole = False
        length = len(chunk)
        if total == length and whole:
            return requests
        self._reader = Reader()
        if (
            total < length
            and (total == 0 or chunk[total - 1] == 0x0A)
            and (not whole or reader.has_data())
        ):
            self._buffer += chunk[total:]
            return requests
        self._buffer += chunk
        return []

    def _take_exact(self) -> list[bytes] | None:
        """One request out of the buffer, or None when it is not complete."""
        while True:
            if not self._missing:
                if not self._buffer:
                    return None
                if self._buffer[0] != _STAR:
                    words = self._take_inline()
                    if words is None or words:
                        return words
                    continue
                line = self._take_line(b"too big mbulk count string")
                if line is None:
                    return None
                count = _canonical_integer(line[1:])
                if count is None or count > MULTIBULK_MAX:
                    raise ProtocolError(b"invalid multibulk length")
                if count > UNAUTHENTICATED_MULTIBULK_MAX and not self.trusted:
                    raise ProtocolError(b"unauthenticated multibulk length")
                if count <= 0:
                    continue
                self._missing = count
                self._args = []
            while self._missing:
                argument = self._take_bulk()
                if argument is None:
                    return None
                self._args.append(argument)
                self._missing -= 1
            request = self._args
            self._args = []
            return request

    def _take_bulk(self) -> bytes | None:
        if self._bulk_size < 0:
            line = self._take_line(b"too big bulk count string")
            if line is None:
                return None
            if line[:1] != b"$":
                raise ProtocolError(b"expected '$', got '%b'" % _printable(line[:1]))
            size = _canonical_integer(line[1:])
            if size is None or size < 0 or size > self.max_bulk_bytes:
                raise ProtocolError(b"invalid bulk length")
            if size > UNAUTHENTICATED_BULK_MAX_BYTES and not self.trusted:
                raise ProtocolError(b"unauthenticated bulk length")
            self._bulk_size = size
        size = self._bulk_size
        if len(self._buffer) < size + 2:
            return None
        with memoryview(self._buffer) as view:
            argument = bytes(view[:size])
        del self._buffer[: size + 2]
        self._bulk_size = -1
        self._scanned = 0
        return argument

    def _take_line(self, too_big: bytes) -> bytes | None:
        """A header line without its end, or None; as in Redis any byte may follow the CR."""
        end = self._buffer.find(b"\r", self._scanned)
        if end < 0 or end + 1 >= len(self._buffer):
            if len(self._buffer) > INLINE_MAX_BYTES and end < 0:
                raise ProtocolError(too_big)
            self._scanned = max(0, end if end >= 0 else len(self._buffer))
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        self._scanned = 0
        return line

    def _take_inline(self) -> list[bytes] | None:
        """The words of one line, maybe none; None when the line has not ended."""
        end = self._buffer.find(b"\n", self._scanned)
        if end < 0:
            if len(self._buffer) > INLINE_MAX_BYTES:
                raise ProtocolError(b"too big inline request")
            self._scanned = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._scanned = 0
        words = split_words(line[:-1] if line.endswith(b"\r") else line)
        if words is None:
            raise ProtocolError(b"unbalanced quotes in request")
        return words


def _canonical_size(request: object) -> int:
    """The bytes that ``request`` takes when written the canonical way; -1 if it is no request."""
    if not isinstance(request, list):
        return -1
    total = _digits(len(request)) + 3
    for argument in request:
        if not isinstance(argument, bytes):
            return -1
        size = len(argument)
        total += size + 6 if size < 10 else size + 5 + _digits(size)
    return total


def _digits(number: int) -> int:
    count = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


def _canonical_integer(text: bytes) -> int | None:
    """The number that ``text`` writes without sign +, leading zero or space, else None."""
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or len(digits) > 19:
        return None
    if digits[:1] == b"0" and len(text) > 1:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _printable(char: bytes) -> bytes:
    """A byte as Redis shows it inside an error line, where a line end would break the line."""
    return b" " if char in (b"", b"\r", b"\n") else char
