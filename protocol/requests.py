r"""Bytes to requests: a fast way for what is well formed, an exact parser for everything else.

Redis takes requests of one shape, ``*n`` and then n times ``$size``, with canonical decimal
numbers, or a line of inline words. A chunk goes the fast way first; what is not whole there, or
not of that shape, goes to the exact parser from that offset on. So does a chunk that does not start
with ``*``. Once the exact parser has finished the current request, the rest of the chunk goes the
fast way again, but only once for each chunk. Where much has piled up that happens in slices: the
requests of one are handed out before the next one is looked at. The exact parser keeps its place
between chunks, so a request that arrives one byte at a time, or half a gigabyte long, is never
scanned twice. Of a request of many words it takes those that have come in together
(``plain.take_words``), and counts them as they come: nothing is done for each word once more.

The fast way is hiredis in the pure build. It reads that shape fast, but it is made for replies and
accepts more. So its results are measured: written the canonical way, each word has a known length;
there must be a ``$`` where a word starts, and a ``*`` where a request starts. Where the whole chunk
was read, the sum of the lengths proves the same at once. Compiled, the fast way is
``protocol.plain``, which needs none of this and takes less than half the time.

hiredis makes room for an array as soon as it has read its size, even for the two milliards of an
attacker. A chunk that could hold such a size is not shown to it.

The exact parser gives the errors of Redis's networking.c (processInlineBuffer and
processMultibulkBuffer), text for text.

Words of an inline request are separated by white space, but a vertical tab or a form feed in a word
is part of it. A NUL ends the line. Inside double quotes ``\n \r \t \b \a``, ``\xHH`` and an escaped
character are understood; inside single quotes only ``\'``. A closing quote must be followed by
white space or the end.
"""

from __future__ import annotations

from io import BytesIO
from itertools import chain
from types import FunctionType
from typing import TYPE_CHECKING, Final, cast

from hiredis import Reader

from headrace.protocol.plain import DOLLAR, STAR, PlainParser, take_words

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized


_ESCAPES: Final = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}
_SPACES: Final = b" \t\n\r\v\f"
_ENDS: Final = b" \t\n\r\0"  # of a word without quotes
_HEX: Final = b"0123456789abcdefABCDEF"


def split_words(line: bytes) -> list[bytes] | None:
    """Return the words of ``line``; None when its quotes do not balance."""
    words: list[bytes] = []
    position = 0
    size = len(line)
    while True:
        while position < size and line[position] in _SPACES:
            position += 1
        if position >= size or not line[position]:
            return words
        word = bytearray()
        position = _read_word(line, position, word)
        if position < 0:
            return None
        words.append(bytes(word))


def _read_word(line: bytes, position: int, word: bytearray) -> int:
    """Read one word into ``word``; return the position after it, or -1 for unbalanced quotes."""
    size = len(line)
    while position < size:
        char = line[position]
        if char in _ENDS:
            return position
        if char == 0x22:
            return _read_double_quoted(line, position + 1, word)
        if char == 0x27:
            return _read_single_quoted(line, position + 1, word)
        word.append(char)
        position += 1
    return position


def _read_double_quoted(line: bytes, position: int, word: bytearray) -> int:
    size = len(line)
    while position < size:
        char = line[position]
        if char == 0x5C and line[position + 1 : position + 2] == b"x":
            digits = line[position + 2 : position + 4]
            if len(digits) == 2 and digits[0] in _HEX and digits[1] in _HEX:
                word.append(int(digits, 16))
                position += 4
                continue
        if char == 0x5C and position + 1 < size:
            escaped = line[position + 1]
            word.append(_ESCAPES.get(escaped, escaped))
            position += 2
        elif char == 0x22:
            return _end_of_quoted(line, position + 1)
        else:
            word.append(char)
            position += 1
    return -1


def _read_single_quoted(line: bytes, position: int, word: bytearray) -> int:
    size = len(line)
    while position < size:
        char = line[position]
        if char == 0x5C and line[position + 1 : position + 2] == b"'":
            word.append(0x27)
            position += 2
        elif char == 0x27:
            return _end_of_quoted(line, position + 1)
        else:
            word.append(char)
            position += 1
    return -1


