"""DUMP and RESTORE: values go there and back; wrong calls get Redis's errors."""

from __future__ import annotations

import re
import time

import pytest
from conftest import Factory

from support.client import RawClient
from support.process import Pair, ServerProcess

OK = b"+OK\r\n"
BAD_FOOTER = b"-ERR DUMP payload version or checksum are wrong\r\n"


def dumped(client: RawClient, key: str) -> bytes:
    data = client.call_parsed("DUMP", key)
    assert isinstance(data, bytes)
    return data


def fill(client: RawClient) -> None:
    client.call("SET", "text", b"\0\r\n\xff")
    client.call("SET", "number", "-42")
    client.call("APPEND", "raw", "12")
    client.call("APPEND", "raw", "34")
    for number in range(1, 250):
        client.call("XADD", "log", f"{number}-1", "n", number, "same", "x" * (number % 7))
    client.call("XDEL", "log", "3-1", "120-1", "249-1")
    client.call("XGROUP", "CREATE", "log", "g", "0")
    client.call("XREADGROUP", "GROUP", "g", "ada", "COUNT", 50, "STREAMS", "log", ">")
    client.call("XNACK", "log", "g", "FAIL", "IDS", 1, "9-1")
    client.call("XGROUP", "CREATE", "empty", "g", "$", "MKSTREAM")


KEYS = ("text", "number", "raw", "log", "empty")


def facts(client: RawClient, key: str) -> object:
    """All of a value; when consumers were seen, a restart may change."""
    if client.call_parsed("TYPE", key) == b"string":
        return client.call("GET", key)
    full = client.call("XINFO", "STREAM", key, "FULL", "COUNT", 0)
    return re.sub(rb"((?:seen|active)-time\r\n):-?\d+", rb"\1", full)


@pytest.mark.parametrize("key", KEYS)
def test_a_value_goes_there_and_back(client: RawClient, key: str) -> None:
    fill(client)
    before = facts(client, key)
    data = dumped(client, key)
    assert client.call("RESTORE", "copy", 0, data) == OK
    assert facts(client, "copy") == before
    assert client.call("RESTORE", key, 0, data, "REPLACE") == OK
    assert facts(client, key) == before
    assert client.call("TTL", "copy") == b":-1\r\n"


def test_a_missing_key_has_no_dump(pair: Pair) -> None:
    assert pair.both("DUMP", "none") == b"$-1\r\n"


def test_wrong_calls(pair: Pair) -> None:
    pair.both("SET", "there", "1")
    for arguments in (
        ("DUMP",), ("RESTORE",), ("RESTORE", "k", "0"),
        ("RESTORE", "k", "0", "short"),
        ("RESTORE", "k", "0", ""),
        ("RESTORE", "k", "0", "x" * 30),
        ("RESTORE", "k", "x", "x" * 30),
        ("RESTORE", "k", "-1", "x" * 30),
        ("RESTORE", "there", "x", "y"),
        ("RESTORE", "there", "0", "y", "REPLACE"),
        ("RESTORE", "k", "0", "y", "NONSENSE"),
        ("RESTORE", "k", "0", "y", "REPLACE", "ABSTTL", "replace"),
        ("RESTORE", "k", "0", "y", "IDLETIME"),
        ("RESTORE", "k", "0", "y", "IDLETIME", "x"),
        ("RESTORE", "k", "0", "y", "IDLETIME", "-1"),
        ("RESTORE", "k", "0", "y", "FREQ"),
        ("RESTORE", "k", "0", "y", "FREQ", "-1"),
        ("RESTORE", "k", "0", "y", "FREQ", "256"),
        ("RESTORE", "k", "0", "y", "IDLETIME", "1", "FREQ", "1"),
        ("RESTORE", "k", "0", "y", "FREQ", "1", "IDLETIME", "1"),
        ("RESTORE", "k", "0", "y", "IDLETIME", "1", "IDLETIME", "2"),
        ("RESTORE", "k", "0", "y", "ABSTTL", "IDLETIME", "9223372036854775808"),
    ):  # fmt: skip
        pair.both(*arguments)
    pair.both("DBSIZE")


