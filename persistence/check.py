"""Looks through files without running or keeping what they hold, and repairs what can be repaired.

A repair is a cut: what stands from some offset on is taken off the last file of commands, and kept
beside it under another name.
"""

from __future__ import annotations

import os
from typing import Final

from headrace.persistence.aof.peer_log import RecordCount
from headrace.persistence.aof.reader import AofReader
from headrace.persistence.errors import CorruptAOF, os_refusal
from headrace.persistence.files import sync_file, sync_folder
from headrace.persistence.forms.form import Unsound
from headrace.persistence.forms.records import INT64_MAX, NO_DEADLINE
from headrace.persistence.forms.table import check, form_of, forms
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder, SnapshotLoader
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.keyspace import Keyspace

COMMANDS_AT_ONCE: Final = 1000


class CommandCheck:
    """Goes through a file of commands.

    Args:
        count: counts what is a region's.

    Attributes:
        commands: good ones so far.
        size_bytes: the length of the file; good_bytes: what of it can stay.
        problem: what is wrong with the rest; empty where nothing is.

    Raises:
        PersistenceError: the file cannot be read.
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
        """Look at some more commands; False at the end."""
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
        """Return how far it has come."""
        return self._reader.offset

    def found(self) -> str:
        """Return what it holds."""
        of_regions = self._count.found()
        return f"{self.commands} commands{of_regions and ', '}{of_regions}"


class SoundDecoder(Decoder):
    """Looks at every entry of a snapshot from outside, and puts its keys into databases."""

    def __init__(self, databases: list[Keyspace], now_ms: int, drop_before_ms: int) -> None:
        super().__init__(databases, now_ms, drop_before_ms)
        self.places_itself = True

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        """A key is complete."""
        self.look_at(key, value, expire_ms)
        super().place(key, value, expire_ms)

    def look_at(self, key: bytes, value: object, expire_ms: int) -> None:
        """Refuse a value that nobody could have made, and a deadline that nobody could set."""
        if not NO_DEADLINE <= expire_ms <= INT64_MAX:
            raise self.malformed(f"a deadline of {key[:64]!r} that can be set, not {expire_ms}")
        try:
            check(value)
        except Unsound as reason:
            kind = form_of(value).type_name().decode()
            raise self.malformed(f"a sound {kind} in {key[:64]!r}, not {reason}") from reason


class SnapshotCheck(SoundDecoder):
    """Looks at every entry of a snapshot and keeps none.

    Attributes:
        counts: how many keys hold what, by what values of that type are called.
        mortal: how many keys have a deadline.
        parts: how many parts the values have, by what those are called.
    """

    def __init__(self) -> None:
        super().__init__([], INT64_MAX, KEEP_ALL)
        self.counts: Final[dict[str, int]] = {}
        self.mortal = 0
        self.parts: Final[dict[str, int]] = {}
        for form in forms():
            self.counts[form.plural()] = 0
            for name in form.part_names():
                self.parts[name] = 0
        self.accept_databases()
        self.accept_region(None)

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        """A key is complete."""
        self.keys += 1
        self.look_at(key, value, expire_ms)
        if expire_ms != NO_EXPIRY:
            self.mortal += 1
        form = form_of(value)
        self.counts[form.plural()] += 1
        names = form.part_names()
        for number, count in enumerate(form.part_counts(value)):
            self.parts[names[number]] += count


def snapshot_loader(path: bytes) -> tuple[SnapshotLoader, SnapshotCheck]:
    """Return what goes through a snapshot step by step, and what it finds.

    Raises:
        PersistenceError: it cannot be read, or is none.
    """
    check = SnapshotCheck()
    return SnapshotLoader(path, check), check


def cut(path: bytes, good_bytes: int) -> bytes:
    """Take everything behind ``good_bytes`` off a file; where it is kept.

    The rest is on the disk under its other name before the file is made shorter.

    Raises:
        PersistenceError: that failed; the file is as it was, or cut.
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
