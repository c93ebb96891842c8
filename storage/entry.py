"""A key with its value as a keyspace shows it, deadlines of parts, and all of an emptied database.

Of each key that has parts which expire, ``PartDeadlines`` has the first deadline. The keyspace has
one of these, and is notified before a value changes. It goes where the keys go, when databases are
swapped or emptied.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.storage.due import NOTHING, DueOrder, Heap
from headrace.storage.key_table import NO_EXPIRY as NO_EXPIRY
from headrace.storage.key_table import NO_SLOT, KeyTable
from headrace.storage.packed.table import SCORES, Table, new_seed
from headrace.storage.value import NO_PART, Freeable


@mypyc_attr(acyclic=True)
class PartDeadlines(DueOrder):
    """The keys of one database with parts that expire."""

    def __init__(self) -> None:
        super().__init__(Heap())
        self._first: Final = Table(SCORES, new_seed())  # the first deadline of each, as a score

    def count(self) -> int:
        """Return how many keys there are."""
        return int(self._first.count)

    def moment_of(self, name: bytes) -> i64:
        moment_ms = self._first.score(name)
        return i64(int(moment_ms)) if moment_ms == moment_ms else NOTHING

    def watch(self, key: bytes, deadline_ms: int) -> None:
        """Record that the first part of ``key`` expires then, or none with ``NO_PART``."""
        first = self._first
        if deadline_ms == NO_PART:
            first.remove(key)
            return
        score = float(deadline_ms)
        if first.swap_score(key, score) != score:
            self.add(key, deadline_ms, first.count)

    def free_some(self, most: int) -> bool:
        dropped = super().free_some(most)
        return self._first.free_some(most) and dropped

    def is_due(self, now_ms: i64) -> bool:
        """Return whether the time of a key may be over."""
        first_ms = self.first_ms()
        return first_ms != NOTHING and first_ms < now_ms

    def next_due(self, now_ms: i64) -> bytes | None:
        """Return the key whose parts are to expire next, if the time of one is over.

        The caller takes out what is due, and says what comes then.
        Returns: None without one, or where another question is needed to find it: ``is_due`` tells.
        """
        first = self.fresh_first()
        return first if first is not None and self.is_due(now_ms) else None


@mypyc_attr(acyclic=True, free_list_len=1)
class Entry:
    """A key with its value, as they are when this is made; changes are asked of its keyspace."""

    def __init__(self, table: KeyTable, key: bytes, value: object) -> None:
        self.key: Final = key
        self.value: Final = value
        self._table: Final = table

    @property
    def expire_ms(self) -> int:
        """Return the deadline of the key, in milliseconds since 1970, or ``NO_EXPIRY``."""
        slot = self._table.find(self.key)
        return int(NO_EXPIRY) if slot == NO_SLOT else int(self._table.deadline_ms(slot))

    @property
    def usage(self) -> int:
        """Return how the key is used; see ``KeyTable.usage_of``."""
        slot = self._table.find(self.key)
        return 0 if slot == NO_SLOT else int(self._table.usage_of(slot))


class Emptied(Freeable):
    """The keys of an emptied database; ``unused`` takes values to be freed in slices themselves."""

    def __init__(self, table: KeyTable, parts: PartDeadlines, unused: list[Freeable]) -> None:
        self.table: Final = table
        self.parts: Final = parts
        self.unused: Final = unused

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` keys; True at the end."""
        dropped = self.parts.free_some(most)
        return self.table.free_some(most, self.unused) and dropped


class Barrier:
    """Takes keys as they were before they change; see ``storage.freezing``."""

    def keep(self, table: KeyTable, slot: int, db: int) -> None:
        """Take a key, because it or its value is about to change."""
        raise NotImplementedError

    def include(self, db: object) -> None:
        """Guard a keyspace that has just been made, and has no keys."""
        raise NotImplementedError

    def put_aside(self, emptied: Emptied) -> None:
        """Take the keys of a database that has been emptied."""
        raise NotImplementedError
