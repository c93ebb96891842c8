"""The commands on keys that several regions share; the wing of regions registers itself here."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.storage.entry import Entry
from headrace.storage.sharing import Replicated


class SharedKeys:
    """Deleting, renaming and other changes of keys in a region."""

    @abstractmethod
    def delete(self, server: Server, key: bytes, value: Replicated) -> None:
        """Delete what this region knows of a key that is there."""

    @abstractmethod
    def delete_all(self, server: Server, found: list[Entry], in_multi: bool) -> None:
        """Delete several replicated keys in one step; ``in_multi``: within a client's transaction.

        Raises: CommandError, where they are too large for that; nothing has changed.
        """

    @abstractmethod
    def delete_named(self, call: Call, name: bytes) -> int:
        """Run DEL or UNLINK; return how many keys were there."""

    @abstractmethod
    def set_deadline(self, server: Server, key: bytes, moment_ms: int) -> None:
        """Give a key that is there, and is replicated, a deadline; -1 takes it away."""

    @abstractmethod
    def rename(self, call: Call, found: Entry) -> bool:
        """Run RENAME of a key that is there; False where it is done as without regions."""

    @abstractmethod
    def copy(self, call: Call, value: object, moment_ms: int) -> bool:
        """Run COPY of a value; False where it is done as without regions."""

    @abstractmethod
    def restore(self, call: Call, key: bytes, value: object, moment_ms: int) -> bool:
        """Run RESTORE of a value; False where it is done as without regions."""


_registered: Final[list[SharedKeys]] = []  # one at the most


def shares_keys(shared: SharedKeys) -> None:
    """Register the implementation for a region."""
    _registered.append(shared)


def shared_keys() -> SharedKeys:
    """Return the implementation for a region; the server must be one."""
    return _registered[0]


def in_region(call: Call) -> bool:
    """Return whether a command is to make effects; what is read from a file makes none."""
    return call.server.data.region is not None and not call.replaying