@pytest.mark.since(8, 10)  # 8.0 keeps what expires beyond the end of time
def test_calls_with_a_value_of_ones_own(pair: Pair) -> None:
    """Each server is given what it dumped itself: everything else must be the same."""

    def both(*arguments: str | int) -> bytes:
        replies = []
        for client in (pair.ours, pair.real):
            data = dumped(client, "source")
            replies.append(client.call(*[data if word == "DATA" else word for word in arguments]))
        assert replies[0] == replies[1], arguments
        return replies[0]

    pair.both("SET", "source", "value")
    future_ms = (int(time.time()) + 1000) * 1000
    assert both("RESTORE", "a", 0, "DATA") == OK
    assert both("RESTORE", "a", 0, "DATA").startswith(b"-BUSYKEY")
    assert both("RESTORE", "a", -1, "DATA", "REPLACE").startswith(b"-ERR Invalid TTL")
    both("RESTORE", "a", future_ms, "DATA", "REPLACE", "ABSTTL")
    pair.both("PEXPIRETIME", "a")
    both("RESTORE", "a", 0, "DATA", "REPLACE")
    pair.both("PTTL", "a")
    both("RESTORE", "passed", 1, "DATA", "ABSTTL")
    pair.both("EXISTS", "passed")
    both("RESTORE", "a", 1, "DATA", "ABSTTL", "REPLACE")
    pair.both("EXISTS", "a")
    both("RESTORE", "far", 2**63 - 1, "DATA")
    pair.both("EXISTS", "far")
    both("RESTORE", "far", 2**63 - 1, "DATA", "ABSTTL")
    pair.both("PEXPIRETIME", "far")
    both("RESTORE", "idle", 0, "DATA", "IDLETIME", 1000)
    pair.both_about("OBJECT", "IDLETIME", "idle", within=10)
    both("RESTORE", "counted", 0, "DATA", "FREQ", 3)
    pair.both("GET", "counted")


def test_events(pair: Pair) -> None:
    pair.both("SET", "source", "value")
    pair.both("CONFIG", "SET", "notify-keyspace-events", "KEAn")
    try:
        logs = []
        for client, server in ((pair.ours, pair.ours), (pair.real, pair.real)):
            data = dumped(server, "source")
            listener = RawClient(client.sock.getpeername()[1])
            with listener:
                listener.call("PSUBSCRIBE", "*")
                for extra in ((0, data), (0, data, "REPLACE"), (1, data, "REPLACE", "ABSTTL")):
                    assert client.call("RESTORE", "k", *extra) == OK
                client.call("PUBLISH", "end", "1")
                seen: list[object] = []
                while not seen or b"end" not in bytes(str(seen[-1]), "utf8"):
                    seen.append(listener.read_parsed())
                logs.append(seen)
        assert logs[0] == logs[1]
    finally:
        pair.both("CONFIG", "SET", "notify-keyspace-events", "")


def test_a_foreign_value_is_refused(pair: Pair) -> None:
    pair.both("SET", "k", "value")
    assert pair.ours.call("RESTORE", "x", 0, dumped(pair.real, "k")) == BAD_FOOTER
    assert pair.real.call("RESTORE", "x", 0, dumped(pair.ours, "k")) == BAD_FOOTER
    pair.both("EXISTS", "x")


def test_a_damaged_value_is_refused_and_changes_nothing(client: RawClient) -> None:
    fill(client)
    data = dumped(client, "log")
    before = facts(client, "log")
    for place in range(0, len(data), 41):
        damaged = bytearray(data)
        damaged[place] ^= 1
        assert client.call("RESTORE", "log", 0, bytes(damaged), "REPLACE") == BAD_FOOTER
    assert client.call("RESTORE", "new", 0, data[:-1]) == BAD_FOOTER
    assert facts(client, "log") == before
    assert client.call("EXISTS", "new") == b":0\r\n"


def test_a_restored_stream_wakes_who_waits_for_it(client: RawClient, server: ServerProcess) -> None:
    fill(client)
    data = dumped(client, "log")
    with server.client() as reader:
        reader.send_command("XREAD", "BLOCK", 0, "STREAMS", "later", "0-0")
        assert reader.silent()
        assert client.call("RESTORE", "later", 0, data) == OK
        assert b"1-1" in reader.read()


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_it_survives_a_crash(fresh_server: Factory, preamble: str) -> None:
    """As a record of its own, or as the commands that make the key, which Redis can read."""
    server = fresh_server("--appendonly", "yes", "--aof-use-rdb-preamble", preamble)
    with server.client() as client:
        fill(client)
        for key in KEYS:
            client.call("RESTORE", "a:" + key, 100_000_000, dumped(client, key))
            client.call("RESTORE", "b:" + key, 0, dumped(client, key))
            client.call("RESTORE", "b:" + key, 0, dumped(client, "text"), "REPLACE")
        client.call("RESTORE", "gone", 1, dumped(client, "text"))
        incr = server.directory / "appendonlydir" / "appendonly.aof.1.incr.aof"
        assert (b"RESTORE" in incr.read_bytes()) == (preamble == "yes")
        before = {k: (facts(client, k), client.call("PEXPIRETIME", k))
                  for k in [p + key for p in ("a:", "b:") for key in KEYS]}  # fmt: skip
    server.restart(crash=True)
    with server.client() as client:
        for key, was in before.items():
            assert (facts(client, key), client.call("PEXPIRETIME", key)) == was
        assert client.call("EXISTS", "gone") == b":0\r\n"
