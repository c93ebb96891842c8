"""Who speaks another protocol to our port: HTTP is cut off, all else gets what Redis says to it."""

from __future__ import annotations

import pytest
from conftest import Factory

from support.client import RawClient, encode
from support.process import Pair, Process, ServerProcess

HTTP = [
    b"POST / HTTP/1.1\r\n",
    b"post\r\n",
    b"PoSt\n",
    b"Host: 127.0.0.1\r\n",
    b"hOST:\r\n",
    b'"\\x70ost" /\r\n',
    encode("POST", "/"),
    encode("host:"),
    encode(b"post\0 and what C does not read", "x"),
]
GREETINGS = [
    b"Host:127.0.0.1\r\n",
    b"host\r\n",
    b"OPTIONS / HTTP/1.1\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"EHLO mail.example.org\r\nMAIL FROM:<a@b>\r\n",
    encode("CONFIG", "POST"),
    encode("COMMAND", "INFO", "post", "host:"),
]
# The first bytes of a handshake, and in it a line that others can put there.
TLS = bytes.fromhex("16030100c8010000c40303") + b"\nSET k 1\r\n" * 3


def cut_off(client: RawClient, data: bytes) -> bytes:
    client.send(data)
    return client.rest_until_close()


def logged(server: Process) -> int:
    return server.log().count("possible attack: a client sends HTTP")


@pytest.mark.judge
@pytest.mark.parametrize("data", HTTP, ids=range(len(HTTP)))
def test_http_is_closed_and_nothing_behind_it_runs(
    server: ServerProcess, pair: Pair, data: bytes
) -> None:
    for client in (pair.ours, pair.real):
        assert cut_off(client, data + encode("SET", "k", 1) + b"SET k 1\r\n") == b""
    assert server.call("EXISTS", "k") == 0
    assert server.call("PING") == b"PONG"


@pytest.mark.judge
@pytest.mark.parametrize(
    "before",
    [
        b"GET / HTTP/1.1\r\n",
        encode("SET", "earlier", 1),
        encode("MULTI") + encode("SET", "queued", 1),
        encode("SUBSCRIBE", "news"),
        encode("MONITOR"),
        encode("CLIENT", "REPLY", "OFF"),
        encode("CLIENT", "PAUSE", 0, "WRITE"),
    ],
    ids=range(7),
)
def test_whatever_came_before_it(server: ServerProcess, pair: Pair, before: bytes) -> None:
    for client in (pair.ours, pair.real):
        assert cut_off(client, before + b"POST /\r\nEXEC\r\nSET k 1\r\n") == b""
    assert server.call("EXISTS", "k", "queued") == 0
    assert server.call("EXISTS", "earlier") == (b"earlier" in before)


@pytest.mark.judge
def test_before_auth(fresh_server: Factory, fresh_redis: Factory) -> None:
    for fresh in (fresh_server, fresh_redis):
        with fresh("--requirepass", "secret").client() as client:
            assert cut_off(client, b"Host: x\r\nAUTH secret\r\nSET k 1\r\n") == b""


def test_what_ran_before_it_is_recorded(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        assert cut_off(client, encode("SET", "earlier", 1) + b"POST /\r\nSET k 1\r\n") == b""
    assert server.call("GET", "earlier") == b"1"
    server.restart(crash=True)
    assert server.call("GET", "earlier") == b"1"
    assert server.call("EXISTS", "k") == 0


def test_the_log_names_the_peer_once_a_minute(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        host, port = client.sock.getsockname()
        cut_off(client, b"POST /\r\n")
    server.wait_for_log(f"Connection from {host}:{port} closed.")
    for _ in range(3):
        with server.client() as client:
            cut_off(client, b"Host: x\r\n")
    server.call("PING")
    assert logged(server) == 1


@pytest.mark.judge
@pytest.mark.parametrize("data", GREETINGS, ids=range(len(GREETINGS)))
def test_other_greetings_are_answered_as_redis_does(pair: Pair, data: bytes) -> None:
    ends = []
    for client in (pair.ours, pair.real):
        client.send(data + b"QUIT\r\n")
        # Some versions show no arguments where there are none.
        ends.append(client.rest_until_close().replace(b", with args beginning with: \r\n", b"\r\n"))
    assert ends[0] == ends[1]


@pytest.mark.judge
def test_nothing_in_a_tls_handshake_runs(server: ServerProcess, pair: Pair) -> None:
    for client in (pair.ours, pair.real):
        client.send(TLS)
        client.send_slowly(b"\nPING\r\n")
        assert client.silent()
    assert server.call("EXISTS", "k") == 0
    for client in (pair.ours, pair.real):
        client.send(b"x" * 70_000)
        assert client.rest_until_close() == b"-ERR Protocol error: too big inline request\r\n"
