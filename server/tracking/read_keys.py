"""Which clients have read which keys since these changed last.

Keys are known by their names alone, whatever database they are in. A key that has changed is
forgotten, and so whoever is told of it is told once, until it reads the key again. Clients that
leave stay noted with what they have read: they are found to have left when they are to be told.
"""

from __future__ import annotations

from typing import Final

from librt.random import randrange
from mypy_extensions import i64

from headrace.server.clients.session import Session
from headrace.storage.freeable import Freeable
from headrace.storage.key_table import KeyTable

_CROWD: Final = 64  # readers of a key among whom those who have left are looked for

Readers = set[int] | int  # by ID; most keys have one


class ReadKeys(Freeable):
    """Keys with those who have read them.

    Attributes:
        items: pairs of a key and one of its readers.
        table: the keys, each with ``Readers``.
    """

    def __init__(self) -> None:
        self.items = 0
        self.table: Final = KeyTable()

    def count(self) -> int:
        """How many keys there are."""
        return int(self.table.count)

    def add(self, key: bytes, reader: int, present: dict[int, Session]) -> i64:
        """Note that a client has read a key; the slot that the key has here.

        Args:
            present: the clients that track, by ID.
        """
        table = self.table
        slot = table.find(key)
        if slot < 0:
            self.items += 1
            return table.add(key, reader, 0)
        readers = table.value_at(slot)
        if isinstance(readers, int):
            if readers == reader:
                return slot
            table.replace(slot, {readers, reader}, 0)
        else:
            assert isinstance(readers, set)
            if reader in readers:
                return slot
            if len(readers) >= _CROWD and len(readers) > 2 * len(present):
                self.items -= len(readers)
                readers.intersection_update(present)
                self.items += len(readers)
            readers.add(reader)
        self.items += 1
        return slot

    def add_found(
        self,
        keys: KeyTable,
        key: bytes,
        readers: object | None,
        reader: int,
        present: dict[int, Session],
    ) -> None:
        """As ``add``, for a key that was just found in a database.

        Args:
            keys: the keys of that database, which remember where in ``table`` they are.
            readers: what they knew to be there; one reader alone is another one.
        """
        if not isinstance(readers, set) or reader not in readers:
            slot = self.add(key, reader, present)
            keys.lead(keys.find(key), self.table, slot)

    def add_alike(
        self,
        requests: list[list[bytes]],
        first: int,
        end: int,
        reader: int,
        present: dict[int, Session],
    ) -> None:
        """As ``add``, for the second words of ``requests[first:end]``; many repeat."""
        table = self.table
        last = b""
        for number in range(first, end):
            key = requests[number][1]
            if key is not last:
                last = key
                slot = table.find(key)
                readers = table.value_at(slot) if slot >= 0 else None
                if not isinstance(readers, int) or readers != reader:
                    self.add(key, reader, present)

    def take(self, key: bytes) -> list[int]:
        """Forget a key; the IDs of those who have read it."""
        slot = self.table.find(key)
        if slot < 0:
            return []
        readers = self.table.remove(slot)
        if isinstance(readers, set):
            self.items -= len(readers)
            return list(readers)
        assert isinstance(readers, int)
        self.items -= 1
        return [readers]

    def any_key(self) -> bytes:
        """One of the keys, by chance; there is one at least."""
        return self.table.key_at(randrange(self.table.count))

    def effort(self) -> int:
        """How many keys there are to free."""
        return int(self.table.count)

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` keys when nobody uses any of them any more; True at the end."""
        return self.table.free_some(most, [])
