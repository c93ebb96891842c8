"""Encryption, before it is configured: OpenSSL takes 4 MiB and is imported late."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.gate import NEWCOMERS
from headrace.server.net.connection import Connection

if TYPE_CHECKING:
    from headrace.server.net.tls.doors import Factory

log: Final = logging.getLogger("headrace")

NOT_UPDATED: Final = "Unable to update TLS configuration. Check server logs."
NOT_CONFIGURED: Final = "Failed to configure TLS. Check logs for more info."

# Parameters that say how a connection is encrypted.
_RULES: Final = tuple(
    "tls-cert-file tls-key-file tls-key-file-pass tls-ca-cert-file tls-ca-cert-dir tls-protocols "
    "tls-ciphers tls-ciphersuites tls-prefer-server-ciphers tls-session-caching "
    "tls-session-cache-size tls-session-cache-timeout tls-dh-params-file tls-client-cert-file "
    "tls-client-key-file tls-client-key-file-pass tls-replication".split()
)


class Encryption:
    """Makes encrypted connections, once the configuration asks for any."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher: Final = dispatcher
        self._config: Final = dispatcher.server.config
        self._factory: Factory | None = None
        hooks = self._config.on_change
        for name in _RULES:
            hooks[name] = self._change_rules
        hooks["tls-auth-clients"] = self._change_client_rule

    def start(self) -> None:
        """Prepare for encrypted connections, if configured. Raises OSError; the log says why."""
        if self._is_wanted() and not self.get_ready():
            raise OSError(NOT_CONFIGURED)

    def get_ready(self) -> bool:
        """Prepare for encrypted connections; False where the configuration cannot be used."""
        if self._factory is not None:
            return True
        from headrace.server.net.tls.contexts import TlsError
        from headrace.server.net.tls.doors import Factory

        try:
            self._factory = Factory(self._dispatcher.server)
        except TlsError as error:
            log.warning("%s", error)
            return False
        return True

    def connect(self) -> asyncio.Protocol:
        """Return the protocol of a client's connection."""
        factory = self._factory
        assert factory is not None
        self._dispatcher.server.gate.set(NEWCOMERS, True)
        return factory.for_client(Connection(self._dispatcher))  # type: ignore[return-value]  # a protocol by its methods

    def shaking(self) -> list[Any]:
        """Return the protocols of clients whose handshake is under way."""
        return [] if self._factory is None else list(self._factory.shaking())

    def connect_region(self) -> asyncio.Protocol:
        """Return the protocol of the connection of another region, which calls here."""
        factory = self._factory
        assert factory is not None
        return factory.for_region(Connection(self._dispatcher, True))  # type: ignore[return-value]

    def call(
        self, link: asyncio.Protocol, host: str, failed: Callable[[str], None]
    ) -> asyncio.Protocol:
        """Return an outgoing connection's protocol around ``link``; ``failed`` gets a reason."""
        factory = self._factory
        assert factory is not None
        return factory.for_call(link, host, failed)  # type: ignore[return-value]

    def _is_wanted(self) -> bool:
        config = self._config
        return bool(config.tls_port or config.aa_tls or config.tls_replication)

    def _change_rules(self) -> str | None:
        factory = self._factory
        if not self._is_wanted():
            self._factory = None  # the present one no longer follows the configuration
            return None
        if factory is None:
            return None if self.get_ready() else NOT_UPDATED
        return None if factory.reload() else NOT_UPDATED

    def _change_client_rule(self) -> str | None:
        if self._factory is not None:
            self._factory.take_client_rule()
        return None