def _end_of_quoted(line: bytes, position: int) -> int:
    if position < len(line) and line[position] and line[position] not in _SPACES:
        return -1
    return position


INLINE_MAX_BYTES: Final = 64 * 1024
MULTIBULK_MAX: Final = 2**31 - 1
UNAUTHENTICATED_MULTIBULK_MAX: Final = 10
UNAUTHENTICATED_BULK_MAX_BYTES: Final = 16 * 1024
BIG_BULK_BYTES: Final = 32 * 1024  # from here on an argument is received in place
SLICE_BYTES: Final = 256 * 1024  # of the buffer that go the fast way at once
MANY_BYTES: Final = 64  # of the buffer, at least, of which arguments are taken together
MANY_WORDS: Final = 1024  # a request of the exact parser of as many is the last of those
MOST_REQUESTS: Final = 1024  # of the exact parser that are handed out at once, about
_SHORT_MARKS: Final = b"+(~>|"
_ONLY_LISTS: Final = {list}
_ONE_DIGIT: Final = bytes(range(10))
_TWO_DIGITS: Final = bytes(range(10, 100))
_AGGREGATES: Final = bytes.maketrans(b"~>|123456789", b"***000000000")
_LARGE_AGGREGATE: Final = b"*0000000"


_ESCAPED: Final = {
    0x22: b'\\"',
    0x5C: b"\\\\",
    0x0A: b"\\n",
    0x0D: b"\\r",
    0x09: b"\\t",
    0x07: b"\\a",
    0x08: b"\\b",
}
_SHOWN: Final = [
    _ESCAPED.get(char, b"%c" % char if 0x20 <= char < 0x7F else b"\\x%02x" % char)
    for char in range(256)
]


def quoted(text: bytes) -> bytes:
    """Return ``text`` in double quotes, what cannot be printed as ``\\xHH``."""
    return b'"' + b"".join([_SHOWN[char] for char in text]) + b'"'


