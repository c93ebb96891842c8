"""Sockets to other regions: the only place where the exchange meets the network."""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Final, cast

from headrace.regions.exchange.peer_connection import Conversation, Link
from headrace.regions.exchange.peers import Connector
from headrace.regions.exchange.regions import TICK_MS, Regions
from headrace.server.active_active import Encrypt
from headrace.server.clients.session import source_address
from headrace.server.clock import Clock
from headrace.server.config.config import Config
from headrace.server.config.kinds import PeerAddress

PLAINTEXT: Final = (
    "it is on another machine, and what is exchanged is not encrypted (aa-tls, aa-allow-plaintext)"
)

LOST: Final = "the connection was lost"


class SocketLink(Link, asyncio.Protocol):
    """One connection to a peer."""

    def __init__(self, conversation: Conversation, clock: Clock, may_be_remote: bool) -> None:
        self._conversation: Final = conversation
        self._clock: Final = clock
        self._may_be_remote: Final = may_be_remote
        self._transport: asyncio.Transport | None = None
        self._closed = False

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to talk."""
        connected = cast(asyncio.Transport, transport)  # uvloop's has all that one has
        self._transport = connected
        if not self._may_be_remote and _is_remote(connected):
            self._conversation.puller.refused = True
            self._conversation.end(PLAINTEXT)
            connected.abort()
            return
        self._conversation.connected(self, self._clock.monotonic_ms())

    def data_received(self, data: bytes) -> None:
        """Pass on what has come."""
        if not self._closed:
            self._conversation.received(data, self._clock.monotonic_ms())

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has closed, or the network has failed."""
        self._transport = None
        if not self._closed:
            self._closed = True
            reason = LOST
            if isinstance(exc, OSError):
                reason += f": {exc.strerror or exc}"
            if "TLS: " in reason:
                self._conversation.refused(reason)
            else:
                self._conversation.lost(reason)

    # Link

    def send(self, wire: bytes) -> None:
        """Send some bytes."""
        if self._transport is not None:
            self._transport.write(wire)

    def close(self) -> None:
        """Close it; nothing more is reported."""
        self._closed = True
        if self._transport is not None:
            self._transport.abort()


class SocketConnector(Connector):
    """Connects regions over TCP, encrypted with ``aa-tls``, and keeps their time.

    Args:
        encrypt: makes the protocols of encrypted connections.

    Attributes:
        regions: whose connections these are.
    """

    def __init__(self, config: Config, clock: Clock, encrypt: Encrypt) -> None:
        self._encrypt: Final = encrypt
        self.regions: Regions | None = None
        self._clock: Final = clock
        self._config: Final = config
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, regions: Regions) -> None:
        """Keep the time of these."""
        self.regions = regions
        self._tick()

    def stop(self) -> None:
        """Connect no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._tasks:
            task.cancel()
        if self.regions is not None:
            self.regions.close()
            self.regions = None

    def connect(self, address: PeerAddress, conversation: Conversation) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(address, conversation))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def apply_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._apply)

    def _apply(self) -> None:
        regions = self.regions
        if regions is not None:
            regions.apply()
            if regions.copying.has_work:
                gc.freeze()  # what a copy brings stays: no slice waits until it has been walked

    async def _connect(self, address: PeerAddress, conversation: Conversation) -> None:
        host = os.fsdecode(address.host)
        where = f"{host}:{address.port}"
        loop = asyncio.get_running_loop()

        def failed(reason: str) -> None:
            end = conversation.lost if reason == LOST else conversation.refused
            end(f"{where}: {reason}")

        def protocol() -> asyncio.Protocol:
            config = self._config
            link = SocketLink(conversation, self._clock, config.aa_tls or config.aa_allow_plaintext)
            if not config.aa_tls:
                return link
            return self._encrypt(link, host, failed)

        try:
            source = source_address(self._config)
            await loop.create_connection(protocol, host, address.port, local_addr=source)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            conversation.lost(f"{where} cannot be reached: {reason or error}")

    def _tick(self) -> None:
        regions = self.regions
        if regions is not None:
            self._timer = asyncio.get_running_loop().call_later(TICK_MS / 1000, self._tick)
            regions.tick()


def _is_remote(transport: asyncio.Transport) -> bool:
    peer = transport.get_extra_info("peername")
    host = str(peer[0]).removeprefix("::ffff:") if isinstance(peer, tuple) else ""
    return not (host.startswith("127.") or host == "::1")
