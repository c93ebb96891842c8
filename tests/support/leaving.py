"""Clients that leave while the server is stopped, so that it learns of it later."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from support.client import RawClient
from support.waiting import wait_until

ESTABLISHED = "01"
RESET = struct.pack("ii", 1, 0)  # close without waiting for anything


def is_connected(server_port: int, client_port: int) -> bool:
    """Return whether the server's kernel takes a connection for open on both sides."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    place = (f":{server_port:04X}", f":{client_port:04X}")
    return any(
        local.endswith(place[0]) and remote.endswith(place[1]) and state == ESTABLISHED
        for _, local, remote, state, *_ in rows
    )


def leave(client: RawClient, how: str) -> None:
    """Have a client leave, and wait until the server's kernel knows."""
    server_port, client_port = client.sock.getpeername()[1], client.sock.getsockname()[1]
    assert is_connected(server_port, client_port)
    _leave(client, how)
    wait_until(lambda: not is_connected(server_port, client_port))


def _leave(client: RawClient, how: str) -> None:
    if how == "pipelines more and closes":
        client.send_command("PING")
    elif how == "resets":
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    elif how == "sends no more":
        client.sock.shutdown(socket.SHUT_WR)
        return
    client.close()