class ProtocolError(Exception):
    """The bytes are broken; ``text`` follows ``ERR Protocol error: `` and the peer is closed."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text: Final = text


class RequestParser:
    """Takes bytes and returns requests.

    ``trusted`` is False until the peer has authenticated where a password is asked for: then
    requests come one at a time and are bounded in length.

    Invariants: bytes wait in ``_chunk`` only where a request starts and ``_buffer`` is empty. While
    ``_at_rest``, the exact parser has no bytes, no part of a request and no error to raise. That is
    so nearly always, and one look finds it out, instead of four.
    """

    def __init__(self, max_bulk_bytes: int = 512 * 1024 * 1024) -> None:
        self.max_bulk_bytes = max_bulk_bytes
        self.trusted = True
        self._reader = Reader()
        self._plain: Final = PlainParser()
        self._chunk = b""  # bytes for the fast way, which start at a request
        self._at_rest = True  # the exact parser holds nothing
        self._buffer = bytearray()  # bytes for the exact parser
        self._args: list[bytes] = []
        self._args_bytes = 0  # how long these are together
        self._missing = 0  # arguments that the current request still lacks
        self._bulk_size = -1  # length of the current argument; -1: its header is still to come
        self._scanned = 0  # bytes of the buffer known to hold no line end
        self._big: BytesIO | None = None  # the current argument, when it is a big one
        self._big_missing = 0  # bytes that it still lacks
        self._retry_fast = False  # the rest of the buffer may go the fast way
        self._retry_many = False  # arguments may be taken together
        self._error: bytes | None = None  # to raise once what came before has been taken

    def feed(self, data: bytes) -> None:
        """Add what arrived; nothing is parsed before ``take``."""
        self._retry_fast = True
        self._retry_many = True
        if self._big is not None:
            taken = min(self._big_missing, len(data))
            self._big_missing -= taken
            if taken == len(data):
                self._big.write(data)
                return
            with memoryview(data) as view:
                self._big.write(view[:taken])
                self._buffer += view[taken:]
        elif not self._at_rest or len(self._chunk):
            self._at_rest = False
            self._buffer += self._chunk
            self._buffer += data
            self._chunk = b""
        else:
            self._chunk = data

    @property
    def is_drained(self) -> bool:
        """Return whether ``take`` surely has nothing more to say before the next ``feed``."""
        if len(self._chunk):
            return False
        return self._at_rest or not (
            self._buffer or self._big is not None or self._error is not None
        )

    @property
    def pending_bytes(self) -> int:
        """Return how many bytes are held that are no request yet."""
        size = len(self._chunk) + len(self._buffer) + self._args_bytes
        if self._big is not None:
            size += self._bulk_size - self._big_missing
        return size

    @property
    def room_bytes(self) -> int:
        """Return how many bytes of a large argument are missing; the room for them is there."""
        return 0 if self._big is None else self._big_missing

    def take(self) -> list[list[bytes]]:
        """Return the next complete requests, oldest first; empty when more bytes are needed.

        Raises: ProtocolError: at the place where the bytes are broken, after the requests before it
        have been returned by earlier calls.
        """
        if self._error is not None:
            raise ProtocolError(self._error)
        chunk = self._chunk
        if len(chunk):
            self._chunk = b""
            if self.trusted and chunk[0] == STAR:
                requests = self._take_fast(chunk)
                if len(requests) or self._at_rest:
                    return requests
            else:
                self._at_rest = False
                self._buffer += chunk
        return [] if self._at_rest else self._take_rest()

    def _take_rest(self) -> list[list[bytes]]:
        requests: list[list[bytes]] = []
        while self._buffer or self._big is not None:
            if self._buffer_may_go_fast():
                requests += self._take_slice()
                if self._retry_fast and requests:
                    break
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
            if not self.trusted or len(requests) >= MOST_REQUESTS or len(request) >= MANY_WORDS:
                break
        self._at_rest = not (
            self._buffer or self._missing or self._big is not None or self._error is not None
        )
        return requests

    def _buffer_may_go_fast(self) -> bool:
        if self._missing or not self._retry_fast or not self.trusted:
            return False
        return self._buffer[0] == STAR

    def _take_fast(self, chunk: bytes) -> list[list[bytes]]:
        """Return all requests found the fast way; the rest moves to the exact parser's buffer."""
        requests: list[list[bytes]] = []
        total = self._find_fast(chunk, requests)
        self._retry_fast = False
        if total < len(chunk):
            self._at_rest = False
            self._buffer += memoryview(chunk)[total:]
        return requests

    def _take_slice(self) -> list[list[bytes]]:
        """Return those of a bounded part of the buffer, in which much may have piled up."""
        buffer = self._buffer
        with memoryview(buffer) as view:
            chunk = bytes(view[:SLICE_BYTES])
        requests: list[list[bytes]] = []
        total = self._find_fast(chunk, requests)
        self._retry_fast = total > 0 and len(chunk) < len(buffer)
        del buffer[:total]
        self._scanned = 0
        return requests

    def _find_fast(self, chunk: bytes, requests: list[list[bytes]]) -> int:
        if len(chunk) > self.max_bulk_bytes:
            return 0
        if _COMPILED:
            return int(self._plain.take(chunk, requests))
        return self._take_by_hiredis(chunk, requests)

    def _take_by_hiredis(self, chunk: bytes, requests: list[list[bytes]]) -> int:
        length = len(chunk)
        if _may_be_a_bomb(chunk):
            return 0
        found: list[object] = []
        try:
            self._reader.feed(chunk)
            found.extend(iter(self._reader.gets, False))
        except Exception:
            # Its own error, or what Python says to a reply that it cannot build (a map keyed by
            # a list): no request in either case, and the exact parser knows what is wrong.
            pass
        if _are_canonical(chunk, found):
            requests.extend(filter(None, cast("list[list[bytes]]", found)))
            return length
        total = 0
        for request in found:
            end = _canonical_end(chunk, total, request) if total < length else -1
            if end < 0:
                break
            total = end
            if request:
                requests.append(cast("list[bytes]", request))
        if total < length:
            self._reader = Reader()  # forget what it has of a request that is not whole
        return total

    def _take_exact(self) -> list[bytes] | None:
        while True:
            if not self._missing:
                if not self._buffer:
                    return None
                if self._buffer[0] != STAR:
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
                if self._take_many():
                    continue
                argument = self._take_bulk()
                if argument is None:
                    return None
                self._args.append(argument)
                self._args_bytes += len(argument)
                self._missing -= 1
            request = self._args
            self._args = []
            self._args_bytes = 0
            return request

    def _take_many(self) -> bool:
        """Take the arguments that are there in the canonical form; return whether there was one."""
        buffer = self._buffer
        size = min(len(buffer), SLICE_BYTES)
        if size < MANY_BYTES or size > self.max_bulk_bytes or self._bulk_size >= 0:
            return False
        if not self._retry_many or not self.trusted:
            return False
        with memoryview(buffer) as view:
            chunk = bytes(view[:size])
        args = self._args
        before = len(args)
        total, length = take_words(chunk, args, self._missing)
        if not total:  # once for each chunk: it was copied in vain
            self._retry_many = False
            return False
        del buffer[: int(total)]
        self._missing -= len(args) - before
        self._args_bytes += int(length)
        self._scanned = 0
        return True

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
        """Return a header line without its end, or None; as in Redis any byte may follow the CR."""
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
        """Return the words of one line, maybe none; None when the line has not ended.

        As in Redis a line with a NUL in it never ends. TLS sent to this port has one among its
        first bytes, so that nothing that others put into a handshake is run as a command.
        """
        buffer = self._buffer
        end = buffer.find(b"\n", self._scanned)
        nul = buffer.find(0, self._scanned, end if end >= 0 else len(buffer))
        if nul >= 0:
            self._scanned = nul
            if len(buffer) > INLINE_MAX_BYTES:
                raise ProtocolError(b"too big inline request")
            return None
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


