"""A connection to another server, and its user."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr, trait

# Makes the protocol of an encrypted connection, of the one inside, the host, and a function that
# gets the reason if there is no connection.
Encrypt = Callable[[asyncio.Protocol, str, Callable[[str], None]], asyncio.Protocol]

LOST: Final = "the connection was lost"  # at the beginning of such a reason


@mypyc_attr(allow_interpreted_subclasses=True)
class Link:
    """One connection; after ``close`` nothing of it is reported."""

    @abstractmethod
    def send(self, wire: bytes) -> None:
        """Send some bytes."""

    @abstractmethod
    def close(self) -> None:
        """Close it at once, or connect no more."""

    def pause(self, paused: bool) -> None:
        """Read nothing, or read again."""
        raise NotImplementedError

    def transport(self) -> asyncio.Transport | None:
        """Return its transport; None while there is no connection."""
        return None


@trait
class LinkUser:
    """The user of a link."""

    @abstractmethod
    def connected(self, link: Link) -> None:
        """Note that there is a connection."""

    @abstractmethod
    def received(self, link: Link, data: bytes) -> None:
        """Take received bytes."""

    @abstractmethod
    def lost(self, link: Link, reason: str) -> None:
        """Note that there is no connection any more, or never was."""
