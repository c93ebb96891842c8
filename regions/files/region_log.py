"""The log that peers are sent from when records have left memory: incr files, old ones too.

A rewrite makes older incr files useless for this region. They are kept while another region may
need them. Of each file it is known which records it holds, and where to begin to read; see
``LogFile``. A file that was written before this start is gone through when it is first needed.

Reading may run in a thread, while the last file grows. It touches files only, and no records that
may not be sent yet.
"""

from __future__ import annotations

import threading
from typing import Final

from headrace.persistence.aof.directory import PeerLog
from headrace.regions.files.backlog import Backlog, Batch, Slicer
from headrace.regions.files.log_file import (
    BEGIN,
    COUNTING,
    MARK_BYTES,
    LogFile,
    Places,
    Walk,
    index,
)
from headrace.regions.knowledge.region import Region
from headrace.storage.vectors import Numbers

LOG_BYTES: Final = 4 << 30


class RegionLog(PeerLog):
    """The numbered records in the files of a region.

    Args:
        backlog: has the latest of them in memory.

    Attributes:
        acknowledged: what all other regions have on their disks.
        is_kept: there are other regions to keep it for.
        sends_synced: records may be sent when they are synced, and not when they are written.
    """

    def __init__(self, region: Region, backlog: Backlog, most_bytes: int = LOG_BYTES) -> None:
        super().__init__(most_bytes)
        self.region: Final = region
        self.backlog: Final = backlog
        self.acknowledged: Numbers = {}
        self.is_kept = True
        self.sends_synced = False
        self._files: list[LogFile] = []  # replaced and never changed: a thread may go through it
        self._changing: Final = threading.Lock()

    # Its files

    def add(self, file: LogFile) -> None:
        """Add a file behind the others."""
        with self._changing:
            self._files = [*self._files, file]

    def add_kept(self, path: bytes, first: Numbers, last: Numbers, size_bytes: int) -> None:
        file = LogFile(path)
        file.first = first
        file.last = last
        file.sendable_bytes = size_bytes
        self.add(file)

    def numbers_in(self, path: bytes) -> tuple[Numbers, Numbers] | None:
        found = self.find(path)
        if found is None or not found.last or not self.is_needed(found.last):
            return None
        return found.first.copy(), found.last.copy()

    def remove(self, path: bytes) -> None:
        with self._changing:
            self._files = [file for file in self._files if file.path != path]

    def clear(self) -> None:
        self._files = []

    def find(self, path: bytes) -> LogFile | None:
        """Return the entry of a file; None if there is none."""
        for file in self._files:
            if file.path == path:
                return file
        return None

    def size_bytes(self) -> int:
        """Return how long its files are, as far as they may be sent."""
        return sum([file.sendable_bytes for file in self._files])

    def is_needed(self, last: Numbers) -> bool:
        known = self.acknowledged
        return self.is_kept and any(last[origin] > known.get(origin, 0) for origin in last)

    def memory_bytes(self) -> int:
        return self.backlog.size_bytes

    # Reading

    def reach(self, origin: bytes) -> int:
        """Return the lowest number from which on all records of an origin are there.

        It is that of the next one to come where none is there, and 0 for an origin never met.
        """
        lowest = self.backlog.next(origin)
        is_first = True
        for file in reversed(self._files):
            last = file.last.get(origin, 0)
            if last:
                # Of the last file more may have been collected than may be sent.
                if last < lowest - 1 or (last > lowest - 1 and not is_first):
                    break
                lowest = file.first[origin]
                is_first = False
        return lowest

    def read(self, origin: bytes, number: int, most_bytes: int) -> Batch | None:
        """Return records of an origin behind ``number``; None where the next one cannot be had.

        They are whole units, of ``most_bytes`` at most unless the first one is longer. The first
        one holds ``number + 1``. When they were written is not known. Raises PersistenceError if a
        file is damaged.
        """
        for file in self._files:
            if file.has(origin, number + 1):
                try:
                    return _read(file, origin, number + 1, most_bytes)
                except FileNotFoundError:
                    return None  # it has just been deleted
        return None


def _read(file: LogFile, origin: bytes, least: int, most_bytes: int) -> Batch | None:
    if not file.is_indexed:
        index(file)
    places = file.places.get(origin)
    start = -1 if places is None else places.find(least)
    if places is None or start < 0:
        return None
    walk = Walk(file.path, places.offsets[start], file.sendable_bytes)
    try:
        search = _Search(walk, origin, least, most_bytes)
        search.run(places, start)
    finally:
        walk.close()
    return search.batch()


class _Search:
    """Collects the records of one origin from a file, from number ``least`` on."""

    def __init__(self, walk: Walk, origin: bytes, least: int, most_bytes: int) -> None:
        self._walk: Final = walk
        self._origin: Final = origin
        self._least: Final = least
        self._most_bytes: Final = most_bytes
        self._slicer: Final = Slicer(origin, least)
        self._payloads: Final[list[bytes]] = []
        self._size = 0  # of these
        self._first = 0  # 0: nothing has been found
        self._next = 0
        self._cuts: Final[list[tuple[int, int]]] = []

    def run(self, places: Places, start: int) -> None:
        """Find them, from one of their places on. Long stretches of other origins are skipped."""
        walk = self._walk
        slicer = self._slicer
        while True:
            origin, number = places.states[start]
            slicer.count_from(origin, number)
            if not self._go_on(places.offsets[start] + MARK_BYTES):
                return
            start += 1
            while start < len(places.offsets) and places.offsets[start] < walk.offset():
                start += 1
            if start >= len(places.offsets):
                return
            walk.go_to(places.offsets[start])

    def _go_on(self, far: int) -> bool:
        """Collect up to a line behind ``far`` from which others count. Return False at the end."""
        walk = self._walk
        slicer = self._slicer
        while True:
            if not walk.next():
                if not self._harvest() or not walk.fill():
                    return False
                continue
            if slicer.runs or self._first:
                size = self._size + (slicer.runs[0].size if slicer.runs else 0)
                mine = slicer.origin == self._origin or walk.kind == BEGIN
                if mine and size + walk.end - walk.at > self._most_bytes:
                    self._harvest()
                    return False
            walk.feed(slicer)
            if walk.kind == COUNTING and slicer.origin != self._origin and walk.offset() >= far:
                return self._harvest()

    def _harvest(self) -> bool:
        """Take the bytes that have been found. Return False behind a gap in the numbers."""
        slicer = self._slicer
        goes_on = True
        for run in slicer.runs:
            if self._first and run.first != self._next:
                goes_on = False
                break
            for offset, number in run.cuts:
                self._cuts.append((self._size + offset, number))
            self._first = self._first or run.first
            self._next = run.next
            self._size += run.size
            self._payloads.append(run.payload(self._walk.buffer))
        slicer.clear()
        return goes_on

    def batch(self) -> Batch | None:
        if not self._first or self._first > self._least:
            return None
        count = self._next - self._first
        cuts = [cut for cut in self._cuts if cut[0] < self._size]
        return Batch(self._origin, self._first, count, 0, b"".join(self._payloads), cuts)
