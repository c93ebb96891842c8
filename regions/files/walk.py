"""Goes through a file of a region unit by unit, from a place where it is known how to count."""

from __future__ import annotations

import os
from typing import Final

from mypy_extensions import i64

from headrace.persistence.errors import CorruptAOF, os_refusal
from headrace.persistence.files import open_to_read
from headrace.regions.files.batch import Slicer
from headrace.regions.files.counting import counting_of
from headrace.regions.files.log_file import LogFile
from headrace.regions.files.scan import BEGIN, COUNTING, END, NUMBERED, BrokenBytes, Scanner
from headrace.storage.vectors import BadVector

CHUNK_BYTES: Final = 256 * 1024


class Walk:
    """Units of a file, one after another, each whole in a buffer.

    Args:
        offset: where to begin.
        limit: what stands behind is not looked at.

    Attributes:
        buffer: a part of the file.
        at, end: where the current unit stands in it.
        kind: what it is; ``BEGIN`` is a transaction.

    Raises:
        OSError, PersistenceError: the file cannot be opened.
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
        """Return where the current unit stands in the file."""
        return self._offset + self.at

    def go_to(self, offset: int) -> None:
        """Go on at a place behind; ``fill`` comes next."""
        self._offset = offset
        self._use(b"")

    def next(self) -> bool:
        """Go on to the next unit; False where more of the file is needed for that.

        Raises:
            CorruptAOF: there is none.
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
        """Read on, and forget what stands before the current unit; False at the end."""
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
        """Let a slicer know of the current unit.

        Raises:
            CorruptAOF: it cannot be.
        """
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
    """Go through a whole file, and find out which records it holds, and where.

    Raises:
        OSError, PersistenceError: it cannot be read, or is damaged.
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
