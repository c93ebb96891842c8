"""Sockets to other regions: the only place where the exchange meets the network."""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Final

from headrace.regions.exchange.peer_connection import PeerConnection
from headrace.regions.exchange.peers import Connector
from headrace.regions.exchange.regions import TICK_MS, Regions
from headrace.server.clock import Clock
from headrace.server.config.config import Config
from headrace.server.config.kinds import PeerAddress
from headrace.server.links.link import LOST, Encrypt, Link, LinkUser
from headrace.server.links.tcp import TcpLink

PLAINTEXT: Final = (
    "it is on another machine, and what is exchanged is not encrypted (aa-tls, aa-allow-plaintext)"
)
TLS: Final = "TLS: "  # in front of a reason that trying again will hardly mend


class SocketConnector(Connector):
    """Connects regions over TCP, encrypted with ``aa-tls``, and drives their timers.

    Args:
        encrypt: makes the protocols of encrypted connections.

    Attributes:
        opening: links that are not there yet.
    """

    def __init__(self, config: Config, clock: Clock, encrypt: Encrypt) -> None:
        self.regions: Regions | None = None
        self.opening: Final[set[Link]] = set()
        self.clock: Final = clock
        self.config: Final = config
        self._encrypt: Final = encrypt
        self._timer: asyncio.TimerHandle | None = None

    def start(self, regions: Regions) -> None:
        """Begin to call ``tick`` of these."""
        self.regions = regions
        self._tick()

    def stop(self) -> None:
        """Connect no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for link in self.opening:
            link.close()
        self.opening.clear()
        if self.regions is not None:
            self.regions.close()
            self.regions = None

    def connect(self, address: PeerAddress, connection: PeerConnection) -> None:
        encrypt = self._encrypt if self.config.aa_tls else None
        user = _User(self, connection, address)
        self.opening.add(TcpLink(user, self.config, address.host, address.port, encrypt))

    def apply_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._apply)

    def _apply(self) -> None:
        regions = self.regions
        if regions is not None:
            regions.apply()
            if regions.full_copy.has_work:
                gc.freeze()  # a copy's objects stay: no slice waits until they have been walked

    def _tick(self) -> None:
        regions = self.regions
        if regions is not None:
            self._timer = asyncio.get_running_loop().call_later(TICK_MS / 1000, self._tick)
            regions.tick()


class _User(LinkUser):
    """Reports to a connection what becomes of its link."""

    def __init__(
        self, connector: SocketConnector, connection: PeerConnection, address: PeerAddress
    ) -> None:
        self._connector: Final = connector
        self._connection: Final = connection
        self._address: Final = address
        self._is_there = False

    def connected(self, link: Link) -> None:
        self._is_there = True
        self._connector.opening.discard(link)
        config = self._connector.config
        if config.aa_tls or config.aa_allow_plaintext or not _is_remote(link):
            self._connection.connected(link, self._connector.clock.monotonic_ms())
        else:
            self._connection.refused(PLAINTEXT)
            link.close()

    def received(self, link: Link, data: bytes) -> None:
        self._connection.received(data, self._connector.clock.monotonic_ms())

    def lost(self, link: Link, reason: str) -> None:
        self._connector.opening.discard(link)
        if not self._is_there:
            where = f"{os.fsdecode(self._address.host)}:{self._address.port}"
            is_open = reason.startswith((LOST, TLS))
            reason = f"{where}: {reason}" if is_open else f"{where} cannot be reached: {reason}"
        if TLS in reason:
            self._connection.refused(reason)
        else:
            self._connection.lost(reason)


def _is_remote(link: Link) -> bool:
    transport = link.transport()
    peer = None if transport is None else transport.get_extra_info("peername")
    host = str(peer[0]).removeprefix("::ffff:") if isinstance(peer, tuple) else ""
    return not (host.startswith("127.") or host == "::1")
