"""Bytes to requests: a fast way for what is well formed, an exact parser for everything else.

Redis takes requests of one shape, ``*n`` and then n times ``$size``, with canonical decimal
numbers, or a line of inline words. A chunk goes the fast way first; what is not whole there, or
not of that shape, goes to the exact parser from that offset on, as does a chunk that does not
start with ``*``. Once the exact parser has finished the request at hand, what is left of the chunk
goes the fast way again, but only once for each chunk. The exact parser keeps its place between
chunks, so a request that arrives one byte at a time, or half a gigabyte long, is never scanned
twice.

The fast way is hiredis in the pure build. It reads that shape fast, but it reads replies, and
accepts more. So what comes out is measured: written the canonical way, each word has a known
length, and where it starts there must be a ``$``, as there must be a ``*`` where a request starts.
Compiled, a parser of our own for that shape alone needs none of this and takes less than half the
time (16 XADDs of five words: 0.16 us each, not 0.38; one alone: 0.20 us, not 0.83).

hiredis makes room for an array as soon as it has read its size, for the two milliards of an
attacker too. A chunk that could hold such a size is not shown to it.

The exact parser gives the errors of Redis's networking.c (processInlineBuffer and
processMultibulkBuffer), text for text.
"""

from __future__ import annotations

import re
from io import BytesIO
from types import FunctionType
from typing import Final

from hiredis import Reader
from librt.strings import read_i16_le, read_i32_le, read_i64_le
from mypy_extensions import i64

from protocol.inline import split_words

INLINE_MAX_BYTES: Final = 64 * 1024
MULTIBULK_MAX: Final = 2**31 - 1
UNAUTHENTICATED_MULTIBULK_MAX: Final = 10
UNAUTHENTICATED_BULK_MAX_BYTES: Final = 16 * 1024
SMALL_CHUNK_BYTES: Final = 256
BIG_BULK_BYTES: Final = 32 * 1024  # from here on an argument is received in place
_STAR: Final = 0x2A
_DOLLAR: Final = 0x24
_GREATER: Final = 0x3E
_BAR: Final = 0x7C
_TILDE: Final = 0x7E
_CR: Final = 0x0D
_LF: Final = 0x0A
_ZERO: Final = 0x30
PLAIN_DIGITS: Final = 7  # of a number, at most, for the fast way
LEAST_WORD_BYTES: Final = 6  # of a word in a request
LEAST_REQUEST_BYTES: Final = 4
# Of the first four bytes of a header line, in the order of the bytes: the lowest comes first.
_ALL_BUT_SECOND: Final[i64] = 0xFFFF00FF
_FIRST_AND_LAST: Final[i64] = 0xFF0000FF
_STAR_AND_END: Final[i64] = 0x0A0D002A
_DOLLAR_AND_END: Final[i64] = 0x0A0D0024
_DOLLAR_AND_CR: Final[i64] = 0x0D000024
_END: Final[i64] = 0x0A0D
_ONE_WORD: Final = [b""]
_REPEATED_BYTES: Final = 24  # of a word on the wire, at most, to be compared
_BYTES_AT_ONCE: Final = 8
_find_large_array: Final = re.compile(rb"\*[0-9]{7}").search
_find_large_aggregate: Final = re.compile(rb"[*~>|][0-9]{7}").search


