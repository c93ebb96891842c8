"""Where the keys of a file go, one after another, and what turns frozen keys into bytes.

A file is ``begin``, then any number of keys, then ``finish``. Each call does a bounded amount of
work and adds to what ``take`` returns, so that whoever drives it can stop after any call, let the
server run, and go on: a key is begun with ``add`` and is done when ``more`` says so.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.persistence.log import REPLICATION_ID
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.freezing import FrozenKey
from headrace.storage.keyspace import Keyspace


class Encoder:
    """Makes the bytes of one file.

    Attributes:
        size_bytes: the length of what ``take`` would return.
    """

    def __init__(self) -> None:
        self.size_bytes = 0

    def begin(self) -> None:
        """Make what stands at the head of the file."""

    def add_library(self, code: bytes) -> None:
        """Take a library of functions, in front of all keys."""
        raise NotImplementedError

    def add(self, key: FrozenKey) -> bool:
        """Take a key; True when more is to be done for it, so that ``more`` is to be called.

        A ``FrozenStream`` stays the caller's, to be thawed when nothing is left to do for it.
        """
        raise NotImplementedError

    def more(self) -> bool:
        """Do a part of the work that is left for the last key; True when there is still more.

        One call takes some tenths of a millisecond at most, where entries are of ordinary size.
        """
        return False

    def finish(self) -> None:
        """Make what stands at the end of the file."""

    def take(self) -> list[bytes]:
        """Return what has been made since the last call, in the order of the file."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class KeyTaker:
    """Takes keys.

    Args:
        databases: how many databases they may be of.

    Attributes:
        libraries: the libraries of functions that stand beside them.
    """

    def __init__(self, databases: int) -> None:
        self.databases: Final = databases
        self.libraries: Final[list[bytes]] = []

    def take_library(self, code: bytes) -> None:
        """Take a library of functions."""
        self.libraries.append(code)

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        """Take a key; False where there has been one of that name.

        Args:
            db: the number of its database, below ``databases``.
            value: as a keyspace holds it; nobody else has it.
            expire_ms: its deadline, or ``NO_EXPIRY``.
        """
        raise NotImplementedError


class IntoDatabases(KeyTaker):
    """Puts keys into databases."""

    def __init__(self, databases: list[Keyspace]) -> None:
        super().__init__(len(databases))
        self.into: Final = databases

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        return self.into[db].load(key, value, expire_ms, 0)


class LiveKeys(IntoDatabases):
    """Puts keys into databases, except for those that have expired since.

    Args:
        now_ms: the present.
        replaces: keys take the place of those that are there.

    Attributes:
        notes: those on the file, when keys come. One that has a place in the stream of replication
            keeps what has expired: replicas have it, and need the record of its end.
        expired: how many keys were left out.
    """

    def __init__(self, databases: list[Keyspace], now_ms: int, replaces: bool = False) -> None:
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
    """Keeps none: what they are read for is to see whether they can be."""

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        return True
