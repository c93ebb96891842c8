"""What a process, and tools, ask of the wing of regions: its face.

``server.wing`` imports what is behind it, where a server is a region or a file may be one's.
"""

from __future__ import annotations

from abc import abstractmethod

from headrace.persistence.aof.directory import RecordCount
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.links.link import Encrypt
from headrace.server.loading.loader import RegionFiles
from headrace.server.state import Server


class RegionAtWork:
    """One server as a region among others."""

    @abstractmethod
    def files(self) -> RegionFiles:
        """Return what takes its files when they are loaded, and begins its life."""

    @abstractmethod
    def open(self) -> None:
        """All is loaded: exchange what there is with the others."""

    @abstractmethod
    def close(self) -> None:
        """Leave the others alone."""

    @abstractmethod
    def publish(self) -> None:
        """Make the effects that have waited for more of their kind."""


class ActiveActive:
    """What regions that share a database bring with them."""

    @abstractmethod
    def work(self, dispatcher: Dispatcher, encrypt: Encrypt) -> RegionAtWork:
        """Let a server that is a region be one among others; nothing is loaded yet."""

    @abstractmethod
    def files_alone(self, server: Server) -> RegionFiles:
        """Return what takes the files of the region that a server is, for a tool."""

    @abstractmethod
    def leave(self, server: Server, files: RegionFiles) -> None:
        """Let all values, which ``files_alone`` has taken, be what a single server has."""

    @abstractmethod
    def owner_of(self, paths: list[bytes]) -> tuple[int, bytes] | None:
        """The number and the database of the region that files belong to; None where none does.

        Raises:
            PersistenceError: one of them cannot be read.
        """

    @abstractmethod
    def count(self) -> RecordCount:
        """Return what counts the records in a file of commands, which may be a region's."""
