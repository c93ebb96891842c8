"""Where a connection comes from, and where those begin that the server opens."""

from __future__ import annotations

import asyncio
import socket

from headrace.server.clients.session import Session
from headrace.server.config.config import Config


def describe_endpoints(session: Session, transport: asyncio.Transport) -> None:
    """Note where a client comes from, as CLIENT LIST shows it."""
    sock = transport.get_extra_info("socket")
    peer = transport.get_extra_info("peername")
    local = transport.get_extra_info("sockname")
    session.fd = sock.fileno() if sock is not None else -1
    if isinstance(peer, tuple) and isinstance(local, tuple):
        session.address = _host_and_port(peer)
        session.local_address = _host_and_port(local)
    else:
        path = local if isinstance(local, str) else ""
        session.unix_socket = True
        session.address = path.encode() + b":0"
        session.local_address = session.address


def _host_and_port(place: tuple[object, ...]) -> bytes:
    host = str(place[0])
    return (f"[{host}]:{place[1]}" if ":" in host else f"{host}:{place[1]}").encode()


def source_address(config: Config) -> tuple[str, int] | None:
    """Where links begin that this server opens, if ``bind-source-addr`` is an address it has.

    As in Redis, any other begins where the system lets it begin.
    """
    host = config.bind_source_addr.decode("utf-8", "replace")
    if not host:
        return None
    try:
        [found, *_] = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
        with socket.socket(found[0], socket.SOCK_STREAM) as trial:
            trial.bind(found[4])
    except (OSError, UnicodeError, ValueError):
        return None
    return host, 0
