"""The snapshot that a master sends: received into a file, then loaded in slices.

It comes with its length before it, or, if the master does not know that, ends with 40 bytes that it
has named before.
"""

from __future__ import annotations

import os
from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.persistence.files import TEMPORARY_PREFIX, create_file, remove_file, write_all

_MARK_BYTES: Final = 40
_UNKNOWN: Final = -1


class Payload:
    """A snapshot that is coming in.

    Args:
        head: the line in front of it, such as ``$1234`` or ``$EOF:`` and the mark.
        folder: where its file may lie.

    Raises:
        PersistenceError: that is no such line.
        OSError: from any method, when the file cannot be written.

    Attributes:
        path: the file; received_bytes: how much has come.
        total_bytes: how much there is; 0 where that is not known.
    """

    def __init__(self, head: bytes, folder: bytes) -> None:
        self._left = _UNKNOWN
        self._mark = b""
        self._tail = b""  # what came last: it may be the mark
        self.total_bytes = 0
        if head.startswith(b"$EOF:") and len(head) == 5 + _MARK_BYTES:
            self._mark = head[5:]
        elif head.startswith(b"$") and head[1:].isdigit() and len(head) < 20:
            self._left = int(head[1:])
            self.total_bytes = self._left
        else:
            raise PersistenceError(f"a snapshot was expected, and not {head[:60]!r}")
        self.received_bytes = 0
        self.path: Final = os.path.join(folder, TEMPORARY_PREFIX + b"%d.sync" % os.getpid())
        remove_file(self.path)
        self._fd = create_file(self.path)

    def take(self, data: bytes) -> bytes | None:
        """Take what has come; what follows the snapshot when it is complete, else None."""
        if self._mark:
            write_all(self._fd, data)
            self.received_bytes += len(data)
            self._tail = (self._tail + data)[-_MARK_BYTES:]
            if self._tail != self._mark:
                return None
            os.ftruncate(self._fd, self.received_bytes - _MARK_BYTES)
            return b""
        mine = data[: self._left]
        write_all(self._fd, mine)
        self._left -= len(mine)
        self.received_bytes += len(mine)
        return None if self._left else data[len(mine) :]

    def close(self) -> None:
        """Receive no more; the file stays."""
        fd = self._fd
        self._fd = -1
        if fd >= 0:
            os.close(fd)

    def discard(self) -> None:
        """Remove the file."""
        self.close()
        remove_file(self.path)
