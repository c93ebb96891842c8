"""A file of keys, a snapshot of ours or of Redis's, gone through once from front to end.

Tells whether a file names a key twice, without holding all names in memory.

Of each key there is a fingerprint and where it stands in the file. They are sorted into parts by
their first byte, and parts that grow go to a temporary file bit by bit. At the end each part is
looked through by itself. What goes to the temporary file is looked through before, so that a file
of nothing but one name is not read to its end.

Only one value at a time is in memory, so a file may be larger than the memory.
"""

from __future__ import annotations

import os
import tempfile
from typing import Final

from xxhash import xxh3_128_digest

from headrace.persistence.check import SoundDecoder
from headrace.persistence.errors import CorruptRDB, SnapshotError
from headrace.persistence.forms.records import DATABASE, NO_DEADLINE
from headrace.persistence.forms.table import rdb_values
from headrace.persistence.rdb.reader import Left, RdbReader
from headrace.persistence.snapshot.decode import KEEP_ALL, SnapshotLoader
from headrace.persistence.snapshot.file import is_rdb_file
from headrace.persistence.taker import KeyTaker
from headrace.storage.entry import NO_EXPIRY

_PARTS: Final = 256
_FINGERPRINT_BYTES: Final = 16
_OFFSET_BYTES: Final = 8
_ROW_BYTES: Final = _FINGERPRINT_BYTES + _OFFSET_BYTES
_SPILLED_BYTES: Final = 640 * _ROW_BYTES  # of one part, at once

NOWHERE: Final = -1


