"""MIGRATE between our servers, and between ours and a real one, in both directions."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from conftest import Factory

from headrace.compat.errors import KEYS_BESIDE_A_KEY
from support.client import Argument, RawClient
from support.process import Process, free_port
from support.waiting import wait_until

FILL = [
    ("SET", "string", "value"),
    ("RPUSH", "list", "a", "b"),
    ("HSET", "hash", "f", "v"),
    ("SADD", "set", "m"),
    ("ZADD", "zset", "1.5", "m"),
    ("XADD", "stream", "1-1", "f", "v"),
]
KEYS = [words[1] for words in FILL]
REFUSED = "127.0.0.1", "1"


@pytest.fixture
def target(fresh_server: Factory) -> Process:
    return fresh_server("--requirepass", "secret")


@pytest.fixture
def client(fresh_server: Factory) -> Iterator[RawClient]:
    with fresh_server("--enable-debug-command", "yes").client() as client:
        for words in FILL:
            client.call_parsed(*words)
        yield client


def placed(target: Process) -> tuple[str, str]:
    return "127.0.0.1", str(target.port)


def test_a_key_moves_with_its_deadline(client: RawClient, target: Process) -> None:
    client.call_parsed("PEXPIRE", "list", 100_000)
    reply = client.call("MIGRATE", *placed(target), "list", 3, 60_000, "AUTH", "secret")
    assert reply == b"+OK\r\n"
    assert client.call_parsed("EXISTS", "list") == 0
    with target.client() as other:
        other.call_parsed("AUTH", "secret")
        other.call_parsed("SELECT", 3)
        assert other.call_parsed("LRANGE", "list", 0, -1) == [b"a", b"b"]
        left_ms = other.call_parsed("PTTL", "list")
        assert isinstance(left_ms, int)
        assert 0 < left_ms <= 100_000


def test_what_is_taken_goes_and_what_is_refused_stays(client: RawClient, target: Process) -> None:
    with target.client() as other:
        other.call_parsed("AUTH", "secret")
        other.call_parsed("SET", "set", "in the way")
        words: tuple[Argument, ...] = (
            "MIGRATE",
            *placed(target),
            "",
            0,
            60_000,
            "AUTH2",
            "default",
            "secret",
        )
        reply = client.call(*words, "KEYS", "gone", *KEYS)
        assert reply == (
            b"-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n"
        )
        assert client.call_parsed("KEYS", "*") == [b"set"]
        assert client.call(*words, "REPLACE", "COPY", "KEYS", "set") == b"+OK\r\n"
        assert client.call_parsed("EXISTS", "set") == 1
        assert other.call_parsed("SMEMBERS", "set") == [b"m"]
        assert other.call_parsed("DBSIZE") == len(KEYS)


def test_nothing_goes_where_the_login_fails(client: RawClient, target: Process) -> None:
    reply = client.call("MIGRATE", *placed(target), "string", 0, 60_000, "AUTH", "wrong")
    assert reply.startswith(b"-ERR Target instance replied with error: WRONGPASS ")
    reply = client.call("MIGRATE", *placed(target), "string", 0, 60_000)
    assert reply == (
        b"-ERR Target instance replied with error: NOAUTH Authentication required.\r\n"
    )
    assert client.call_parsed("GET", "string") == b"value"


def test_a_server_that_says_nothing_is_given_up(client: RawClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        reply = client.call("MIGRATE", "127.0.0.1", port, "string", 0, 50)
    assert reply == b"-IOERR error or timeout reading to target instance\r\n"
    assert client.call_parsed("EXISTS", "string") == 1


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ((*REFUSED, "none", 0, 10), b"+NOKEY\r\n"),
        ((*REFUSED, "", 0, 10, "KEYS"), b"+NOKEY\r\n"),
        ((*REFUSED, "", 0, 10, "KEYS", "none"), b"+NOKEY\r\n"),
        ((*REFUSED, "string", 0, 10), b"-IOERR error or timeout writing to target instance\r\n"),
        (
            ("host.invalid", "1", "string", 0, 10),
            b"-IOERR error or timeout connecting to the client\r\n",
        ),
        (
            (*REFUSED, "string", "x", 10),
            b"-ERR value is not an integer or out of range\r\n",
        ),
        ((*REFUSED, "string", 0, 10, "AUTH"), b"-ERR syntax error\r\n"),
        ((*REFUSED, "string", 0, 10, "AUTH2", "x"), b"-ERR syntax error\r\n"),
        ((*REFUSED, "string", 0, 10, "OTHER"), b"-ERR syntax error\r\n"),
        (
            (*REFUSED, "string", 0, 10, "KEYS", "string"),
            b"-" + KEYS_BESIDE_A_KEY + b"\r\n",
        ),
    ],
)
def test_what_is_wrong_is_refused(
    client: RawClient, words: tuple[str | int, ...], reply: bytes
) -> None:
    assert client.call("MIGRATE", *words) == reply
    assert client.call_parsed("DBSIZE") == len(KEYS)


def test_what_goes_is_recorded(fresh_server: Factory) -> None:
    target = fresh_server()
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        client.call_parsed("SET", "string", "value")
        client.call_parsed("SET", "other", "value")
        assert client.call("MIGRATE", *placed(target), "string", 0, 60_000) == b"+OK\r\n"
    server.kill()
    server.start()
    with server.client() as client:
        assert client.call_parsed("KEYS", "*") == [b"other"]


@pytest.mark.since(8, 10)  # an older one does not take what DUMP answers here
def test_keys_move_between_ours_and_a_real_server(server: Process, redis_server: Process) -> None:
    with server.client() as ours, redis_server.client() as real:
        ours.call_parsed("FLUSHALL")
        for words in FILL:
            ours.call_parsed(*words)
        held = [ours.call_parsed("DUMP", key) for key in KEYS]
        there: tuple[Argument, ...] = ("127.0.0.1", redis_server.port, "", 0, 60_000, "KEYS", *KEYS)
        for client in (ours, real):
            client.call_parsed("CONFIG", "RESETSTAT")
            assert client.call("MIGRATE", "127.0.0.1", 1, "none", 0, 60_000) == b"+NOKEY\r\n"
            assert b"keyspace_misses:1\r\n" in client.call("INFO", "stats")
        assert ours.call("MIGRATE", *there) == b"+OK\r\n"
        assert ours.call_parsed("DBSIZE") == 0
        assert real.call_parsed("DBSIZE") == len(KEYS)
        here: tuple[Argument, ...] = ("127.0.0.1", server.port, "", 0, 60_000, "KEYS", *KEYS)
        assert real.call("MIGRATE", *here) == b"+OK\r\n"
        assert real.call_parsed("DBSIZE") == 0
        assert [ours.call_parsed("DUMP", key) for key in KEYS] == held


@pytest.mark.since(8, 10)
def test_a_node_of_a_cluster_gives_its_keys(server: Process, fresh_redis: Factory) -> None:
    """It sends RESTORE-ASKING; what is taken is recorded, and read again."""
    node = fresh_redis("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    node.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    wait_until(lambda: b"cluster_state:ok" in bytes(node.call("CLUSTER", "INFO")))  # type: ignore[call-overload]
    server.call("FLUSHALL")
    with node.client() as real, server.client() as ours:
        for words in FILL:
            real.call_parsed(*words)
        held = [real.call_parsed("DUMP", key) for key in KEYS]
        there: tuple[Argument, ...] = ("127.0.0.1", server.port, "", 0, 60_000, "KEYS")
        for key in KEYS:
            assert real.call("MIGRATE", *there, key) == b"+OK\r\n"
        assert [ours.call_parsed("DUMP", key) for key in KEYS] == held


def test_links_begin_where_they_are_to(fresh_server: Factory, target: Process) -> None:
    """At the address of ``bind-source-addr``, if the machine has it; else at any, as in Redis."""
    source = fresh_server("--bind-source-addr", "127.0.0.2", "--masterauth", "secret")
    source.call("SET", "k", "v")
    with target.client() as watching:
        watching.call("AUTH", "secret")
        watching.call("MONITOR")
        source.call("MIGRATE", *placed(target), "k", 0, 60_000, "AUTH", "secret")
        assert b"[0 127.0.0.2:" in watching.read()
        source.call("CONFIG", "SET", "bind-source-addr", "192.0.2.1")
        source.call("SET", "l", "v")
        source.call("MIGRATE", *placed(target), "l", 0, 60_000, "AUTH", "secret")
        lines = [watching.read() for _ in range(3)]
        assert b"[0 127.0.0.1:" in lines[-1], lines
        watching.call("RESET")
    source.call("CONFIG", "SET", "bind-source-addr", "127.0.0.2")
    source.call("REPLICAOF", *placed(target))
    with target.client() as client:
        client.call("AUTH", "secret")
        wait_until(lambda: b"addr=127.0.0.2:" in client.call("CLIENT", "LIST", "TYPE", "replica"))
