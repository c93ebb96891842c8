"""A connection to a master, and who talks over it."""

from __future__ import annotations

from abc import abstractmethod

from mypy_extensions import mypyc_attr, trait

from headrace.server.clients.session import Session


@mypyc_attr(allow_interpreted_subclasses=True)
class Link:
    """One connection."""

    def connect(self, host: bytes, port: int) -> None:
        """Begin to connect."""
        raise NotImplementedError

    def send(self, wire: bytes) -> None:
        """Send some bytes."""
        raise NotImplementedError

    def describe(self, session: Session) -> None:
        """Note for a session where the connection goes."""

    def pause(self, paused: bool) -> None:
        """Read nothing, or read again."""
        raise NotImplementedError

    def close(self) -> None:
        """Close it; nothing more is reported."""
        raise NotImplementedError


@trait
class LinkUser:
    """Who talks over a link."""

    @abstractmethod
    def connected(self, link: Link) -> None:
        """There is a connection."""
        raise NotImplementedError

    @abstractmethod
    def received(self, link: Link, data: bytes) -> None:
        """Something has come."""
        raise NotImplementedError

    @abstractmethod
    def lost(self, link: Link, reason: str) -> None:
        """There is none any more, or there never was."""
        raise NotImplementedError
