"""What a keyspace shows of a key, and what becomes of all that it held."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.storage.due import DueOrder
from headrace.storage.key_table import NO_EXPIRY as NO_EXPIRY
from headrace.storage.key_table import NO_SLOT, KeyTable
from headrace.storage.part_deadlines import PartDeadlines
from headrace.storage.value import Freeable


@mypyc_attr(acyclic=True, free_list_len=1)
class Entry:
    """A key with its value, as they are when this is made; ``storage.faces`` knows what a value is.

    What changes a key is asked of its keyspace.
    """

    def __init__(self, table: KeyTable, key: bytes, value: object) -> None:
        self.key: Final = key
        self.value: Final = value
        self._table: Final = table

    @property
    def expire_ms(self) -> int:
        """The deadline of the key, in milliseconds since 1970, or ``NO_EXPIRY``."""
        slot = self._table.find(self.key)
        return int(NO_EXPIRY) if slot == NO_SLOT else int(self._table.deadline_ms(slot))

    @property
    def usage(self) -> int:
        """How the key is used; see ``KeyTable.usage_of``."""
        slot = self._table.find(self.key)
        return 0 if slot == NO_SLOT else int(self._table.usage_of(slot))


class Emptied(Freeable):
    """What a database held until it was emptied.

    Attributes:
        unused: where values go that are to be freed in slices themselves.
    """

    def __init__(
        self, table: KeyTable, order: DueOrder, parts: PartDeadlines, unused: list[Freeable]
    ) -> None:
        self.table: Final = table
        self.order: Final = order
        self.parts: Final = parts
        self.unused: Final = unused

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` keys; True at the end."""
        dropped = self.order.free_some(most)
        dropped = self.parts.free_some(most) and dropped
        return self.table.free_some(most, self.unused) and dropped


class Barrier:
    """Takes keys as they were before they change; see ``storage.freezing``."""

    def keep(self, table: KeyTable, slot: int, db: int) -> None:
        """A key, or its value, is about to change."""
        raise NotImplementedError

    def put_aside(self, emptied: Emptied) -> None:
        """A database has been emptied of this."""
        raise NotImplementedError
