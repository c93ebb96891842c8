"""Errors of files, reported so that an operator can act on them."""

from __future__ import annotations

import errno
import os
from typing import Final

# Remedies for an error of the system.
_NO_ROOM: Final = "Make room on the disk."
_NOT_ALLOWED: Final = "Check who owns it and its permissions; this process is user %d."
_IN_THE_WAY: Final = "Something else has its name: move that away."
_BROKEN: Final = (
    "The disk reports an error: look at the system's log, and copy what can be read elsewhere."
)
_ADVICE: Final = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f).",
    errno.EMFILE: "Raise the limit of open files (ulimit -n).",
    errno.EROFS: "Its file system is mounted read-only.",
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.ENOENT: "Put it back, from a copy if need be.",
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.ELOOP: "It is a symbolic link that leads to itself: replace it by what it should be.",
    errno.EIO: _BROKEN,
}


class PersistenceError(Exception):
    """A file cannot be read, written or trusted; the text names it and says what to do."""


def shown(name: bytes) -> str:
    """Return the beginning of a key or another word of a file, as it can stand in a message."""
    text = name[:64].decode("utf-8", "backslashreplace")
    return "".join([char if char.isprintable() else repr(char)[1:-1] for char in text])


def advice(error: OSError) -> str:
    """Return the system's reason, in its words, and the remedy."""
    reason = f"{error.strerror or error}."
    hint = _ADVICE.get(error.errno or 0, "")
    if not hint:
        return reason
    return f"{reason} {hint % os.geteuid() if hint is _NOT_ALLOWED else hint}"


def os_refusal(path: bytes, verb: str, error: OSError) -> PersistenceError:
    """Return the error that a file cannot be read, written or opened, with reason and remedy.

    ``verb`` is such as ``read``. The file is ``path``, unless ``error`` names another one.
    """
    name = path if error.filename is None else error.filename
    return PersistenceError(f"{os.fsdecode(name)} cannot be {verb}: {advice(error)}")


class CorruptAOF(PersistenceError):
    """An append-only file is damaged.

    Args:
        offset: how many of its bytes are good; the damage starts there.
        expected: what should have stood there.
    """

    def __init__(self, file: bytes, offset: int, expected: str) -> None:
        super().__init__(
            f"The append-only file {os.fsdecode(file)} is damaged at offset {offset}: expected "
            f"{expected}. Nothing has been changed. Make a copy of the folder before any repair; "
            "headrace check-aof tells more."
        )
        self.file = file
        self.offset = offset
        self.expected = expected


class SnapshotError(PersistenceError):
    """A snapshot is damaged; the arguments are those of ``CorruptAOF``."""

    def __init__(self, file: bytes, offset: int, expected: str) -> None:
        super().__init__(
            f"The snapshot {os.fsdecode(file)} is damaged at offset {offset}: expected {expected}. "
            "Nothing has been changed. Start with another copy of the file, or without it."
        )
        self.file = file
        self.offset = offset
        self.expected = expected


class CorruptRDB(PersistenceError):
    """A snapshot of Redis or Valkey is damaged; the arguments are those of ``CorruptAOF``."""

    def __init__(self, file: bytes, offset: int, expected: str) -> None:
        super().__init__(
            f"The RDB snapshot {os.fsdecode(file)} is damaged at offset {offset}: expected "
            f"{expected}. Nothing has been changed."
        )
        self.file = file
        self.offset = offset
        self.expected = expected


class EmptyValue(CorruptRDB):
    """A snapshot holds a key with nothing in it, left by faults of older servers.

    The value has been read to its end, so that reading can go on behind it.
    """
