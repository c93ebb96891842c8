"""Servers that speak TLS, for tests."""

from __future__ import annotations

from collections.abc import Callable

from support.certificates import Certificate, Certificates
from support.client import RawClient
from support.process import Process


class Encrypted:
    """A server with a port for encrypted connections beside the plain one.

    Attributes:
        port: for encrypted connections.
    """

    def __init__(self, process: Process, port: int, certificates: Certificates) -> None:
        self.process = process
        self.port = port
        self._certificates = certificates

    def client(self, certificate: Certificate | None = None, **settings: object) -> RawClient:
        """An encrypted connection that shows a certificate, the client's own one by default."""
        context = self._certificates.context(certificate or self._certificates.client)
        return RawClient(self.port, tls=context, **settings)  # type: ignore[arg-type]

    def nameless(self, **settings: object) -> RawClient:
        """An encrypted connection that shows no certificate."""
        return RawClient(self.port, tls=self._certificates.context(), **settings)  # type: ignore[arg-type]


Start = Callable[..., Encrypted]  # given more options
