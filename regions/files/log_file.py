"""One file of a region's log: which numbered records it holds, and how they are found there.

A scanner finds the requests and their kinds without taking their words out. ``AA FROM origin
number`` says how to count from there on. So a reader begins at such a place, and goes through the
file unit by unit.
"""

from __future__ import annotations

import os
from typing import Final

from mypy_extensions import i64

from headrace.persistence.aof.directory import RecordCount
from headrace.persistence.errors import CorruptAOF, os_refusal
from headrace.persistence.files import open_to_read
from headrace.regions.files.backlog import Run, Slicer
from headrace.regions.knowledge.records import EFFECTS, JOINED, XADD, is_numbered
from headrace.storage.sharing import AA, FILE, FROM
from headrace.storage.vectors import (
    NUMBER_MAX,
    BadVector,
    Dot,
    Numbers,
    check_origin,
    encode_numbers,
)

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
MARK_BYTES: Final = 64 * 1024  # distance between known places of an origin, about
CHUNK_BYTES: Final = 256 * 1024


class BrokenBytes(Exception):
    """No request begins at this offset of the buffer."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"no request at {offset}")
        self.offset = offset


class Scanner:
    """Goes through a ``buffer`` of requests and comments, which may be replaced between two calls.

    ``kind`` is that of the last request.
    """

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.kind = LOCAL
        self._at: i64 = 0

    def scan(self, start: i64) -> i64:
        """Return where the request that begins at ``start`` ends; -1 if the buffer ends before.

        Raises BrokenBytes if there is none.
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
        """Return the words of a whole request that ``scan`` has found."""
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
        """Return the number of a header line, or -1 where the buffer ends before that."""
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
    """Return the kind of a request by its first word; ``IDENTITY``: look at the second one."""
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
    if name in EFFECTS:
        return NUMBERED
    if name == FROM:
        return COUNTING
    return IDENTITY if name == FILE else LOCAL


def counting_of(words: list[bytes]) -> Dot:
    """Return the origin of the numbered records that follow, and the number of the first one.

    Raises BadVector if the line does not say so.
    """
    if len(words) != 4:
        raise BadVector(b" ".join(words[2:])[:64])
    number = words[3]
    if not number.isdigit() or len(number) > 20 or not 0 < int(number) <= NUMBER_MAX:
        raise BadVector(number[:64])
    return check_origin(words[2]), int(number)


class OriginCount(RecordCount):
    """Counts the records of each origin."""

    def __init__(self) -> None:
        self._numbers: Numbers = {}  # the latest record of each origin
        self._origin = b""  # that the next numbered record is of
        self._counted: set[bytes] = set()  # origins whose next number is known

    def count(self, argv: list[bytes]) -> str:
        if argv[0] != AA and not self._origin:
            return ""
        if argv[0] == AA and argv[1:2] == [FROM]:
            try:
                origin, number = counting_of(argv)
            except BadVector:
                return "expected an origin and a number behind AA FROM"
            self._origin = origin
            if origin not in self._counted:
                self._counted.add(origin)
                self._numbers[origin] = number - 1
            elif number != self._numbers[origin] + 1:
                known = self._numbers[origin]
                return f"expected AA FROM {origin.decode()} {known + 1}, not {number}"
        elif argv[:2] == [AA, JOINED]:  # much was learned at once of other origins
            self._counted = {self._origin}
        elif is_numbered(argv):
            if not self._origin:
                return "expected AA FROM before the first numbered record"
            self._numbers[self._origin] += 1
        return ""

    def found(self) -> str:
        if not self._numbers:
            return ""
        return f"records of regions up to {encode_numbers(self._numbers).decode()}"


class Places:
    """The places where records of one origin begin, behind those of another.

    Attributes:
        numbers, offsets: the number of the first one, and where the file can be read from.
        states: the counting in force there.
    """

    def __init__(self) -> None:
        self.numbers: Final[list[int]] = []
        self.offsets: Final[list[int]] = []
        self.states: Final[list[Dot]] = []

    def add(self, number: int, offset: int, state: Dot) -> None:
        """Add a place, unless it is close behind another one."""
        if not self.offsets or offset - self.offsets[-1] >= MARK_BYTES:
            self.states.append(state)
            self.offsets.append(offset)
            self.numbers.append(number)  # last: a thread may be looking

    def find(self, number: int) -> int:
        """Return the index of the last place that is not behind a number; -1 for none."""
        low = 0
        high = len(self.numbers)
        while low < high:
            middle = (low + high) // 2
            if self.numbers[middle] <= number:
                low = middle + 1
            else:
                high = middle
        return low - 1


