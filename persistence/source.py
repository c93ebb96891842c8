"""The source of a tool's data: a folder or a file, found and held, never changed.

A folder may be the one that a server was given as ``dir`` or the append-only folder in it, ours or
Redis's. A file may be a snapshot, a file of commands, or a manifest, which stands for its folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Final

from headrace.persistence.aof.manifest import read as read_manifest
from headrace.persistence.errors import PersistenceError, os_refusal

FOLDER_NAME: Final = b"appendonlydir"
MANIFEST_SUFFIX: Final = b".manifest"
LONE_FILES: Final = (b"dump.hrs", b"appendonly.aof", b"dump.rdb")


class Source:
    """Data on the disk, held against servers that would change it meanwhile.

    Raises PersistenceError if there is no data, or a server uses it.

    Attributes:
        manifest_path: its manifest; empty for a lone file.
        files: paths of the files with the data, in the order of loading.
        is_dump: it is only what Redis has saved: bytes behind its end are no part of it.
    """

    def __init__(self, path: bytes) -> None:
        self.manifest_path = b""
        self.files: list[bytes] = []
        self._lock_fd = -1
        if os.path.isdir(path):
            self._open_folder(path)
        elif path.endswith(MANIFEST_SUFFIX):
            self._open_manifest(os.path.dirname(path), os.path.basename(path))
        else:
            _refuse_missing(path)
            self.files = [path]
        self.is_dump = not self.manifest_path and self.files[0].endswith(b".rdb")

    def close(self) -> None:
        """Unlock it, so that servers can use it."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def size_bytes(self) -> int:
        """Return the length of all files together. Raises PersistenceError if one is missing."""
        total = 0
        for path in self.files:
            try:
                total += os.stat(path).st_size
            except OSError as error:
                raise os_refusal(path, "read", error) from error
        return total

    def _open_folder(self, path: bytes) -> None:
        for folder in (path, os.path.join(path, FOLDER_NAME)):
            found = _manifests(folder)
            if len(found) > 1:
                names = ", ".join([os.fsdecode(name) for name in found])
                raise PersistenceError(
                    f"{os.fsdecode(folder)} holds several manifests ({names}): name the one to use."
                )
            if found:
                self._open_manifest(folder, found[0])
                return
        for name in LONE_FILES:
            lone = os.path.join(path, name)
            if os.path.isfile(lone):
                self.files = [lone]
                return
        raise PersistenceError(
            f"{os.fsdecode(path)} holds no data: no manifest (*.manifest), no append-only folder, "
            "no snapshot."
        )

    def _open_manifest(self, folder: bytes, name: bytes) -> None:
        self._hold(os.path.join(folder, name[: -len(MANIFEST_SUFFIX)] + b".lock"), folder)
        path = os.path.join(folder, name)
        try:
            manifest = read_manifest(path)
        except OSError as error:
            self.close()
            raise os_refusal(path, "read", error) from error
        except PersistenceError:
            self.close()
            raise
        self.manifest_path = path
        for part in manifest.to_load():
            self.files.append(os.path.join(folder, part.name))

    def _hold(self, path: bytes, folder: bytes) -> None:
        """Keep our servers out; those of Redis lock nothing."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise PersistenceError(
                f"A server (pid {owner or 'unknown'}) uses {os.fsdecode(folder)}. Stop it, or "
                "work on a copy of the folder."
            ) from None
        self._lock_fd = fd


def _refuse_missing(path: bytes) -> None:
    try:
        os.stat(path)
    except FileNotFoundError:
        raise PersistenceError(f"{os.fsdecode(path)} does not exist.") from None
    except OSError as error:
        raise os_refusal(path, "read", error) from error


def _manifests(folder: bytes) -> list[bytes]:
    with contextlib.suppress(OSError):
        return sorted([name for name in os.listdir(folder) if name.endswith(MANIFEST_SUFFIX)])
    return []
