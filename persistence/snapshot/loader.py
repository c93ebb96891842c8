"""Reads a snapshot into databases, a record at a time."""

from __future__ import annotations

import os
from typing import Final

from headrace.persistence.errors import PersistenceError, os_refusal
from headrace.persistence.forms.intake import Malformed
from headrace.persistence.forms.records import CHECKSUM
from headrace.persistence.snapshot.decode import Decoder, Unfit
from headrace.persistence.snapshot.file import FrameReader


class SnapshotLoader:
    """Loads one file.

    Attributes:
        decoder: what it found so far.
        size_bytes: the length of the file; loaded_bytes: how much of it has been loaded.

    Raises:
        PersistenceError: from any method, when the file cannot be read or trusted. The databases
            then hold some of its keys.
    """

    def __init__(self, path: bytes, decoder: Decoder) -> None:
        self.decoder: Final = decoder
        self.loaded_bytes = 0
        try:
            self._reader: Final = FrameReader(path)
        except OSError as error:
            raise os_refusal(path, "read", error) from error
        self.size_bytes: Final = self._reader.size_bytes

    def step(self) -> bool:
        """Load the next record, about a megabyte at most; False when all is loaded."""
        reader = self._reader
        try:
            if self.decoder.step():
                return True
            self.loaded_bytes = reader.offset
            frame = self._next()
            if frame is not None:
                self.decoder.take(frame, len(frame) - CHECKSUM.size)
                return True
            self.decoder.finish()
        except Malformed as damage:
            raise reader.damage(reader.frame_offset + damage.position, str(damage)) from damage
        except Unfit as reason:
            raise PersistenceError(
                f"{os.fsdecode(reader.name)} cannot be loaded: {reason}."
            ) from reason
        return False

    def _next(self) -> bytes | None:
        try:
            return self._reader.next()
        except OSError as error:
            raise os_refusal(self._reader.name, "read", error) from error

    def frame_offset(self) -> int:
        """Where the frame begins that was read last."""
        return self._reader.frame_offset

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
        self.decoder.close()
