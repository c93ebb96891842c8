"""Makes encrypted connections from what the configuration says at the moment."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final

from headrace.server.net.connection import Connection
from headrace.server.net.tls.contexts import Contexts, TlsError
from headrace.server.net.tls.doors import CallingDoor, ClientDoor, RegionDoor
from headrace.server.net.tls.handshakes import Handshakes, Handshaking
from headrace.server.net.tls.transport import Door, TlsTransport
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")


class Factory:
    """That of one server.

    Raises:
        TlsError: the configuration cannot be used.
    """

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        self._contexts: Contexts = Contexts(server.config)
        self._clients: Final = Handshakes(server.config)
        self._regions: Final = Handshakes(server.config)

    def reload(self) -> bool:
        """Take the configuration as it is now; False where it cannot be used, and nothing changes.

        Connections that are there stay as they are.
        """
        try:
            self._contexts = Contexts(self._server.config)
        except TlsError as error:
            log.warning("%s", error)
            return False
        return True

    def take_client_rule(self) -> None:
        """Ask clients for certificates as the configuration says now."""
        self._contexts.take_client_rule(self._server.config.tls_auth_clients)

    def shaking(self) -> list[Handshaking]:
        """Clients whose handshake is under way."""
        return self._clients.all()

    def for_client(self, connection: Connection) -> TlsTransport:
        """What carries a client's connection."""
        door = ClientDoor(self._server, connection, self._clients)
        return _accepted(connection, door, self._contexts.clients, self._clients)

    def for_region(self, connection: Connection) -> TlsTransport:
        """What carries the connection of another region that calls here."""
        door = RegionDoor(self._server, connection, self._regions)
        return _accepted(connection, door, self._contexts.regions, self._regions)

    def for_call(
        self, link: asyncio.Protocol, host: str, failed: Callable[[str], None]
    ) -> TlsTransport:
        """What carries a connection to another region.

        Args:
            failed: called with the reason where there will be none.
        """
        door = CallingDoor(self._server, _telling(link), failed)
        return TlsTransport(link, door, self._contexts.calling, self._regions, False, host)


def _accepted(
    connection: Connection, door: Door, context: ssl.SSLContext, handshakes: Handshakes
) -> TlsTransport:
    """What carries a connection that was opened elsewhere."""
    protocol: Any = connection  # by its methods
    return TlsTransport(protocol, door, context, handshakes, True)


def _telling(link: asyncio.Protocol) -> Callable[[object], None]:
    """Tells a protocol of its connection."""

    def opened(transport: object) -> None:
        link.connection_made(transport)  # type: ignore[arg-type]  # a transport by its methods

    return opened
