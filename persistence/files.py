"""File operations that survive a crash between any two of them.

A file that others rely on is never changed in place: it is written under another name, synced,
renamed, and then the folder is synced, so that after a crash either the old or the new one is
there, whole.
"""

from __future__ import annotations

import os

TEMPORARY_PREFIX = b"temp-"


def write_all(fd: int, data: bytes) -> None:
    """Write everything, however many calls it takes.

    Raises:
        OSError: when the system refuses; a part may have been written.
    """
    done = os.write(fd, data)
    while done < len(data):
        with memoryview(data) as view:
            done += os.write(fd, view[done:])


def sync_file(fd: int) -> None:
    """Wait until what was written to ``fd`` is on the disk, its size included."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def sync_folder(path: bytes) -> None:
    """Wait until the names in a folder are on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(folder: bytes, name: bytes, data: bytes) -> None:
    """Give a file new content, all or nothing."""
    temporary = os.path.join(folder, TEMPORARY_PREFIX + name)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(temporary, os.path.join(folder, name))
    sync_folder(folder)
