"""File operations that survive a crash between any two of them.

A file that others rely on is never changed in place: it is written under another name, synced,
renamed, and then the folder is synced, so that after a crash either the old or the new one is
there, whole.
"""

from __future__ import annotations

import contextlib
import os
import stat
from errno import EIO, ENOENT, ENOTDIR, ESTALE
from typing import Final

from headrace.persistence.errors import PersistenceError

TEMPORARY_PREFIX: Final = b"temp-"
PIECES_AT_ONCE: Final = 512  # in one system call
SYNC_EVERY_BYTES: Final = 32 << 20  # of a long file, so that its last sync is short


def open_to_read(path: bytes) -> int:
    """Open a file that is read from any place, without blocking at a pipe. Return its descriptor.

    Raises PersistenceError if it is no regular file, or OSError.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    raise PersistenceError(
        f"{_what_is(path, mode)}, where a file has to be that can be read from any place."
    )


def open_to_write(path: bytes, flags: int) -> int:
    """Open a file that is written to, and create it where it is missing. Return its descriptor.

    Raises PersistenceError if something is there that is no regular file, or OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(path).st_mode  # first: opening a pipe without a reader fails
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise PersistenceError(f"{_what_is(path, mode)}, where a file is to be written.")
    return os.open(path, flags | os.O_CREAT | os.O_NONBLOCK, 0o644)


def _what_is(path: bytes, mode: int) -> str:
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
    return f"{os.fsdecode(path)} is {kind}"


def is_gone(error: OSError) -> bool:
    """Return whether an error says that there is nothing of that name."""
    return error.errno in (ENOENT, ENOTDIR, ESTALE)


def read_head(path: bytes, size: int) -> bytes:
    """Return the first ``size`` bytes of a file, or all it has. Raises as ``open_to_read``."""
    fd = open_to_read(path)
    try:
        return os.pread(fd, size, 0)
    finally:
        os.close(fd)


def create_file(path: bytes) -> int:
    """Create a file, or empty the one that is there. Return its descriptor."""
    return open_to_write(path, os.O_WRONLY | os.O_TRUNC)


def write_all(fd: int, data: bytes) -> None:
    """Write everything, in as many calls as it takes. With OSError a part may have been written."""
    done = os.write(fd, data)
    while done < len(data):
        with memoryview(data) as view:
            done += os.write(fd, view[done:])


def write_pieces(fd: int, pieces: list[bytes]) -> int:
    """Write everything in order, unjoined. Return how many bytes. Raises as ``write_all``."""
    total = 0
    for start in range(0, len(pieces), PIECES_AT_ONCE):
        some = pieces[start : start + PIECES_AT_ONCE]
        size = 0
        for piece in some:
            size += len(piece)
        done = os.writev(fd, some)
        if done < size:
            write_all(fd, b"".join(some)[done:])
        total += size
    return total


def sync_file(fd: int) -> None:
    """Wait until what was written to ``fd`` is on the disk, its size included."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def remove_file(path: bytes) -> None:
    """Remove a file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def sync_folder(path: bytes) -> None:
    """Wait until the names in a folder are on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(folder: bytes, name: bytes, data: bytes) -> None:
    """Give a file new content, all or nothing."""
    file = NewFile(os.path.join(folder, TEMPORARY_PREFIX + name), False)
    try:
        file.write([data])
        file.finish()
        os.rename(file.path, os.path.join(folder, name))
    except OSError:
        file.discard()
        raise
    sync_folder(folder)


def replace_head(path: bytes, head: bytes) -> None:
    """Replace the first bytes of a synced file, if they are others, and sync it again.

    With OSError it is unknown what is on the disk.
    """
    fd = os.open(path, os.O_RDWR)
    try:
        if os.pread(fd, len(head), 0) != head:
            os.pwrite(fd, head, 0)
            os.fsync(fd)
    finally:
        os.close(fd)


class NewFile:
    """A file that is being written under a name that no reader relies on.

    Args:
        sync_often: sync it every now and then while it grows.

    Attributes:
        size_bytes: how much has been written.
    """

    def __init__(self, path: bytes, sync_often: bool) -> None:
        self.path: Final = path
        self.size_bytes = 0
        self._sync_often: Final = sync_often
        self._synced_bytes = 0
        self._fd = -1
        self._broken = False

    def write(self, pieces: list[bytes]) -> None:
        """Add to the file, which the first call creates.

        After an OSError the file is of no use, and every later call fails.
        """
        if self._broken:
            raise OSError(EIO, "an earlier write had failed", self.path)
        self._broken = True
        try:
            self._write(pieces)
        except OSError as error:
            error.filename = self.path
            raise
        self._broken = False

    def _write(self, pieces: list[bytes]) -> None:
        if self._fd < 0:
            self._fd = create_file(self.path)
        self.size_bytes += write_pieces(self._fd, pieces)
        if self._sync_often and self.size_bytes - self._synced_bytes >= SYNC_EVERY_BYTES:
            sync_file(self._fd)
            self._synced_bytes = self.size_bytes

    def finish(self) -> None:
        """Sync and close the file. With OSError it is unknown what is on the disk."""
        if self._broken:
            raise OSError(EIO, "an earlier write had failed", self.path)
        os.fsync(self._fd)
        self._close()

    def discard(self) -> None:
        """Remove the file, if there is one; never fails."""
        with contextlib.suppress(OSError):
            self._close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def _close(self) -> None:
        fd = self._fd
        self._fd = -1
        if fd >= 0:
            os.close(fd)
