"""The connection to a master, as the event loop sees it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, cast

from headrace.server.clients.session import Session, describe_endpoints, source_address
from headrace.server.config.config import Config
from headrace.server.following.talk import Link, LinkUser

Encrypt = Callable[[asyncio.Protocol, str, Callable[[str], None]], asyncio.Protocol]


class MasterLink(Link, asyncio.Protocol):
    """One connection; after ``close`` nothing of it is reported.

    Args:
        encrypt: makes the protocol of an encrypted connection: of the one inside, the host, and
            what is called with the reason where there is none; None for a plain one.
    """

    def __init__(self, user: LinkUser, config: Config, encrypt: Encrypt | None) -> None:
        self._config: Final = config
        self._encrypt: Final = encrypt
        self._user: Final = user
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def connect(self, host: bytes, port: int) -> None:
        self._task = asyncio.get_running_loop().create_task(self._connect(host, port))

    async def _connect(self, host: bytes, port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: self._protocol(host),
                os.fsdecode(host),
                port,
                local_addr=source_address(self._config),
            )
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self._lose(str(reason or error))

    def _protocol(self, host: bytes) -> asyncio.Protocol:
        if self._encrypt is None:
            return self
        return self._encrypt(self, os.fsdecode(host), self._lose)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to talk."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has all that one has
        if self._closed:
            self._transport.abort()
        else:
            self._user.connected(self)

    def data_received(self, data: bytes) -> None:
        """Pass on what has come."""
        if not self._closed:
            self._user.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has closed, or the network has failed."""
        self._transport = None
        self._lose("the connection was lost")

    def _lose(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            self._user.lost(self, reason)

    def send(self, wire: bytes) -> None:
        if self._transport is not None and not self._closed:
            self._transport.write(wire)

    def describe(self, session: Session) -> None:
        if self._transport is not None:
            describe_endpoints(session, self._transport)

    def pause(self, paused: bool) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            if paused:
                transport.pause_reading()
            else:
                transport.resume_reading()

    def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()
