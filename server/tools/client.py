"""A tool as a client: one connection to a server, one request after another."""

from __future__ import annotations

import argparse
import socket
from typing import Final
from urllib.parse import unquote, urlsplit

from hiredis import ProtocolError, Reader, ReplyError

from headrace.protocol.client import request

TIMEOUT_S: Final = 5.0
DEFAULT_PORT: Final = 6379
_READ_BYTES: Final = 1 << 16


class ClientError(Exception):
    """A server cannot be asked, or refuses; the text says why."""


class Address:
    """The place of a server, by a URL: ``redis://[[user]:password@]host[:port]``, or ``rediss://``.

    ``shown`` is without the password. Raises ValueError if it is no such URL.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("redis", "rediss") or not parts.hostname:
            raise ValueError(url)
        self.encrypted: Final = parts.scheme == "rediss"
        self.host: Final = parts.hostname
        self.port: Final = parts.port or DEFAULT_PORT
        self.user: Final = unquote(parts.username or "")
        self.password: Final = unquote(parts.password or "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.shown: Final = f"{host}:{self.port}"


class Client:
    """A connection to a server, encrypted or not. Raises ClientError if there is none to be had."""

    def __init__(self, address: Address, encryption: Encryption | None = None) -> None:
        self._reader: Final = Reader()
        try:
            opened = socket.create_connection((address.host, address.port), TIMEOUT_S)
            if encryption is not None:
                opened = encryption.wrap(opened, address.host)
        except OSError as error:
            raise ClientError(f"it cannot be reached: {error.strerror or error}") from None
        self._socket: Final = opened
        try:
            if address.password:
                words = ["AUTH", address.user, address.password]
                self.ask(*[word for word in words if word])
        except ClientError:
            self.close()
            raise

    def ask(self, *words: str | bytes) -> object:
        """Return the reply to a request. Raises ClientError if there is none, or it is an error."""
        [reply] = self.ask_all([list(words)])
        if isinstance(reply, ReplyError):
            raise ClientError(str(reply))
        return reply

    def ask_all(self, requests: list[list[str | bytes]]) -> list[object]:
        """Return the replies, errors among them, to requests that are sent together.

        Raises ClientError if there are none.
        """
        encoded = [
            [word.encode() if isinstance(word, str) else word for word in each] for each in requests
        ]
        wire = b"".join([request(words) for words in encoded])
        replies: list[object] = []
        try:
            self._socket.sendall(wire)
            while len(replies) < len(requests):
                reply = self._reader.gets()
                if reply is not False:  # there are no booleans before RESP3 is asked for
                    replies.append(reply)
                    continue
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise ClientError("it has closed the connection")
                self._reader.feed(data)
        except OSError as error:
            raise ClientError(f"it does not answer: {error.strerror or error}") from None
        except ProtocolError as broken:
            raise ClientError(f"it speaks something else: {broken}") from None
        return replies

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


class Encryption:
    """The encryption of connections, by the options that redis-cli has for that.

    As there, the certificate of a server has to be signed by an authority that is trusted, and need
    not be for the host that was called. Raises OSError if a file cannot be used.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        import ssl  # late: OpenSSL comes with it

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        if options.insecure:
            context.verify_mode = ssl.CERT_NONE
        elif options.cacert or options.cacertdir:
            context.load_verify_locations(options.cacert or None, options.cacertdir or None)
        else:
            context.load_default_certs()
        if options.cert:
            context.load_cert_chain(options.cert, options.key or None)
        self._context: Final = context
        self._name: Final[str] = options.sni

    def wrap(self, opened: socket.socket, host: str) -> socket.socket:
        """Return the encrypted form of a connection to a host. Raises OSError if it fails."""
        return self._context.wrap_socket(opened, server_hostname=self._name or host)
