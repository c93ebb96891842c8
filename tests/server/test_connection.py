"""What a connection does before its first request."""

from __future__ import annotations

import socket

import pytest

from headrace.server.net.connection import is_remote, keep_alive
from support.client import RawClient
from support.process import ServerProcess


class Accepted:
    """What a transport tells of an accepted socket, and of the place its peer calls from."""

    def __init__(self, sock: socket.socket, peer: object) -> None:
        self._told = {"socket": sock, "peername": peer}

    def get_extra_info(self, name: str) -> object:
        return self._told.get(name)


@pytest.mark.parametrize(
    ("peer", "remote"),
    [
        (("127.0.0.1", 1), False),
        (("127.3.2.1", 1), False),
        (("::1", 1, 0, 0), False),
        (("::ffff:127.0.0.1", 1, 0, 0), False),
        ("/run/headrace.sock", False),
        ("", False),
        (("10.1.2.3", 1), True),
        (("::ffff:10.1.2.3", 1, 0, 0), True),
        (("fe80::1", 1, 0, 2), True),
    ],
)
def test_protected_mode_knows_other_machines(peer: object, remote: bool) -> None:
    with socket.socket() as sock:
        assert is_remote(Accepted(sock, peer)) is remote  # type: ignore[arg-type]


def test_silent_peers_are_probed() -> None:
    with socket.socket() as sock:
        keep_alive(Accepted(sock, None), 0)  # type: ignore[arg-type]
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
        keep_alive(Accepted(sock, None), 60)  # type: ignore[arg-type]
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 20


def test_the_first_client_too_many_is_told_so(server: ServerProcess, client: RawClient) -> None:
    assert client.call("CONFIG", "SET", "maxclients", "1") == b"+OK\r\n"
    try:
        with RawClient(server.port) as second:
            assert second.read() == b"-ERR max number of clients reached\r\n"
        assert client.call("PING") == b"+PONG\r\n"
    finally:
        client.call("CONFIG", "SET", "maxclients", "10000")
