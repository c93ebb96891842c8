"""All databases as they are at one moment, taken key by key while they go on changing.

A ``Freezing`` walks each database from its last slot to the first, as SCAN does, so a key that was
there at the start and stays is met at least once. A key that it has taken is marked, and so is one
that is made meanwhile. So a key is taken once, and one that was made after the start is not taken.

Before a key changes or goes, ``keep`` takes it early: the barrier. The keyspaces call it for what
happens to keys; before a value changes in place, ``Keyspace.before_change`` is called. Where a key
cannot be taken, the change goes on all the same, and the freezing is useless then (``failure``).

Nothing here is proportional to the number of keys, except for the walk itself, which comes in
slices. A database that is swapped keeps the number that it has in the freezing. The keys of an
emptied one are put aside until they have been walked.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from headrace.storage.entry import Barrier, Emptied, Entry
from headrace.storage.faces import face, frozen
from headrace.storage.key_table import KeyTable
from headrace.storage.keyspace import Keyspace
from headrace.storage.value import Freeable, Frozen, Value


class FrozenKey:
    """One key as it was.

    Attributes:
        db: the number of its database at the start.
        value: what ``Value.freeze`` returned; ``Freezing.release`` is to have it when it was read.
        expire_ms: its deadline in milliseconds since 1970, or ``NO_EXPIRY``.
    """

    def __init__(self, db: int, key: bytes, value: object, expire_ms: i64) -> None:
        self.db: Final = db
        self.key: Final = key
        self.value: Final = value
        self.expire_ms: Final[i64] = expire_ms


def frozen_key(db: int, entry: Entry) -> FrozenKey:
    """Return an entry as it is now, to be used before anything changes."""
    return FrozenKey(db, entry.key, frozen(entry.value), entry.expire_ms)


class _Walk:
    def __init__(self, table: KeyTable, db: int) -> None:
        self.table: Final = table
        self.db: Final = db
        self.position: i64 = table.count


class Freezing(Barrier):
    """The keys of all databases at the moment when this is made; ``epoch`` is above those before.

    Attributes:
        total: how many keys there are; ``taken``: how many of them have been taken.
        failure: why a key could not be taken before it changed, or None.
    """

    def __init__(self, databases: list[Keyspace], epoch: int) -> None:
        self.epoch: Final[i64] = epoch
        self.total = 0
        self.taken = 0
        self.failure: Exception | None = None
        self._databases: Final = [*databases]
        self._walks: Final[list[_Walk]] = []
        self._kept: Final[deque[FrozenKey]] = deque()
        self._emptied: list[Emptied] = []
        self._frozen: Final[dict[int, Frozen]] = {}  # by id(), until they are released
        self._copied_bytes = 0
        for db in databases:
            db.epoch = epoch
            db.freeze(self)
            db.frozen_as = db.index
            if len(db):
                self._walks.append(_Walk(db.table, db.index))
                self.total += len(db)
        self._walks.reverse()  # the next one is the last

    def include(self, db: object) -> None:
        assert isinstance(db, Keyspace)
        db.freeze(self)
        self._databases.append(db)

    def keep(self, table: KeyTable, slot: int, db: int) -> None:
        """Take a key now, if it is still to be taken, because it is about to change."""
        if self.failure is None and not table.is_marked(slot, self.epoch):
            try:
                key = self._take(table, slot, db)
                self._kept.append(key)
            except Exception as error:
                self.failure = error
                return
            if not isinstance(key.value, Frozen):
                self._copied_bytes += face(key.value).used_bytes(1)

    def put_aside(self, emptied: Emptied) -> None:
        """Hold the keys of an emptied database, because they are still to be walked."""
        self._emptied.append(emptied)

    def _take(self, table: KeyTable, slot: i64, db: int) -> FrozenKey:
        whole = table.value_at(slot)
        value = frozen(whole)
        if value is not whole and isinstance(value, Frozen):
            self._frozen[id(value)] = value  # first, so that ``end`` thaws it whatever comes
            value.register()
        key = FrozenKey(db, table.key_at(slot), value, table.deadline_ms(slot))
        table.mark(slot, self.epoch)
        self.taken += 1
        return key

    def next_keys(self, most: int) -> list[FrozenKey]:
        """Return some keys, after a look at about ``most``; none after one that is to be thawed.

        An empty list is not the end: see ``is_done``.
        """
        found: list[FrozenKey] = []
        if self._kept:
            while self._kept and len(found) < most:
                found.append(self._kept.popleft())
            return found
        walks = self._walks
        held = len(self._frozen)
        while walks and most > 0:
            walk = walks[-1]
            table = walk.table
            position = min(walk.position, table.count)
            while position > 0 and most > 0:
                position -= 1
                most -= 1
                if not table.is_marked(position, self.epoch):
                    key = self._take(table, position, walk.db)
                    found.append(key)
                    if len(self._frozen) > held:
                        most = 0
            walk.position = position
            if not position:
                walks.pop()
        return found

    def is_done(self) -> bool:
        """Return whether all keys have been returned."""
        return not self._walks and not self._kept

    def release(self, key: FrozenKey, unused: list[Freeable]) -> None:
        """Thaw a key that was read; what only it held goes to ``unused``."""
        value = key.value
        if isinstance(value, Frozen):
            if self._frozen:
                del self._frozen[id(value)]
                self._thaw(value, unused)
        elif isinstance(value, Value) and value.effort():
            unused.append(value)

    def _thaw(self, value: Frozen, unused: list[Freeable]) -> None:
        self._copied_bytes += value.copied_bytes()
        unused.extend(value.thaw())

    def copied_bytes(self) -> int:
        """Return about how many bytes were kept or copied because of changes so far."""
        total = self._copied_bytes
        for value in self._frozen.values():
            total += value.copied_bytes()
        return total

    def end(self, unused: list[Freeable]) -> None:
        """Thaw all values, so that the databases may change; the unused go to ``unused``.

        An error on the way is raised at the end.
        """
        failure: Exception | None = None
        for db in self._databases:
            if db.freezing is self:
                db.freeze(None)
        while self._kept:
            key = self._kept.popleft()
            if not isinstance(key.value, Frozen):
                self.release(key, unused)
        self._walks.clear()
        while self._frozen:
            _, value = self._frozen.popitem()
            try:
                self._thaw(value, unused)
            except Exception as error:
                failure = error
        unused.extend(self._emptied)
        self._emptied = []
        if failure is not None:
            raise failure
