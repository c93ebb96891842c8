"""What was written, kept outside of the servers: every record of every origin, and who has which of
them.

It reads the append-only files as they grow, with a reader of its own, and counts as the lines ``AA
FROM`` say. So a record that a server counts twice, or not at all, is seen: it has two names, or
there are two of one name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from simulator.resp import Incomplete, Words, read_record

Numbers = dict[bytes, int]
Dot = tuple[bytes, int]
EFFECTS: Final = frozenset(
    b"XDEL TRIM DEL EXPIRE GROUP UNGROUP ACK TOP TTL LIMITS MODE MOVE HAND BEAT JOIN FORGET".split()
)


class Violated(AssertionError):
    """An invariant does not hold; the text begins with its name."""


class Record(NamedTuple):
    """One effect.

    Attributes:
        bracket: which transaction it stood in where it was met first; 0 is none.
    """

    origin: bytes
    number: int
    words: Words


def is_effect(words: Words) -> bool:
    """Return whether a record is numbered, by the specification."""
    return words[0] == b"XADD" or (words[0] == b"AA" and len(words) > 1 and words[1] in EFFECTS)


@cache
def region_of(origin: bytes) -> int:
    return int(origin.split(b".")[0])


class Ledger:
    """All records, by the name that they have for ever."""

    def __init__(self) -> None:
        self.records: Final[dict[bytes, list[Record]]] = {}
        self.total = 0
        self.unproven: Final[list[Record]] = []  # met elsewhere before they were met at their own
        self._brackets: Final[dict[Dot, int]] = {}  # the first and the last number of each

    def met(self, record: Record) -> bool:
        """A record stands in a file; whether it is a new one.

        Raises:
            Violated: there is another one of that name, or some are missing before it.
        """
        known = self.records.setdefault(record.origin, [])
        number = record.number
        if number <= len(known):
            before = known[number - 1]
            if before.words != record.words:
                raise Violated(
                    f"I16: two records are number {number} of {record.origin!r}: "
                    f"{before.words!r} and {record.words!r}"
                )
            return False
        if number != len(known) + 1:
            raise Violated(f"I16: number {number} of {record.origin!r} follows {len(known)}")
        known.append(record)
        self.total += 1
        return True

    def wrote(self, records: list[Record]) -> None:
        """Whoever made these wrote them in one piece."""
        first, last = records[0], records[-1]
        self._brackets[first.origin, first.number] = last.number

    def check_whole(self, records: list[Record]) -> None:
        """What was written in one piece is in one piece everywhere.

        Raises:
            Violated: some of it is missing.
        """
        have = {(record.origin, record.number) for record in records}
        for origin, number in have:
            last = self._brackets.get((origin, number), number)
            if (origin, last) not in have:
                raise Violated(f"I8: of {number} to {last} of {origin!r} came some: {records}")

    def forget(self, known: list[Numbers]) -> None:
        """Of each origin, nobody knows more than one of these does: the rest is nowhere any more.

        A name that nobody has ever heard of may be given again.
        """
        for origin, records in self.records.items():
            del records[max([numbers.get(origin, 0) for numbers in known], default=0) :]
        for origin, first in list(self._brackets):
            if self._brackets[origin, first] > len(self.records.get(origin, [])):
                del self._brackets[origin, first]


class Unit(NamedTuple):
    """What a file holds in one piece: a record, or a transaction."""

    end: int
    records: list[Record]  # the numbered ones
    local: list[Words]


_met: Final[dict[bytes, Words]] = {}  # records by their bytes: each of them is in many files
_MOST_MET: Final = 10_000


def _record(data: bytes, at: int) -> tuple[Words, int]:
    """The record that begins at an offset, as ``read_record`` has it; maybe one read before."""
    end = data.find(b"\r\n*", at)
    text = data[at : end + 2] if end >= 0 else data[at:]
    words = _met.get(text)
    if words is not None:
        return words, at + len(text)
    words, end = read_record(data, at)
    if end == at + len(text):
        if len(_met) >= _MOST_MET:
            _met.clear()
        _met[text] = words
    return words, end


class FileReader:
    """Follows the end of one append-only file of a region.

    Attributes:
        header: the words of its first line.
    """

    def __init__(self, path: bytes) -> None:
        self.path: Final = path
        self.header: Words = []
        self.offset = 0  # up to where it has been read, whole units only
        self._fd: Final = os.open(path, os.O_RDONLY)
        self._origin = b""
        self._next = 0

    def __del__(self) -> None:
        os.close(self._fd)

    def size(self) -> int:
        """Return how long it is, even if it was deleted since."""
        return os.fstat(self._fd).st_size

    def read(self, size: int) -> list[Unit]:
        """The units that are new, in a file that is so long now."""
        if size <= self.offset:
            return []
        data = os.pread(self._fd, size - self.offset, self.offset)
        units: list[Unit] = []
        at = 0
        start = self.offset
        while at < len(data):
            try:
                unit, at = self._unit(data, at, start)
            except Incomplete:
                break
            self.offset = start + at
            if unit is not None:
                units.append(unit)
        return units

    def _unit(self, data: bytes, at: int, start: int) -> tuple[Unit | None, int]:
        words, at = _record(data, at)
        records: list[Record] = []
        local: list[Words] = []
        if words == [b"MULTI"]:
            origin, following = self._origin, self._next
            try:
                words, at = _record(data, at)
                while words != [b"EXEC"]:
                    self._one(words, records, local)
                    words, at = _record(data, at)
            except Incomplete:
                self._origin, self._next = origin, following
                raise
        else:
            self._one(words, records, local)
        if records or local:
            return Unit(start + at, records, local), at
        return None, at

    def _one(self, words: Words, records: list[Record], local: list[Words]) -> None:
        if words[:2] == [b"AA", b"FROM"]:
            self._origin = words[2]
            self._next = int(words[3])
        elif words[:2] == [b"AA", b"FILE"]:
            if self.header:
                raise Violated(f"I9: {self.path!r} begins twice")
            self.header = words
        elif is_effect(words):
            if not self._origin:
                raise Violated(f"I16: nothing says how to count {words!r} in {self.path!r}")
            records.append(Record(self._origin, self._next, words))
            self._next += 1
        elif words[0] != b"SELECT" and words[0][:1] != b"#":
            local.append(words)


class Shelf:
    """What one region has, by its files.

    Args:
        number: of the region.
        applied: is called with each record that is new here, as long as no copy was taken.
        counted: what the server knows; where it has taken a copy nobody else can say it.
        replaced: the life of the server whose files a copy has replaced last; empty for none.

    Attributes:
        known: how much of each origin.
    """

    def __init__(
        self,
        number: int,
        ledger: Ledger,
        applied: Callable[[Record], None],
        counted: Callable[[], Numbers],
        replaced: Callable[[], bytes],
    ) -> None:
        self._number: Final = number
        self._ledger: Final = ledger
        self._applied: Final = applied
        self._counted: Final = counted
        self._replaced: Final = replaced
        self._replaced_in = b""  # the life in which that was seen
        self.joined = False  # a copy was taken in the last look: much is known at once
        self.known: Numbers = {}
        self.reader: FileReader | None = None
        self._marks: list[tuple[int, bytes, int]] = []  # where records of the file at hand end
        self._before: Numbers = {}  # what was known where it begins
        self.local: list[Words] = []  # the local records that were read last
        self.fresh: list[Record] = []  # those that nobody had before

    def begin_at(self, reader: FileReader, units: list[Unit], known: Numbers) -> None:
        """Begin where another reader stands, with what is known there; it has read ``units``."""
        self.reader = reader
        self.known = {origin: number for origin, number in known.items() if number}
        self._before = self.known.copy()
        for unit in reversed(units):
            for record in reversed(unit.records):
                self._before[record.origin] = record.number - 1
                self._marks.insert(0, (unit.end, record.origin, record.number))

    def follow(self, path: bytes, size: int) -> list[Record]:
        """Read what is new in the file that is written to; what it was."""
        self.local = []
        self.fresh = []
        self.joined = False
        found: list[Record] = []
        reader = self.reader
        if reader is not None and reader.path != path:  # perhaps there is more at the end of it
            found = self._read(reader, reader.size())
        if reader is None or reader.path != path:
            reader = self.reader = FileReader(path)
            self._marks = []
            self._before = self.known.copy()
        if self.is_replaced():
            self._replaced_in = self._replaced()
            self.joined = True
        return found + self._read(reader, size)

    def is_replaced(self) -> bool:
        """Return whether a copy has replaced what the files hold since the last look."""
        return self._replaced() not in (b"", self._replaced_in)

    def is_at(self, path: bytes, size: int) -> bool:
        """Return whether a file that is so long holds nothing that was not read."""
        reader = self.reader
        return reader is not None and reader.offset == size and reader.path == path

    def _read(self, reader: FileReader, size: int) -> list[Record]:
        found: list[Record] = []
        joined_at = 0
        for unit in reader.read(size):
            self.local += unit.local
            if any(words[:2] == [b"AA", b"JOINED"] for words in unit.local):
                self.joined = True
                joined_at = unit.end
            self._check_unit(unit)
            for record in unit.records:
                have = self.known.get(record.origin, 0)
                if self.joined and record.number != have + 1:
                    self._marks.append((joined_at, record.origin, record.number - 1))
                elif record.number != have + 1:
                    raise Violated(
                        f"I16: record {record.number} of {record.origin!r} stands behind {have}"
                    )
                if self._ledger.met(record):
                    if region_of(record.origin) != self._number:
                        self._ledger.unproven.append(record)
                    self.fresh.append(record)
                self.known[record.origin] = record.number
                self._marks.append((unit.end, record.origin, record.number))
                if not self.joined:  # else what comes before it was not applied
                    self._applied(record)
                found.append(record)
        if self.joined:
            counted = self._counted()
            for origin in {**self.known, **counted}:
                number = counted.get(origin, 0)
                if number != self.known.get(origin, 0):
                    self.known[origin] = number
                    self._marks.append((joined_at, origin, number))
            self.known = {origin: number for origin, number in self.known.items() if number}
        return found

    def _check_unit(self, unit: Unit) -> None:
        """What belongs together stands together."""
        own = [record for record in unit.records if region_of(record.origin) == self._number]
        others = [record for record in unit.records if region_of(record.origin) != self._number]
        self._ledger.check_whole(unit.records)
        if len(own) > 1 and own[0].origin == own[-1].origin:
            self._ledger.wrote(own)
        for record in own:
            if record.words[1] == b"XDEL" and record.words[3] == b"FOR" and not others:
                number = self.known.get(record.origin, 0)
                if record.number > number and not self._is_old(record):
                    raise Violated(f"I14: {record} is not of one piece with what it follows")

    def _is_old(self, record: Record) -> bool:
        """Return whether it was met before: it has come back to whoever lost it."""
        return record.number <= len(self._ledger.records.get(record.origin, []))

    def closed(self) -> None:
        """The process has ended: what is written next begins a file, whatever that is called."""
        self.reader = None

    def known_upto(self, size: int) -> Numbers:
        """Return what is known by so much of the file that is written to, and those before.

        An origin of which nothing is known any more is left out, as the server leaves it out.
        """
        known = self._before.copy()
        for end, origin, number in self._marks:
            if end <= size:
                known[origin] = number
        return {origin: number for origin, number in known.items() if number}

    def cut(self, size: int) -> bool:
        """The file has been cut to this length; whether records were lost."""
        reader = self.reader
        if reader is None or reader.offset <= size:
            return False
        known = self.known_upto(size)
        lost = known != self.known
        self.known = known
        self._marks = [mark for mark in self._marks if mark[0] <= size]
        return lost
