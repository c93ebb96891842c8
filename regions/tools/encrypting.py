"""Encrypted connections of tools, by the options that redis-cli has for that."""

from __future__ import annotations

import socket
import ssl
from typing import Final


class Encryption:
    """How connections are made.

    As in redis-cli the certificate of a server has to be signed by an authority that is trusted,
    and need not be for the host that was called.

    Args:
        authority: file with authorities that are trusted; folder: one with such files. Without
            both, those of the system are.
        certificate: file with the one to show, and key: file with its key; empty for none.
        insecure: trust every server.
        name: what the server is told that it is called; empty for the host that is connected to.

    Raises:
        OSError: a file cannot be used.
    """

    def __init__(
        self,
        authority: str = "",
        folder: str = "",
        certificate: str = "",
        key: str = "",
        insecure: bool = False,
        name: str = "",
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        if insecure:
            context.verify_mode = ssl.CERT_NONE
        elif authority or folder:
            context.load_verify_locations(authority or None, folder or None)
        else:
            context.load_default_certs()
        if certificate:
            context.load_cert_chain(certificate, key or None)
        self._context: Final = context
        self._name: Final = name

    def wrap(self, opened: socket.socket, host: str) -> ssl.SSLSocket:
        """The encrypted form of a connection to a host.

        Raises:
            OSError: there will be none.
        """
        return self._context.wrap_socket(opened, server_hostname=self._name or host)
