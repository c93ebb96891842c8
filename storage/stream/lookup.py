"""Looking up the entries of NACKs: what was decoded for one is kept for the next."""

from __future__ import annotations

from typing import Final

from headrace.storage.stream.block import Block
from headrace.storage.stream.entry_log import EntryLog
from headrace.storage.stream.part import Part, part_with
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.run import Run, is_below


class Lookup:
    """Finds the entries of ``nacks``, which are asked for in their order, that of their IDs.

    Nothing is added to ``log`` meanwhile.
    """

    def __init__(self, log: EntryLog, nacks: list[Nack]) -> None:
        self._log: Final = log
        self._last: Final = (nacks[-1].ms, nacks[-1].seq) if nacks else (0, 0)
        self._block: Block | None = None
        self._run = Run(None)

    def part_of(self, nack: Nack) -> Part | None:
        """Return where its entry is to be found; None when that was deleted."""
        ms = nack.ms
        seq = nack.seq
        block = self._block
        if block is None or is_below(block.last_ms, block.last_seq, ms, seq):
            block = self._log.block_for(ms, seq)
            self._block = block
            if block is None:
                return self._log.one(ms, seq)
            self._run = block.some((ms, seq), self._last, block.total, False)
        return part_with(block, self._run, ms, seq)
