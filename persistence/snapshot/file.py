"""The frames of a snapshot, in order: none is believed without its checksum.

docs/snapshot-format.md goes through a snapshot byte by byte.

A file is a preamble and then frames, numbered from 0, each with a checksum of its own. The frames
together hold records (``persistence.forms.records``)::

    preamble   "HEADRACE", version u32, zero u32, XXH3-64 of these 16 bytes
    frame      payload length u64, number u32, payload, XXH3-64 of all that

A record lies whole in one frame. Records come in this order: ``HEADER``; for each database that
holds keys ``DATABASE`` and then its keys, as the forms of their types have them; at last ``END``,
with totals.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import Final

from xxhash import xxh3_64, xxh3_64_intdigest

from headrace.persistence.errors import PersistenceError, SnapshotError, os_refusal
from headrace.persistence.files import open_to_read, read_head
from headrace.persistence.forms.records import CHECKSUM, OLDEST_VERSION, REGIONAL_VERSION, VERSION
from headrace.persistence.rdb.kinds import HEAD_BYTES, is_rdb, writer_of

MAGIC: Final = b"HEADRACE"
SUFFIX: Final = b"hrs"  # of the names of snapshots

PREAMBLE: Final = Struct("<8sIIQ")
PREAMBLE_CHECKED: Final = 16  # bytes of it that its checksum covers
FRAME_HEAD: Final = Struct("<QI")


def is_snapshot(path: bytes) -> bool:
    """Return whether a file is a snapshot by its first bytes; its name has to agree.

    Raises PersistenceError if it is a snapshot of Redis or Valkey, or not what its name says, or
    cannot be read.
    """
    shown = os.fsdecode(path)
    try:
        head = read_head(path, HEAD_BYTES)
    except OSError as error:
        raise os_refusal(path, "read", error) from error
    if is_rdb(head):
        raise rdb_refusal(path, head)
    ours = head.startswith(MAGIC)
    named = path.endswith(b"." + SUFFIX)
    if ours and path.endswith(b".aof"):
        raise PersistenceError(
            f"{shown} is a snapshot, but its name says that it holds commands. Put the folder back "
            "as it was, or name the file as it should be."
        )
    return named or ours


def is_rdb_file(path: bytes) -> bool:
    """Return whether a file begins as the snapshots of Redis and Valkey do (RDB).

    Raises PersistenceError if it cannot be read.
    """
    try:
        return is_rdb(read_head(path, HEAD_BYTES))
    except OSError as error:
        raise os_refusal(path, "read", error) from error


def rdb_refusal(path: bytes, head: bytes) -> PersistenceError:
    """Return the error for a file that begins with ``head``, so is a Redis or Valkey snapshot."""
    folder, name = os.path.split(path)
    source = folder if b".base." in name else path
    return PersistenceError(
        f"{os.fsdecode(path)} is a snapshot of {writer_of(head)} (RDB), which this server does "
        f"not start from. To take its data over: headrace import {os.fsdecode(source)} "
        "--dir NEW-FOLDER"
    )


class FrameReader:
    """Reads one file.

    Any method raises SnapshotError when the file is damaged or none of ours, OSError when it cannot
    be read.

    Attributes:
        name: the file, for messages.
        offset: where the next frame starts; all before it is good.
        frame_offset: where the payload of the current frame starts.
    """

    def __init__(self, path: bytes) -> None:
        self.name: Final = path
        self.offset = 0
        self.frame_offset = 0
        self._number = 0
        self._fd: Final = open_to_read(path)
        self.size_bytes: Final = os.fstat(self._fd).st_size
        try:
            self._read_preamble()
        except BaseException:
            os.close(self._fd)
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def next(self) -> bytes | None:
        """Return the payload of the next frame, its checksum behind it; None at the end."""
        left = self.size_bytes - self.offset
        if not left:
            return None
        head = self._read(FRAME_HEAD.size)
        if len(head) < FRAME_HEAD.size:
            raise self.damage(self.offset, "a whole frame, but the file ends within its head")
        size, number = FRAME_HEAD.unpack(head)
        whole = FRAME_HEAD.size + size + CHECKSUM.size
        if whole > left:
            raise self.damage(
                self.offset,
                f"a frame of {whole} bytes, but only {left} bytes are left: the file was cut off, "
                "or the length is wrong",
            )
        frame = self._read(size + CHECKSUM.size)
        if len(frame) < size + CHECKSUM.size:
            raise self.damage(self.offset, "a whole frame, but the file became shorter")
        (checksum,) = CHECKSUM.unpack_from(frame, size)
        digest = xxh3_64(head)
        digest.update(memoryview(frame)[:size])
        if digest.intdigest() != checksum:
            raise self.damage(self.offset, f"frame {self._number}, but its checksum is wrong")
        if number != self._number:
            raise self.damage(self.offset, f"frame {self._number}, but this is frame {number}")
        self._number += 1
        self.frame_offset = self.offset + FRAME_HEAD.size
        self.offset += whole
        return frame

    def damage(self, offset: int, expected: str) -> SnapshotError:
        """Return the error to raise for damage at ``offset``."""
        return SnapshotError(self.name, offset, expected)

    def _read_preamble(self) -> None:
        head = self._read(PREAMBLE.size)
        shown = os.fsdecode(self.name)
        if is_rdb(head):
            raise rdb_refusal(self.name, os.pread(self._fd, HEAD_BYTES, 0))
        if not head.startswith(MAGIC):
            if self.size_bytes < len(MAGIC) and MAGIC.startswith(head):
                raise self.damage(self.size_bytes, "the rest of the preamble")
            raise PersistenceError(
                f"{shown} is no snapshot: it does not start with {MAGIC.decode()}."
            )
        if len(head) < PREAMBLE.size:
            raise self.damage(len(head), "the rest of the preamble")
        _, version, zero, checksum = PREAMBLE.unpack(head)
        if xxh3_64_intdigest(head[:PREAMBLE_CHECKED]) != checksum:
            raise self.damage(0, "a preamble, but its checksum is wrong")
        if version > REGIONAL_VERSION:
            raise PersistenceError(
                f"{shown} was written by a newer version of Headrace: it has format {version}, and "
                f"this server reads formats up to {REGIONAL_VERSION}. Start that version, or a "
                "newer one."
            )
        if version < OLDEST_VERSION or zero:
            raise self.damage(len(MAGIC), f"format {VERSION}")
        self.offset = PREAMBLE.size

    def _read(self, size: int) -> bytes:
        """Return the next ``size`` bytes; fewer at the end of the file."""
        data = os.read(self._fd, size)
        if len(data) == size or not data:
            return data
        parts = [data]
        done = len(data)
        while done < size:
            data = os.read(self._fd, size - done)
            if not data:
                break
            parts.append(data)
            done += len(data)
        return b"".join(parts)
