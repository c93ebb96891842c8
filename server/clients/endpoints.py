"""Where a connection comes from."""

from __future__ import annotations

import asyncio

from headrace.server.clients.session import Session


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
