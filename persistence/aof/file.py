"""The end of the append-only file, where records are added.

Records are collected in memory and written together: once for each turn of the event loop, in one
``write``. If the disk fails and takes a part of it, that part is cut off again, so that the file
always ends behind a whole record. The bytes stay in memory and can be written later.

The records of one command are loaded all or not at all. Most commands leave one record; where there
are more, they stand between MULTI and EXEC. So the first record of a command waits, as it is, for a
second one or for the end of the command.

The owner of the file decides when to sync. This module only counts how far the file is written
(``size_bytes``) and how far it is known to be on the disk (``synced_bytes``).

Going on in a new file need not wait for the disk: the unsynced rest of the file before is synced
first by the next sync of the new file, or write to it. Otherwise, after a power cut, the old file
could end in the middle of a command, and the new one hold later records.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from headrace.persistence.files import is_gone, open_to_write, sync_file
from headrace.persistence.forms.form import annotation
from headrace.persistence.log import Log, Written
from headrace.protocol.client import request, write_request

MULTI_WIRE: Final = request([b"MULTI"])
EXEC_WIRE: Final = request([b"EXEC"])
_NO_DATABASE: Final = -1
_KEPT_BYTES: Final = 1 << 20  # a buffer that has grown beyond this is not used again


class AppendOnlyFile(Log):
    """An incr file open for appending.

    Attributes:
        pending: there are records that have not been written.
        synced_bytes: how much of ``size_bytes`` is known to be on the disk.
        much_pending: writing what is pending takes a while.
        named: the manifest names the file, so that it will be loaded.
        older_bytes: the length of the base and of the incr files before this one.
        base_bytes: the length of all files when the last rewrite ended.
        switches: how often this went on in a new file.
        settled: all of the file before this one is on the disk.
        begins_synced: nothing goes to a new file before all of the one before is on the disk.
        annotate: write the second, as a comment, before the first record of each second.
    """

    def __init__(self, path: bytes, older_bytes: int, base_bytes: int) -> None:
        self.pending = False
        self.much_pending = False
        self.older_bytes = older_bytes
        self.base_bytes = base_bytes
        self.switches = 0
        self.settled = True
        self.begins_synced = False
        self._before = -1  # the file before this one, while it is not settled
        self._settling: Final = threading.Lock()
        self.annotate = False
        self._stamp_s = 0  # what is written before the next record, whatever ``annotate`` says
        self.named = True
        self._out = BytesWriter()  # records of whole commands, and of a transaction so far
        self._parts: list[bytes] = []  # records of whole commands, in front of those
        self._parts_bytes = 0
        self._taken = b""  # bytes being written, or not written so far
        self._taken_parts: list[bytes] = []  # the same, in front of that; whole records together
        self._taken_bytes = 0  # of the parts
        self._passed: i64 = 0  # how much has left ``_out``, or stands in front of it
        self._first: list[bytes] | None = None  # the only record of the current command so far
        self._first_db = 0
        self._in_transaction = False
        self._unit_at: i64 = 0  # where that begins in ``_out``
        self._unit = b""  # it, while it is put aside
        self._aside: tuple[int, list[bytes]] | None = None  # the first record, likewise
        self._db = _NO_DATABASE
        self._annotated_s = 0
        self.path = path
        self._fd = _open_for_appending(path)
        found = os.fstat(self._fd)
        self._place = (found.st_dev, found.st_ino)
        self.size_bytes = found.st_size
        self.synced_bytes = self.size_bytes
        self._begun_bytes: i64 = -self.size_bytes  # how much was recorded when the file began

    @property
    def total_bytes(self) -> int:
        """Length of all files together."""
        return self.older_bytes + self.size_bytes

    @property
    def buffer_bytes(self) -> int:
        """Length of the unwritten records, without those of a command under way."""
        parts_bytes = self._parts_bytes + self._taken_bytes
        return parts_bytes + len(self._taken) + len(self._out)

    @property
    def end(self) -> int:
        """Bytes recorded in all files since this began; see ``has_synced``."""
        return self._passed + len(self._out)

    def goes_on(self, end: int) -> None:
        """Set ``end``: the bytes recorded so far, in other files too."""
        before = end - self.end
        self._passed += before
        self._begun_bytes += before

    # Records

    def append(self, db: int, record: list[bytes]) -> bool:
        is_first = not self.pending
        self.pending = True
        first = self._first
        if first is not None:
            self._first = None
            self._in_transaction = True
            self._unit_at = len(self._out)
            self._annotate()
            self._out.write(MULTI_WIRE)
            self._write_record(self._first_db, first)
        elif not self._in_transaction:
            self._first = record
            self._first_db = db
            return is_first
        elif self._stamp_s:
            self._annotate()
        self._write_record(db, record)
        return is_first

    def append_alike(self, db: int, records: list[list[bytes]]) -> bool:
        is_first = not self.pending
        self.pending = True
        self._annotate()
        self._select(db)
        out = self._out
        for record in records:
            write_request(out, record)
        return is_first

    def append_wire(self, db: int, parts: list[bytes]) -> bool:
        """As ``append``, of a long command by itself that is encoded already, in parts.

        The parts are written as they are, because joining them would block the event loop.
        """
        self.end_command()
        is_first = not self.pending
        self.pending = True
        self.much_pending = True
        self._annotate()
        self._select(db)
        if len(self._out):
            self._add_part(self._take_out())
        for part in parts:
            self._add_part(part)
            self._passed += len(part)
        return is_first

    def stamp_next(self, second: int) -> None:
        """Write a second before the next record, or before the transaction that it begins."""
        self._stamp_s = second

    def _add_part(self, part: bytes) -> None:
        self._parts.append(part)
        self._parts_bytes += len(part)

    def _collected(self, data: bytes) -> None:
        """Take note of records that will be written as they are."""

    def _take_out(self) -> bytes:
        data = self._out.getvalue()
        self._collected(data)
        self._passed += len(data)
        if len(self._out) > _KEPT_BYTES:
            self._out = BytesWriter()
        else:
            self._out.truncate(0)
        return data

    def put_aside(self) -> bool:
        """Put the records of the command under way aside until ``put_back``.

        Then the rest is whole. Returns: whether that can be done.
        """
        if self._first is not None:
            self._aside = (self._first_db, self._first)
            self._first = None
        elif self._in_transaction:
            out = self._out
            data = out.getvalue()
            self._unit = data[self._unit_at :]
            self._in_transaction = False
            out.truncate(int(self._unit_at))
        return True

    def put_back(self) -> None:
        """Restore the records that were put aside."""
        if self._aside is not None:
            self._first_db, self._first = self._aside
            self._aside = None
            self.pending = True
        elif self._unit:
            self._unit_at = len(self._out)
            self._out.write(self._unit)
            self._unit = b""
            self._in_transaction = True
            self.pending = True

    def end_command(self) -> bool:
        """End the command under way: a loader takes all of its records, or none."""
        first = self._first
        if first is not None:
            self._first = None
            self._annotate()
            self._write_record(self._first_db, first)
        elif self._in_transaction:
            self._in_transaction = False
            self._out.write(EXEC_WIRE)
        else:
            return False
        return True

    def note_end(self, written: Written) -> None:
        written.file_end = self._passed + len(self._out)

    def _write_record(self, db: int, record: list[bytes]) -> None:
        self._select(db)
        write_request(self._out, record)

    def _select(self, db: int) -> None:
        if db != self._db:
            write_request(self._out, [b"SELECT", b"%d" % db])
            self._db = db

    def _annotate(self) -> None:
        if self.annotate or self._stamp_s:
            now_s = self._stamp_s or int(time.time())
            if self._stamp_s or now_s > self._annotated_s:
                self._stamp_s = 0
                self._annotated_s = now_s
                self._out.write(annotation(now_s))

    # The disk

    def write(self) -> None:
        """Write everything that is pending.

        Raises:
            OSError: the file ends as before, or behind a part that could not be cut off again. What
                is not in the file is still pending.
        """
        self.take()
        self.write_taken()

    def take(self) -> None:
        """Collect what is pending for ``write_taken``."""
        self.end_command()
        if self._parts:
            self._take_parts()
        if len(self._out):
            data = self._take_out()
            self._taken = self._taken + data if self._taken else data
        self.pending = False

    def _take_parts(self) -> None:
        """Take the parts, behind the bytes that could not be written before."""
        if self._taken:
            self._taken_parts.append(self._taken)
            self._taken_bytes += len(self._taken)
            self._taken = b""
        self._taken_parts.extend(self._parts)
        self._taken_bytes += self._parts_bytes
        self._parts = []
        self._parts_bytes = 0
        self.much_pending = False

    def write_taken(self) -> None:
        """Write what was taken; may run in a thread while records are added. Raises OSError."""
        if not self.settled:
            try:
                self._settle()
            except BaseException:
                self.pending = True
                raise
        if self._taken_parts:
            self._write_parts()
        data = self._taken
        size = len(data)
        if not size:
            return
        try:
            self._write_all(data)
        except BaseException:
            self._taken = data[self._take_back() :]
            raise
        self._taken = b""
        self.size_bytes += size

    def _write_parts(self) -> None:
        parts = self._taken_parts
        try:
            for part in parts:
                self._write_all(part)
        except BaseException:
            done = self._take_back()
            self._taken_bytes -= done
            while done >= len(parts[0]):
                done -= len(parts[0])
                del parts[0]
            parts[0] = parts[0][done:]
            raise
        self.size_bytes += self._taken_bytes
        self._taken_parts = []
        self._taken_bytes = 0

    def _write_all(self, data: bytes) -> None:
        size = len(data)
        done = os.write(self._fd, data)
        while done < size:
            with memoryview(data) as view:
                done += os.write(self._fd, view[done:])

    def _take_back(self) -> int:
        """Cut an incomplete write off the file. Return how much stays if that fails, too."""
        self.pending = True
        try:
            os.ftruncate(self._fd, self.size_bytes)
        except OSError:
            done = os.fstat(self._fd).st_size - self.size_bytes
            self.size_bytes += done
            return done
        return 0

    def written(self, now_ms: int) -> None:
        """Note that everything taken has been written; called in the event loop."""

    def synced(self) -> None:
        """Note that ``synced_bytes`` are on the disk; called in the event loop."""

    def doubt(self) -> None:
        """Note a failed sync: it is unknown how much of the file is on the disk."""

    def trust(self) -> None:
        """Note that a base is on the disk, with all records from before the current file."""

    def sync(self) -> None:
        """Wait until everything written is on the disk; may run in another thread than ``write``.

        With OSError it is unknown what is on the disk.
        """
        reached = self.size_bytes
        if not self.settled:
            self._settle()
            if reached <= self.synced_bytes:
                return
        sync_file(self._fd)
        self.synced_bytes = reached

    def _settle(self) -> None:
        """Wait until the file before this one is on the disk; may run in two threads at once."""
        with self._settling:
            if self._before >= 0:
                sync_file(self._before)
                os.close(self._before)
                self._before = -1
                self.settled = True

    def is_synced(self) -> bool:
        """Return whether everything that has been written is on the disk."""
        return self.settled and self.size_bytes <= self.synced_bytes

    def has_synced(self, end: int) -> bool:
        """Return whether the records up to some ``end`` are on the disk."""
        return self.settled and self._begun_bytes + self.synced_bytes >= end

    def switch(self, path: bytes, older_bytes: int) -> None:
        """Go on in a new file; everything must have been written to the old one."""
        assert not self.pending
        assert self.settled
        fd = _open_for_appending(path)
        if self.size_bytes > self.synced_bytes:
            self._before = self._fd
            self.settled = False
        else:
            os.close(self._fd)
        self.path = path
        self._fd = fd
        self._db = _NO_DATABASE
        self.switches += 1
        self.older_bytes = older_bytes
        found = os.fstat(fd)
        self._place = (found.st_dev, found.st_ino)
        self.size_bytes = found.st_size
        self.synced_bytes = self.size_bytes
        self._begun_bytes = self.end - self.size_bytes

    def renamed(self, path: bytes) -> None:
        """Note that the file has this path now, and that the manifest names it."""
        self.path = path
        self.named = True

    def is_in_place(self) -> bool:
        """Return whether the file is still found under its name, and is this one."""
        try:
            found = os.stat(self.path)
        except OSError as error:
            return not is_gone(error)
        return (found.st_dev, found.st_ino) == self._place

    def is_whole(self, is_exact: bool) -> bool:
        """Return whether no other program has cut the file or, with ``is_exact``, added to it.

        ``is_exact`` asks for no write under way.
        """
        size = self.size_bytes  # which a write under way may raise meanwhile
        found = os.fstat(self._fd).st_size
        return found == size if is_exact else found >= size

    def mark_closed(self) -> None:
        """Write at the end of the file that nothing is missing, where files say so."""

    def close(self) -> None:
        """Close the file; what is pending is dropped."""
        self._out.truncate(0)
        self._parts = []
        self._parts_bytes = 0
        self._taken = b""
        self._taken_parts = []
        self._taken_bytes = 0
        self.much_pending = False
        self._first = None
        self.pending = False
        os.close(self._fd)
        if self._before >= 0:
            os.close(self._before)
            self._before = -1


def _open_for_appending(path: bytes) -> int:
    return open_to_write(path, os.O_WRONLY | os.O_APPEND)
