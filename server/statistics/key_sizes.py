"""How many keys have values of which size, by powers of two, for INFO keysizes.

Nothing is counted while keys change, because that would cost every write. Sizes are looked at on
request: at once where there are few keys. Of many keys some are looked at between requests, and the
result of the last round is shown while the next one is under way.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.storage.faces import face
from headrace.storage.keyspace import Keyspaces

AT_ONCE: Final = 20_000  # keys that are looked at on request
STEP_KEYS: Final = 500
_BINS: Final = 66  # for empty values and each length in bits
_SAMPLES: Final = 5  # parts of a value by which its memory is judged


class Sizes:
    """The sizes of the keys of one database.

    Attributes:
        by_type: by the name of a type, how many values have a size of so many bits.
        memory: the same of the bytes of memory that values take; empty unless that is asked for.
    """

    def __init__(self, db: int) -> None:
        self.db: Final = db
        self.by_type: Final[dict[bytes, list[int]]] = {}
        self.memory: Final[dict[bytes, list[int]]] = {}

    def add(self, value: object, with_memory: bool) -> None:
        """Count the value of one more key."""
        seen = face(value)
        name = seen.type_name()
        _count(self.by_type, name, seen.size())
        if with_memory:
            _count(self.memory, name, seen.used_bytes(_SAMPLES))


def _count(by_type: dict[bytes, list[int]], name: bytes, size: int) -> None:
    counts = by_type.get(name)
    if counts is None:
        counts = [0] * _BINS
        by_type[name] = counts
    counts[size.bit_length()] += 1


class _Round:
    def __init__(self, dbs: Keyspaces, with_memory: bool) -> None:
        self.found: Final = [Sizes(db.index) for db in dbs]
        self._dbs: Final = [*dbs]
        self._with_memory: Final = with_memory
        self._at = 0  # the database
        self._slot: i64 = 0  # within it, the next key

    def step(self, most: int) -> bool:
        """Look at so many more keys; False where no more are left."""
        while self._at < len(self._dbs):
            table = self._dbs[self._at].table
            sizes = self.found[self._at]
            end: i64 = min(table.count, self._slot + most)
            while self._slot < end:
                sizes.add(table.value_at(self._slot), self._with_memory)
                self._slot += 1
            if end < table.count:
                return True
            self._at += 1
            self._slot = 0
        return False


class KeySizes:
    """The result of the last round, and the round under way."""

    def __init__(self) -> None:
        self._shown: list[Sizes] = []
        self._round: _Round | None = None

    def ask(self, dbs: Keyspaces, with_memory: bool) -> list[Sizes]:
        """Return the sizes, in memory too if asked; of many keys, those of the last round."""
        if sum([len(db) for db in dbs]) <= AT_ONCE:
            whole = _Round(dbs, with_memory)
            while whole.step(AT_ONCE):
                pass
            self._shown = whole.found
            self._round = None
        elif self._round is None:
            self._round = _Round(dbs, with_memory)
        return self._shown

    def is_under_way(self) -> bool:
        """Return whether there are keys to look at."""
        return self._round is not None

    def step(self) -> bool:
        """Look at some keys; False where a round has ended, or none is under way."""
        under_way = self._round
        if under_way is None:
            return False
        if under_way.step(STEP_KEYS):
            return True
        self._shown = under_way.found
        self._round = None
        return False
