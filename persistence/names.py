"""Tells whether a file names a key twice, without holding all names in memory.

Of each key there is a fingerprint and where it stands in the file. They are sorted into parts by
their first byte, and parts that grow go to a temporary file bit by bit. At the end each part is
looked through by itself. What goes to the temporary file is looked through before, so that a file
of nothing but one name is not read to its end.
"""

from __future__ import annotations

import os
import tempfile
from typing import Final

from xxhash import xxh3_128_digest

_PARTS: Final = 256
_FINGERPRINT_BYTES: Final = 16
_OFFSET_BYTES: Final = 8
_ROW_BYTES: Final = _FINGERPRINT_BYTES + _OFFSET_BYTES
_SPILLED_BYTES: Final = 640 * _ROW_BYTES  # of one part, at once

NOWHERE: Final = -1


class MetNames:
    """The names of keys that a file has.

    Args:
        folder: where a temporary file may lie; None for the system's own place.
    """

    def __init__(self, folder: bytes | None) -> None:
        self._folder: Final = folder
        self._parts: Final = [bytearray() for _ in range(_PARTS)]
        self._spilled: Final[list[list[int]]] = [[] for _ in range(_PARTS)]  # where they begin
        self._fd = -1
        self._size_bytes = 0

    def note(self, db: int, key: bytes, offset: int) -> int:
        """A key of a database stands at a place of the file.

        Returns: where a key stands that has been there before, if one has just come up, or
            ``NOWHERE``; ``doubled`` tells for sure.

        Raises:
            OSError: the temporary file cannot be written.
        """
        row = xxh3_128_digest(key, db) + offset.to_bytes(_OFFSET_BYTES, "little")
        number = row[0]
        part = self._parts[number]
        part += row
        if len(part) < _SPILLED_BYTES:
            return NOWHERE
        self._spill(number, part)
        return _first_doubled(bytes(part), set(), NOWHERE)

    def _spill(self, number: int, part: bytearray) -> None:
        if self._fd < 0:
            self._fd, path = tempfile.mkstemp(prefix=b"headrace-names-", dir=self._folder)
            os.unlink(path)
        done = 0
        while done < len(part):
            done += os.pwrite(self._fd, bytes(part[done:]), self._size_bytes + done)
        self._spilled[number].append(self._size_bytes)
        self._size_bytes += done
        self._parts[number] = bytearray()

    def doubled(self) -> int:
        """Where the first key stands that has been there before; ``NOWHERE`` if there is none.

        Raises:
            OSError: the temporary file cannot be read.
        """
        first = NOWHERE
        for number in range(_PARTS):
            met: set[bytes] = set()
            for start in [*self._spilled[number], NOWHERE]:
                rows = bytes(self._parts[number])
                if start != NOWHERE:
                    rows = os.pread(self._fd, _SPILLED_BYTES, start)
                first = _first_doubled(rows, met, first)
        return first

    def close(self) -> None:
        """Drop the temporary file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _first_doubled(rows: bytes, met: set[bytes], first: int) -> int:
    """The lowest offset of rows whose fingerprint was met, and of ``first``; all are met then."""
    for at in range(0, len(rows), _ROW_BYTES):
        fingerprint = rows[at : at + _FINGERPRINT_BYTES]
        if fingerprint in met:
            place = rows[at + _FINGERPRINT_BYTES : at + _ROW_BYTES]
            offset = int.from_bytes(place, "little")
            first = offset if first == NOWHERE else min(first, offset)
        met.add(fingerprint)
    return first
