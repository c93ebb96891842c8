"""What goes wrong with files, told so that a person can act on it."""

from __future__ import annotations

import os


class PersistenceError(Exception):
    """A file cannot be read, written or trusted; the text names it and says what to do."""


class CorruptAOF(PersistenceError):
    """An append-only file is damaged.

    Args:
        file: name of the file.
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
    """A snapshot of Redis is damaged; the arguments are those of ``CorruptAOF``."""

    def __init__(self, file: bytes, offset: int, expected: str) -> None:
        super().__init__(
            f"The Redis snapshot {os.fsdecode(file)} is damaged at offset {offset}: expected "
            f"{expected}. Nothing has been changed."
        )
        self.file = file
        self.offset = offset
        self.expected = expected
