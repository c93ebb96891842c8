"""What a connection does before its first request, and behind its last reply."""

from __future__ import annotations

import socket

import pytest
from conftest import Factory

from headrace.server.net.connection import is_remote, keep_alive
from support.client import RawClient
from support.process import ServerProcess
from support.stopping import stopped
from support.waiting import wait_until


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
            assert has_ended(second)
        assert client.call("PING") == b"+PONG\r\n"
    finally:
        client.call("CONFIG", "SET", "maxclients", "10000")


def has_ended(client: RawClient) -> bool:
    """Whether the end of the connection is known by now to a client that has read everything."""
    client.sock.settimeout(0)
    try:
        return client.sock.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.mark.parametrize("request_line", [b"QUIT", b"CLIENT KILL ID number SKIPME no", b"*1\r\n#"])
def test_the_end_comes_with_the_last_reply(server: ServerProcess, request_line: bytes) -> None:
    """Whoever keeps connections for later use must not take this one for a good one.

    Not even while the server is at work for others.
    """
    with server.client() as client, server.client() as other:
        other.call("PING")
        number = client.call("CLIENT", "ID")[1:-2]
        with stopped(server):
            client.send(request_line.replace(b"number", number) + b"\r\n")
            other.send_command("DEBUG", "SLEEP", "1")
        client.read()
        assert has_ended(client)
        assert not other.is_answered()
        assert other.read() == b"+OK\r\n"


def test_who_is_cut_off_knows_it_when_others_do(server: ServerProcess, client: RawClient) -> None:
    for _ in range(20):
        with server.client() as victim:
            number = victim.call_parsed("CLIENT", "ID")
            assert client.call("CLIENT", "KILL", "ID", int(str(number))) == b":1\r\n"
            assert has_ended(victim)


def test_a_script_holds_no_end_off(fresh_server: Factory) -> None:
    server = fresh_server("--busy-reply-threshold", "50")
    with server.client() as client, server.client() as other, server.client() as leaver:
        assert other.call("PING") == leaver.call("PING") == b"+PONG\r\n"
        client.send_command("EVAL", "while true do end", 0)
        wait_until(lambda: other.call("PING").startswith(b"-BUSY"))
        assert leaver.call("QUIT") == b"+OK\r\n"
        assert has_ended(leaver)
        assert other.call("SCRIPT", "KILL") == b"+OK\r\n"
