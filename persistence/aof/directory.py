"""The append-only folder: its lock, its manifest and the life of its files.

The steps are in such an order that a crash between any two leaves a folder that can be loaded:

- Start: lock, read the manifest, load the files, open the last incr file (without one: create the
  first, then write the manifest that names it).
- Rewrite: create a new incr file, name it in the manifest, go on writing there; write the base
  under a temporary name, sync, rename; write the manifest with the new base and the new incr file,
  all older files as history; delete those; write the manifest without them.
- Turned on while the server runs: write to an incr file under a temporary name, because the files
  in the folder are of another time. Once the base is written, rename both and write the manifest
  that names only them. Until then the folder stays as it was.
- Vanished or replaced while the server runs: likewise, because memory holds everything. Files that
  are there stay.

A file that the manifest does not name is never read, and one that it names must be there. A lock on
``<prefix>.lock`` keeps a second server out for as long as the first one lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from abc import abstractmethod
from typing import Final

from headrace.persistence.aof.file import AppendOnlyFile
from headrace.persistence.aof.manifest import BASE, AofFile, Manifest
from headrace.persistence.aof.manifest import read as read_manifest
from headrace.persistence.aof.reader import is_blank
from headrace.persistence.errors import PersistenceError, advice, os_refusal
from headrace.persistence.files import (
    TEMPORARY_PREFIX,
    create_file,
    is_gone,
    open_to_write,
    remove_file,
    sync_file,
    sync_folder,
)
from headrace.storage.vectors import Numbers


class PeerLog:
    """The numbered records in the files of a region, the log that other regions are sent from.

    A rewrite makes older incr files useless for the region itself. They are kept while another
    region may need them. The wing of regions reads and writes the log.

    Attributes:
        most_bytes: how much is kept that this region itself does not need.
        dropped: number of files deleted although another region needs them.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.dropped = 0

    @abstractmethod
    def begin_file(self, path: bytes, older_bytes: int, base_bytes: int) -> AppendOnlyFile:
        """Begin a new incr file, which says who the region is now; see ``AppendOnlyFile``."""

    @abstractmethod
    def add_kept(self, path: bytes, first: Numbers, last: Numbers, size_bytes: int) -> None:
        """Note that a kept file holds these records."""

    @abstractmethod
    def numbers_in(self, path: bytes) -> tuple[Numbers, Numbers] | None:
        """Return the first and last numbers of records in a file; None if no region needs them."""

    @abstractmethod
    def is_needed(self, last: Numbers) -> bool:
        """Return whether another region may ask for one of the records up to these."""

    @abstractmethod
    def remove(self, path: bytes) -> None:
        """Note that a file is about to be deleted."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all files, because none belongs to what is in memory."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Return how many bytes of it are in memory."""


class RecordCount:
    """Counts the records of regions in a file of commands."""

    @abstractmethod
    def count(self, argv: list[bytes]) -> str:
        """Count the next command, of a region or not. Return what is wrong with the count."""

    @abstractmethod
    def found(self) -> str:
        """Return the counts as text for people; empty where there are no records."""


COMMANDS_SUFFIX: Final = b"aof"
SNAPSHOT_SUFFIX: Final = b"hrs"
RDB_SUFFIX: Final = b"rdb"


def is_end_of_data(paths: list[bytes], number: int) -> bool:
    """Return whether all files behind the one with this number are empty.

    A rewrite names its new incr file while records still go to the one before. So an empty file may
    follow a write that a crash cut short. Raises PersistenceError if one cannot be read.
    """
    for path in paths[number + 1 :]:
        try:
            if os.stat(path).st_size:
                return False
        except OSError as error:
            raise os_refusal(path, "read", error) from error
    return True


