"""DEBUG LISTPACK, QUICKLIST, HTSTATS-KEY and SET-ALLOW-ACCESS-EXPIRED."""

from __future__ import annotations

import re

import pytest
from conftest import Factory

from support.client import RawClient
from support.process import Pair
from support.waiting import wait_until


@pytest.fixture
def values(pair: Pair) -> Pair:
    """Values of all kinds, on both servers."""
    pair.both("RPUSH", "l", "a", 300, "c" * 80)
    pair.both("RPUSH", "ql", *range(3000))
    pair.both("ZADD", "z", 1.5, "a", 3, "bb")
    pair.both("ZADD", "sl", 1, "x" * 80)
    pair.both("HSET", "h", "f", 1, "g", "vvv")
    pair.both("HSET", "hh", "f", "x" * 80)
    pair.both("SADD", "s", "a", "b")
    pair.both("SADD", "ss", "x" * 80)
    pair.both("SADD", "is", 1, 2)
    pair.both("SET", "str", "abc")
    return pair


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_what_has_such_a_structure(values: Pair) -> None:
    for tool in ("LISTPACK", "QUICKLIST"):
        for key in ("l", "ql", "z", "sl", "h", "hh", "s", "ss", "is", "str", "none"):
            values.both("DEBUG", tool, key)
        values.both("DEBUG", tool)
        values.both("DEBUG", tool, "l", 1, 2)
    values.both("DEBUG", "LISTPACK", "l", 1)
    for key in ("l", "ql", "z", "h", "s", "is", "none"):
        values.both("DEBUG", "HTSTATS-KEY", key)
    values.both("DEBUG", "HTSTATS-KEY")


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_expired_keys_and_fields_can_be_read(pair: Pair) -> None:
    try:
        for word in (0, 1):
            pair.both("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            pair.both("DEBUG", "SET-ALLOW-ACCESS-EXPIRED", word)
            pair.both("SET", "k", "v")
            pair.both("HSET", "h", "f", "v", "g", "w")
            pair.both("HPEXPIRE", "h", 1, "FIELDS", 1, "f")
            pair.both("PEXPIRE", "k", 1)
            pair.both("DEBUG", "SLEEP", 0.01)
            pair.both("HGETALL", "h")
            pair.both("GET", "k")
            pair.both("EXISTS", "k")
            pair.both("HGET", "h", "f")
        pair.both("DEBUG", "SET-ALLOW-ACCESS-EXPIRED", 0)
        pair.both("GET", "k")
        pair.both("HGET", "h", "f")
    finally:
        for server in (pair.ours, pair.real):
            server.call("DEBUG", "SET-ALLOW-ACCESS-EXPIRED", 0)
            server.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)


def test_what_expired_can_be_read_after_a_reload(client: RawClient) -> None:
    try:
        client.call("DEBUG", "SET-ALLOW-ACCESS-EXPIRED", 1)
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        client.call("DEBUG", "RELOAD")
        client.call("SET", "k", "v", "PX", 1)
        client.call("DEBUG", "SLEEP", 0.01)
        assert client.call("GET", "k") == b"$1\r\nv\r\n"
    finally:
        client.call("DEBUG", "SET-ALLOW-ACCESS-EXPIRED", 0)
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)


def test_entries_and_nodes_are_printed(fresh_server: Factory) -> None:
    server = fresh_server("--enable-debug-command", "yes")
    server.call("HSET", "h", "f", 300, "g", "vvv")
    server.call("HPEXPIREAT", "h", 1 << 43, "FIELDS", 1, "g")
    server.call("ZADD", "z", 1.5, "member")
    server.call("SADD", "s", "text")
    server.call("RPUSH", "l", *range(3000))
    for key in ("h", "z", "s"):
        server.call("DEBUG", "LISTPACK", key)
    server.call("DEBUG", "QUICKLIST", "l")
    wait_until(lambda: "{node 1," in server.log())
    printed = server.log()
    # Of the field with a deadline first, behind each pair its deadline; 300 takes three bytes.
    entries = ["g", "vvv", str(1 << 43), "f", "300", "0", "member", "1.5", "text"]
    assert re.findall(r"^\{index .*\} \[b'(.*)'\]$", printed, re.MULTILINE) == entries
    assert "{index 4, offset 27, entry bytes 3} [b'300']" in printed
    nodes = re.findall(r"^\{node (\d), bytes (\d+), count (\d+)\}$", printed, re.MULTILINE)
    assert [number for number, _, _ in nodes] == ["0", "1"]
    assert sum(int(count) for _, _, count in nodes) == 3000
    assert all(int(size) <= 8192 for _, size, _ in nodes)
    server.call("DEBUG", "QUICKLIST", "l", 1)
    wait_until(lambda: "    [b'2999']" in server.log())


def test_how_a_table_is_filled(client: RawClient) -> None:
    client.call("SADD", "s", *range(-5000, 5000))
    shown = client.call_parsed("DEBUG", "HTSTATS-KEY", "s", "FULL")
    assert isinstance(shown, bytes)
    assert b" number of elements: 10000\n" in shown
    size = re.search(rb" table size: (\d+)\n", shown)
    assert size
    rows = re.findall(rb"^   (\d+): (\d+) \(", shown, re.MULTILINE)
    assert sum(int(count) for _, count in rows) == int(size[1])
    assert sum(int(length) * int(count) for length, count in rows) == 10_000
