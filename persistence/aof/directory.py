"""The append-only folder: its lock, its manifest and the life of its files.

Order of steps, so that a crash between any two of them leaves a folder that can be loaded:

- Start: lock, read the manifest, load the files, open the last incr file (without one: create the
  first, then write the manifest that names it).
- Rewrite: create a new incr file, name it in the manifest, go on writing there; write the base
  under a temporary name, sync, rename; write the manifest with the new base and the new incr file,
  all older files as history; delete those; write the manifest without them.
- Turned on while the server runs: write to an incr file that has a temporary name, because whatever
  is in the folder belongs to another time. When the base is there, too, rename both and write the
  manifest that names them and nothing else. Until then the folder is what it was.
- Vanished or replaced while the server runs: likewise, because memory holds everything. What is
  there stays there.

A file that the manifest does not name is never read, and one that it names must be there.

A lock on ``<prefix>.lock`` keeps a second server out for as long as the first one lives.
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

    A rewrite makes older incr files useless for a region itself. They are kept while another region
    may need them. What is in the log, and how it is read, is in the wing of regions.

    Attributes:
        most_bytes: how much is kept that this region itself does not need.
        dropped: how many files have gone although another region needs them.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.dropped = 0

    @abstractmethod
    def begin_file(self, path: bytes, older_bytes: int, base_bytes: int) -> AppendOnlyFile:
        """Begin a new incr file, which says who the region is now; see ``AppendOnlyFile``."""

    @abstractmethod
    def add_kept(self, path: bytes, first: Numbers, last: Numbers, size_bytes: int) -> None:
        """A file that was kept holds these records."""

    @abstractmethod
    def numbers_in(self, path: bytes) -> tuple[Numbers, Numbers] | None:
        """The first and the last numbers of records in a file, if another region may need them."""

    @abstractmethod
    def is_needed(self, last: Numbers) -> bool:
        """Return whether another region may ask for one of the records up to these."""

    @abstractmethod
    def remove(self, path: bytes) -> None:
        """A file is about to go."""

    @abstractmethod
    def clear(self) -> None:
        """None of the files belongs to what is in memory."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Return how much of it is in memory."""


class RecordCount:
    """Counts the records of regions in a file of commands."""

    @abstractmethod
    def count(self, argv: list[bytes]) -> str:
        """A command comes next, of a region or not; what is wrong with how the file counts."""

    @abstractmethod
    def found(self) -> str:
        """Return what there is of them, for people; empty where nothing is."""


COMMANDS_SUFFIX: Final = b"aof"
SNAPSHOT_SUFFIX: Final = b"hrs"
RDB_SUFFIX: Final = b"rdb"