_COMPILED: Final = not isinstance(PlainParser.take, FunctionType)


def _may_be_a_bomb(chunk: bytes) -> bool:
    """Return whether hiredis might make room for millions of items on the word of ``chunk``."""
    return _LARGE_AGGREGATE in chunk.translate(_AGGREGATES)


def _are_canonical(chunk: bytes, found: list[object]) -> bool:
    """Return whether ``chunk`` is the requests ``found``, written the canonical way, and no more.

    False where that takes a closer look. A word can be written shorter only with a ``+`` or ``(``,
    an array as short with a ``~`` or ``>``; all else is longer, and shows in the sum. So nothing
    can make up for digits that were not counted yet: as soon as the sum is right, it is.
    """
    for mark in _SHORT_MARKS:
        if mark in chunk:
            return False
    if set(map(type, found)) != _ONLY_LISTS:
        return False
    requests = cast("list[list[bytes]]", found)
    words = list(chain.from_iterable(requests))
    try:
        left = len(chunk) - len(b"".join(words)) - 6 * len(words) - 4 * len(requests)
        if left:
            left -= _digits_behind_the_first(words)
        if left:
            left -= _digits_behind_the_first(requests)
    except (TypeError, ValueError):  # not all are bytes, or one is longer than 255
        return False
    return left == 0


def _digits_behind_the_first(items: Sequence[Sized]) -> int:
    more_than_one = bytes(map(len, items)).translate(None, _ONE_DIGIT)
    return len(more_than_one) + len(more_than_one.translate(None, _TWO_DIGITS))


def _canonical_end(chunk: bytes, start: int, request: object) -> int:
    """Return where ``request`` ends if it stands at ``start`` in the canonical way; else -1."""
    if chunk[start] != STAR or not isinstance(request, list):
        return -1
    end = start + _digits(len(request)) + 3
    for argument in request:
        if not isinstance(argument, bytes) or chunk[end] != DOLLAR:
            return -1
        size = len(argument)
        end += size + 6 if size < 10 else size + 5 + _digits(size)
    return end


def request_bytes(words: list[bytes]) -> int:
    """Return the length in bytes of a request of these words in the canonical way."""
    size = 3 + _digits(len(words))
    for word in words:
        size += len(word) + _digits(len(word)) + 5
    return size


def _digits(number: int) -> int:
    count = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


def _canonical_integer(text: bytes) -> int | None:
    """Return the number that ``text`` writes without sign +, leading zero or space, else None."""
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or len(digits) > 19:
        return None
    if digits[:1] == b"0" and len(text) > 1:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _printable(char: bytes) -> bytes:
    """Return a byte as Redis shows it in an error line, where a line end would break the line."""
    return b" " if char in (b"", b"\r", b"\n") else char
