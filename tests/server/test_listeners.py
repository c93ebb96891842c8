"""Where the server listens, at start and after CONFIG SET."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from support.client import RawClient, WireError
from support.process import ServerProcess, free_port


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def answers(port: int, host: str = "127.0.0.1") -> bool:
    try:
        with RawClient(port, host) as client:
            return client.call("PING") == b"+PONG\r\n"
    except OSError:
        return False


def test_port_moves_and_clients_stay(fresh_server: Callable[..., ServerProcess]) -> None:
    process = fresh_server()
    old, new = process.port, free_port()
    with process.client() as client:
        assert client.call("CONFIG", "SET", "port", new) == b"+OK\r\n"
        assert answers(new)
        assert not answers(old)
        assert client.call("CONFIG", "SET", "port", old) == b"+OK\r\n"
        assert answers(old)
        assert not answers(new)


def test_port_that_is_taken_is_refused(fresh_server: Callable[..., ServerProcess]) -> None:
    process = fresh_server()
    with socket.create_server(("127.0.0.1", 0)) as taken, process.client() as client:
        reply = client.call_parsed("CONFIG", "SET", "port", taken.getsockname()[1], "hz", 20)
        assert reply == WireError(
            b"ERR CONFIG SET failed (possibly related to argument 'port') - "
            b"Unable to listen on this port. Check server logs."
        )
        assert client.call_parsed("CONFIG", "GET", "hz") == [b"hz", b"10"]
    assert answers(process.port)


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_bind_at_run_time(fresh_server: Callable[..., ServerProcess]) -> None:
    process = fresh_server("--bind", "127.0.0.1")
    assert not answers(process.port, "::1")
    with process.client() as client:
        assert client.call("CONFIG", "SET", "bind", "127.0.0.1 -::1 -192.0.2.1") == b"+OK\r\n"
        assert answers(process.port, "::1")
        assert answers(process.port)
        reply = client.call_parsed("CONFIG", "SET", "bind", "192.0.2.1")
        assert reply == WireError(
            b"ERR CONFIG SET failed (possibly related to argument 'bind') - "
            b"Failed to bind to specified addresses."
        )
        assert answers(process.port)
        assert client.call("CONFIG", "SET", "bind", "127.0.0.1") == b"+OK\r\n"
    assert not answers(process.port, "::1")


def test_unix_socket(fresh_server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    process = fresh_server("--unixsocket", str(path), "--unixsocketperm", "700")
    assert path.stat().st_mode & 0o777 == 0o700
    with RawClient(path=str(path)) as client:
        assert client.call("PING") == b"+PONG\r\n"
    process.stop()
    assert not path.exists()


def test_address_in_use_ends_the_start(fresh_server: Callable[..., ServerProcess]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = fresh_server(port=port, start=False, check_log=False)
        process.spawn()
        assert process.wait() == 1
    assert f"Could not create server TCP listening socket 127.0.0.1:{port}" in process.log()
