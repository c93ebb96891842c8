"""The commands on arrays, here and in Redis 8.10."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.client import Argument, RawClient, Status, WireError
from support.process import Process, ServerProcess

INDEX = WireError(b"ERR invalid array index")
SYNTAX = WireError(b"ERR syntax error")
WRONGTYPE = WireError(b"WRONGTYPE Operation against a key holding the wrong kind of value")
LIMIT = WireError(b"ERR LIMIT must be positive")
GREATEST = (1 << 64) - 2


@pytest.fixture
def client(tested: Process) -> Iterator[RawClient]:
    with tested.client() as connection:
        yield connection


# What ARSET is given in turn, from the lowest index up, and what ARINFO FULL tells then: how many
# slices are dense and sparse, how large and how full dense ones are, how large sparse ones.
SLICES = [
    ([(0, 1)], [0, 1, b"0", b"0", b"4"]),
    ([(7, 5)], [0, 1, b"0", b"0", b"8"]),
    ([(1000, 9)], [0, 1, b"0", b"0", b"10"]),
    ([(0, 9), (4096, 1)], [0, 2, b"0", b"0", b"7"]),
    ([(4000, 11)], [1, 0, b"16", b"0.6875", b"0"]),
    ([(15, 17)], [1, 0, b"32", b"0.53125", b"0"]),
    ([(100, 9), (300, 4)], [1, 0, b"256", b"0.05078125", b"0"]),
    ([(0, 11), (4095, 1), (8192, 16), (12288, 3)], [2, 1, b"2056", b"0.006809338521400778", b"4"]),
]


@pytest.mark.parametrize(("runs", "told"), SLICES)
def test_slices(client: RawClient, runs: list[tuple[int, int]], told: list[object]) -> None:
    for index, count in runs:
        client.call("ARSET", "a", index, *["v"] * count)
    info = client.call_parsed("ARINFO", "a", "FULL")
    assert isinstance(info, list)
    assert info[-10::2] == [
        *(b"dense-slices", b"sparse-slices"),
        *(b"avg-dense-size", b"avg-dense-fill", b"avg-sparse-size"),
    ]
    assert info[-9::2] == told


def test_elements(client: RawClient) -> None:
    assert client.call_parsed("ARSET", "a", 5, "v", "w") == 2
    assert client.call_parsed("ARSET", "a", 6, "x", "y") == 1
    assert client.call_parsed("ARMSET", "a", 0, "z", GREATEST, "last", 5, "u") == 2
    assert client.call_parsed("ARMGET", "a", 0, 1, 5, 6, 7, GREATEST) == [
        *(b"z", None, b"u", b"x", b"y", b"last"),
    ]
    assert client.call_parsed("ARGET", "a", "005") == b"u"
    assert client.call_parsed("ARLEN", "a") == b"18446744073709551615"
    assert client.call_parsed("ARCOUNT", "a") == 5
    assert client.call_parsed("TYPE", "a") == Status(b"array")
    assert client.call_parsed("OBJECT", "ENCODING", "a") == b"sliced-array"
    assert client.call_parsed("ARDEL", "a", GREATEST, 1, 0, 0) == 2
    assert client.call_parsed("ARLEN", "a") == 8
    assert client.call_parsed("ARGETRANGE", "a", 4, 7) == [None, b"u", b"x", b"y"]
    assert client.call_parsed("ARGETRANGE", "a", 6, 4) == [b"x", b"u", None]
    assert client.call_parsed("ARSCAN", "a", 9, 0, "LIMIT", 2) == [[7, b"y"], [6, b"x"]]
    assert client.call_parsed("ARDELRANGE", "a", 6, 5, 0, 100) == 3
    assert client.call_parsed("EXISTS", "a") == 0


def test_cursor(client: RawClient) -> None:
    assert client.call_parsed("ARNEXT", "a") == 0
    assert client.call_parsed("ARINSERT", "a", "x", "y", "z") == 2
    assert client.call_parsed("ARNEXT", "a") == 3
    assert client.call_parsed("ARSEEK", "a", 5) == 1
    assert client.call_parsed("ARINSERT", "a", "w") == 5
    assert client.call_parsed("ARLASTITEMS", "a", 4) == [b"z", None, None, b"w"]
    assert client.call_parsed("ARLASTITEMS", "a", 2, "REV") == [b"w", None]
    assert client.call_parsed("ARSEEK", "a", GREATEST) == 1
    assert client.call_parsed("ARINSERT", "a", "v", "w") == WireError(b"ERR insert index overflow")
    assert client.call_parsed("ARINSERT", "a", "v") == b"18446744073709551614"
    assert client.call_parsed("ARNEXT", "a") is None
    info = client.call_parsed("ARINFO", "a")
    assert isinstance(info, list)
    assert info[4:6] == [b"next-insert-index", 0]
    assert client.call_parsed("ARSEEK", "none", 5) == 0


def test_ring(client: RawClient) -> None:
    assert client.call_parsed("ARRING", "a", 3, "v", "w", "x", "y") == 0
    assert client.call_parsed("ARGETRANGE", "a", 0, 3) == [b"y", b"w", b"x", None]
    assert client.call_parsed("ARLASTITEMS", "a", 9) == [b"w", b"x", b"y"]
    assert client.call_parsed("ARRING", "a", 2, "z") == 0
    assert client.call_parsed("ARGETRANGE", "a", 0, 3) == [b"z", b"y", None, None]
    assert client.call_parsed("ARRING", "a", 5, "v") == 2
    assert client.call_parsed("ARGETRANGE", "a", 0, 3) == [b"y", b"z", b"v", None]
    assert client.call_parsed("ARNEXT", "a") == 3


def test_numbers(client: RawClient) -> None:
    client.call("ARSET", "a", 0, "7", "0.1", "0.2", "word", "-3.9", "9007199254740993")
    for words, result in (
        ((0, 5, "SUM"), b"9007199254740996.4"),
        ((1, 2, "SUM"), b"0.3"),
        ((0, 5, "MIN"), b"-3.9"),
        ((5, 0, "max"), b"9007199254740993"),
        ((0, 0, "AND"), 7),
        ((0, 4, "OR"), -1),
        ((3, 3, "XOR"), None),
        ((3, 3, "SUM"), None),
        ((0, 9, "USED"), 6),
        ((0, 9, "MATCH", "word"), 1),
    ):
        assert client.call_parsed("AROP", "a", *words) == result, words


def test_grep(client: RawClient) -> None:
    client.call("ARSET", "log", 0, "boot: ok", "warn: disk", "ERROR: cpu", "ready", "error: net")
    for words, result in (
        (("-", "+", "MATCH", "error"), [4]),
        (("-", "+", "MATCH", "error", "NOCASE"), [2, 4]),
        (("+", "-", "MATCH", "error", "NOCASE", "LIMIT", 1), [4]),
        (("0", "3", "GLOB", "*:*", "EXACT", "ready"), [0, 1, 2, 3]),
        (("-", "+", "GLOB", "*:*", "MATCH", "r", "AND"), [1, 4]),
        (
            ("-", "+", "RE", "^[a-z]+: (net|disk)$", "WITHVALUES"),
            [[1, b"warn: disk"], [4, b"error: net"]],
        ),
        (("-", "+", "RE", "^(a+)+$"), []),
    ):
        assert client.call_parsed("ARGREP", "log", *words) == result, words


def test_a_regular_expression_takes_no_longer_than_the_text(client: RawClient) -> None:
    client.call("ARSET", "a", 0, "a" * 20_000 + "b")
    assert client.call_parsed("ARGREP", "a", 0, 0, "RE", "^(a|a|aa)+(a*)*$") == []


def test_info(client: RawClient) -> None:
    client.call("ARMSET", "a", 1, "v", 5000, "w")
    info = client.call_parsed("ARINFO", "a")
    assert isinstance(info, list)
    assert dict(zip(info[::2], info[1::2], strict=True)) == {
        b"count": 2,
        b"len": 5001,
        b"next-insert-index": 0,
        b"slices": 2,
        b"directory-size": 2,
        b"super-dir-entries": 0,
        b"slice-size": 4096,
    }


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (("ARGET", "x", "bad"), WRONGTYPE),
        (("ARGET", "none", -1), INDEX),
        (("ARSET", "x", "bad", "v"), INDEX),
        (("ARSET", "none", GREATEST + 1, "v"), INDEX),
        (("ARSET", "none", GREATEST, "v", "w"), WireError(b"ERR array index overflow")),
        (("ARMSET", "none", 1, "v", "bad", "w"), INDEX),
        (
            ("ARMSET", "none", 1, "v", 2),
            WireError(b"ERR wrong number of arguments for 'armset' command"),
        ),
        (
            ("ARGETRANGE", "none", 0, 1_000_000),
            WireError(b"ERR range exceeds maximum of 1000000 items"),
        ),
        (("ARRING", "x", "bad", "v"), WireError(b"ERR invalid size")),
        (("ARRING", "x", 0, "v"), WireError(b"ERR size must be positive")),
        (("ARLASTITEMS", "x", "bad"), WireError(b"ERR invalid COUNT")),
        (("ARLASTITEMS", "x", 1, "FOO"), SYNTAX),
        (("ARSCAN", "x", 0, 1, "LIMIT", 0), LIMIT),
        (("ARSCAN", "x", 0, 1, "FOO", 1), SYNTAX),
        (("AROP", "x", 0, 1, "FOO"), WireError(b"ERR unknown operation")),
        (("AROP", "x", 0, 1, "MATCH"), WireError(b"ERR MATCH requires a value argument")),
        (("ARGREP", "x", 0, 1, "MATCH", "a", "LIMIT", 0), LIMIT),
        (("ARGREP", "x", 0, 1, "NOCASE", "NOCASE"), SYNTAX),
        (("ARGREP", "x", 0, 1, "RE", ""), WireError(b"ERR regular expression is empty")),
        (
            ("ARGREP", "x", 0, 1, "RE", "("),
            WireError(b"ERR invalid regular expression: Missing ')'"),
        ),
        (
            ("ARGREP", "x", 0, 1, "RE", "(a)\\1"),
            WireError(b"ERR regular expression backreferences are not supported"),
        ),
        (("ARINFO", "x", "FOO"), SYNTAX),
        (("ARINFO", "none"), WireError(b"ERR no such key")),
        (("ARINSERT", "x", "v"), WRONGTYPE),
    ],
)
def test_refused(client: RawClient, request_: tuple[Argument, ...], error: WireError) -> None:
    client.call("XADD", "x", "1-1", "f", "v")
    assert client.call_parsed(*request_) == error
    assert client.call_parsed("EXISTS", "none") == 0


def fill(client: RawClient) -> list[bytes]:
    client.call("ARMSET", "a", 1, "v", 5000, "w", 1 << 63, "x" * 3000, GREATEST, "")
    client.call("ARRING", "ring", 3, 1, 2, 3, 4, 5)
    client.call("ARSEEK", "a", GREATEST + 1)
    for start in range(0, 6000, 1000):
        client.call("ARINSERT", "large", *range(start, start + 1000))
    client.call("ARDELRANGE", "large", 1000, 1999, 7, 7)
    return seen(client)


def seen(client: RawClient) -> list[bytes]:
    found = []
    for key in ("a", "ring", "large"):
        found.append(client.call("ARSCAN", key, 0, GREATEST))
        found.append(client.call("ARNEXT", key))
    return found


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_same_after_a_restart(fresh_server: type[ServerProcess], preamble: str) -> None:
    """From records, and from a base in both of its forms."""
    options = ("--appendonly", "yes", "--aof-use-rdb-preamble", preamble)
    server = fresh_server(*options, "--appendfsync", "always")
    with server.client() as client:
        before = fill(client)
    server.restart(crash=True)
    with server.client() as client:
        assert seen(client) == before
        client.call("BGREWRITEAOF")
        client.call("ARSET", "ring", 1, "behind")
        before = seen(client)
    server.wait_for_log("base file written")
    server.restart()
    with server.client() as client:
        assert seen(client) == before


def test_dump(fresh_server: type[ServerProcess]) -> None:
    server = fresh_server()
    with server.client() as client:
        before = fill(client)
        for key in ("a", "ring", "large"):
            payload = client.call_parsed("DUMP", key)
            assert isinstance(payload, bytes)
            assert client.call_parsed("RESTORE", key, 0, payload, "REPLACE") == Status(b"OK")
            cut = payload[:-12] + payload[-10:]
            assert isinstance(client.call_parsed("RESTORE", "cut", 0, cut), WireError)
        assert seen(client) == before
        client.call("COPY", "large", "copy")
        client.call("ARSET", "copy", 3, "changed")
        client.call("UNLINK", "copy")
        assert seen(client) == before
