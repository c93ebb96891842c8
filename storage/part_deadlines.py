"""When parts of values expire: of each key that has some, the first deadline.

Whoever changes a value notifies the keyspace, which has one of these. It goes where the keys go,
when databases are swapped or emptied.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.storage.due import NOTHING, DueOrder, Heap
from headrace.storage.packed.table import SCORES, Table, new_seed
from headrace.storage.value import NO_PART


@mypyc_attr(acyclic=True)
class PartDeadlines(DueOrder):
    """The keys of one database with parts that expire."""

    def __init__(self) -> None:
        super().__init__(Heap())
        self._first: Final = Table(SCORES, new_seed())  # the first deadline of each, as a score

    def count(self) -> int:
        """How many keys there are."""
        return int(self._first.count)

    def moment_of(self, name: bytes) -> i64:
        """See ``DueOrder``."""
        moment_ms = self._first.score(name)
        return i64(int(moment_ms)) if moment_ms == moment_ms else NOTHING

    def watch(self, key: bytes, deadline_ms: int) -> None:
        """Take it that the first part of ``key`` expires then, or none with ``NO_PART``."""
        first = self._first
        if deadline_ms == NO_PART:
            first.remove(key)
            return
        score = float(deadline_ms)
        if first.swap_score(key, score) != score:
            self.add(key, deadline_ms, first.count)

    def free_some(self, most: int) -> bool:
        """See ``DueOrder``."""
        dropped = super().free_some(most)
        return self._first.free_some(most) and dropped

    def is_due(self, now_ms: i64) -> bool:
        """Whether the time of a key may be over."""
        first_ms = self.first_ms()
        return first_ms != NOTHING and first_ms < now_ms

    def next_due(self, now_ms: i64) -> bytes | None:
        """The key whose parts are to expire next, if the time of one is over.

        Whoever asks takes out what is due, and says what comes then.

        Returns: None without one, and where it takes another question to find it: ``is_due`` tells.
        """
        first = self.fresh_first()
        return first if first is not None and self.is_due(now_ms) else None