class AofDirectory:
    """One append-only folder, locked.

    Attributes:
        prefix: what the names of its files begin with (``appendfilename``).
        manifest: what is on the disk now.
        log: the log that other regions are sent from; None for a single server.
    """

    def __init__(self, parent: bytes, name: bytes, prefix: bytes) -> None:
        self.log: PeerLog | None = None
        self.path: Final = os.path.join(os.path.abspath(parent), name)
        self.prefix: Final = prefix
        self.manifest = Manifest()
        self._parent: Final = os.path.abspath(parent)
        self._lock_fd = -1
        self._taken_over = False  # the folder's data is not the data in memory
        self._sizes: dict[bytes, int] = {}  # of files that stay as they are

    @property
    def manifest_name(self) -> bytes:
        """Name of the manifest file."""
        return self.prefix + b".manifest"

    def file_path(self, file: AofFile) -> bytes:
        """Return the path of a file of the manifest."""
        return os.path.join(self.path, file.name)

    # Opening

    def _create(self) -> None:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.path, 0o755)
                sync_folder(self._parent)
            self._lock()
        except OSError as error:
            raise PersistenceError(
                f"The append-only folder {os.fsdecode(self.path)} cannot be used: {advice(error)}"
            ) from error

    def open(self) -> None:
        """Create the folder where it is missing, lock it and read the manifest.

        Raises PersistenceError if it cannot be used; nothing is locked then.
        """
        self._create()
        try:
            self._read_manifest()
            self._adopt_single_file()
        except OSError as error:
            self.close()
            raise PersistenceError(
                f"The manifest in {os.fsdecode(self.path)} cannot be read: {advice(error)}"
            ) from error
        except BaseException:
            self.close()
            raise

    def take_over(self, is_ours: bool) -> None:
        """Create and lock the folder again, because memory holds everything; see ``adopt_first``.

        Files that another program has put there stay, and so does their manifest, under another
        name; with ``is_ours`` the files are those of the manifest, and are deleted. Raises
        PersistenceError if the folder cannot be used; nothing is locked then.
        """
        self._create()
        known = self.manifest
        manifest = Manifest()
        manifest.base_seq = known.base_seq
        manifest.incr_seq = known.incr_seq
        if is_ours:
            manifest.retire(known)
        elif not self._taken_over:
            path = os.path.join(self.path, self.manifest_name)
            with contextlib.suppress(OSError):
                os.link(path, path + b".found-%d" % time.time_ns())
        self.manifest = manifest
        self._taken_over = True

    def missing(self, growing: bytes) -> bytes:
        """Return the path of a file that is missing or has another length; empty if there is none.

        The file that is written to (``growing``) is not looked at.
        """
        paths = [os.path.join(self.path, self.manifest_name)]
        paths += [self.file_path(file) for file in self.manifest.to_load()]
        for path in paths:
            if path == growing:
                continue
            try:
                size = os.stat(path).st_size
            except OSError as error:
                if is_gone(error):
                    return path
                continue
            if self._sizes.setdefault(path, size) != size:
                return path
        return b""

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _lock(self) -> None:
        path = os.path.join(self.path, self.prefix + b".lock")
        fd = open_to_write(path, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise PersistenceError(
                f"Another server (pid {owner or 'unknown'}) uses the append-only folder "
                f"{os.fsdecode(self.path)}. Stop it, or give this one another `dir`."
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self._lock_fd = fd

    def _read_manifest(self) -> None:
        path = os.path.join(self.path, self.manifest_name)
        try:
            self.manifest = read_manifest(path)
        except FileNotFoundError:
            self._refuse_orphans()
            self.manifest = Manifest()

    def _refuse_orphans(self) -> None:
        """Refuse data without a manifest; a killed first start may leave an empty file."""
        blank: list[bytes] = []
        for name in sorted(os.listdir(self.path)):
            of_ours = name.startswith(self.prefix + b".") and name.endswith(
                (b".aof", b".rdb", b".hrs")
            )
            path = os.path.join(self.path, name)
            if not of_ours or not os.path.getsize(path):
                continue
            if is_blank(path):
                blank.append(path)
            else:
                raise PersistenceError(
                    f"The append-only folder {os.fsdecode(self.path)} holds "
                    f"{os.fsdecode(name)} and no {os.fsdecode(self.manifest_name)}. Put the "
                    "manifest back, or move the files away to start without them."
                )
        for path in blank:
            os.unlink(path)

    def _adopt_single_file(self) -> None:
        """Take over the one file that servers before Redis 7 wrote, as the base."""
        old = os.path.join(self._parent, self.prefix)
        manifest = self.manifest
        base = manifest.base
        named = base is not None and base.name == self.prefix and not manifest.incrs
        if not os.path.isfile(old) or not (named or not manifest.to_load()):
            return
        target = os.path.join(self.path, self.prefix)
        if os.path.exists(target):
            return
        adopted = Manifest()
        adopted.base = AofFile(self.prefix, 1, BASE)
        adopted.base_seq = 1
        self.store(adopted)
        os.rename(old, target)
        sync_folder(self.path)
        sync_folder(self._parent)

    # Files

    def size_of(self, files: list[AofFile]) -> int:
        """Return the length of files together. Raises PersistenceError if one is missing."""
        total = 0
        for file in files:
            try:
                total += os.stat(self.file_path(file)).st_size
            except OSError as error:
                raise PersistenceError(
                    f"{os.fsdecode(self.file_path(file))}, which the manifest names, cannot be "
                    f"read: {advice(error)}"
                ) from error
        return total

    def store(self, manifest: Manifest) -> None:
        """Make ``manifest`` the one that holds. With OSError it may hold all the same."""
        path = os.path.join(self.path, self.manifest_name)
        self._sizes.pop(path, None)
        manifest.store(self.path, self.manifest_name)
        self.manifest = manifest
        sizes: dict[bytes, int] = {}
        fixed = [path]
        if manifest.base is not None:
            fixed.append(self.file_path(manifest.base))
        for path in fixed:
            with contextlib.suppress(OSError):
                sizes[path] = os.stat(path).st_size
        self._sizes = sizes

    def open_last(self) -> AppendOnlyFile:
        """Open the last incr file for appending; create the first one if there is none.

        A region always begins a new one, which says who it is now.
        """
        if self.log is not None:
            return self._open_journal(self.log)
        if not self.manifest.incrs:
            self.add_incr()
        last = self.manifest.incrs[-1]
        files = self.manifest.to_load()
        base = self.manifest.base
        base_bytes = self.size_of([base]) if base is not None else 0
        return AppendOnlyFile(self.file_path(last), self.size_of(files[:-1]), base_bytes)

    def _open_journal(self, log: PeerLog) -> AppendOnlyFile:
        """Begin a new incr file; delete empty ones at the end."""
        manifest = self.manifest.copy()
        while manifest.incrs and is_blank(self.file_path(manifest.incrs[-1])):
            log.remove(self.file_path(manifest.incrs[-1]))
            manifest.drop_incr(manifest.incrs[-1])
        path = self._next_incr(manifest)
        base = manifest.base
        base_bytes = self.size_of([base]) if base is not None else 0
        older_bytes = self.size_of(manifest.to_load()[:-1])
        journal = log.begin_file(path, older_bytes, base_bytes)
        try:
            self.store(manifest)
        except BaseException:
            journal.close()
            raise
        return journal

    def open_temporary(self) -> AppendOnlyFile:
        """Open the incr file that follows the first base, at its temporary place."""
        path = self.temporary_incr()
        log = self.log
        if log is None:
            return AppendOnlyFile(path, 0, 0)
        log.clear()  # the files in the folder are of another time
        return log.begin_file(path, 0, 0)

    def sync(self) -> None:
        """Wait until all files that the manifest names are on the disk.

        A killed process may have left its writes to the system. What is added from now on may be
        synced sooner than those, and a power cut would leave a gap between the two. With OSError it
        is unknown what is on the disk.
        """
        for file in self.manifest.to_load():
            fd = os.open(self.file_path(file), os.O_RDONLY)
            try:
                sync_file(fd)
            finally:
                os.close(fd)

    def add_incr(self) -> bytes:
        """Create a new incr file and name it in the manifest. Return its path."""
        manifest = self.manifest.copy()
        path = self._next_incr(manifest)
        os.close(create_file(path))
        self.store(manifest)
        return path

    def _next_incr(self, manifest: Manifest) -> bytes:
        """Name one more incr file in ``manifest`` and return its path.

        A number whose file holds data is skipped: a crash came before its manifest.
        """
        while True:
            path = self.file_path(manifest.add_incr(self.prefix))
            if not os.path.exists(path) or not os.path.getsize(path):
                return path
            manifest.incrs.pop()

    def temporary_base(self) -> bytes:
        """Return the path at which a base file is written before it has its name."""
        return os.path.join(self.path, TEMPORARY_PREFIX + b"rewriteaof-%d.aof" % os.getpid())

    def temporary_incr(self) -> bytes:
        """Return the path that records are written to until the first base is there."""
        return os.path.join(self.path, TEMPORARY_PREFIX + self.prefix + b".incr")

    def adopt_base(self, temporary: bytes, suffix: bytes, incrs_kept: int) -> None:
        """Make a synced temporary file the base; see ``Manifest.add_base``."""
        manifest = self.manifest.copy()
        incrs = list(manifest.incrs)
        file = manifest.add_base(self.prefix, suffix, incrs_kept)
        if self.log is not None:
            for incr in incrs[: len(incrs) - len(manifest.incrs)]:
                self._keep(manifest, incr, self.log)
            self._drop_kept(manifest, self.log)
        os.rename(temporary, self.file_path(file))
        sync_folder(self.path)
        self.store(manifest)
        self.delete_history()

    # Files that are kept for other regions

    def load_kept(self) -> None:
        """Add the kept files to the log."""
        log = self.log
        assert log is not None
        for kept in self.manifest.kept:
            path = self.file_path(kept)
            with contextlib.suppress(OSError):  # a missing file is no loss to this region
                log.add_kept(path, kept.first, kept.last, os.stat(path).st_size)

    def has_needless(self) -> bool:
        """Return whether a kept file is not needed any longer."""
        log = self.log
        kept = self.manifest.kept
        return log is not None and bool(kept) and not log.is_needed(kept[0].last)

    def drop_kept(self) -> None:
        """Delete the kept files that are not needed any longer. With OSError some may remain."""
        manifest = self.manifest.copy()
        if self.log is not None and self._drop_kept(manifest, self.log):
            self.store(manifest)
            self.delete_history()

    def _keep(self, manifest: Manifest, incr: AofFile, log: PeerLog) -> None:
        """Keep an incr file that has just been retired, if another region may need it."""
        path = self.file_path(incr)
        found = log.numbers_in(path)
        if found is None:
            log.remove(path)
        else:
            manifest.keep(incr, found[0], found[1])

    def _drop_kept(self, manifest: Manifest, log: PeerLog) -> bool:
        """Drop kept files from ``manifest``, the oldest first. Return whether there were any."""
        total = 0
        for file in manifest.kept:
            with contextlib.suppress(OSError):
                total += os.stat(self.file_path(file)).st_size
        dropped = False
        for file in list(manifest.kept):
            path = self.file_path(file)
            if total <= log.most_bytes and log.is_needed(file.last):
                break
            with contextlib.suppress(OSError):
                total -= os.stat(path).st_size
            log.dropped += log.is_needed(file.last)
            log.remove(path)
            manifest.drop_kept(file)
            dropped = True
        return dropped

    def prepare_first(self) -> None:
        """Make ready for ``adopt_first``; data without a manifest would be refused at start."""
        self.delete_temporaries()
        if not self.manifest.to_load() and not self._taken_over:
            self.add_incr()

    def adopt_first(self, temporary: bytes, suffix: bytes) -> None:
        """Make a synced temporary file and the temporary incr file the only files to load."""
        manifest = self.manifest.copy()
        for kept in manifest.kept:  # they are of another time
            manifest.drop_kept(kept)
        base = manifest.add_base(self.prefix, suffix, 0)
        while self._taken_over and os.path.exists(self.file_path(base)):
            manifest.base = None
            base = manifest.add_base(self.prefix, suffix, 0)
        incr = self._next_incr(manifest)
        os.rename(temporary, self.file_path(base))
        os.rename(self.temporary_incr(), incr)
        sync_folder(self.path)
        self.store(manifest)
        self._taken_over = False
        self.delete_history()

    def holds_no_data(self) -> bool:
        """Return whether no data is here. Raises PersistenceError if a file is missing."""
        return self.manifest.base is None and not self.size_of(self.manifest.incrs)

    def adopt_snapshot(self, path: bytes, is_rdb: bool) -> None:
        """Make a snapshot the base of a folder that holds no data yet; the file itself stays.

        The manifest comes first, so that a crash in between leaves no data without one. Raises
        PersistenceError if the snapshot, with ``is_rdb`` one of Redis's, cannot be copied there.
        """
        from shutil import copyfile  # late: compression libraries come with it

        if not self.manifest.incrs:
            self.add_incr()
        manifest = self.manifest.copy()
        suffix = RDB_SUFFIX if is_rdb else SNAPSHOT_SUFFIX
        file = manifest.add_base(self.prefix, suffix, len(manifest.incrs))
        temporary = os.path.join(self.path, TEMPORARY_PREFIX + file.name)
        try:
            copyfile(path, temporary)
            fd = os.open(temporary, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(temporary, self.file_path(file))
            sync_folder(self.path)
            self.store(manifest)
        except OSError as error:
            raise PersistenceError(
                f"{os.fsdecode(path)} cannot be made the base of {os.fsdecode(self.path)}: "
                f"{advice(error)}"
            ) from error

    def delete_history(self) -> None:
        """Delete history files and the temporary files that a crash left."""
        self.delete_temporaries()
        if not self.manifest.history:
            return
        for file in self.manifest.history:
            remove_file(self.file_path(file))
        manifest = self.manifest.copy()
        manifest.history = []
        self.store(manifest)

    def delete_temporaries(self) -> None:
        """Delete the temporary files that a crash left."""
        for name in os.listdir(self.path):
            if name.startswith(TEMPORARY_PREFIX):
                remove_file(os.path.join(self.path, name))
