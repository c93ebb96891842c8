"""What a keyspace consists of: its entries, and what becomes of them."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.storage.freeable import Freeable
from headrace.storage.value import Value

NO_EXPIRY: Final[i64] = -1


@mypyc_attr(acyclic=True)
class Entry:
    """A key with its value; ``storage.faces`` knows what a value is.

    Attributes:
        epoch: the number of the freezing that last took it, or the latest when it was made.
    """

    def __init__(self, key: bytes, value: object, slot: i64, now_ms: i64, epoch: i64) -> None:
        self.key: Final = key
        self.value = value
        self.slot: i64 = slot
        self.expire_ms: i64 = NO_EXPIRY
        self.access_ms: i64 = now_ms
        self.epoch: i64 = epoch


class Emptied(Freeable):
    """What a database held until it was emptied.

    Attributes:
        unused: where values go that are to be freed in slices themselves.
    """

    def __init__(
        self,
        entries: dict[bytes, Entry],
        slots: list[Entry],
        heap: list[tuple[int, bytes]],
        unused: list[Freeable],
    ) -> None:
        self.entries: Final = entries
        self.slots: Final = slots
        self.heap: Final = heap
        self.unused: Final = unused

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` keys; True at the end."""
        entries = self.entries
        del self.slots[-most:]
        del self.heap[-most:]
        for _ in range(min(most, len(entries))):
            value = entries.popitem()[1].value
            if isinstance(value, Value) and value.effort():
                self.unused.append(value)
        return not entries and not self.heap


class Barrier:
    """Takes keys as they were before they change; see ``storage.freezing``."""

    def keep(self, entry: Entry, db: int) -> None:
        """The key of an entry, or its value, is about to change."""
        raise NotImplementedError

    def put_aside(self, emptied: Emptied) -> None:
        """A database has been emptied of this."""
        raise NotImplementedError
