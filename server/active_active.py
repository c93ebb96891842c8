"""The face of the wing of regions, for the process and tools.

``server.wing`` imports the code behind it, where a server is a region or a file may be one's.
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
        """Return the loader of its files, which begins its life."""

    @abstractmethod
    def open(self) -> None:
        """Exchange data with the other regions, because all is loaded."""

    @abstractmethod
    def close(self) -> None:
        """Close the links to the other regions."""

    @abstractmethod
    def publish(self) -> None:
        """Make the effects that have waited for more of their kind."""


class ActiveActive:
    """The features of regions that share a database."""

    @abstractmethod
    def work(self, dispatcher: Dispatcher, encrypt: Encrypt) -> RegionAtWork:
        """Let a server that is a region be one among others; nothing is loaded yet."""

    @abstractmethod
    def files_alone(self, server: Server) -> RegionFiles:
        """Return the loader of the files of the region that a server is, for a tool."""

    @abstractmethod
    def leave(self, server: Server, files: RegionFiles) -> None:
        """Turn all values, which ``files_alone`` has loaded, into those of a single server."""

    @abstractmethod
    def owner_of(self, paths: list[bytes]) -> tuple[int, bytes] | None:
        """Return number and database of the region that files belong to; None where none does.

        Raises PersistenceError: one of them cannot be read.
        """

    @abstractmethod
    def count(self) -> RecordCount:
        """Return a counter of the records in a file of commands, which may be a region's."""
