"""Compare-and-set, compare-and-delete and MSETEX, here and in Redis 8.10."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.client import Argument, RawClient, Status, WireError
from support.process import Process

HELLO = b"9555e8555c62dcfd"  # the digest of "hello" in Redis
FAR_MS = 4102444800000
OK = Status(b"OK")
SYNTAX = WireError(b"ERR syntax error")
WRONGTYPE = WireError(b"WRONGTYPE Operation against a key holding the wrong kind of value")
LENGTH = WireError(b"ERR must be exactly 16 hexadecimal characters")


@pytest.fixture
def client(tested: Process) -> Iterator[RawClient]:
    with tested.client() as connection:
        yield connection


def test_digest(client: RawClient) -> None:
    for value, digest in (
        ("hello", HELLO),
        ("", b"2d06800538d394c2"),
        ("123", b"404a763b3f4c8c9a"),
        ("v8", b"0cc76dbb41381419"),
    ):
        client.call("SET", "k", value)
        assert client.call_parsed("DIGEST", "k") == digest
    assert client.call_parsed("DIGEST", "none") is None
    client.call("XADD", "s", "1-1", "f", "v")
    assert client.call_parsed("DIGEST", "s") == WRONGTYPE


@pytest.mark.parametrize(
    ("condition", "expected", "sets"),
    [
        ("IFEQ", "hello", True),
        ("ifeq", "Hello", False),
        ("IFNE", "hello", False),
        ("IFNE", "other", True),
        ("IFDEQ", HELLO, True),
        ("IFDEQ", HELLO.upper(), True),
        ("IFDEQ", "0" * 16, False),
        ("IFDNE", HELLO, False),
        ("IFDNE", "z" * 16, True),
    ],
)
def test_conditions(client: RawClient, condition: str, expected: Argument, sets: bool) -> None:
    client.call("SET", "k", "hello")
    assert client.call_parsed("SET", "k", "new", condition, expected) == (OK if sets else None)
    assert client.call_parsed("GET", "k") == (b"new" if sets else b"hello")
    client.call("SET", "k", "hello")
    assert client.call_parsed("SET", "k", "new", "GET", condition, expected) == b"hello"
    assert client.call_parsed("GET", "k") == (b"new" if sets else b"hello")
    client.call("SET", "k", "hello")
    assert client.call_parsed("DELEX", "k", condition, expected) == int(sets)
    assert client.call_parsed("EXISTS", "k") == int(not sets)


@pytest.mark.parametrize("condition", ["IFEQ", "IFNE", "IFDEQ", "IFDNE"])
def test_without_a_key(client: RawClient, condition: str) -> None:
    creates = condition in ("IFNE", "IFDNE")
    assert client.call_parsed("DELEX", "k", condition, "short") == 0
    assert client.call_parsed("SET", "k", "v", condition, "short", "GET") is None
    assert client.call_parsed("EXISTS", "k") == int(creates)
    client.call("DEL", "k")
    assert client.call_parsed("SET", "k", "v", condition, "short") == (OK if creates else None)


def test_a_condition_keeps_a_deadline_away_or_sets_it(client: RawClient) -> None:
    client.call("SET", "k", 5)
    assert client.call_parsed("SET", "k", "w", "IFEQ", 6, "PXAT", FAR_MS) is None
    assert client.call_parsed("PEXPIRETIME", "k") == -1
    assert client.call_parsed("SET", "k", "w", "PXAT", FAR_MS, "IFEQ", 5) == OK
    assert client.call_parsed("SET", "k", "x", "IFNE", 5, "KEEPTTL") == OK
    assert client.call_parsed("PEXPIRETIME", "k") == FAR_MS


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (("SET", "k", "v", "IFEQ"), SYNTAX),
        (("SET", "k", "v", "IFEQ", "a", "NX"), SYNTAX),
        (("SET", "k", "v", "XX", "IFNE", "a"), SYNTAX),
        (("SET", "k", "v", "IFEQ", "a", "IFNE", "b"), SYNTAX),
        (("SET", "k", "v", "IFDEQ", "123"), LENGTH),
        (("DELEX", "k", "IFDNE", "0" * 17), LENGTH),
        (("SET", "s", "v", "IFEQ", "a"), WRONGTYPE),
        (("SET", "s", "v", "IFDNE", "1"), WRONGTYPE),
        (
            ("DELEX", "s", "FOO", "a"),
            WireError(b"ERR Key should be of string type if conditions are specified"),
        ),
        (
            ("DELEX", "k", "FOO", "a"),
            WireError(b"ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"),
        ),
        (
            ("DELEX", "none", "IFEQ"),
            WireError(b"ERR wrong number of arguments for 'delex' command"),
        ),
        (("MSETEX", "k", "a", "EX", 10), WireError(b"ERR invalid numkeys value")),
        (("MSETEX", 0, "k", "v"), WireError(b"ERR invalid numkeys value")),
        (("MSETEX", 2147483648, "k", "v"), WireError(b"ERR invalid numkeys value")),
        (("MSETEX", 2147483647, "k", "v"), WireError(b"ERR wrong number of key-value pairs")),
        (("MSETEX", 2, "k", "v", "l"), WireError(b"ERR wrong number of key-value pairs")),
        (("MSETEX", 1, "k", "v", "FOO"), SYNTAX),
        (("MSETEX", 1, "k", "v", "GET"), SYNTAX),
        (("MSETEX", 1, "k", "v", "NX", "XX"), SYNTAX),
        (("MSETEX", 1, "k", "v", "EX", 10, "PX", 10), SYNTAX),
        (("MSETEX", 1, "k", "v", "KEEPTTL", "EX", 10), SYNTAX),
        (
            ("MSETEX", 1, "k", "v", "EX", 0),
            WireError(b"ERR invalid expire time in 'msetex' command"),
        ),
    ],
)
def test_refused(client: RawClient, request_: tuple[Argument, ...], error: WireError) -> None:
    client.call("SET", "k", "hello")
    client.call("XADD", "s", "1-1", "f", "v")
    assert client.call_parsed(*request_) == error
    assert client.call_parsed("MGET", "k") == [b"hello"]
    assert client.call_parsed("XLEN", "s") == 1


def test_delex_without_a_condition(client: RawClient) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    assert client.call_parsed("DELEX", "s") == 1
    assert client.call_parsed("DELEX", "s") == 0


def test_msetex(client: RawClient) -> None:
    assert client.call_parsed("MSETEX", 2, "a", 1, "b", 2, "PXAT", FAR_MS, "NX") == 1
    assert client.call_parsed("PEXPIRETIME", "b") == FAR_MS
    assert client.call_parsed("MSETEX", 2, "c", 1, "b", 3, "nx") == 0
    assert client.call_parsed("MSETEX", 2, "c", 1, "b", 3, "XX") == 0
    assert client.call_parsed("MGET", "a", "b", "c") == [b"1", b"2", None]
    assert client.call_parsed("MSETEX", 2, "a", 4, "b", 5, "KEEPTTL", "XX") == 1
    assert client.call_parsed("PEXPIRETIME", "a") == FAR_MS
    assert client.call_parsed("MSETEX", 1, "a", 6) == 1
    assert client.call_parsed("PEXPIRETIME", "a") == -1
    assert client.call_parsed("MSETEX", 1, "a", 7, "EX", 100) == 1
    assert client.call_parsed("TTL", "a") == 100


def test_events_of_a_value_replaced(tested: Process, client: RawClient) -> None:
    """Classes o and c, which came with Redis 8.2."""
    client.call("CONFIG", "SET", "notify-keyspace-events", "Eocg$")
    try:
        client.call("MSET", "k", 1, "l", 2)
        client.call("XADD", "s", "1-1", "f", "v")
        with tested.client() as listener:
            listener.call("PSUBSCRIBE", "__keyevent*__:*")
            client.call("SET", "k", 2)
            client.call("SET", "s", 2)
            client.call("RENAME", "k", "l")
            client.call("COPY", "l", "s", "REPLACE")
            client.call("INCR", "l")
            heard = [listener.read_parsed() for _ in range(10)]
        names = [bytes(event[2]).partition(b":")[2] + b" " + event[3] for event in heard]  # type: ignore[index]
        assert names == [
            b"overwritten k",
            b"set k",
            b"overwritten s",
            b"type_changed s",
            b"set s",
            b"rename_from k",
            b"rename_to l",
            b"overwritten l",
            b"copy_to s",
            b"overwritten s",
        ]
    finally:
        client.call("CONFIG", "SET", "notify-keyspace-events", "")
