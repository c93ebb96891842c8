"""Checks files without running or keeping their content, and repairs what can be repaired.

A file of commands is read up to the first damage. A repair is a cut: the rest from there on is
taken off the last file of commands, and kept beside it under another name.

A file of keys, a snapshot of ours or of Redis's, is read once from front to end. Only one value at
a time is in memory, so the file may be larger than the memory. To find a key that it names twice
without holding all names, there is a fingerprint of each key, with its place in the file. They are
sorted into parts by their first byte, and parts that grow go to a temporary file bit by bit. At the
end each part is looked through by itself. Rows are looked through before they go to the temporary
file, too, so that a file of nothing but one name is not read to its end.
"""

from __future__ import annotations

import os
import tempfile
from typing import Final

from xxhash import xxh3_128_digest

from headrace.persistence.aof.directory import RecordCount
from headrace.persistence.aof.reader import AofReader
from headrace.persistence.errors import CorruptAOF, CorruptRDB, SnapshotError, os_refusal
from headrace.persistence.files import sync_file, sync_folder
from headrace.persistence.forms.form import Unsound
from headrace.persistence.forms.records import DATABASE, INT64_MAX, NO_DEADLINE
from headrace.persistence.forms.table import check, form_of, forms
from headrace.persistence.rdb.reader import Left, RdbReader
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder, SnapshotLoader
from headrace.persistence.snapshot.file import is_rdb_file
from headrace.persistence.taker import KeyTaker
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.keyspace import Keyspaces

COMMANDS_AT_ONCE: Final = 1000


class CommandCheck:
    """Checks a file of commands. Raises PersistenceError if the file cannot be read.

    Args:
        count: counts the records of a region.

    Attributes:
        commands: good ones so far.
        size_bytes: the length of the file; good_bytes: what of it can stay.
        problem: what is wrong with the rest; empty where nothing is.
    """

    def __init__(self, path: bytes, start: int, count: RecordCount) -> None:
        self.path: Final = path
        self._count: Final = count
        self.commands = 0
        self.good_bytes = start
        self.problem = ""
        self._in_transaction = False
        try:
            self._reader: Final = AofReader(path, path, start)
        except OSError as error:
            raise os_refusal(path, "read", error) from error
        self.size_bytes: Final = self._reader.size_bytes

    def step(self) -> bool:
        """Check some more commands. Return False at the end."""
        for _ in range(COMMANDS_AT_ONCE):
            try:
                argv = self._reader.next()
            except CorruptAOF as damage:
                self.problem = f"expected {damage.expected}"
                argv = None
            if argv is None:
                self._end()
                return False
            name = argv[0].lower() if len(argv) == 1 else b""
            if name == b"multi":
                if self._in_transaction:
                    self.problem = "expected EXEC before another MULTI"
                    self._end()
                    return False
                self._in_transaction = True
            elif name == b"exec":
                self._in_transaction = False
            else:
                self.problem = self._count.count(argv)
                if self.problem:
                    self._end()
                    return False
            self.commands += 1
            if not self._in_transaction:
                self.good_bytes = self._reader.offset
        return True

    def _end(self) -> None:
        if not self.problem:
            if self._reader.torn:
                self.problem = "it ends in the middle of a command"
            elif self._in_transaction:
                self.problem = "it ends in the middle of a transaction"
            else:
                self.good_bytes = self.size_bytes  # comments at the end
        self._reader.close()

    def loaded_bytes(self) -> int:
        """Return how many bytes have been checked."""
        return self._reader.offset

    def found(self) -> str:
        """Return the figures as text."""
        of_regions = self._count.found()
        return f"{self.commands} commands{of_regions and ', '}{of_regions}"


class SoundDecoder(Decoder):
    """Checks every entry of a snapshot from outside, and puts its keys into databases."""

    def __init__(self, databases: Keyspaces, now_ms: int, drop_before_ms: int) -> None:
        super().__init__(databases, now_ms, drop_before_ms)
        self.places_itself = True

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        self.look_at(key, value, expire_ms)
        super().place(key, value, expire_ms)

    def look_at(self, key: bytes, value: object, expire_ms: int) -> None:
        """Refuse a value that no command could have made, and a deadline that none could set."""
        if not NO_DEADLINE <= expire_ms <= INT64_MAX:
            raise self.malformed(f"a deadline of {key[:64]!r} that can be set, not {expire_ms}")
        try:
            check(value)
        except Unsound as reason:
            kind = form_of(value).type_name.decode()
            raise self.malformed(f"a sound {kind} in {key[:64]!r}, not {reason}") from reason


class SnapshotCheck(SoundDecoder):
    """Checks every entry of a snapshot and keeps none.

    Attributes:
        counts: how many keys there are of each type, by the plural of its name.
        mortal: how many keys have a deadline.
        parts: how many parts the values have, by the names of parts.
    """

    def __init__(self) -> None:
        super().__init__([], INT64_MAX, KEEP_ALL)
        self.counts: Final[dict[str, int]] = {}
        self.mortal = 0
        self.parts: Final[dict[str, int]] = {}
        for form in forms():
            self.counts[form.plural] = 0
            for name in form.part_names:
                self.parts[name] = 0
        self.accept_databases()
        self.accept_region(None)

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        self.keys += 1
        self.look_at(key, value, expire_ms)
        if expire_ms != NO_EXPIRY:
            self.mortal += 1
        form = form_of(value)
        self.counts[form.plural] += 1
        names = form.part_names
        for number, count in enumerate(form.part_counts(value)):
            self.parts[names[number]] += count