def is_end_of_data(paths: list[bytes], number: int) -> bool:
    """Return whether no file behind the one with this number holds anything.

    A rewrite names its new incr file while records still go to the one before. So a write that a
    crash cut short may be followed by an empty file.

    Raises:
        PersistenceError: one of them cannot be looked at.
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
        path: the folder.
        prefix: what the names of its files begin with (``appendfilename``).
        manifest: what is on the disk now.
        log: of a region: what other regions are sent from.
    """

    def __init__(self, parent: bytes, name: bytes, prefix: bytes) -> None:
        self.log: PeerLog | None = None
        self.path: Final = os.path.join(os.path.abspath(parent), name)
        self.prefix: Final = prefix
        self.manifest = Manifest()
        self._parent: Final = os.path.abspath(parent)
        self._lock_fd = -1
        self._taken_over = False  # what the folder holds is not what is in memory
        self._sizes: dict[bytes, int] = {}  # of files that stay as they are

    @property
    def manifest_name(self) -> bytes:
        """The name of the manifest file."""
        return self.prefix + b".manifest"

    def file_path(self, file: AofFile) -> bytes:
        """Return where a file of the manifest lies."""
        return os.path.join(self.path, file.name)

    # Opening

    def _create(self) -> None:
        """Create the folder where it is missing, and lock it."""
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

        Raises:
            PersistenceError: it cannot be used; nothing is locked then.
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

        Files that somebody else has put there stay. So does their manifest, under another name.

        Args:
            is_ours: nobody has put files there: they are those of the manifest, to be deleted.

        Raises:
            PersistenceError: it cannot be used; nothing is locked then.
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
        """The path of a file that is not there, or has another length; empty where all is well.

        Args:
            growing: the path of the file that is written to, which is not looked at.
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
        """Let another server have the folder."""
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
        """Data without a manifest must not be taken for an empty folder.

        What was killed within its first start may have left a file that holds nothing.
        """
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
        """The length of files together. Raises: PersistenceError; one is missing."""
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
        """Make ``manifest`` the one that holds.

        Raises:
            OSError: it may have taken the place of the one before all the same.
        """
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
        """Open the last incr file for appending, the first one if there is none.

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
        """Begin a new incr file; those at the end that hold nothing go."""
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
        log.clear()  # what is in the folder belongs to another time
        return log.begin_file(path, 0, 0)

    def sync(self) -> None:
        """Wait until all that the manifest names is on the disk.

        A process that was killed may have left to the system what it wrote. What is added from now
        on may be synced sooner than that, and a power cut would leave a gap between the two.

        Raises:
            OSError: nobody knows what is on the disk.
        """
        for file in self.manifest.to_load():
            fd = os.open(self.file_path(file), os.O_RDONLY)
            try:
                sync_file(fd)
            finally:
                os.close(fd)

    def add_incr(self) -> bytes:
        """Create a new incr file and name it in the manifest; its path."""
        manifest = self.manifest.copy()
        path = self._next_incr(manifest)
        os.close(create_file(path))
        self.store(manifest)
        return path

    def _next_incr(self, manifest: Manifest) -> bytes:
        """Name one more incr file in ``manifest``; its path.

        A number is left out where a file with data has it: a crash came before its manifest.
        """
        while True:
            path = self.file_path(manifest.add_incr(self.prefix))
            if not os.path.exists(path) or not os.path.getsize(path):
                return path
            manifest.incrs.pop()

    def temporary_base(self) -> bytes:
        """Return where a base file is written before it has its name."""
        return os.path.join(self.path, TEMPORARY_PREFIX + b"rewriteaof-%d.aof" % os.getpid())

    def temporary_incr(self) -> bytes:
        """Return where records go until the first base is there."""
        return os.path.join(self.path, TEMPORARY_PREFIX + self.prefix + b".incr")

    def adopt_base(self, temporary: bytes, suffix: bytes, incrs_kept: int) -> None:
        """Let a synced temporary file be the base; see ``Manifest.add_base``."""
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
        """Let the log know of the files that are kept."""
        log = self.log
        assert log is not None
        for kept in self.manifest.kept:
            path = self.file_path(kept)
            with contextlib.suppress(OSError):  # one that is not there is missing to nobody here
                log.add_kept(path, kept.first, kept.last, os.stat(path).st_size)

    def has_needless(self) -> bool:
        """Return whether a file that is kept is not to be kept any longer."""
        log = self.log
        kept = self.manifest.kept
        return log is not None and bool(kept) and not log.is_needed(kept[0].last)

    def drop_kept(self) -> None:
        """Delete the files that are not to be kept any longer.

        Raises:
            OSError: they may still be there.
        """
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
        """Let go of kept files in ``manifest``: the oldest first; whether there are any."""
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
        """Let a synced temporary file and the temporary incr file be all there is."""
        manifest = self.manifest.copy()
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
        """Return whether nothing has been written here yet.

        Raises:
            PersistenceError: a file is missing.
        """
        return self.manifest.base is None and not self.size_of(self.manifest.incrs)

    def adopt_snapshot(self, path: bytes, is_rdb: bool) -> None:
        """Let a snapshot be the base of a folder that holds no data yet; the file itself stays.

        The manifest comes first, so that a crash in between leaves no data without one.

        Args:
            is_rdb: it is in Redis's form.

        Raises:
            PersistenceError: it cannot be copied into the folder.
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
        """Delete history files and what a crash left half written."""
        self.delete_temporaries()
        if not self.manifest.history:
            return
        for file in self.manifest.history:
            remove_file(self.file_path(file))
        manifest = self.manifest.copy()
        manifest.history = []
        self.store(manifest)

    def delete_temporaries(self) -> None:
        """Delete what a crash left half written."""
        for name in os.listdir(self.path):
            if name.startswith(TEMPORARY_PREFIX):
                remove_file(os.path.join(self.path, name))
