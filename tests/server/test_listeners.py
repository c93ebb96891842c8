"""Where the server listens, at start and after CONFIG SET."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from conftest import Factory

from support.client import RawClient, WireError
from support.process import Process, ServerProcess, free_port
from support.waiting import wait_until


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


def has_begun(process: Process) -> bool:
    """Return whether it serves, or has ended."""
    return "Ready to accept" in process.log() or not process.running


def at_path(kind: str, path: Path) -> str:
    """Put something where a Unix socket is to be; the path to be given."""
    if kind == "a stale socket":
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    elif kind == "a file":
        path.write_text("text")
    elif kind == "a link to nothing":
        path.symlink_to("nothing")
    elif kind == "a link to a file":
        path.with_name("linked").write_text("text")
        path.symlink_to("linked")
    elif kind == "a folder":
        path.mkdir()
    elif kind == "no folder":
        return str(path / "socket")
    elif kind == "a long path":
        return str(path) + "s" * 108
    return str(path)


@pytest.mark.parametrize(
    "kind",
    [
        "nothing",
        "a stale socket",
        "a file",
        "a link to nothing",
        "a link to a file",
        "a folder",
        "no folder",
        "a long path",
    ],
)
def test_what_is_where_a_unix_socket_is_to_be(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, kind: str
) -> None:
    """It stops the start where it stops that of Redis, with the same reason; a link stays whole."""
    ends: list[object] = []
    for make in (fresh_server, fresh_redis):
        path = at_path(kind, tmp_path / f"s{len(ends)}")
        process = make("--unixsocket", path, start=False)
        process.spawn()
        wait_until(partial(has_begun, process))
        if process.running:
            with RawClient(path=path) as client:
                assert client.call("PING") == b"+PONG\r\n"
            process.stop()
            ends.append(os.path.lexists(path))
        else:
            [line] = [line for line in process.log().splitlines() if "Failed opening" in line]
            ends.append((process.returncode, line.partition("# ")[2]))
    assert ends[0] == ends[1]
    if kind == "a link to a file":
        assert (tmp_path / "linked").read_text() == "text"


def test_two_servers_at_one_unix_socket(fresh_server: Factory, tmp_path: Path) -> None:
    """The second one has it; the first one still serves those that have come to it."""
    path = str(tmp_path / "socket")
    first = fresh_server("--unixsocket", path)
    with RawClient(path=path) as client:
        second = fresh_server("--unixsocket", path)
        with RawClient(path=path) as other:
            other.call("SET", "k", "v")
        assert second.call("GET", "k") == b"v"
        assert client.call("GET", "k") == b"$-1\r\n"
    second.stop()
    first.stop()


@pytest.mark.since(7, 2)
@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.7", "no.such.host.invalid"])
def test_an_address_that_cannot_be_had_ends_the_start(
    fresh_server: Factory, fresh_redis: Factory, address: str
) -> None:
    """With Redis's exit code and words, which those who start servers look for."""
    told = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for make in (fresh_server, fresh_redis):
            process = make("--bind", address, port=port, start=False)
            process.spawn()
            assert process.wait() == 1
            lines = process.log().splitlines()
            told.append([line.partition(" # ")[2] for line in lines][-2:])
    assert told[0] == told[1]
