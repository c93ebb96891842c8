"""The append-only file of a region: its numbered records are what other regions get.

A file of a region looks like this::

    AA FILE 1 orders 1 0 0 <nonce> <boot id> <place of the file>   who writes it, and which file
    SELECT 0                                                  there is one database only
    AA FROM 1.0 1000001
    XADD s 1760000000000-1 f v                                record 1000001 of 1.0
    XCLAIM s g c 0 ...                                        local: not numbered, not sent
    AA FROM 2.0 77
    XADD s 1760000000003-2 f v                                record 77 of 2.0, as it came

No number is stored beside a record: ``AA FROM`` says how to count, as SELECT says where to write.
It stands where the origin or the count changes, at the start of a file, and every 64 KB, so that a
reader can begin there.

The bytes of numbered records are cut out of what is written and go to a backlog, which peers are
sent from. They go there only when they have been written, or synced: what a peer has must not be
lost here by the end of the process.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from mypy_extensions import i64

from headrace.persistence.aof.file import EXEC_WIRE, MULTI_WIRE, AppendOnlyFile
from headrace.persistence.files import open_to_write, sync_file, write_all
from headrace.protocol.client import request, write_request
from headrace.regions.files.backlog import Backlog, Batch, Slicer
from headrace.regions.files.identity import life_words, place_of
from headrace.regions.files.log_file import NUMBERED, LogFile, Scanner
from headrace.regions.files.region_log import RegionLog
from headrace.regions.knowledge.records import is_numbered
from headrace.regions.knowledge.region import Region
from headrace.storage.sharing import AA, CLOSED, FROM
from headrace.storage.vectors import Dot

FROM_BYTES: Final[i64] = 64 * 1024  # distance between lines that say how to count


class Received(NamedTuple):
    """Records of another region, as they came."""

    origin: bytes
    first: int
    records: int
    payload: bytes


def records_in(payload: bytes) -> list[bytes]:
    """Return numbered records one by one, without the transactions that they stand in."""
    scanner = Scanner(payload)
    found: list[bytes] = []
    at: i64 = 0
    while at < len(payload):
        end = scanner.scan(at)
        assert end > 0
        if scanner.kind == NUMBERED:
            found.append(payload[at:end])
        at = end
    return found


class Journal(AppendOnlyFile):
    """An incr file of a region, open for appending.

    Args:
        region: each numbered record raises its count.
        backlog: takes the numbered records.
        kept: is notified of the files that they stand in, and says whether they have to be synced.

    Attributes:
        index: which of them the file holds, and where.
    """

    def __init__(
        self,
        path: bytes,
        older_bytes: int,
        base_bytes: int,
        region: Region,
        backlog: Backlog,
        kept: RegionLog | None = None,
    ) -> None:
        self._region: Final = region
        self._backlog: Final = backlog
        self._kept: Final = kept
        self._slicer: Final = Slicer()
        self._first_number = 0  # of the only record of the current command so far; 0: not numbered
        self._held: Received | None = None  # all that the current command has left so far
        self._collected_batches: list[Batch] = []  # not yet written
        self._unsynced: list[tuple[int, list[Batch]]] = []  # written, by how far the file was then
        self._doubted_at = -1  # how often another file had been begun when a sync failed; -1: none
        self._out_at = 0  # where in the file the buffer will begin
        self._multi_at = 0  # where in the file the transaction under way begins
        self._state: Dot = (b"", 0)  # how it counts there
        self._from_due: i64 = 0  # where in the buffer the next line is due that says how to count
        self.index = LogFile(path)
        is_new = self._prepare(path)
        super().__init__(path, older_bytes, base_bytes)
        self.begins_synced = True  # its first lines say what came before
        self._begun(is_new)
        backlog.begin(region.origin, region.count + 1)
        for origin, number in region.known().items():  # known records are in other files
            backlog.begin(origin, number + 1)

    # Records

    def append(self, db: int, record: list[bytes]) -> bool:
        """Add a command, and count it if it is numbered."""
        number = 0
        if is_numbered(record):
            number = self._region.count + 1
            self._region.count = number
        is_first = not self.pending
        self.pending = True
        if self._in_transaction:
            if self._stamp_s:
                self._annotate()
        elif self._first is not None or self._held is not None:
            self._begin_transaction()
        else:
            self._first = record
            self._first_db = db
            self._first_number = number
            return is_first
        self._add(db, record, number)
        return is_first

    def append_alike(self, db: int, records: list[list[bytes]]) -> bool:
        """Add records that are all numbered, or of which none is."""
        if not is_numbered(records[0]):
            return super().append_alike(db, records)
        is_first = not self.pending
        self.pending = True
        region = self._region
        first = region.count + 1
        count = len(records)
        region.count += count
        self._annotate()
        self._select(db)
        self._count_from(region.origin, first)
        out = self._out
        start: i64 = len(out)
        for record in records:
            write_request(out, record)
        self._slicer.units(start, len(out), count)
        return is_first

    def append_received(self, origin: bytes, first: int, count: int, payload: bytes) -> bool:
        is_first = not self.pending
        self.pending = True
        received = Received(origin, first, count, payload)
        if not self._in_transaction:
            if self._first is None and self._held is None:
                self._held = received
                return is_first
            self._begin_transaction()
        self._add_inside(received)
        return is_first

    def append_wire(self, db: int, parts: list[bytes]) -> bool:
        is_first = super().append_wire(db, parts)
        for part in parts:
            self._out_at += len(part)
        return is_first

    def put_aside(self) -> bool:
        return self._first is None and self._held is None and not self._in_transaction

    def end_command(self) -> bool:
        first = self._first
        held = self._held
        if first is not None:
            self._first = None
            self._annotate()
            self._add(self._first_db, first, self._first_number)
        elif held is not None:
            self._held = None
            self._annotate()
            self._count_from(held.origin, held.first)
            out = self._out
            start: i64 = len(out)
            out.write(held.payload)
            self._slicer.units(start, len(out), held.records)
        elif self._in_transaction:
            self._in_transaction = False
            out = self._out
            start = len(out)
            out.write(EXEC_WIRE)
            self._slicer.end_transaction(start, len(out))
            self.index.transaction(self._slicer.parts, self._state, self._multi_at)
        else:
            return False
        return True

    def _begin_transaction(self) -> None:
        """Begin a transaction, because the current command has more than one record."""
        first = self._first
        held = self._held
        self._first = None
        self._held = None
        self._annotate()
        out = self._out
        if len(out) >= self._from_due and self._slicer.origin:
            self._write_count(self._slicer.origin, self._slicer.next)
        self._in_transaction = True
        start: i64 = len(out)
        self._multi_at = self._out_at + start
        self._state = (self._slicer.origin, self._slicer.next)
        out.write(MULTI_WIRE)
        self._slicer.begin_transaction(start, len(out))
        if first is not None:
            self._add(self._first_db, first, self._first_number)
        elif held is not None:
            self._add_inside(held)

    def _add(self, db: int, record: list[bytes], number: int) -> None:
        """Write a record of this region; its number is 0 where it is local."""
        self._select(db)
        out = self._out
        if not number:
            write_request(out, record)
            return
        self._count_from(self._region.origin, number)
        start: i64 = len(out)
        write_request(out, record)
        self._slicer.numbered(start, len(out))

    def _add_inside(self, received: Received) -> None:
        self._count_from(received.origin, received.first)
        out = self._out
        for record in records_in(received.payload):
            start: i64 = len(out)
            out.write(record)
            self._slicer.numbered(start, len(out))

    def _count_from(self, origin: bytes, number: int) -> None:
        """Make the next numbered record count as this one."""
        slicer = self._slicer
        goes_on = slicer.next == number and slicer.origin == origin
        if not goes_on or (len(self._out) >= self._from_due and not self._in_transaction):
            self._write_count(origin, number)

    def _write_count(self, origin: bytes, number: int) -> None:
        out = self._out
        at: i64 = len(out)
        if not self._in_transaction:
            self.index.counts_from(origin, number, self._out_at + at)
            self._from_due = at + FROM_BYTES
        write_request(out, [AA, FROM, origin, b"%d" % number])
        self._slicer.count_from(origin, number)

    def _collected(self, data: bytes) -> None:
        """Make batches of the numbered records that have been collected."""
        slicer = self._slicer
        for run in slicer.runs:
            self.index.holds(run.origin, run.first, run.next - 1)
            self._collected_batches.append(run.batch(data))
        slicer.clear()
        self._from_due -= len(data)
        self._out_at += len(data)

    # Sending

    def written(self, now_ms: int) -> None:
        """Release what has been written to be sent, now or when it is synced.

        Nothing may be sent while the manifest does not name the file.
        """
        batches = self._collected_batches
        if not batches:
            return
        for batch in batches:
            batch.ms = now_ms
        if self._sends_written() and not self._unsynced:
            for batch in batches:
                self._backlog.add(batch)
            batches.clear()
            self.index.sendable_bytes = self.size_bytes
            self._backlog.added()
            return
        self._collected_batches = []
        self._unsynced.append((self.size_bytes, batches))
        self._send_written()

    def synced(self) -> None:
        if self._unsynced and self._doubted_at < 0 and self.named:
            self._send(self.synced_bytes)

    def doubt(self) -> None:
        self._doubted_at = self.switches

    def trust(self) -> None:
        if self._doubted_at < self.switches:
            self._doubted_at = -1
            self.synced()

    def _sends_written(self) -> bool:
        """Return whether it is enough for records that they have been written."""
        return self.named and (self._kept is None or not self._kept.sends_synced)

    def _send_written(self) -> None:
        """Release what has been written, if that is enough."""
        if self._unsynced and self._sends_written():
            self._send(self._unsynced[-1][0])

    def _send(self, up_to: int) -> None:
        """Release to peers what was written up to there."""
        unsynced = self._unsynced
        done = 0
        for reached, batches in unsynced:
            if reached > up_to:
                break
            done += 1
            for batch in batches:
                self._backlog.add(batch)
        if done:
            del unsynced[:done]
            self.index.sendable_bytes = up_to
            self._backlog.added()

    # The file

    def switch(self, path: bytes, older_bytes: int) -> None:
        """Go on in a new file, or with OSError in the one before."""
        self.synced()
        index = self.index
        self.index = LogFile(path)
        try:
            is_new = self._prepare(path)
            super().switch(path, older_bytes)
        except BaseException:
            self.index = index
            raise
        self._unsynced = [(0, batches) for _, batches in self._unsynced]
        self._begun(is_new)

    def _prepare(self, path: bytes) -> bool:
        """Write the identity line into an empty file. Return whether it was empty."""
        fd = open_to_write(path, os.O_WRONLY | os.O_APPEND)
        try:
            found = os.fstat(fd)
            if found.st_size:
                return False
            region = self._region
            head = request(life_words(region, place_of(fd))) + request([b"SELECT", b"0"])
            self.index.counts_from(region.origin, region.count + 1, len(head))
            head += request([AA, FROM, region.origin, b"%d" % (region.count + 1)])
            try:
                write_all(fd, head)
                sync_file(fd)
            except OSError:
                os.ftruncate(fd, 0)
                raise
            return True
        finally:
            os.close(fd)

    def _begun(self, is_new: bool) -> None:
        region = self._region
        self._out_at = self.size_bytes
        self._slicer.clear()
        if is_new:
            self._db = 0
            self._from_due = FROM_BYTES
            self._slicer.count_from(region.origin, region.count + 1)
        else:
            self._slicer.count_from(b"", 0)
        self.index.is_indexed = is_new
        if self._kept is not None:
            self._kept.add(self.index)

    def renamed(self, path: bytes) -> None:
        super().renamed(path)
        self.index.path = path
        self._send_written()
        self.synced()

    def mark_closed(self) -> None:
        """Write at the end that nothing is missing, because all has been written and synced.

        With OSError the line may be missing.
        """
        assert not self.pending
        self._write_all(request([AA, CLOSED, self._region.nonce]))
        sync_file(self._fd)

    def close(self) -> None:
        self._held = None
        self._slicer.clear()
        self._collected_batches = []
        self._unsynced = []
        super().close()


class JournalLog(RegionLog):
    """The log of a region whose files are journals."""

    def begin_file(self, path: bytes, older_bytes: int, base_bytes: int) -> Journal:
        return Journal(path, older_bytes, base_bytes, self.region, self.backlog, self)
