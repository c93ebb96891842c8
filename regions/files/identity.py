"""The writer of an incr file of a region, and whether a file is the one that it wrote.

The first line of such a file is ``AA FILE version database region epoch generation nonce boot
file``. ``boot`` names the time since the system was started, ``file`` the place of the file on its
device: an inode, and how often that was given to a file, where the file system counts it. A file
that was copied or restored lies elsewhere than it says, even if it has the inode of the one that it
took the place of.

The last line is ``AA CLOSED nonce`` where the region came to its end in order. The nonce stands
there because any value of a client could end like a mark without it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from typing import Final

from headrace.persistence.errors import PersistenceError, os_refusal, shown
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder, SnapshotLoader
from headrace.persistence.snapshot.file import is_rdb_file, is_snapshot
from headrace.protocol.client import request
from headrace.regions.files.log_file import IDENTITY, BrokenBytes, Scanner
from headrace.regions.knowledge.region import Region
from headrace.storage.sharing import AA, CLOSED, FILE

Owner = tuple[int, bytes]  # a region that files belong to: its number, and its database

VERSION: Final = 1
_STEPS: Final = 3  # a frame is read, and then its first records: a header, and a region's
_HEAD_BYTES: Final = 4096
_GET_VERSION: Final = 0x80087601  # FS_IOC_GETVERSION of Linux
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


def boot_id() -> bytes:
    """Return a name of the time since the system was started; it never comes again."""
    with contextlib.suppress(OSError), open(_BOOT_ID, "rb") as file:
        return file.read(64).strip()
    return os.urandom(16).hex().encode()  # no system that says it: each start is one of its own


def place_of(fd: int) -> bytes:
    """Return where an open file lies, as ``AA FILE`` says it."""
    found = os.fstat(fd)
    version = bytearray(8)
    with contextlib.suppress(OSError):  # not all file systems have it
        fcntl.ioctl(fd, _GET_VERSION, version)
    return b"%d:%d:%d" % (found.st_dev, found.st_ino, int.from_bytes(version[:4], sys.byteorder))


def life_words(region: Region, place: bytes) -> list[bytes]:
    """Return the first line of a file at a place (``place_of``) that a region writes."""
    return [
        AA,
        FILE,
        b"%d" % VERSION,
        region.database,
        b"%d" % region.id,
        b"%d" % region.epoch,
        b"%d" % region.generation,
        region.nonce,
        boot_id(),
        place,
    ]


class Identity:
    """The first line of a file. ``boot`` and ``place`` are as in ``file_words``."""

    def __init__(self, words: list[bytes]) -> None:
        if len(words) != 10 or words[0] != AA or words[1] != FILE:
            raise ValueError("no AA FILE")
        if words[2] != b"%d" % VERSION:
            raise ValueError(f"version {shown(words[2])}")
        self.database: Final = words[3]
        self.region: Final = _number(words[4])
        self.epoch: Final = _number(words[5])
        self.generation: Final = _number(words[6])
        self.nonce: Final = words[7]
        self.boot: Final = words[8]
        self.place: Final = words[9]


class Life:
    """The end of the last writer of a folder.

    Attributes:
        is_same_file: the file lies where it was written, and was neither copied nor restored.
        is_same_boot: the system has been up since, so that all that was written is there.
        is_closed: it ended in order, so that nothing is missing.
    """

    def __init__(self, identity: Identity, path: bytes) -> None:
        self.identity: Final = identity
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            mark = request([AA, CLOSED, identity.nonce])
            file.seek(max(0, found.st_size - len(mark)))
            self.is_closed: Final = file.read() == mark
            self.is_same_file: Final = identity.place == place_of(file.fileno())
        self.is_same_boot: Final = identity.boot == boot_id()


def read_identity(path: bytes) -> Identity | None:
    """Return the writer of a file; None where the first line does not say it.

    Raises OSError if it cannot be read, PersistenceError if its version is not known.
    """
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    scanner = Scanner(head)
    try:
        if scanner.scan(0) < 0 or scanner.kind != IDENTITY:
            return None
        return Identity(scanner.words(0))
    except BrokenBytes:
        return None
    except ValueError as error:
        raise PersistenceError(
            f"{os.fsdecode(path)} belongs to a region, and cannot be read: {error}"
        ) from None


def last_life(paths: list[bytes]) -> Life | None:
    """Return how the last writer of these files has ended; None where none was a region.

    ``paths`` are incr files, oldest first. The last ones may be empty: no writer came to them.
    Raises OSError or PersistenceError if a file cannot be read.
    """
    for path in reversed(paths):
        if os.path.getsize(path):
            identity = read_identity(path)
            return None if identity is None else Life(identity, path)
    return None


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > 19:
        raise ValueError(f"{shown(text)} is no number")
    return int(text)


def owner_of(paths: list[bytes]) -> Owner | None:
    """Return the region that the first region's file of these belongs to; None without one.

    Raises PersistenceError if one of them cannot be read.
    """
    for path in paths:
        found = _owner(path)
        if found is not None:
            return found
    return None


def _owner(path: bytes) -> Owner | None:
    if is_rdb_file(path):
        return None
    if is_snapshot(path):
        return _owner_of_snapshot(path)
    try:
        identity = read_identity(path)
    except OSError as error:
        raise os_refusal(path, "read", error) from error
    return None if identity is None else (identity.region, identity.database)


def _owner_of_snapshot(path: bytes) -> Owner | None:
    decoder = Decoder([], 0, KEEP_ALL)
    decoder.accept_databases()
    decoder.accept_region(None)
    loader = SnapshotLoader(path, decoder)
    try:
        for _ in range(_STEPS):
            if not loader.step():
                break
        region = decoder.region
        return None if region is None else (region.id, region.database)
    finally:
        loader.close()
