"""The takers of a file's keys, one after another, and the encoders of frozen keys.

A file is ``begin``, then any number of keys, then ``finish``. Each call does a bounded amount of
work and adds to the result of ``take``, so that the caller can stop after any call, let the server
run, and go on: a key is begun with ``add`` and is done when ``more`` says so.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.persistence.log import REPLICATION_ID
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.freezing import FrozenKey
from headrace.storage.keyspace import Keyspaces


class Encoder:
    """Makes the bytes of one file. ``size_bytes`` is the length of what ``take`` would return."""

    def __init__(self) -> None:
        self.size_bytes = 0

    def begin(self) -> None:
        """Make the head of the file."""

    def add_library(self, code: bytes) -> None:
        """Take a library of functions, or requests in wire form (``*``), in front of all keys."""
        raise NotImplementedError

    def add(self, key: FrozenKey) -> bool:
        """Take a key. Return True when ``more`` is to be called for it.

        A ``FrozenStream`` stays the caller's, to be thawed when nothing is left to do for it.
        """
        raise NotImplementedError

    def more(self) -> bool:
        """Do a part of the work that is left for the last key. Return True when there is more.

        One call takes some tenths of a millisecond at most, where entries are of ordinary size.
        """
        return False

    def finish(self) -> None:
        """Make the end of the file."""

    def take(self) -> list[bytes]:
        """Return the bytes made since the last call, in the order of the file."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class KeyTaker:
    """Takes keys of up to ``databases`` databases.

    ``libraries`` are the libraries of functions that stand beside them.
    """

    def __init__(self, databases: int) -> None:
        self.databases: Final = databases
        self.libraries: Final[list[bytes]] = []

    def take_library(self, code: bytes) -> None:
        """Take a library of functions."""
        self.libraries.append(code)

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        """Take a key. Return False where there has been one of that name.

        Args:
            db: the number of its database, below ``databases``.
            value: as a keyspace holds it, with no other owner.
            expire_ms: its deadline, or ``NO_EXPIRY``.
        """
        raise NotImplementedError


class IntoDatabases(KeyTaker):
    """Puts keys into databases."""

    def __init__(self, databases: Keyspaces) -> None:
        super().__init__(len(databases))
        self.into: Final = databases

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        return self.into[db].load(key, value, expire_ms, 0)


class LiveKeys(IntoDatabases):
    """Puts keys into databases, except for those that have expired since.

    Args:
        replaces: keys take the place of those that are there.

    Attributes:
        notes: those on the file, when keys come. One that has a place in the stream of replication
            keeps expired keys: replicas have them, and need the record of their end.
        expired: how many keys were left out.
    """

    def __init__(self, databases: Keyspaces, now_ms: int, replaces: bool = False) -> None:
        super().__init__(databases)
        self.notes: dict[bytes, bytes] = {}
        self.expired = 0
        self._now_ms: Final = now_ms
        self._replaces: Final = replaces

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        if NO_EXPIRY != expire_ms < self._now_ms and REPLICATION_ID not in self.notes:
            self.expired += 1
            return True
        if self._replaces:
            self.into[db].remove(key)
        return super().take(db, key, value, expire_ms)


class Dropping(KeyTaker):
    """Drops all keys: they are read only to see whether they can be."""

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        return True
