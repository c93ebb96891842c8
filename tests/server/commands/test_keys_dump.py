"""DUMP and RESTORE: values go there and back; wrong calls get Redis's errors."""

from __future__ import annotations

import re
import time

import pytest
from conftest import Factory

from support.client import RawClient
from support.process import Pair, ServerProcess
from support.rdb_forms import sealed
from support.snapshots import odd_streams, own_payload

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
    pair.both("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    try:
        for frequency in (0, 4, 5, 100, 255):
            both("RESTORE", "counted", 0, "DATA", "FREQ", frequency, "REPLACE")
            pair.both("OBJECT", "FREQ", "counted")
        both("RESTORE", "counted", 0, "DATA", "IDLETIME", 1000, "REPLACE")
        pair.both("OBJECT", "FREQ", "counted")
    finally:
        pair.both("CONFIG", "SET", "maxmemory-policy", "noeviction")


@pytest.mark.since(8, 10)
def test_what_was_delivered_at_one_time_is_claimed_in_the_order_of_ids(pair: Pair) -> None:
    """So Redis packs it; released entries come before, in the order of their release."""
    for number in range(1, 10):
        pair.both("XADD", "log", f"{number}-0", "n", number)
    pair.both("XGROUP", "CREATE", "log", "g", "0")
    pair.both("XREADGROUP", "GROUP", "g", "c", "STREAMS", "log", ">")
    for number in (8, 3, 5, 9, 1, 7, 2, 6, 4):
        consumer = "cd"[number % 2]
        moment_ms = 10**12 - number // 4
        pair.both("XCLAIM", "log", "g", consumer, 0, f"{number}-0", "TIME", moment_ms)
    for number in (7, 3, 5):
        pair.both("XNACK", "log", "g", "FAIL", "IDS", 1, f"{number}-0")
    for payload in dumped(pair.ours, "log"), dumped(pair.real, "log"):
        for rest in (), ("COUNT", 4):
            pair.both("RESTORE", "there", 0, payload, "REPLACE")
            group = ("XREADGROUP", "GROUP", "g", "e", *rest, "CLAIM", 0, "STREAMS", "there", ">")
            for client in pair.ours, pair.real:
                told = client.call_parsed(*group)
                assert isinstance(told, list)
                ids = [entry[0].partition(b"-")[0] for entry in told[0][1]]
                assert b" ".join(ids) == b"7 3 5 8 9 4 6 1 2"[: 7 if rest else None]


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


STRINGS = ("", "text", "5", "-128", "40000", "-2147483648", "2147483648", "007", "x" * 20)


@pytest.mark.since(8, 10)
@pytest.mark.parametrize("text", STRINGS)
def test_a_payload_of_a_string_is_that_of_redis(pair: Pair, text: str) -> None:
    pair.both("SET", "k", text)
    pair.both("DUMP", "k")


@pytest.mark.since(8, 10)
@pytest.mark.parametrize("key", KEYS)
def test_redis_takes_our_values_and_we_take_those_of_redis(pair: Pair, key: str) -> None:
    fill(pair.ours)
    fill(pair.real)
    ours, real = dumped(pair.ours, key), dumped(pair.real, key)
    for client, data in ((pair.ours, real), (pair.real, ours)):
        before = facts(client, key)
        assert client.call("RESTORE", "copy", 0, data) == OK
        assert alike(facts(client, "copy")) == alike(before)
    pair.both("DEBUG", "DIGEST-VALUE", "copy")


def alike(found: object) -> object:
    """Facts without what depends on when, and on which server, something was done."""
    text = found if isinstance(found, bytes) else repr(found).encode()
    return re.sub(rb"(radix-tree-nodes\r\n|:)\d{1,2}\r\n|:\d{13}\r\n", b"", text)


def test_older_payloads_of_ours_are_taken(client: RawClient) -> None:
    fill(client)
    stream = odd_streams()[b"read"]
    for value in (b"text", 42, stream):
        assert client.call("RESTORE", "old", 0, own_payload(value), "REPLACE") == OK
    assert client.call("XLEN", "old") == b":%d\r\n" % stream.length


@pytest.mark.since(8, 10)
def test_payloads_that_redis_refuses(pair: Pair) -> None:
    """From a server that is newer, of no type, damaged; each with a right checksum, and others."""
    good = b"\x00\x05hello"
    ends = (b"\x0f\x00", b"\x00\x00", b"\x10\x00", b"\xff\xff")
    for body in (
        *(good + end for end in ends), good + b"more" + ends[0],
        *(value + ends[0] for value in (
            b"", b"\x00\xc4", b"\x00\xc3\x01\x05a", b"\x06\x01a", b"\x08\x01a", b"\x2a\x01a",
            b"\xff\x01a", b"\x01\x00", b"\x13\x00", b"\x00\x80\x00", b"\x00\x81" + b"\xff" * 8,
            b"\x12\x01\x02\x03abc", b"\x0a\x03abc", b"\x03\x00", b"\x15\x01\x00",
        )),
    ):  # fmt: skip
        pair.both("RESTORE", "k", 0, sealed(body), "REPLACE")
        if len(body) > 2:
            pair.both("RESTORE", "k", 0, body + bytes(8), "REPLACE")  # without a checksum
        damaged = bytearray(sealed(body))
        damaged[-1] ^= 1
        assert pair.both("RESTORE", "k", 0, bytes(damaged), "REPLACE") == BAD_FOOTER
    pair.both("GET", "k")


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
