"""The doors of encrypted connections: which peers are admitted, as which user, by which rules."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final

from headrace.compat.errors import AA_ENCRYPTS, AA_STRANGER
from headrace.protocol.replies import ErrorReply, encode
from headrace.server.clients.clients import log_in
from headrace.server.clients.session import Session
from headrace.server.dispatch.permission import note_strange_certificate
from headrace.server.gate import NEWCOMERS
from headrace.server.log import VERBOSE
from headrace.server.net.connection import MOST_REGIONS, Connection
from headrace.server.net.tls.contexts import Contexts, TlsError, common_name, has_name
from headrace.server.net.tls.transport import LOST, Door, Handshakes, Handshaking, TlsTransport
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

STRANGER: Final = "its certificate has none of the names in tls-expected-peer-name"
NO_TLS: Final = "wrong version number"  # OpenSSL's words where what comes is no TLS
_BY_COMMON_NAME: Final = b"CN"


class ClientDoor(Door):
    """The door of a client."""

    def __init__(self, server: Server, connection: Connection, handshakes: Handshakes) -> None:
        self._server: Final = server
        self._connection: Final = connection
        self._handshakes: Final = handshakes

    def admits(self) -> bool:
        server = self._server
        server.gate.set(NEWCOMERS, False)
        if server.stopping:
            return False
        if len(server.clients.sessions) + len(self._handshakes) < server.config.maxclients:
            return True
        server.statistics.counters.rejected_connections += 1
        return False

    def opened(self, transport: TlsTransport) -> None:
        self._connection.connection_made(transport)  # type: ignore[arg-type]  # by its methods
        session = self._connection.session
        if not session.closed and self._server.config.tls_auth_clients_user == _BY_COMMON_NAME:
            self._log_in(session, common_name(transport.certificate()))

    def refused(self, transport: TlsTransport, reason: str) -> None:
        note_refusal(transport, reason)

    def _log_in(self, session: Session, name: bytes) -> None:
        """Log a client in as the user that its certificate names, if there is one."""
        if not name:
            return
        user = self._server.users.find(name)
        # A NUL ends a name for some authorities: the rest is not verified by them.
        if user is None or not user.enabled or b"\0" in name:
            note_strange_certificate(self._server, session, name)
        else:
            log_in(session, user, self._server.users)


class RegionDoor(Door):
    """The door of another region."""

    def __init__(self, server: Server, connection: Connection, handshakes: Handshakes) -> None:
        self._server: Final = server
        self._connection: Final = connection
        self._handshakes: Final = handshakes

    def admits(self) -> bool:
        """Return True: the handshake that has taken longest makes room for the next one."""
        if len(self._handshakes) >= MOST_REGIONS:
            oldest = self._handshakes.oldest()
            if oldest is not None:
                oldest.give_up("there are too many handshakes")
        return not self._server.stopping

    def opened(self, transport: TlsTransport) -> None:
        if not has_name(transport.certificate(), self._server.config.tls_expected_peer_name):
            transport.write(encode(ErrorReply(AA_STRANGER)))  # it gets the reason, too
            transport.give_up(STRANGER)
            return
        self._connection.connection_made(transport)  # type: ignore[arg-type]  # by its methods

    def refused(self, transport: TlsTransport, reason: str) -> None:
        if reason == LOST:
            note_refusal(transport, reason)
            return
        if reason == NO_TLS:
            transport.answer_plain(encode(ErrorReply(AA_ENCRYPTS)))
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if isinstance(peer, tuple) else "?"
        neighbours = self._server.neighbours
        if neighbours is not None:
            neighbours.refused(host, f"TLS: {reason}")


class CallingDoor(Door):
    """The door to another region; it calls ``opened`` or, with the reason, ``failed``."""

    def __init__(
        self, server: Server, opened: Callable[[object], None], failed: Callable[[str], None]
    ) -> None:
        self._server: Final = server
        self._opened: Final = opened
        self._failed: Final = failed

    def opened(self, transport: TlsTransport) -> None:
        if not has_name(transport.certificate(), self._server.config.tls_expected_peer_name):
            transport.give_up(STRANGER)
            return
        self._opened(transport)

    def refused(self, transport: TlsTransport, reason: str) -> None:
        if reason == NO_TLS:
            reason += ", so that region does not encrypt (aa-tls)"
        self._failed(f"TLS: {reason}" if reason != LOST else reason)


def note_refusal(transport: TlsTransport, reason: str) -> None:
    """Log why a peer was refused."""
    peer = transport.get_extra_info("peername")
    where = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "?"
    log.log(VERBOSE, "Error accepting a client connection: %s (addr=%s)", reason, where)


class Factory:
    """The connections of one server. Raises TlsError: the configuration cannot be used."""

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        self._contexts: Contexts = Contexts(server.config)
        self._clients: Final = Handshakes(server.config)
        self._regions: Final = Handshakes(server.config)

    def reload(self) -> bool:
        """Use the present configuration for new connections; False where it cannot be used."""
        try:
            self._contexts = Contexts(self._server.config)
        except TlsError as error:
            log.warning("%s", error)
            return False
        return True

    def take_client_rule(self) -> None:
        """Ask clients for certificates as the present configuration says."""
        self._contexts.take_client_rule(self._server.config.tls_auth_clients)

    def shaking(self) -> list[Handshaking]:
        """Return the clients whose handshake is under way."""
        return self._clients.all()

    def for_client(self, connection: Connection) -> TlsTransport:
        """Return the transport of a client's connection."""
        door = ClientDoor(self._server, connection, self._clients)
        return _accepted(connection, door, self._contexts.clients, self._clients)

    def for_region(self, connection: Connection) -> TlsTransport:
        """Return the transport of the connection of another region that calls here."""
        door = RegionDoor(self._server, connection, self._regions)
        return _accepted(connection, door, self._contexts.regions, self._regions)

    def for_call(
        self, link: asyncio.Protocol, host: str, failed: Callable[[str], None]
    ) -> TlsTransport:
        """Return the transport to another region; ``failed`` gets the reason if it fails."""
        door = CallingDoor(self._server, _telling(link), failed)
        return TlsTransport(link, door, self._contexts.calling, self._regions, False, host)


def _accepted(
    connection: Connection, door: Door, context: ssl.SSLContext, handshakes: Handshakes
) -> TlsTransport:
    protocol: Any = connection  # by its methods
    return TlsTransport(protocol, door, context, handshakes, True)


def _telling(link: asyncio.Protocol) -> Callable[[object], None]:
    def opened(transport: object) -> None:
        link.connection_made(transport)  # type: ignore[arg-type]  # a transport by its methods

    return opened