class ProtocolError(Exception):
    """The bytes are broken; ``text`` follows ``ERR Protocol error: `` and the peer is closed."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text: Final = text


class RequestParser:
    """Fed with bytes, asked for requests.

    ``trusted`` is False until the peer has authenticated where a password is asked for: then
    requests come one at a time and are bounded in length.

    Invariant: bytes wait in ``_chunk`` only where a request starts and ``_buffer`` is empty.
    """

    def __init__(self, max_bulk_bytes: int = 512 * 1024 * 1024) -> None:
        self.max_bulk_bytes = max_bulk_bytes
        self.trusted = True
        self._reader = Reader()
        self._chunk = b""  # bytes that start at a request, for the fast way
        self._buffer = bytearray()  # bytes for the exact parser
        self._args: list[bytes] = []
        self._missing = 0  # arguments that the request at hand still lacks
        self._bulk_size = -1  # length of the argument at hand; -1: its header is still to come
        self._scanned = 0  # bytes of the buffer known to hold no line end
        self._big: BytesIO | None = None  # the argument at hand, when it is a big one
        self._big_missing = 0  # bytes that it still lacks
        self._retry_fast = False  # the rest of the buffer may go the fast way
        self._error: bytes | None = None  # to raise once what came before has been taken

    def feed(self, data: bytes) -> None:
        """Add what arrived; nothing is parsed before ``take``."""
        self._retry_fast = True
        if self._big is not None:
            taken = min(self._big_missing, len(data))
            self._big_missing -= taken
            if taken == len(data):
                self._big.write(data)
                return
            with memoryview(data) as view:
                self._big.write(view[:taken])
                self._buffer += view[taken:]
        elif self._buffer or self._missing or self._chunk:
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
        if self._big is not None:
            size += self._bulk_size - self._big_missing
        return size

    def take(self) -> list[list[bytes]]:
        """The next complete requests, oldest first; empty when more bytes are needed.

        Raises:
            ProtocolError: at the place where the bytes are broken, after the requests before it
                have been returned by earlier calls.
        """
        if self._error is not None:
            raise ProtocolError(self._error)
        requests: list[list[bytes]] = []
        chunk = self._chunk
        if chunk:
            self._chunk = b""
            if self.trusted and chunk[0] == _STAR:
                requests = self._take_fast(chunk)
                if requests:
                    return requests
            else:
                self._buffer += chunk
        while self._buffer or self._big is not None:
            if self._buffer_may_go_fast():
                chunk = bytes(self._buffer)
                self._buffer.clear()
                self._scanned = 0
                requests += self._take_fast(chunk)
                continue
            try:
                request = self._take_exact()
            except ProtocolError as error:
                # The text alone: the exception would hold the frames that it passes, and us.
                self._error = error.text
                if not requests:
                    raise
                break
            if request is None:
                break
            requests.append(request)
            if not self.trusted:
                break
        return requests

    def _buffer_may_go_fast(self) -> bool:
        if self._missing or not self._retry_fast or not self.trusted:
            return False
        return self._buffer[0] == _STAR

    def _take_fast(self, chunk: bytes) -> list[list[bytes]]:
        """All requests found the fast way; what is left moves to the exact parser's buffer."""
        requests: list[list[bytes]] = []
        self._retry_fast = False
        if len(chunk) > self.max_bulk_bytes:
            total = 0
        elif _COMPILED:
            total = int(_take_plain(chunk, requests))
        else:
            total = self._take_by_hiredis(chunk, requests)
        if total < len(chunk):
            self._buffer += memoryview(chunk)[total:]
        return requests

    def _take_by_hiredis(self, chunk: bytes, requests: list[list[bytes]]) -> int:
        """Append what hiredis finds in ``chunk`` to ``requests``; where the last of it ends."""
        length = len(chunk)
        if _may_be_a_bomb(chunk):
            return 0
        reader = self._reader
        total = 0
        try:
            reader.feed(chunk)
            while total < length:
                request = reader.gets()
                if request is False:
                    break
                end = _canonical_end(chunk, total, request)
                if end < 0:
                    break
                total = end
                if request:
                    requests.append(request)
        except Exception:
            # Its own error, or what Python says to a reply that it cannot build (a map keyed by
            # a list): no request in either case, and the exact parser knows what is wrong.
            pass
        if total < length:
            self._reader = Reader()  # forget what it has of a request that is not whole
        return total

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
        if self._bulk_size < 0 and not self._take_bulk_header():
            return None
        size = self._bulk_size
        buffer = self._buffer
        if self._big is not None:
            if self._big_missing or len(buffer) < 2:
                return None
            argument = self._big.getvalue()
            self._big = None
            del buffer[:2]
        elif len(buffer) >= size + 2:
            with memoryview(buffer) as view:
                argument = bytes(view[:size])
            del buffer[: size + 2]
        else:
            if size >= BIG_BULK_BYTES:
                self._receive_in_place(size)
            return None
        self._bulk_size = -1
        self._scanned = 0
        return argument

    def _take_bulk_header(self) -> bool:
        line = self._take_line(b"too big bulk count string")
        if line is None:
            return False
        if line[:1] != b"$":
            raise ProtocolError(b"expected '$', got '%b'" % _printable(line[:1]))
        size = _canonical_integer(line[1:])
        if size is None or size < 0 or size > self.max_bulk_bytes:
            raise ProtocolError(b"invalid bulk length")
        if size > UNAUTHENTICATED_BULK_MAX_BYTES and not self.trusted:
            raise ProtocolError(b"unauthenticated bulk length")
        self._bulk_size = size
        return True

    def _receive_in_place(self, size: int) -> None:
        """Make room for a big argument at once: it is then never moved nor copied.

        ``BytesIO`` writes into the zeros that it was given and hands the same object out again.
        """
        big = BytesIO(bytes(size))
        held = min(size, len(self._buffer))
        with memoryview(self._buffer) as view:
            big.write(view[:held])
        del self._buffer[:held]
        self._big = big
        self._big_missing = size - held

    def _take_line(self, too_big: bytes) -> bytes | None:
        """A header line without its end, or None; as in Redis any byte may follow the CR."""
        buffer = self._buffer
        end = buffer.find(b"\r", self._scanned)
        if (end if end >= 0 else len(buffer)) > INLINE_MAX_BYTES:
            raise ProtocolError(too_big)
        if end < 0 or end + 1 >= len(buffer):
            self._scanned = end if end >= 0 else len(buffer)
            return None
        line = bytes(buffer[:end])
        del buffer[: end + 2]
        self._scanned = 0
        return line

    def _take_inline(self) -> list[bytes] | None:
        """The words of one line, maybe none; None when the line has not ended."""
        buffer = self._buffer
        end = buffer.find(b"\n", self._scanned)
        if (end if end >= 0 else len(buffer)) > INLINE_MAX_BYTES:
            raise ProtocolError(b"too big inline request")
        if end < 0:
            self._scanned = len(buffer)
            return None
        line = bytes(buffer[:end])
        del buffer[: end + 1]
        self._scanned = 0
        words = split_words(line[:-1] if line.endswith(b"\r") else line)
        if words is None:
            raise ProtocolError(b"unbalanced quotes in request")
        return words


