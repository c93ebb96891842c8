"""The sockets that accept clients: opened at start, changed by CONFIG SET, closed at the end.

Sockets are bound and set to listen at once, so that CONFIG SET can refuse an address that is not
available; the event loop takes them over right after.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Callable
from typing import Any, Final

from headrace.server.config.config import Config
from headrace.server.net.encryption import NOT_UPDATED, Encryption
from headrace.server.process.system import inherited_sockets

log: Final = logging.getLogger("headrace")

BAD_PORT: Final = "Unable to listen on this port. Check server logs."
BAD_BIND: Final = "Failed to bind to specified addresses."

SO_MARK: Final = 36  # of Linux
UNIX_PATH_BYTES: Final = 108  # that a path takes there at most, with its NUL

# Why an address marked optional may be missing: this machine has no such address.
_ABSENT: Final = (
    errno.EADDRNOTAVAIL,
    errno.EAFNOSUPPORT,
    errno.EPROTONOSUPPORT,
    errno.ESOCKTNOSUPPORT,
    errno.EPFNOSUPPORT,
    errno.ENOPROTOOPT,
)


class Port:
    """The sockets at one port of all addresses of ``bind``; ``connect`` makes protocols."""

    def __init__(self, config: Config, connect: Callable[[], asyncio.Protocol]) -> None:
        self.connect: Final = connect
        self.sockets: list[socket.socket] = []
        self._config: Final = config
        self._waiting: list[socket.socket] = []  # those of them that the loop has not taken yet
        self._servers: list[asyncio.Server] = []

    def bind(self, port: int) -> None:
        """Open the sockets; none for port 0.

        Raises OSError, with the address; none is open then.
        """
        self.take(bind_all(self._config, port, self._config.bind))

    def take(self, opened: list[socket.socket]) -> None:
        """Accept clients at sockets that listen already."""
        self.sockets = opened
        self._waiting = list(opened)

    async def serve(self) -> None:
        """Hand the sockets that wait for it to the loop."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            taken = self._waiting.pop(0)
            server = await loop.create_server(
                self.connect, sock=taken, backlog=self._config.tcp_backlog
            )
            if taken in self.sockets:
                self._servers.append(server)
            else:
                server.close()  # the configuration changed again meanwhile

    def hold(self) -> list[socket.socket]:
        """Accept no more clients, and return the sockets, at which those that come wait."""
        held = [each.dup() for each in self.sockets]
        for server in self._servers:
            server.close()
        self.sockets = []
        self._servers = []
        return held

    def close(self) -> None:
        """Close the sockets."""
        for waiting in self._waiting:
            waiting.close()
        for server in self._servers:
            server.close()
        for each in self.sockets:
            # The loop may close its sockets later; the address must be free at once.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.sockets = []
        self._waiting = []
        self._servers = []


