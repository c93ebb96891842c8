"""The end of the append-only file, where records are added.

Records are collected in memory and written together: once for each turn of the event loop, in one
``write``. What a failing disk took of such a write is cut off again, so that the file always ends
behind a whole record; the bytes stay in memory and can be written later.

When to sync is decided by who owns the file; here it is only counted how far the file is written
(``size_bytes``) and how far it is known to be on the disk (``synced_bytes``).
"""

from __future__ import annotations

import os
import time
from typing import Final

from persistence.files import sync_file
from protocol.replies import array_header, bulk

STAMP: Final = b"#TS:"
_MULTI: Final = b"*1\r\n$5\r\nMULTI\r\n"
_EXEC: Final = b"*1\r\n$4\r\nEXEC\r\n"
_NO_DATABASE: Final = -1


def annotation(second: int) -> bytes:
    """The line that gives the time of what follows, in seconds since 1970."""
    return b"%b%d\r\n" % (STAMP, second)


class AppendOnlyFile:
    """An incr file open for appending.

    Attributes:
        pending: there are records that have not been written.
        size_bytes: the length of the incr file.
        synced_bytes: how much of it is known to be on the disk.
        older_bytes: the length of the base and of the incr files before this one.
        base_bytes: the length of all files when the last rewrite ended.
        annotate: write the second, as a comment, before the first record of each second.
        stamp_next: write it before the next record or transaction, whatever ``annotate`` says.
    """

    def __init__(self, path: bytes, older_bytes: int, base_bytes: int) -> None:
        self.pending = False
        self.older_bytes = older_bytes
        self.base_bytes = base_bytes
        self.annotate = False
        self.stamp_next = False
        self._pieces: list[bytes] = []
        self._db = _NO_DATABASE
        self._in_transaction = False
        self._annotated_s = 0
        self._fd = _open_for_appending(path)
        self.size_bytes = os.fstat(self._fd).st_size
        self.synced_bytes = self.size_bytes

    @property
    def total_bytes(self) -> int:
        """The length of all files together."""
        return self.older_bytes + self.size_bytes

    @property
    def buffer_bytes(self) -> int:
        """The length of what has not been written."""
        return sum([len(piece) for piece in self._pieces])

    # Records

    def append(self, db: int, record: list[bytes]) -> None:
        """Add a command that changes database ``db``."""
        pieces = self._pieces
        if (self.annotate or self.stamp_next) and not self._in_transaction:
            self._annotate()
        if db != self._db:
            digits = b"%d" % db
            pieces.append(b"*2\r\n$6\r\nSELECT\r\n" + bulk(digits))
            self._db = db
        pieces.append(array_header(len(record)))
        for argument in record:
            pieces.append(bulk(argument))
        self.pending = True

    def begin(self) -> None:
        """Open a transaction: a loader takes all records up to ``commit``, or none."""
        if self.annotate or self.stamp_next:
            self._annotate()
        self._in_transaction = True
        self._pieces.append(_MULTI)
        self.pending = True

    def commit(self) -> None:
        """Close the transaction."""
        self._in_transaction = False
        self._pieces.append(_EXEC)

    def _annotate(self) -> None:
        now_s = int(time.time())
        if self.stamp_next or now_s > self._annotated_s:
            self.stamp_next = False
            self._annotated_s = now_s
            self._pieces.append(annotation(now_s))

    # The disk

    def write(self) -> None:
        """Write everything that is pending.

        Raises:
            OSError: the file ends as before, or behind a part that could not be cut off again;
                what is not in the file is still pending.
        """
        pieces = self._pieces
        if not pieces:
            self.pending = False
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        size = len(data)
        done = 0
        pieces.clear()
        try:
            done = os.write(self._fd, data)
            while done < size:
                with memoryview(data) as view:
                    done += os.write(self._fd, view[done:])
        except OSError:
            self._take_back(data, done)
            raise
        self.size_bytes += size
        self.pending = False

    def _take_back(self, data: bytes, done: int) -> None:
        """Cut an incomplete write off the file; where that fails too, keep only what is missing."""
        if done:
            try:
                os.ftruncate(self._fd, self.size_bytes)
            except OSError:
                self.size_bytes += done
                data = data[done:]
        self._pieces.append(data)

    def sync(self) -> None:
        """Wait until everything written is on the disk; may run in another thread than ``write``.

        Raises:
            OSError: nobody knows what is on the disk.
        """
        reached = self.size_bytes
        sync_file(self._fd)
        self.synced_bytes = reached

    def switch(self, path: bytes, older_bytes: int) -> None:
        """Go on in a new file; everything must have been written to the old one and synced."""
        assert not self.pending
        fd = _open_for_appending(path)
        os.close(self._fd)
        self._fd = fd
        self._db = _NO_DATABASE
        self.older_bytes = older_bytes
        self.size_bytes = os.fstat(fd).st_size
        self.synced_bytes = self.size_bytes

    def close(self) -> None:
        """Close the file; what is pending is dropped."""
        self._pieces.clear()
        self.pending = False
        os.close(self._fd)


def _open_for_appending(path: bytes) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