def _take_plain(chunk: bytes, requests: list[list[bytes]]) -> i64:
    """Append the requests that stand at the start of ``chunk`` to ``requests``; where they end.

    Only those in the canonical form, and none that is not whole.

    In a pipeline most words stand in the request before at the same place: the command, a key, an
    option. Such a word is told by what is on the wire, header and line end included, and is not
    made anew. Those at the front, as many as the request before had of them, are told all at once.
    """
    before: list[bytes] = []
    before_at: i64 = 0  # where the word stands there
    began: i64 = 0  # where that request stands
    leading: i64 = 0  # words at its front that the one before it had, too
    leading_bytes: i64 = 0  # of them on the wire
    size: i64 = len(chunk)
    total: i64 = 0
    while total + LEAST_REQUEST_BYTES <= size:
        # Nearly all numbers have one digit or two: four bytes tell them at once.
        at: i64 = total + 4
        head = i64(read_i32_le(chunk, total))
        count: i64 = ((head >> 8) & 0xFF) - _ZERO
        if head & _ALL_BUT_SECOND != _STAR_AND_END or not 0 <= count <= 9:
            if head & 0xFF != _STAR:
                break
            count, at = _plain_number(chunk, total + 1, size)
        if count <= 0 or count * LEAST_WORD_BYTES > size - at:
            break
        taken: i64 = 0
        known: i64 = len(before)
        if known == count:
            words = before.copy()
            before_at = began + at - total
        else:
            words = _ONE_WORD * int(count)
            known = 0
        if (
            known
            and leading
            and at + leading_bytes <= size
            and _is_same(chunk, at, before_at, leading_bytes)
        ):
            at += leading_bytes
            before_at += leading_bytes
            taken = leading
        else:
            leading = 0
            leading_bytes = 0
        while taken < count:
            if at + LEAST_WORD_BYTES > size:
                break
            if taken < known:
                width: i64 = len(before[taken])
                width += 6 if width < 10 else 7 if width < 100 else 8
                if width <= _REPEATED_BYTES:
                    if at + width <= size and _is_same(chunk, at, before_at, width):
                        at += width
                        before_at += width
                        if taken == leading:
                            leading += 1
                            leading_bytes += width
                        taken += 1
                        continue
                elif width > 1000:
                    known = 0
                before_at += width
            first, end = _plain_word(chunk, at, size)
            if end < 0:
                break
            words[taken] = chunk[first:end]
            at = end + 2
            taken += 1
        if taken < count:
            break
        requests.append(words)
        before = words
        began = total
        total = at
    return total