def snapshot_loader(path: bytes) -> tuple[SnapshotLoader, SnapshotCheck]:
    """Return the loader of a snapshot, to be called step by step, and its check.

    Raises PersistenceError if it cannot be read, or is none.
    """
    check = SnapshotCheck()
    return SnapshotLoader(path, check), check


def cut(path: bytes, good_bytes: int) -> bytes:
    """Cut everything behind ``good_bytes`` off a file. Return the path of the part cut off.

    That part is on the disk under its other name before the file is made shorter. Raises
    PersistenceError if that failed; the file is as it was, or cut.
    """
    from shutil import copyfileobj  # late: compression libraries come with it

    kept = b"%b.cut-%d" % (path, good_bytes)
    try:
        with open(path, "rb") as source, open(kept, "xb") as target:
            source.seek(good_bytes)
            copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        sync_folder(os.path.dirname(os.path.abspath(path)))
        fd = os.open(path, os.O_WRONLY)
        try:
            os.ftruncate(fd, good_bytes)
            sync_file(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise os_refusal(path, "written", error) from error
    return kept


_PARTS: Final = 256
_FINGERPRINT_BYTES: Final = 16
_OFFSET_BYTES: Final = 8
_ROW_BYTES: Final = _FINGERPRINT_BYTES + _OFFSET_BYTES
_SPILLED_BYTES: Final = 640 * _ROW_BYTES  # of one part, at once

NOWHERE: Final = -1


class MetNames:
    """The names of keys in a file. ``folder`` takes a temporary file; None for the system's own."""

    def __init__(self, folder: bytes | None) -> None:
        self._folder: Final = folder
        self._parts: Final = [bytearray() for _ in range(_PARTS)]
        self._spilled: Final[list[list[int]]] = [[] for _ in range(_PARTS)]  # where they begin
        self._fd = -1
        self._size_bytes = 0

    def note(self, db: int, key: bytes, offset: int) -> int:
        """Note a key of a database at an offset of the file.

        Returns: the offset of an earlier key of the name, if one has just come up, or ``NOWHERE``;
            ``doubled`` is exact.

        Raises OSError if the temporary file cannot be written.
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
        """Return the offset of the first key that was there before; ``NOWHERE`` if there is none.

        Raises OSError if the temporary file cannot be read.
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
    """Return the lowest offset of rows that were met, and of ``first``; then all rows are met."""
    for at in range(0, len(rows), _ROW_BYTES):
        fingerprint = rows[at : at + _FINGERPRINT_BYTES]
        if fingerprint in met:
            place = rows[at + _FINGERPRINT_BYTES : at + _ROW_BYTES]
            offset = int.from_bytes(place, "little")
            first = offset if first == NOWHERE else min(first, offset)
        met.add(fingerprint)
    return first


class _Passing(SoundDecoder):
    def __init__(self, taker: KeyTaker, now_ms: int) -> None:
        super().__init__([], now_ms, KEEP_ALL)
        self._taker: Final = taker
        self._index = -1
        self.accept_databases()

    def other_record(self, kind: int, table: list[int]) -> None:
        """Note the database that the next keys are of."""
        super().other_record(kind, table)
        if kind == DATABASE:
            self._index = table[0]
            if self._index >= self._taker.databases:
                raise self.malformed(f"a database below {self._taker.databases}")

    def take_library(self, code: bytes) -> None:
        self._taker.take_library(code)

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        self.keys += 1
        self.look_at(key, value, expire_ms)
        if self._index < 0:
            raise self.malformed("a database before the first key")
        deadline_ms = NO_EXPIRY if expire_ms == NO_DEADLINE else expire_ms
        if not self._taker.take(self._index, key, value, deadline_ms):
            raise self.doubled(key)


class KeyFile(KeyTaker):
    """Passes the keys of one file on, each through its own ``take``.

    Any method raises PersistenceError when the file cannot be read or trusted.

    Args:
        path: a snapshot of ours that is no region's, or one of Redis or Valkey.
        taker: where they go.
        defaults: see ``RdbReader``.
        folder: where a temporary file may lie; see ``MetNames``.

    Attributes:
        size_bytes: the length of the file.
        is_rdb: it is a snapshot of Redis or Valkey.
        left, end: see ``RdbReader``; losses: what it says at the end.
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
            self._rdb = RdbReader(path, self, forms(), defaults, now_ms)
            self.left = self._rdb.left
            self.writer = self._rdb.writer
            self.size_bytes = self._rdb.size_bytes
        else:
            self._snapshot = SnapshotLoader(path, _Passing(self, now_ms))
            self.size_bytes = self._snapshot.size_bytes
        self.end = 0

    def loaded_bytes(self) -> int:
        """Return how many bytes have been read."""
        if self._rdb is not None:
            return self._rdb.loaded_bytes
        return 0 if self._snapshot is None else self._snapshot.loaded_bytes

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        self._refuse_doubled(self._names.note(db, key, self._key_offset()))
        return self._taker.take(db, key, value, expire_ms)

    def take_library(self, code: bytes) -> None:
        self._taker.take_library(code)

    def step(self) -> bool:
        """Go on for about a millisecond. Return False at the end."""
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
        """Return the offset of the last key that was read; in a snapshot of ours, of its frame."""
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
