"""Finds the requests in the bytes of a file, and what they are, without taking their words out."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.regions.knowledge.records import EFFECTS, XADD
from headrace.storage.sharing import AA, FILE, FROM

LOCAL: Final = 0
NUMBERED: Final = 1
COUNTING: Final = 2  # AA FROM
BEGIN: Final = 3  # MULTI
END: Final = 4  # EXEC
COMMENT: Final = 5
IDENTITY: Final = 6  # AA FILE

_STAR: Final = 0x2A
_DOLLAR: Final = 0x24
_HASH: Final = 0x23
_CR: Final = 0x0D
_LF: Final = 0x0A
_MOST: Final[i64] = 1 << 40
_MORE: Final[i64] = -1


class BrokenBytes(Exception):
    """No request begins at this offset of the buffer."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"no request at {offset}")
        self.offset = offset


class Scanner:
    """Goes through a buffer of requests and comments.

    Attributes:
        buffer: what is looked at; it may be replaced between two calls.
        kind: what the last request was.
    """

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.kind = LOCAL
        self._at: i64 = 0

    def scan(self, start: i64) -> i64:
        """Where the request that begins at ``start`` ends; -1 where the buffer ends before that.

        Raises:
            BrokenBytes: there is none.
        """
        buffer = self.buffer
        size: i64 = len(buffer)
        if start >= size:
            return _MORE
        if buffer[start] == _HASH:
            end: i64 = buffer.find(b"\n", start)
            self.kind = COMMENT
            return end + 1 if end >= 0 else _MORE
        self._at = start
        count = self._header(_STAR)
        if count < 1:
            if count == 0:
                raise BrokenBytes(start)
            return _MORE
        left = count
        while left > 0:
            length = self._header(_DOLLAR)
            if length < 0:
                return _MORE
            word = self._at
            end = word + length
            if end + 2 > size:
                return _MORE
            if buffer[end] != _CR or buffer[end + 1] != _LF:
                raise BrokenBytes(start)
            if left == count:
                self.kind = _first_kind(buffer[word:end] if length <= 5 else b"", count)
            elif left == count - 1 and self.kind == IDENTITY:
                self.kind = _second_kind(buffer[word:end])
            self._at = end + 2
            left -= 1
        return self._at

    def words(self, start: i64) -> list[bytes]:
        """The words of a whole request that ``scan`` has found."""
        found: list[bytes] = []
        self._at = start
        left = self._header(_STAR)
        while left > 0:
            length = self._header(_DOLLAR)
            word = self._at
            found.append(self.buffer[word : word + length])
            self._at = word + length + 2
            left -= 1
        return found

    def _header(self, kind: i64) -> i64:
        """The number of a header line, or -1 where the buffer ends before that."""
        buffer = self.buffer
        size: i64 = len(buffer)
        position = self._at
        if position >= size:
            return _MORE
        if buffer[position] != kind:
            raise BrokenBytes(position)
        position += 1
        first = position
        number: i64 = 0
        while position < size:
            char: i64 = buffer[position]
            if char == _CR:
                break
            if char < 0x30 or char > 0x39 or number > _MOST:
                raise BrokenBytes(position)
            number = number * 10 + char - 0x30
            position += 1
        if position + 1 >= size:
            return _MORE
        if position == first or buffer[position + 1] != _LF:
            raise BrokenBytes(position)
        self._at = position + 2
        return number


def _first_kind(name: bytes, count: i64) -> int:
    """What a request is by its first word; ``IDENTITY`` where the second one has to be seen."""
    if name == XADD:
        return NUMBERED
    if name == AA:
        return IDENTITY if count > 1 else LOCAL
    if count == 1:
        if name == b"MULTI":
            return BEGIN
        if name == b"EXEC":
            return END
    return LOCAL


def _second_kind(name: bytes) -> int:
    """Return what ``AA name`` is."""
    if name in EFFECTS:
        return NUMBERED
    if name == FROM:
        return COUNTING
    return IDENTITY if name == FILE else LOCAL