def _plain_word(chunk: bytes, at: i64, size: i64) -> tuple[i64, i64]:
    """Where the word of which the header is at ``at`` starts and ends; the end is -1 if it is none.

    Args:
        size: the length of ``chunk``.
    """
    head = i64(read_i32_le(chunk, at))
    length: i64 = ((head >> 8) & 0xFF) - _ZERO
    second: i64 = ((head >> 16) & 0xFF) - _ZERO
    if head & _ALL_BUT_SECOND == _DOLLAR_AND_END and 0 <= length <= 9:
        at += 4
    elif (
        head & _FIRST_AND_LAST == _DOLLAR_AND_CR
        and chunk[at + 4] == _LF
        and 0 < length <= 9
        and 0 <= second <= 9
    ):
        length = 10 * length + second
        at += 5
    elif head & 0xFF == _DOLLAR:
        length, at = _plain_number(chunk, at + 1, size)
    else:
        return at, -1
    end = at + length
    if length < 0 or end + 1 >= size or read_i16_le(chunk, end) != _END:
        return at, -1
    return at, end


def _is_same(chunk: bytes, at: i64, before_at: i64, width: i64) -> bool:
    """Whether the same ``width`` bytes, at least 6, stand at both places of ``chunk``.

    They are compared eight at once, the last ones first: those of a short word reach back to the
    line end before it.
    """
    last = width - _BYTES_AT_ONCE
    if read_i64_le(chunk, at + last) != read_i64_le(chunk, before_at + last):
        return False
    step: i64 = 0
    while step < last:
        if read_i64_le(chunk, at + step) != read_i64_le(chunk, before_at + step):
            return False
        step += _BYTES_AT_ONCE
    return True


def _plain_number(chunk: bytes, at: i64, size: i64) -> tuple[i64, i64]:
    """The number of a header line from ``at`` on, and where the next line starts; -1 if it is none.

    Args:
        size: the length of ``chunk``.
    """
    first = at
    number: i64 = 0
    while at + 1 < size:
        char: i64 = chunk[at]
        if char == _CR:
            if at == first or chunk[at + 1] != _LF or (chunk[first] == _ZERO and at > first + 1):
                break
            return number, at + 2
        if char < _ZERO or char > _ZERO + 9 or at >= first + PLAIN_DIGITS:
            break
        number = number * 10 + char - _ZERO
        at += 1
    return -1, at


_COMPILED: Final = not isinstance(_take_plain, FunctionType)


def _may_be_a_bomb(chunk: bytes) -> bool:
    """Whether hiredis might make room for millions of items on the word of ``chunk``."""
    if _TILDE in chunk or _GREATER in chunk or _BAR in chunk:
        return _find_large_aggregate(chunk) is not None
    if len(chunk) > SMALL_CHUNK_BYTES:
        return _find_large_array(chunk) is not None
    # One small request: looking at its few stars by hand takes half the time.
    last = len(chunk) - 8
    star = 0
    while 0 <= star <= last:
        if 0x30 <= chunk[star + 7] <= 0x39 and _find_large_array(chunk, star) is not None:
            return True
        star = chunk.find(b"*", star + 1)
    return False


def _canonical_end(chunk: bytes, start: int, request: object) -> int:
    """Where ``request`` ends if it stands at ``start`` in the canonical way; -1 if it does not."""
    if chunk[start] != _STAR or not isinstance(request, list):
        return -1
    end = start + _digits(len(request)) + 3
    for argument in request:
        if not isinstance(argument, bytes) or chunk[end] != _DOLLAR:
            return -1
        size = len(argument)
        end += size + 6 if size < 10 else size + 5 + _digits(size)
    return end


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
