"""The records that this region may give away: the latest in memory, those before in its files."""

from __future__ import annotations

from typing import Final

from headrace.regions.exchange.callers import FileLog
from headrace.regions.exchange.pieces import Piece
from headrace.regions.files.batch import Batch
from headrace.regions.files.kept import KeptLog


class JournalRecords(FileLog):
    """What the append-only file of a region holds."""

    def __init__(self, kept: KeptLog) -> None:
        self._kept: Final = kept
        self._backlog: Final = kept.backlog

    def ends(self, origin: bytes) -> int:
        """See ``RecordLog``."""
        return max(0, self._backlog.next(origin) - 1)

    def begins(self, origin: bytes) -> int:
        """See ``RecordLog``."""
        return max(1, self._backlog.reach(origin))

    def reach(self, origin: bytes) -> int:
        """See ``RecordLog``."""
        return max(1, self._kept.reach(origin))

    def origins(self) -> list[bytes]:
        """See ``RecordLog``."""
        return self._backlog.origins()

    def after(self, origin: bytes, number: int, most_bytes: int) -> Piece | None:
        """See ``RecordLog``."""
        return _piece(self._backlog.after(origin, number, most_bytes))

    def read(self, origin: bytes, number: int, most_bytes: int) -> Piece | None:
        """See ``FileLog``."""
        return _piece(self._kept.read(origin, number, most_bytes))


def _piece(batch: Batch | None) -> Piece | None:
    if batch is None:
        return None
    return Piece(batch.origin, batch.first, batch.count, batch.ms, batch.payload)