class LogFile:
    """One file of commands, as a part of the log that peers are sent from.

    Attributes:
        first, last: from and up to which number it holds all records of each origin in it.
        places: where to begin, by origin.
        is_indexed: ``places`` is complete.
        sendable_bytes: records in front of this may be sent.
    """

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.first: Numbers = {}
        self.last: Numbers = {}
        self.places: dict[bytes, Places] = {}
        self.is_indexed = False
        self.sendable_bytes = 0

    def counts_from(self, origin: bytes, number: int, offset: int) -> None:
        """Note a line at ``offset``, in no transaction, that says how to count."""
        self._add(origin, number, offset, (origin, number))

    def transaction(self, parts: list[Run], state: Dot, offset: int) -> None:
        """Note a transaction at ``offset``; ``state`` is how its first numbered record counts."""
        for part in parts:
            if part.origin != state[0] or len(parts) > 1:
                self._add(part.origin, part.first, offset, state)

    def _add(self, origin: bytes, number: int, offset: int, state: Dot) -> None:
        places = self.places.get(origin)
        if places is None:
            places = Places()
            self.places[origin] = places
        places.add(number, offset, state)

    def holds(self, origin: bytes, first: int, last: int) -> None:
        """Note that it holds these records of an origin."""
        if self.last.get(origin, -1) + 1 != first:
            self.first[origin] = first  # behind a gap: earlier records are of no use
        self.last[origin] = last

    def has(self, origin: bytes, number: int) -> bool:
        """Return whether it holds a record."""
        return origin in self.last and self.first[origin] <= number <= self.last[origin]


class Walk:
    """Units of a file, one after another, each whole in a buffer.

    Raises OSError or PersistenceError if the file cannot be opened.

    Args:
        offset, limit: where to begin and to end.

    Attributes:
        buffer: a part of the file.
        at, end: where the current unit stands in it.
        kind: what it is; ``BEGIN`` is a transaction.
    """

    def __init__(self, path: bytes, offset: int, limit: int) -> None:
        self.buffer = b""
        self.at: i64 = 0
        self.end: i64 = 0
        self.kind = 0
        self._path: Final = path
        self._limit: Final = limit
        self._offset = offset  # of the buffer
        self._scanner: Final = Scanner(b"")
        self._fd: Final = open_to_read(path)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def offset(self) -> int:
        """Return the offset of the current unit in the file."""
        return self._offset + self.at

    def go_to(self, offset: int) -> None:
        """Go on at a place behind; ``fill`` comes next."""
        self._offset = offset
        self._use(b"")

    def next(self) -> bool:
        """Go on to the next unit. Return False where more of the file is needed for that.

        Raises CorruptAOF if there is none.
        """
        scanner = self._scanner
        self.at = self.end
        try:
            end = scanner.scan(self.at)
            kind = scanner.kind
            if kind == BEGIN:
                while end >= 0 and scanner.kind != END:
                    end = scanner.scan(end)
        except BrokenBytes as broken:
            raise self._damage(broken.offset, "a whole command") from None
        if end < 0:
            return False
        self.kind = kind
        self.end = end
        return True

    def fill(self) -> bool:
        """Read on, and forget what stands before the current unit. Return False at the end."""
        rest = self.buffer[self.at :]
        offset = self._offset + self.at
        behind = offset + len(rest)
        wanted = min(self._limit - behind, max(CHUNK_BYTES, len(rest)))
        if wanted <= 0:
            return False
        try:
            chunk = os.pread(self._fd, wanted, behind)
        except OSError as error:
            raise os_refusal(self._path, "read", error) from error
        self._offset = offset
        self._use(rest + chunk)
        return bool(chunk)

    def _use(self, buffer: bytes) -> None:
        self.buffer = buffer
        self._scanner.buffer = buffer
        self.at = 0
        self.end = 0

    def feed(self, slicer: Slicer) -> None:
        """Report the current unit to a slicer. Raises CorruptAOF if it cannot be there."""
        if self.kind == NUMBERED:
            slicer.numbered(self.at, self.end)
        elif self.kind == COUNTING:
            self._count(slicer, self.at)
        elif self.kind == BEGIN:
            self._feed_transaction(slicer)

    def _feed_transaction(self, slicer: Slicer) -> None:
        scanner = self._scanner
        start = self.at
        while start < self.end:
            end = scanner.scan(start)
            kind = scanner.kind
            if kind == NUMBERED:
                slicer.numbered(start, end)
            elif kind == COUNTING:
                self._count(slicer, start)
            elif kind == BEGIN:
                slicer.begin_transaction(start, end)
            elif kind == END:
                slicer.end_transaction(start, end)
            start = end

    def _count(self, slicer: Slicer, start: i64) -> None:
        try:
            origin, number = counting_of(self._scanner.words(start))
        except BadVector:
            raise self._damage(start, "an origin and a number behind AA FROM") from None
        slicer.count_from(origin, number)

    def _damage(self, at: i64, expected: str) -> CorruptAOF:
        return CorruptAOF(self._path, self._offset + at, expected)


def index(file: LogFile) -> None:
    """Go through a whole file, and note which records it holds, and where.

    Raises OSError or PersistenceError if it cannot be read, or is damaged.
    """
    found = LogFile(file.path)
    slicer = Slicer()
    walk = Walk(file.path, 0, file.sendable_bytes)
    try:
        while True:
            if not walk.next():
                slicer.clear()
                if not walk.fill():
                    break
                continue
            in_force = (slicer.origin, slicer.next)
            walk.feed(slicer)
            if walk.kind == COUNTING:
                found.counts_from(slicer.origin, slicer.next, walk.offset())
            elif walk.kind == BEGIN:
                found.transaction(slicer.parts, in_force, walk.offset())
                for part in slicer.parts:
                    found.holds(part.origin, part.first, part.next - 1)
            elif walk.kind == NUMBERED and slicer.origin:
                found.holds(slicer.origin, slicer.next - 1, slicer.next - 1)
    finally:
        walk.close()
    file.first = found.first
    file.last = found.last
    file.places = found.places
    file.is_indexed = True
