"""The texts of sequences: what follows the milliseconds of an ID. Low ones are kept ready."""

from __future__ import annotations

from typing import Final

ALL_BELOW: Final = 1024  # of which every text is there from the start
STEP: Final = 16  # how far apart sequences are that follow each other in a region
_FAR_BELOW: Final = ALL_BELOW * STEP  # of which texts are made when one is asked for


class SequenceTexts:
    """The texts ``-<sequence>`` with an end; ``low`` has those of all below ``ALL_BELOW``."""

    def __init__(self, end: bytes) -> None:
        self.low: Final = [b"-%d%b" % (seq, end) for seq in range(ALL_BELOW)]
        self._end: Final = end
        self._rows: Final[list[list[bytes]]] = [[] for _ in range(STEP)]

    def far(self, seq: int) -> bytes:
        """Return the text of a sequence that is not low."""
        if seq < _FAR_BELOW:
            return self._row(seq)[seq // STEP]
        return b"-%d%b" % (seq, self._end)

    def some(self, seq: int, stop: int, step: int) -> list[bytes]:
        """Return the texts of those from ``seq`` on, ``step`` apart, that are below ``stop``."""
        if step == 1 and stop <= ALL_BELOW:
            return self.low[seq:stop]
        if step == STEP and stop <= _FAR_BELOW:
            return self._row(seq)[seq // STEP : (stop - 1 - seq % STEP) // STEP + 1]
        end = self._end
        return [b"-%d%b" % (each, end) for each in range(seq, stop, step)]

    def _row(self, seq: int) -> list[bytes]:
        first = seq % STEP
        row = self._rows[first]
        if not row:
            end = self._end
            row.extend([b"-%d%b" % (each, end) for each in range(first, _FAR_BELOW, STEP)])
        return row