class Listeners:
    """All sockets of one server.

    Args:
        connect: makes the protocol of a client; connect_region: of another region.
        encryption: makes those of encrypted connections.
    """

    def __init__(
        self,
        config: Config,
        connect: Callable[[], asyncio.Protocol],
        connect_region: Callable[[], asyncio.Protocol],
        encryption: Encryption,
    ) -> None:
        self._config: Final = config
        self._connect: Final = connect
        self._connect_region: Final = connect_region
        self._encryption: Final = encryption
        self._region_servers: Final[list[asyncio.Server]] = []
        self._plain: Final = Port(config, connect)
        self._encrypted: Final = Port(config, encryption.connect)
        self._unix_server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Open all configured sockets. Raises OSError, with the address, if one is not optional."""
        config = self._config
        self._encryption.start()
        inherited = inherited_sockets()
        self._take(inherited)
        if not self._plain.sockets:
            bind_or_abort(self._plain, config.port, "tcp")
        if not self._encrypted.sockets:
            bind_or_abort(self._encrypted, config.tls_port, "tls")
        if not inherited:  # their clients wait until all is loaded
            await self.serve()
        if config.unixsocket:
            await self._open_unix(config.unixsocket, config.unixsocketperm)
        if config.aa_region_id:
            await self._open_region_port()
        if not self.awaited():
            raise OSError("Configured to not listen anywhere, exiting.")
        config.on_change["port"] = self._change_port
        config.on_change["tls-port"] = self._change_tls_port
        config.on_change["bind"] = self._change_bind

    def hold(self) -> list[socket.socket]:
        """Accept no more clients, and return the sockets, at which those that come wait."""
        return self._plain.hold() + self._encrypted.hold()

    async def resume(self, held: list[socket.socket]) -> None:
        """Accept clients from sockets that were held."""
        self._take(held)
        await self.serve()

    async def serve(self) -> None:
        """Accept clients from all sockets that are open."""
        await self._plain.serve()
        await self._encrypted.serve()

    def _take(self, listening: list[socket.socket]) -> None:
        encrypted = [each for each in listening if each.getsockname()[1] == self._config.tls_port]
        self._plain.take([each for each in listening if each not in encrypted])
        self._encrypted.take(encrypted)

    def close(self) -> None:
        """Accept no more clients; those that are connected stay."""
        self._plain.close()
        self._encrypted.close()
        for server in self._region_servers:
            server.close()
        if self._unix_server is not None:
            self._unix_server.close()
            self._unix_server = None
            with contextlib.suppress(OSError):
                os.unlink(self._config.unixsocket)

    def awaited(self) -> list[tuple[int, Callable[[], asyncio.Protocol]]]:
        """Return the sockets that accept clients, each with the maker of its protocols."""
        found: list[tuple[int, Callable[[], asyncio.Protocol]]] = []
        for port in (self._plain, self._encrypted):
            found += [(each.fileno(), port.connect) for each in port.sockets]
        # Any, because its sockets are a tuple of asyncio's server and a list of uvloop's.
        unix_server: Any = self._unix_server
        if unix_server is not None:
            found += [(each.fileno(), self._connect) for each in unix_server.sockets]
        return found

    def shaking(self) -> list[Any]:
        """Return the protocols of clients that are connected, and have no session yet."""
        return self._encryption.shaking()

    async def _open_region_port(self) -> None:
        config = self._config
        connect = self._encryption.connect_region if config.aa_tls else self._connect_region
        protected = config.aa_tls or config.aa_allow_plaintext
        addresses = config.bind if protected else loopback_of(config.bind)
        loop = asyncio.get_running_loop()
        for opened in bind_all(config, config.aa_port, addresses):
            server = await loop.create_server(connect, sock=opened, backlog=config.tcp_backlog)
            self._region_servers.append(server)

    async def _open_unix(self, path: bytes, mode: int) -> None:
        opened = bind_unix(path, mode, self._config.tcp_backlog)
        loop = asyncio.get_running_loop()
        self._unix_server = await loop.create_unix_server(
            self._connect, sock=opened, backlog=self._config.tcp_backlog
        )

    def _change_port(self) -> str | None:
        return self._reopen([(self._plain, self._config.port)], BAD_PORT)

    def _change_tls_port(self) -> str | None:
        port = self._config.tls_port
        if port and not self._encryption.get_ready():
            return NOT_UPDATED
        return self._reopen([(self._encrypted, port)], BAD_PORT)

    def _change_bind(self) -> str | None:
        config = self._config
        ports = [(self._plain, config.port), (self._encrypted, config.tls_port)]
        return self._reopen(ports, BAD_BIND)

    def _reopen(self, ports: list[tuple[Port, int]], refusal: str) -> str | None:
        """Listen at the configured addresses; return a text when one is not available."""
        # First close: the new addresses may hold some of the old ones.
        for port, _ in ports:
            port.close()
        try:
            for port, number in ports:
                port.bind(number)
        except OSError as error:
            log.warning("%s", error)
            for port, _ in ports:
                port.close()
            return refusal
        for port, _ in ports:
            task = asyncio.get_running_loop().create_task(port.serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return None


def bind_or_abort(port: Port, number: int, kind: str) -> None:
    """Open the sockets of a port at the start. Raises OSError; the log says why."""
    try:
        port.bind(number)
    except OSError as error:
        log.warning("%s", error)
        raise OSError(f"Failed listening on port {number} ({kind}), aborting.") from error


def bind_all(config: Config, port: int, addresses: list[bytes]) -> list[socket.socket]:
    """Return sockets that listen at a port of all these addresses; none for port 0.

    Raises OSError, naming the address that is not available; then none is open.
    """
    opened: list[socket.socket] = []
    if not port:
        return opened
    for address in addresses:
        name = os.fsdecode(address)
        optional = name.startswith("-")
        host = name.removeprefix("-")
        try:
            opened.append(_bind_one(host, port, config.tcp_backlog))
            if config.socket_mark_id:
                _mark(opened[-1], config.socket_mark_id)
        except OSError as error:
            if optional and error.errno in _ABSENT:
                log.debug("Not listening on %s port %d: %s", host, port, error)
                continue
            for each in opened:
                each.close()
            step = "" if isinstance(error, socket.gaierror) else "bind: "
            raise OSError(
                f"Warning: Could not create server TCP listening socket {host}:{port}: "
                f"{step}{error.strerror or error}"
            ) from error
    return opened


def bind_unix(path: bytes, mode: int, backlog: int) -> socket.socket:
    """Return a socket that listens at a path, in the place of whatever file is there.

    ``mode`` is that of the file; 0 is up to the umask. Raises OSError: the path is not available.
    """
    with contextlib.suppress(OSError):
        os.unlink(path)
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.bind(path)
        if mode:
            os.chmod(path, mode)
        opened.listen(backlog)
    except OSError as error:
        opened.close()
        reason = f"bind: {error.strerror}"
        if error.errno is None:
            reason = f"unix socket path too long ({len(path)}), must be under {UNIX_PATH_BYTES}"
        raise OSError(f"Failed opening Unix socket: {reason}") from error
    return opened


def loopback_of(addresses: list[bytes]) -> list[bytes]:
    """Return those addresses that only this machine reaches; with ``*``, the one of its family."""
    found: list[bytes] = []
    for address in addresses:
        host = address.removeprefix(b"-")
        if host == b"*":
            found.append(b"127.0.0.1")
        elif host == b"::*":
            found.append(b"-::1")
        elif host in (b"::1", b"localhost") or host.startswith(b"127."):
            found.append(address)
    return found


def _mark(opened: socket.socket, mark: int) -> None:
    """Mark a socket and all connections that it accepts, for the rules of a firewall."""
    try:
        opened.setsockopt(socket.SOL_SOCKET, SO_MARK, mark)
    except OSError as error:
        log.warning("socket-mark-id %d cannot be set: %s", mark, error)


def _bind_one(host: str, port: int, backlog: int) -> socket.socket:
    if host == "*":
        host = "0.0.0.0"
    elif host == "::*":
        host = "::"
    # Bytes: a str is translated by the tables for international names, which are large.
    place = host.encode() if host.isascii() else host
    try:
        found = socket.getaddrinfo(place, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError as error:
        raise OSError(str(error)) from error
    family, kind, protocol, _, address = found[0]
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.setblocking(False)
        opened.bind(address)
        opened.listen(backlog)
    except OSError:
        opened.close()
        raise
    return opened
