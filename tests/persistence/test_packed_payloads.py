"""Small values, and nodes of lists, are dumped packed as Redis packs them, and come back alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from conftest import Factory

from support.client import RawClient
from support.figures import done
from support.process import Pair
from support.rdb_forms import sealed

pytestmark = pytest.mark.since(8, 10)
OK = b"+OK\r\n"
LONG = "x" * 60
WIDE = "y" * 5000
ALONE = "z" * 9000
DEFAULTS = {
    "set-max-intset-entries": 512,
    "set-max-listpack-entries": 128,
    "set-max-listpack-value": 64,
    "hash-max-listpack-entries": 512,
    "hash-max-listpack-value": 64,
    "zset-max-listpack-entries": 128,
    "zset-max-listpack-value": 64,
    "list-max-listpack-size": -2,
}
SMALL = {
    "integers": ["SADD k 3 -1 2"],
    "wide integers": ["SADD k 1 -70000", "SADD k 9223372036854775807 -9223372036854775808"],
    "members": [f"SADD k b a 1 -5 {LONG} 01 -0"],
    "integers that a string was among": ["SADD k 3 a 1 2", "SREM k a"],
    "fields": [f"HSET k b 1 a {LONG} 5 -300000 c 007"],
    "a deadline": ["HSET k a 1 b 2 c 3", "HPEXPIREAT k 9000000000000 FIELDS 1 b"],
    "equal deadlines": ["HSET k a 1 b 2 c 3", "HPEXPIREAT k 9000000000000 FIELDS 2 c a"],
    "members with scores": [
        "ZADD k 1.1 a 1e300 b -inf c inf d 3.0e-10 e -5 f 123456789012345678 g 0.1 h 1e22 i -0 j",
        f"ZADD k 9007199254740993 k 5000000000000000000 l 2 {LONG} 2 7",
    ],
    "a list": ["RPUSH k a 1 -0 4096 70000 -2147483649 5000000000000000000", f"RPUSH k {WIDE}"],
    "a list of nodes": [f"RPUSH k {WIDE} a {WIDE} b", f"LPUSH k {ALONE} 7"],
    "a list that was split": ["CONFIG SET list-max-listpack-size 4", "RPUSH k 1 2 3 4 5 6 7",
                              "LINSERT k BEFORE 3 x", "LREM k 1 6", "LTRIM k 1 -1"],
}  # fmt: skip
LARGE = {
    "set that was large": ["CONFIG SET set-max-listpack-value 0", "SADD k a"],
    "hash that was large": ["CONFIG SET hash-max-listpack-value 0", "HSET k a 1"],
    "sorted set that was large": ["CONFIG SET zset-max-listpack-value 0", "ZADD k 1 a 2 b"],
    "set of many": ["SADD k " + " ".join(f"m{number}" for number in range(600))],
    "set of many integers": ["SADD k " + " ".join(f"{number}" for number in range(600))],
    "list of one node": ["RPUSH k " + " ".join("x" * 100 for _ in range(70))],
}
LIMITS = [
    {},
    {"set-max-listpack-value": 5, "hash-max-listpack-value": 5, "zset-max-listpack-value": 5},
    {"set-max-listpack-entries": 2, "hash-max-listpack-entries": 2, "zset-max-listpack-entries": 2},
    {"set-max-intset-entries": 2},
    {"set-max-intset-entries": 1000},
    {"set-max-listpack-entries": 1000},
    {"list-max-listpack-size": 2},
    {"list-max-listpack-size": -1},
    {"list-max-listpack-size": -5},
]
ALL = {"set": ("SMEMBERS", "k"), "hash": ("HGETALL", "k"), "list": ("LRANGE", "k", 0, -1),
       "zset": ("ZRANGE", "k", 0, -1, "WITHSCORES")}  # fmt: skip


@contextmanager
def uncompressed(pair: Pair) -> Iterator[None]:
    """Redis packs its payloads without LZF, as we do; limits are put back at the end."""
    pair.both("CONFIG", "SET", "rdbcompression", "no")
    try:
        yield
    finally:
        pair.both("CONFIG", "SET", "rdbcompression", "yes")
        limit(pair, {})


def limit(pair: Pair, limits: dict[str, int]) -> None:
    for name, value in (DEFAULTS | limits).items():
        pair.both("CONFIG", "SET", name, value)


def dumped(client: RawClient) -> bytes:
    data = client.call_parsed("DUMP", "k")
    assert isinstance(data, bytes)
    return data


@pytest.mark.parametrize("name", SMALL)
def test_the_payload_is_that_of_redis(pair: Pair, name: str) -> None:
    with uncompressed(pair):
        for request in SMALL[name]:
            pair.both(*request.split())
        assert pair.both("DUMP", "k").startswith(b"$")


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_it_comes_back_as_in_redis_whatever_the_limits_are(pair: Pair, name: str) -> None:
    with uncompressed(pair):
        for request in (SMALL | LARGE)[name]:
            pair.both(*request.split())
        payloads = dumped(pair.ours), dumped(pair.real)
        kind = pair.both("TYPE", "k")[1:-2].decode()
        for limits in LIMITS:
            limit(pair, limits)
            for payload in payloads:
                pair.both("RESTORE", "k", 0, payload, "REPLACE")
                if pair.both("OBJECT", "ENCODING", "k") != b"$9\r\nhashtable\r\n":
                    pair.both(*ALL[kind])
                elif kind == "hash":
                    pair.both("HPEXPIRETIME", "k", "FIELDS", 3, "a", "b", "c")


def test_integers_that_a_string_was_among_stay_in_their_order(client: RawClient) -> None:
    client.call("SADD", "k", 3, "a", 1, 2)
    client.call("SREM", "k", "a")
    members = client.call_parsed("SMEMBERS", "k")
    assert client.call("RESTORE", "k", 0, dumped(client), "REPLACE") == OK
    assert client.call("OBJECT", "ENCODING", "k") == b"$8\r\nlistpack\r\n"
    assert client.call_parsed("SMEMBERS", "k") == members == [b"3", b"1", b"2"]


@pytest.mark.parametrize(
    "request_", ["SADD k a b", "HSET k a 1 b 2", "ZADD k 1 a 2 b", "HSET k a 1 b 2 c 3"]
)
def test_nothing_is_there_twice(client: RawClient, request_: str) -> None:
    client.call(*request_.split())
    if "c" in request_:
        client.call("HPEXPIREAT", "k", 9_000_000_000_000, "FIELDS", 1, "b")
    body = dumped(client)[:-8]
    assert body.count(b"\x81b") == 1  # a text of one byte
    twice = sealed(body.replace(b"\x81b", b"\x81a"))
    assert client.call("RESTORE", "k", 0, twice, "REPLACE").startswith(b"-ERR Bad data format")
    assert client.call("RESTORE", "k", 0, sealed(body), "REPLACE") == OK


def test_what_comes_back_lives_on(fresh_server: Factory) -> None:
    """Small values with long elements, and nodes of another size, are changed and recorded."""
    server = fresh_server("--appendonly", "yes")
    with server.client() as client:
        for key, request in MADE.items():
            client.call(*request.split())
            payload = dumped(client)
            client.call("DEL", "k")
            for name, value in TIGHT.items():
                client.call("CONFIG", "SET", name, value)
            assert client.call("RESTORE", key, 0, payload) == OK
            assert client.call_parsed("OBJECT", "ENCODING", key) in (b"listpack", b"quicklist")
            for name, value in DEFAULTS.items():
                client.call("CONFIG", "SET", name, value)
        for change in CHANGES:
            assert not client.call(*change.split()).startswith(b"-"), change
    before = [server.call(*read) for read in READS]
    for rewrite in (False, True):
        if rewrite:
            with server.client() as client:
                client.call("BGREWRITEAOF")
                done(client, "aof_rewrite_in_progress")
        server.restart(crash=True)
        assert [server.call(*read) for read in READS] == before


MADE = {
    "s": f"SADD k {LONG} a",
    "h": f"HSET k {LONG} {LONG} a 1",
    "z": f"ZADD k 1 {LONG} 2 a",
    "l": f"RPUSH k {LONG} a {WIDE} b {ALONE} c",
}
TIGHT = {
    "set-max-listpack-value": 5,
    "hash-max-listpack-value": 5,
    "zset-max-listpack-value": 5,
    "list-max-listpack-size": 2,
}
CHANGES = (
    "SREM s a", "SADD s b", "HSET h a 2 b 3", f"ZADD z 0 b 3 {LONG}", "LINSERT l BEFORE b new",
    "LREM l 1 a", "RPUSH l end", "LPUSH l first",
)  # fmt: skip
READS = (
    ("SMEMBERS", "s"), ("HGETALL", "h"), ("ZRANGE", "z", "0", "-1", "WITHSCORES"),
    ("LRANGE", "l", "0", "-1"),
)  # fmt: skip
