"""XCOUNT and XSPLIT: what they say is what XRANGE gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.client import Argument, RawClient, WireError
from support.process import ServerProcess

GREATEST = 2**64 - 1
NOT_POSITIVE = WireError(b"ERR value is out of range, must be positive")
NOT_AN_INTEGER = WireError(b"ERR value is not an integer or out of range")
SYNTAX = WireError(b"ERR syntax error")
WRONGTYPE = WireError(b"WRONGTYPE Operation against a key holding the wrong kind of value")
INVALID_ID = WireError(b"ERR Invalid stream ID specified as stream command argument")

Share = list[bytes | int]
Bounds = st.one_of(
    st.sampled_from(["-", "+", "0", f"{GREATEST}-{GREATEST}", "3-2", "(5-1", "(4", "7"]),
    st.builds("{}{}-{}".format, st.sampled_from(["", "("]), st.integers(0, 30), st.integers(1, 4)),
)


def ids(client: RawClient, key: str, start: str, end: str) -> list[bytes]:
    """Return what XRANGE finds: the oracle."""
    reply = client.call_parsed("XRANGE", key, start, end)
    assert isinstance(reply, list), reply
    return [entry[0] for entry in reply]


def split(client: RawClient, *words: Argument) -> list[Share]:
    reply = client.call_parsed("XSPLIT", *words)
    assert isinstance(reply, list), reply
    return reply


def shares_of(found: list[bytes], sizes: list[int]) -> list[Share]:
    """The shares of these sizes that ``found`` would be cut into."""
    shares: list[Share] = []
    at = 0
    for size in sizes:
        shares.append([found[at], found[at + size - 1], size])
        at += size
    return shares


@pytest.fixture
def small_nodes(server: ServerProcess) -> Iterator[ServerProcess]:
    """Three entries to a block: ranges start and end in blocks, and blocks empty, all the time."""
    server.call("CONFIG", "SET", "stream-node-max-entries", 3)
    yield server
    server.call("CONFIG", "SET", "stream-node-max-entries", 100)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example empties its key
)
@given(
    added=st.sets(st.tuples(st.integers(0, 30), st.integers(1, 3)), max_size=40),
    deleted=st.sets(st.tuples(st.integers(0, 30), st.integers(1, 3)), max_size=25),
    kept=st.integers(0, 40),
    ranges=st.lists(st.tuples(Bounds, Bounds), min_size=1, max_size=4),
    size=st.integers(1, 12),
    most=st.integers(1, 4),
    resp3=st.booleans(),
)
def test_against_xrange(
    small_nodes: ServerProcess,
    added: set[tuple[int, int]],
    deleted: set[tuple[int, int]],
    kept: int,
    ranges: list[tuple[str, str]],
    size: int,
    most: int,
    resp3: bool,
) -> None:
    with small_nodes.client(resp3=resp3) as client:
        client.call("DEL", "s")
        for ms, seq in sorted(added):
            client.call("XADD", "s", f"{ms}-{seq}", "f", "v")
        for ms, seq in deleted:
            client.call("XDEL", "s", f"{ms}-{seq}")
        client.call("XTRIM", "s", "MAXLEN", kept)
        for start, end in ranges:
            found = ids(client, "s", start, end)
            total = len(found)
            assert client.call_parsed("XCOUNT", "s", start, end) == total
            sizes = [size] * (total // size) + [total % size] * (total % size > 0)
            by_rows = shares_of(found, sizes)
            assert split(client, "s", start, end, "ROWS", size) == by_rows
            assert split(client, "s", start, end, "rows", size, "count", most) == by_rows[:most]
            evenly = split(client, "s", start, end, "PARTS", size)
            sizes = [count for _, _, count in evenly if isinstance(count, int)]
            assert len(sizes) == min(size, total)
            assert not sizes or max(sizes) - min(sizes) <= 1
            assert sum(sizes) == total
            assert evenly == shares_of(found, sizes)


@pytest.mark.parametrize("name", ["client", "client3"])
def test_by_hand(name: str, request: pytest.FixtureRequest) -> None:
    client: RawClient = request.getfixturevalue(name)
    for number in range(1, 8):
        client.call("XADD", "s", f"{number}-0", "f", "v")
    client.call("XDEL", "s", "3-0")
    assert client.call("XCOUNT", "s", "-", "+") == b":6\r\n"
    assert client.call("XCOUNT", "s", "(2", "6-0") == b":3\r\n"
    assert client.call("XCOUNT", "s", "6", "2") == b":0\r\n"
    assert client.call("XSPLIT", "s", "2", "+", "PARTS", "2") == (
        b"*2\r\n*3\r\n$3\r\n2-0\r\n$3\r\n4-0\r\n:2\r\n*3\r\n$3\r\n5-0\r\n$3\r\n7-0\r\n:3\r\n"
    )
    assert client.call("XSPLIT", "s", "2", "+", "ROWS", "4", "COUNT", "1") == (
        b"*1\r\n*3\r\n$3\r\n2-0\r\n$3\r\n6-0\r\n:4\r\n"
    )
    assert client.call("XSPLIT", "s", "3", "3", "PARTS", "5") == b"*0\r\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("XCOUNT", "s", "-"), WireError(b"ERR wrong number of arguments for 'xcount' command")),
        (("XCOUNT", "s", "-", "+", "x"), "xcount"),
        (("XCOUNT", "s", "x", "+"), INVALID_ID),
        (("XCOUNT", "s", "-", "1-x"), INVALID_ID),
        (
            ("XCOUNT", "s", f"({GREATEST}-{GREATEST}", "+"),
            WireError(b"ERR invalid start ID for the interval"),
        ),
        (("XCOUNT", "s", "-", "(0-0"), WireError(b"ERR invalid end ID for the interval")),
        (("XCOUNT", "string", "-", "+"), WRONGTYPE),
        (("XCOUNT", "string", "x", "+"), INVALID_ID),
        (("XSPLIT", "s", "-", "+", "ROWS"), "xsplit"),
        (("XSPLIT", "s", "$", "+", "ROWS", 1), INVALID_ID),
        (("XSPLIT", "s", "-", "+", "LINES", "x"), SYNTAX),
        (("XSPLIT", "s", "-", "+", "ROWS", 1, "COUNT"), SYNTAX),
        (("XSPLIT", "s", "-", "+", "ROWS", 1, "LIMIT", 1), SYNTAX),
        (("XSPLIT", "s", "-", "+", "ROWS", 1, "PARTS", 1), SYNTAX),
        (("XSPLIT", "s", "-", "+", "PARTS", 1, "COUNT", 1), SYNTAX),
        (("XSPLIT", "s", "-", "+", "ROWS", "x"), NOT_AN_INTEGER),
        (("XSPLIT", "s", "-", "+", "PARTS", "1.0"), NOT_AN_INTEGER),
        (("XSPLIT", "s", "-", "+", "ROWS", 0), NOT_POSITIVE),
        (("XSPLIT", "s", "-", "+", "PARTS", -1), NOT_POSITIVE),
        (("XSPLIT", "s", "-", "+", "ROWS", 1, "COUNT", 0), NOT_POSITIVE),
        (("XSPLIT", "string", "-", "+", "ROWS", 1), WRONGTYPE),
        (("XSPLIT", "string", "-", "+", "ROWS", 0), NOT_POSITIVE),
    ],
)
def test_wrong_calls(
    client: RawClient, words: tuple[Argument, ...], error: WireError | str
) -> None:
    client.call("SET", "string", "x")
    if isinstance(error, str):
        error = WireError(b"ERR wrong number of arguments for '%b' command" % error.encode())
    assert client.call_parsed(*words) == error


def test_missing_and_empty_streams(client: RawClient) -> None:
    assert client.call_parsed("XCOUNT", "none", "-", "+") == 0
    assert client.call_parsed("XSPLIT", "none", "-", "+", "PARTS", 3) == []
    assert client.call_parsed("EXISTS", "none") == 0
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XDEL", "s", "1-1")
    assert client.call_parsed("XCOUNT", "s", "-", "+") == 0
    assert client.call_parsed("XSPLIT", "s", "-", "+", "ROWS", 3) == []


def test_the_greatest_id_is_counted(client: RawClient) -> None:
    client.call("XADD", "s", f"{GREATEST}-{GREATEST - 1}", "f", "v")
    client.call("XADD", "s", f"{GREATEST}-{GREATEST}", "f", "v")
    last = b"%d-%d" % (GREATEST, GREATEST)
    assert client.call_parsed("XCOUNT", "s", "-", "+") == 2
    assert client.call_parsed("XCOUNT", "s", "-", f"({GREATEST}-{GREATEST}") == 1
    assert split(client, "s", "-", "+", "ROWS", 1)[1] == [last, last, 1]


def test_a_range_of_a_stream_with_one_great_block(server: ServerProcess) -> None:
    """No limit on the size of a block: all entries lie in the open one."""
    server.call("CONFIG", "SET", "stream-node-max-entries", 0, "stream-node-max-bytes", 0)
    try:
        with server.client() as client:
            client.pipeline(*[("XADD", "s", f"{n}-1", "f", n) for n in range(1, 1001)])
            client.pipeline(*[("XDEL", "s", f"{n}-1") for n in range(1, 1001, 2)])
            assert client.call_parsed("XCOUNT", "s", "101", "200") == 50
            assert split(client, "s", "101", "+", "ROWS", 100, "COUNT", 2) == [
                [b"102-1", b"300-1", 100],
                [b"302-1", b"500-1", 100],
            ]
    finally:
        server.call("CONFIG", "SET", "stream-node-max-entries", 100, "stream-node-max-bytes", 4096)