class MetNames:
    """The names of keys that a file has.

    Args:
        folder: where a temporary file may lie; None for the system's own place.
    """

    def __init__(self, folder: bytes | None) -> None:
        self._folder: Final = folder
        self._parts: Final = [bytearray() for _ in range(_PARTS)]
        self._spilled: Final[list[list[int]]] = [[] for _ in range(_PARTS)]  # where they begin
        self._fd = -1
        self._size_bytes = 0

    def note(self, db: int, key: bytes, offset: int) -> int:
        """A key of a database stands at a place of the file.

        Returns: where a key stands that has been there before, if one has just come up, or
            ``NOWHERE``; ``doubled`` tells for sure.

        Raises:
            OSError: the temporary file cannot be written.
        """
        row = xxh3_128_digest(key, db) + offset.to_bytes(_OFFSET_BYTES, "little")
        number = row[0]
        part = self._parts[number]
        part += row
        if len(part) < _SPILLED_BYTES:
            return NOWHERE
        self._spill(number, part)
        return _first_doubled(bytes(part), set(), NOWHERE)

    def _spill(self, number: int, part: bytearray) -> None:
        if self._fd < 0:
            self._fd, path = tempfile.mkstemp(prefix=b"headrace-names-", dir=self._folder)
            os.unlink(path)
        done = 0
        while done < len(part):
            done += os.pwrite(self._fd, bytes(part[done:]), self._size_bytes + done)
        self._spilled[number].append(self._size_bytes)
        self._size_bytes += done
        self._parts[number] = bytearray()

    def doubled(self) -> int:
        """Where the first key stands that has been there before; ``NOWHERE`` if there is none.

        Raises:
            OSError: the temporary file cannot be read.
        """
        first = NOWHERE
        for number in range(_PARTS):
            met: set[bytes] = set()
            for start in [*self._spilled[number], NOWHERE]:
                rows = bytes(self._parts[number])
                if start != NOWHERE:
                    rows = os.pread(self._fd, _SPILLED_BYTES, start)
                first = _first_doubled(rows, met, first)
        return first

    def close(self) -> None:
        """Drop the temporary file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _first_doubled(rows: bytes, met: set[bytes], first: int) -> int:
    """The lowest offset of rows whose fingerprint was met, and of ``first``; all are met then."""
    for at in range(0, len(rows), _ROW_BYTES):
        fingerprint = rows[at : at + _FINGERPRINT_BYTES]
        if fingerprint in met:
            place = rows[at + _FINGERPRINT_BYTES : at + _ROW_BYTES]
            offset = int.from_bytes(place, "little")
            first = offset if first == NOWHERE else min(first, offset)
        met.add(fingerprint)
    return first


class _Passing(SoundDecoder):
    """Passes the keys of a snapshot on."""

    def __init__(self, taker: KeyTaker, now_ms: int) -> None:
        super().__init__([], now_ms, KEEP_ALL)
        self._taker: Final = taker
        self._index = -1
        self.accept_databases()

    def other_record(self, kind: int, table: list[int]) -> None:
        """Take note of the database that keys are of."""
        super().other_record(kind, table)
        if kind == DATABASE:
            self._index = table[0]
            if self._index >= self._taker.databases:
                raise self.malformed(f"a database below {self._taker.databases}")

    def take_library(self, code: bytes) -> None:
        """A library of functions is complete."""
        self._taker.take_library(code)

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        """A key is complete."""
        self.keys += 1
        self.look_at(key, value, expire_ms)
        if self._index < 0:
            raise self.malformed("a database before the first key")
        deadline_ms = NO_EXPIRY if expire_ms == NO_DEADLINE else expire_ms
        if not self._taker.take(self._index, key, value, deadline_ms):
            raise self.doubled(key)


class KeyFile(KeyTaker):
    """Passes the keys of one file on, each through its own ``take``.

    Args:
        path: a snapshot of ours that is no region's, or one of Redis or Valkey.
        taker: where they go.
        defaults: see ``RdbReader``.
        now_ms: the present.
        folder: where a temporary file may lie; see ``MetNames``.

    Attributes:
        size_bytes: the length of the file.
        is_rdb: it is a snapshot of Redis or Valkey.
        left, end: see ``RdbReader``; losses: what it says at the end.

    Raises:
        PersistenceError: from any method, when the file cannot be read or trusted.
    """

    def __init__(
        self,
        path: bytes,
        taker: KeyTaker,
        defaults: dict[str, int],
        now_ms: int,
        folder: bytes | None,
    ) -> None:
        super().__init__(taker.databases)
        self.left: dict[str, Left] = {}
        self.losses: list[str] = []
        self.writer = ""
        self._path: Final = path
        self._taker: Final = taker
        self._names: Final = MetNames(folder)
        self._rdb: RdbReader | None = None
        self._snapshot: SnapshotLoader | None = None
        self.is_rdb: Final = is_rdb_file(path)
        if self.is_rdb:
            self._rdb = RdbReader(path, self, rdb_values(), defaults, now_ms)
            self.left = self._rdb.left
            self.writer = self._rdb.writer
            self.size_bytes = self._rdb.size_bytes
        else:
            self._snapshot = SnapshotLoader(path, _Passing(self, now_ms))
            self.size_bytes = self._snapshot.size_bytes
        self.end = 0

    def loaded_bytes(self) -> int:
        """Return how much of it has been read."""
        if self._rdb is not None:
            return self._rdb.loaded_bytes
        return 0 if self._snapshot is None else self._snapshot.loaded_bytes

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        self._refuse_doubled(self._names.note(db, key, self._key_offset()))
        return self._taker.take(db, key, value, expire_ms)

    def take_library(self, code: bytes) -> None:
        self._taker.take_library(code)

    def step(self) -> bool:
        """Go on for about a millisecond; False at the end."""
        rdb = self._rdb
        if rdb is not None:
            if rdb.step():
                return True
            self.losses = rdb.losses()
            self.end = rdb.end
        else:
            assert self._snapshot is not None
            if self._snapshot.step():
                return True
            self.end = self.size_bytes
        self._refuse_doubled(self._names.doubled())
        return False

    def close(self) -> None:
        """Close the file."""
        self._names.close()
        if self._rdb is not None:
            self._rdb.close()
            self._rdb = None
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    def _key_offset(self) -> int:
        """The offset of the last key that was read; in a snapshot of ours, that of its frame."""
        if self._rdb is not None:
            return self._rdb.key_offset
        return 0 if self._snapshot is None else self._snapshot.frame_offset()

    def _refuse_doubled(self, offset: int) -> None:
        if offset == NOWHERE:
            return
        expected = "each key once, but this one has been there before"
        if self.is_rdb:
            raise CorruptRDB(self._path, offset, expected)
        raise SnapshotError(self._path, offset, expected)
