"""Connections over TCP, encrypted or not, as the event loop sees them."""

from __future__ import annotations

import asyncio
import os
from typing import Final, cast

from headrace.server.clients.session import source_address
from headrace.server.config.config import Config
from headrace.server.links.link import LOST, Encrypt, Link, LinkUser


class TcpLink(Link, asyncio.Protocol):
    """A connection to a host, opened at once; ``encrypt`` is None for one without encryption."""

    def __init__(
        self, user: LinkUser, config: Config, host: bytes, port: int, encrypt: Encrypt | None
    ) -> None:
        self._user: Final = user
        self._config: Final = config
        self._host: Final = os.fsdecode(host)
        self._encrypt: Final = encrypt
        self._transport: asyncio.Transport | None = None
        self._closed = False
        self._task: Final = asyncio.get_running_loop().create_task(self._connect(port))

    async def _connect(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            source = source_address(self._config)
            await loop.create_connection(self._protocol, self._host, port, local_addr=source)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self._lose(str(reason or error))

    def _protocol(self) -> asyncio.Protocol:
        if self._encrypt is None:
            return self
        return self._encrypt(self, self._host, self._lose)

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
        """Report that the other side has closed, or the network has failed."""
        self._transport = None
        self._lose(f"{LOST}: {exc.strerror or exc}" if isinstance(exc, OSError) else LOST)

    def _lose(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            self._user.lost(self, reason)

    def send(self, wire: bytes) -> None:
        if self._transport is not None and not self._closed:
            self._transport.write(wire)

    def transport(self) -> asyncio.Transport | None:
        return self._transport

    def pause(self, paused: bool) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            if paused:
                transport.pause_reading()
            else:
                transport.resume_reading()

    def close(self) -> None:
        self._closed = True
        self._task.cancel()
        if self._transport is not None:
            self._transport.abort()
