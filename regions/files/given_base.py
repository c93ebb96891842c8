"""A base that is given to another region piece by piece, as it lies on the disk."""

from __future__ import annotations

import os
from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.persistence.files import open_to_read
from headrace.persistence.forms.records import REGIONAL_VERSION
from headrace.persistence.snapshot.file import MAGIC, PREAMBLE


class GivenBase:
    """The base of a region, open for reading; it stays there when another one takes its place.

    Attributes:
        name: of the file, without its folder.
        size_bytes: how long it is.
    """

    def __init__(self, path: bytes) -> None:
        """Open it.

        Raises:
            PersistenceError, OSError: it cannot be read.
        """
        self.name: Final = os.path.basename(path)
        self._fd = open_to_read(path)
        self.size_bytes: Final = os.fstat(self._fd).st_size

    def is_of_region(self) -> bool:
        """Return whether it says what the region knew, so that another one can go on from there."""
        head = os.pread(self._fd, PREAMBLE.size, 0)
        if len(head) < PREAMBLE.size or not head.startswith(MAGIC):
            return False
        version = PREAMBLE.unpack(head)[1]
        return bool(version >= REGIONAL_VERSION)

    def read(self, offset: int, most_bytes: int) -> bytes:
        """So many bytes from a place on, fewer at the end; may run in a thread.

        Raises:
            PersistenceError, OSError: they cannot be read.
        """
        parts: list[bytes] = []
        left = min(most_bytes, self.size_bytes - offset)
        while left > 0:
            data = os.pread(self._fd, left, offset)
            if not data:
                raise PersistenceError(f"{os.fsdecode(self.name)} has become shorter")
            parts.append(data)
            offset += len(data)
            left -= len(data)
        return b"".join(parts)

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)
