"""INCREX, here and in Redis 8.10: the same expectations of both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from headrace.compat import long_double
from support.client import Argument, RawClient, WireError
from support.process import Process, ServerProcess

FAR_MS = 4102444800000
MAX = 2**63 - 1
MIN = -(2**63)
GREATEST = long_double.text(long_double.GREATEST)
WRONGTYPE = WireError(b"WRONGTYPE Operation against a key holding the wrong kind of value")
SYNTAX = WireError(b"ERR syntax error")
Words = tuple[Argument, ...]


@pytest.fixture
def client(tested: Process) -> Iterator[RawClient]:
    with tested.client() as connection:
        yield connection


@pytest.fixture
def client3(tested: Process) -> Iterator[RawClient]:
    with tested.client(resp3=True) as connection:
        yield connection


@pytest.mark.parametrize(
    ("old", "words", "reply"),
    [
        (None, (), [1, 1]),
        (10, (), [11, 1]),
        (100, ("BYINT", -10), [90, -10]),
        (5, ("BYINT", 0), [5, 0]),
        (5, ("byint", 1, "lbound", 0, "ubound", 10), [6, 1]),
        (5, ("BYINT", 5, "UBOUND", 10), [10, 5]),
        (10, ("BYINT", 10, "UBOUND", 15, "SATURATE"), [15, 5]),
        (10, ("SATURATE", "LBOUND", 5, "BYINT", -10), [5, -5]),
        (50, ("BYINT", -25, "UBOUND", 30), [25, -25]),
        (50, ("BYINT", 5, "UBOUND", 30, "SATURATE"), [30, -20]),
        (-50, ("BYINT", -5, "LBOUND", -30, "SATURATE"), [-30, 20]),
        (MAX - 7, ("BYINT", MAX, "SATURATE"), [MAX, 7]),
        (MIN + 8, ("BYINT", MIN, "SATURATE"), [MIN, -8]),
        (None, ("LBOUND", 5, "SATURATE"), [5, 5]),
        (None, ("UBOUND", 0, "SATURATE"), [0, 0]),
        ("1.5", ("BYFLOAT", "0.25"), [b"1.75", b"0.25"]),
        (None, ("BYFLOAT", "1e2"), [b"100", b"100"]),
        ("0.1", ("BYFLOAT", "0.2"), [b"0.3", b"0.2"]),
        (10, ("BYFLOAT", 100, "UBOUND", "42.5", "SATURATE"), [b"42.5", b"32.5"]),
        (0, ("BYFLOAT", -100, "LBOUND", "-5.5", "SATURATE"), [b"-5.5", b"-5.5"]),
        ("5.0", ("BYFLOAT", 5, "LBOUND", "-inf", "UBOUND", "+inf"), [b"10", b"5"]),
        (
            GREATEST,
            ("BYFLOAT", GREATEST, "SATURATE"),
            [GREATEST, b"0"],
        ),
    ],
)
def test_sums(client: RawClient, old: Argument | None, words: Words, reply: list[object]) -> None:
    if old is not None:
        client.call("SET", "k", old, "PXAT", FAR_MS)
    assert client.call_parsed("INCREX", "k", *words) == reply
    value = reply[0]
    assert client.call_parsed("GET", "k") == (b"%d" % value if isinstance(value, int) else value)
    assert client.call_parsed("PEXPIRETIME", "k") == (-1 if old is None else FAR_MS)


@pytest.mark.parametrize(
    ("old", "words", "reply"),
    [
        (10, ("BYINT", 10, "UBOUND", 15), [10, 0]),
        (10, ("BYINT", -10, "LBOUND", 5), [10, 0]),
        (50, ("BYINT", 5, "UBOUND", 30), [50, 0]),
        (MAX, (), [MAX, 0]),
        (MIN, ("BYINT", -1), [MIN, 0]),
        (None, ("BYINT", 15, "UBOUND", 10), [0, 0]),
        (None, ("BYFLOAT", "15.5", "UBOUND", 10), [b"0", b"0"]),
        ("50.5", ("BYFLOAT", "5.5", "UBOUND", 30), [b"50.5", b"0"]),
        ("10.0", ("BYFLOAT", 1, "LBOUND", "inf", "UBOUND", "inf"), [b"10", b"0"]),
        (GREATEST, ("BYFLOAT", GREATEST), [GREATEST, b"0"]),
        (GREATEST, ("BYFLOAT", GREATEST, "UBOUND", "inf"), [GREATEST, b"0"]),
    ],
)
def test_out_of_bounds_nothing_happens(
    server: ServerProcess, old: Argument | None, words: Words, reply: list[object]
) -> None:
    with server.client() as client, server.client() as other:
        if old is not None:
            client.call("SET", "k", old)
        before = client.call_parsed("GET", "k")
        client.call("WATCH", "k")
        assert other.call_parsed("INCREX", "k", *words, "EX", 100) == reply
        assert client.call_parsed("GET", "k") == before
        assert client.call_parsed("TTL", "k") == (-2 if old is None else -1)
        client.call("MULTI")
        assert client.call_parsed("EXEC") == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("FOO",), SYNTAX),
        (("NX",), SYNTAX),
        (("KEEPTTL",), SYNTAX),
        (("BYINT",), SYNTAX),
        (("LBOUND",), SYNTAX),
        (("BYINT", 1, "BYINT", 2), SYNTAX),
        (("BYINT", 1, "BYFLOAT", 2), SYNTAX),
        (("LBOUND", 0, "LBOUND", 1), SYNTAX),
        (("UBOUND", 9, "UBOUND", 8), SYNTAX),
        (("SATURATE", "SATURATE"), SYNTAX),
        (("ENX", "ENX", "EX", 10), SYNTAX),
        (("EX", 10, "EX", 20), SYNTAX),
        (("EX", 10, "PXAT", FAR_MS), SYNTAX),
        (("PERSIST", "PERSIST"), SYNTAX),
        (("PERSIST", "EX", 10), SYNTAX),
        (("ENX", "PERSIST"), SYNTAX),
        (("ENX",), WireError(b"ERR ENX flag requires an expiration")),
        # The increment is looked at where it stands, the bounds at the end, and then the expiry.
        (("BYINT", "x", "FOO"), WireError(b"ERR Increment is not an integer or out of range")),
        (("BYFLOAT", "inf", "FOO"), WireError(b"ERR BYFLOAT increment cannot be Infinity")),
        (("LBOUND", "x", "FOO"), SYNTAX),
        (("ENX", "LBOUND", "x"), WireError(b"ERR LBOUND is not an integer or out of range")),
        (
            ("ENX", "LBOUND", 2, "UBOUND", 1),
            WireError(b"ERR LBOUND can't be greater than UBOUND"),
        ),
        (("BYINT", "1.5"), WireError(b"ERR Increment is not an integer or out of range")),
        (("BYFLOAT", "abc"), WireError(b"ERR Increment is not a valid float")),
        (("BYFLOAT", "-inf"), WireError(b"ERR BYFLOAT increment cannot be Infinity")),
        (("LBOUND", "inf"), WireError(b"ERR LBOUND is not an integer or out of range")),
        (("UBOUND", "5.5"), WireError(b"ERR UBOUND is not an integer or out of range")),
        (("BYFLOAT", 1, "UBOUND", "x"), WireError(b"ERR UBOUND is not a valid float")),
        (("LBOUND", 10, "UBOUND", 5), WireError(b"ERR LBOUND can't be greater than UBOUND")),
        (
            ("BYFLOAT", 1, "UBOUND", "-inf"),
            WireError(b"ERR LBOUND can't be greater than UBOUND"),
        ),
        (
            ("BYFLOAT", 1, "LBOUND", "inf", "UBOUND", "inf", "SATURATE"),
            WireError(b"ERR applied increment would be Infinity"),
        ),
        (
            ("UBOUND", MIN, "SATURATE"),
            WireError(b"ERR applied increment would overflow"),
        ),
        (("EX", 0), WireError(b"ERR invalid expire time in 'increx' command")),
        (("EX", "x"), WireError(b"ERR value is not an integer or out of range")),
    ],
)
def test_refused(client: RawClient, words: Words, error: WireError) -> None:
    client.call("SET", "k", 5)
    assert client.call_parsed("INCREX", "k", *words) == error
    assert client.call_parsed("GET", "k") == b"5"
    assert client.call_parsed("TTL", "k") == -1


def test_saturating_at_an_infinite_bound_is_refused(client: RawClient) -> None:
    infinite = WireError(b"ERR applied increment would be Infinity")
    for sign, bound in ((b"-", "LBOUND"), (b"", "UBOUND")):
        client.call("SET", "k", sign + GREATEST)
        words = ("BYFLOAT", sign + GREATEST, bound, sign + b"inf", "SATURATE")
        assert client.call_parsed("INCREX", "k", *words) == infinite
        assert client.call_parsed("GET", "k") == sign + GREATEST


def test_refused_for_what_the_key_holds(client: RawClient) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("MSET", "w", "hello", "i", "-inf")
    for words in ((), ("BYFLOAT", 1)):
        assert client.call_parsed("INCREX", "s", *words) == WRONGTYPE
    not_integer = WireError(b"ERR value is not an integer or out of range")
    assert client.call_parsed("INCREX", "w") == not_integer
    not_float = WireError(b"ERR value is not a valid float")
    assert client.call_parsed("INCREX", "w", "BYFLOAT", 1) == not_float
    infinite = WireError(b"ERR value cannot be Infinity")
    assert client.call_parsed("INCREX", "i", "BYFLOAT", 0, "LBOUND", -100) == infinite
    assert client.call_parsed("INCREX") == WireError(
        b"ERR wrong number of arguments for 'increx' command"
    )


def test_replies_on_the_wire(client: RawClient, client3: RawClient) -> None:
    assert client3.call("INCREX", "k") == b"*2\r\n:1\r\n:1\r\n"
    assert client3.call("INCREX", "k", "BYFLOAT", "0.5") == b"*2\r\n,1.5\r\n,0.5\r\n"
    assert client.call("INCREX", "k", "BYFLOAT", "0.5") == b"*2\r\n$1\r\n2\r\n$3\r\n0.5\r\n"
    assert client.call("INCREX", "k") == b"*2\r\n:3\r\n:1\r\n"


def test_deadlines(client: RawClient) -> None:
    client.call("INCREX", "k", "EX", 100, "ENX")
    assert client.call_parsed("TTL", "k") == 100
    client.call("INCREX", "k", "PX", 50_000, "ENX")
    assert client.call_parsed("TTL", "k") == 100
    client.call("INCREX", "k", "PXAT", FAR_MS)
    assert client.call_parsed("PEXPIRETIME", "k") == FAR_MS
    assert client.call_parsed("INCREX", "k", "EXAT", 1, "ENX") == [4, 1]
    assert client.call_parsed("PEXPIRETIME", "k") == FAR_MS
    client.call("INCREX", "k", "PERSIST")
    assert client.call_parsed("PEXPIRETIME", "k") == -1
    assert client.call_parsed("INCREX", "k", "EXAT", 1) == [6, 1]
    assert client.call_parsed("EXISTS", "k") == 0
    assert client.call_parsed("INCREX", "k", "PXAT", 1) == [1, 1]
    assert client.call_parsed("EXISTS", "k") == 0


def test_events(tested: Process, client: RawClient) -> None:
    client.call("CONFIG", "SET", "notify-keyspace-events", "EA")
    try:
        with tested.client() as listener:
            listener.call("PSUBSCRIBE", "__keyevent*__:*")
            for words in (
                ("BYINT", 5),
                ("BYFLOAT", 1, "EX", 100),
                ("EX", 200, "ENX"),
                ("UBOUND", 0),
                ("PERSIST",),
                ("PERSIST",),
                ("EXAT", 1),
            ):
                client.call("INCREX", "k", *words)
            heard = [listener.read_parsed() for _ in range(8)]
        assert [bytes(event[2]).partition(b":")[2] for event in heard] == [  # type: ignore[index]
            b"incrby",
            b"incrbyfloat",
            b"expire",
            b"incrby",
            b"incrby",
            b"persist",
            b"incrby",
            b"del",
        ]
    finally:
        client.call("CONFIG", "SET", "notify-keyspace-events", "")


RECORDS: list[tuple[Words, list[str]]] = [
    ((), ["SET k 1 KEEPTTL"]),
    (("BYFLOAT", "0.5"), ["SET k 1.5 KEEPTTL"]),
    (("BYFLOAT", 5, "UBOUND", "2.0", "SATURATE"), ["SET k 2 KEEPTTL"]),
    (("UBOUND", 2, "EX", 100), []),
    (("EX", 100), ["SET k 3 PXAT *"]),
    (("EX", 100, "ENX"), ["SET k 4 KEEPTTL"]),
    (("PERSIST",), ["SET k 5"]),
    (("EXAT", 1), ["DEL k"]),
    (("EXAT", 1), []),
    (("BYINT", 7, "PXAT", FAR_MS), [f"SET k 7 PXAT {FAR_MS}"]),
    (("BYINT", -10), ["SET k -3 KEEPTTL"]),
]


def test_the_append_only_file_and_its_replay(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always", directory=tmp_path)
    file = tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"
    with server.client() as client:
        client.call("SET", "first", 1)
        seen = file.stat().st_size
        for words, expected in RECORDS:
            client.call("INCREX", "k", *words)
            added = file.read_bytes()[seen:]
            seen += len(added)
            text = b" ".join(re.findall(rb"\$[0-9]+\r\n(.*?)\r\n", added)).decode()
            assert re.sub(r"PXAT 1[0-9]{12}$", "PXAT *", text) == " ".join(expected), words
    server.restart(crash=True)
    with server.client() as client:
        assert client.call_parsed("GET", "k") == b"-3"
        assert client.call_parsed("PEXPIRETIME", "k") == FAR_MS
