"""Another server, asked while everything here waits for it: what MIGRATE needs."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Final, Self

from hiredis import ProtocolError, Reader

from headrace.compat.errors import (
    PEER_NOT_CONNECTED,
    PEER_NOT_READ,
    PEER_NOT_WRITTEN,
    CommandError,
)

if TYPE_CHECKING:
    from types import TracebackType

_CHUNK_BYTES: Final = 4096


class Peer:
    """A connection, to be used in a ``with`` statement.

    Args:
        timeout_ms: how long each step may take.
        source: where it begins; None where the system lets it begin.

    Raises:
        CommandError: the name means no address, or there is no socket for it; in ``send`` and
            ``reply``: the server is not there, or takes too long.
    """

    def __init__(
        self, host: str, port: str, timeout_ms: int, source: tuple[str, int] | None
    ) -> None:
        try:
            [found, *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self._socket: Final = socket.socket(found[0], socket.SOCK_STREAM)
        except (OSError, UnicodeError, ValueError) as error:
            raise CommandError(PEER_NOT_CONNECTED) from error
        self._address: Final = found[4]
        if source is not None:
            with contextlib.suppress(OSError):  # it may be of another family
                self._socket.bind(source)
        self._socket.settimeout(timeout_ms / 1000)
        self._reader: Final = Reader()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, wire: bytes) -> None:
        """Connect, and send this."""
        try:
            self._socket.connect(self._address)
            self._socket.sendall(wire)
        except (OSError, OverflowError) as error:
            raise CommandError(PEER_NOT_WRITTEN) from error

    def reply(self) -> object:
        """The next reply; one that is an error is a ``hiredis.ReplyError``."""
        while True:
            try:
                reply = self._reader.gets()
                if reply is not False:
                    return reply
                more = self._socket.recv(_CHUNK_BYTES)
            except (OSError, ProtocolError) as error:
                raise CommandError(PEER_NOT_READ) from error
            if not more:
                raise CommandError(PEER_NOT_READ)
            self._reader.feed(more)
