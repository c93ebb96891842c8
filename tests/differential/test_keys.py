"""Keys, expiry and databases against the real Redis: the same bytes for every request."""

from __future__ import annotations

import time

import pytest

from support.client import Argument, RawClient, parse
from support.process import Pair

pytestmark = pytest.mark.judge

FAR_S = 4102444800  # the year 2100
FAR_MS = FAR_S * 1000
MAX = (1 << 63) - 1

Request = tuple[Argument, ...]

KEYS: list[Request] = [
    ("MSET", "a", 1, "b", 2, "c", 3),
    ("XADD", "s", "1-1", "f", "v"),
    ("EXISTS", "a", "b", "a", "none"),
    ("TOUCH", "a", "b", "a", "none"),
    ("TYPE", "a"),
    ("TYPE", "s"),
    ("TYPE", "none"),
    ("DEL", "a", "a", "none"),
    ("UNLINK", "b", "b", "none", "c"),
    ("DBSIZE",),
    ("DEL", "s"),
    ("DBSIZE",),
    ("RANDOMKEY",),
    ("SET", "one", 1),
    ("RANDOMKEY",),
    ("KEYS", "*"),
    ("KEYS", "o[a-n]e"),
    ("KEYS", "?"),
    ("FLUSHDB",),
    ("FLUSHDB", "ASYNC"),
    ("FLUSHDB", "sync"),
    ("FLUSHDB", "NOW"),
    ("FLUSHDB", "SYNC", "ASYNC"),
    ("FLUSHALL", "async"),
    ("FLUSHALL", "x"),
    ("FLUSHALL",),
    ("DBSIZE",),
]

RENAMES: list[Request] = [
    ("RENAME", "none", "a"),
    ("RENAME", "none", "none"),
    ("RENAMENX", "none", "a"),
    ("SET", "a", 1),
    ("RENAME", "a", "a"),
    ("RENAMENX", "a", "a"),
    ("EXPIREAT", "a", FAR_S),
    ("SET", "b", 2),
    ("RENAMENX", "a", "b"),
    ("RENAME", "a", "b"),
    ("GET", "b"),
    ("PEXPIRETIME", "b"),
    ("SET", "c", 3),
    ("RENAME", "c", "b"),
    ("PEXPIRETIME", "b"),
    ("RENAMENX", "b", "d"),
    ("KEYS", "*"),
    ("XADD", "s", "5-1", "f", "v"),
    ("RENAME", "s", "d"),
    ("XLEN", "d"),
]

COPIES: list[Request] = [
    ("COPY", "none", "a"),
    ("COPY", "none", "none"),
    ("SET", "a", "v", "EXAT", FAR_S),
    ("COPY", "a", "a"),
    ("COPY", "a", "b"),
    ("COPY", "a", "b"),
    ("PEXPIRETIME", "b"),
    ("SET", "a", "w"),
    ("COPY", "a", "b", "REPLACE"),
    ("GET", "b"),
    ("PEXPIRETIME", "b"),
    ("COPY", "a", "a", "DB", 0),
    ("COPY", "a", "a", "DB", 1),
    ("COPY", "a", "a", "db", "1", "replace"),
    ("COPY", "a", "b", "DB"),
    ("COPY", "a", "b", "DB", "x"),
    ("COPY", "a", "b", "DB", -1),
    ("COPY", "a", "b", "DB", 16),
    ("COPY", "a", "b", "DB", 1 << 31),
    ("COPY", "a", "b", "DB", 1 << 63),
    ("COPY", "a", "b", "FOO"),
    ("COPY", "a", "b", "REPLACE", "DB", 2, "DB", 3),
    ("APPEND", "b", "x"),
    ("COPY", "b", "c"),
    ("APPEND", "c", "y"),
    ("MGET", "b", "c"),
    ("OBJECT", "ENCODING", "c"),
    ("XADD", "s", "1-1", "f", "v"),
    ("COPY", "s", "t"),
    ("XADD", "t", "2-1", "f", "v"),
    ("XLEN", "s"),
    ("XLEN", "t"),
    ("COPY", "s", "a", "REPLACE"),
    ("TYPE", "a"),
    ("MOVE", "b", 0),
    ("MOVE", "b", 1),
    ("MOVE", "b", 1),
    ("MOVE", "a", 1),
    ("MOVE", "none", 1),
    ("MOVE", "c", "x"),
    ("MOVE", "c", -1),
    ("MOVE", "c", 16),
    ("MOVE", "c", 1 << 40),
    ("EXPIREAT", "c", FAR_S),
    ("MOVE", "c", 1),
    ("SELECT", 1),
    ("PEXPIRETIME", "c"),
    ("MGET", "a", "b", "c"),
    ("SWAPDB", 0, 1),
    ("DBSIZE",),
    ("SWAPDB", 1, 1),
    ("SWAPDB", "x", 1),
    ("SWAPDB", 1, "x"),
    ("SWAPDB", -1, 1),
    ("SWAPDB", 0, 16),
    ("SWAPDB", 0, 1 << 33),
    ("SELECT", 0),
    ("MGET", "a", "b", "c"),
]

EXPIRY: list[Request] = [
    ("EXPIRE", "none", 10),
    ("TTL", "none"),
    ("PTTL", "none"),
    ("EXPIRETIME", "none"),
    ("PEXPIRETIME", "none"),
    ("PERSIST", "none"),
    ("SET", "k", "v"),
    ("TTL", "k"),
    ("PTTL", "k"),
    ("EXPIRETIME", "k"),
    ("PERSIST", "k"),
    ("EXPIRE", "k", 100, "XX"),
    ("EXPIRE", "k", 100, "GT"),
    ("EXPIREAT", "k", FAR_S, "LT"),
    ("PEXPIRETIME", "k"),
    ("EXPIREAT", "k", FAR_S + 1, "NX"),
    ("EXPIREAT", "k", FAR_S + 1, "LT"),
    ("EXPIREAT", "k", FAR_S, "GT"),
    ("EXPIREAT", "k", FAR_S, "LT"),
    ("EXPIREAT", "k", FAR_S + 1, "gt", "xx"),
    ("PEXPIRETIME", "k"),
    ("EXPIREAT", "k", FAR_S, "XX", "LT"),
    ("EXPIRETIME", "k"),
    ("PEXPIREAT", "k", FAR_MS + 499),
    ("EXPIRETIME", "k"),
    ("PEXPIREAT", "k", FAR_MS + 500),
    ("EXPIRETIME", "k"),
    ("PERSIST", "k"),
    ("PERSIST", "k"),
    ("EXPIREAT", "k", FAR_S, "NX"),
    *[
        ("EXPIRE", "k", 10, *options)
        for options in (
            ("NX", "XX"),
            ("NX", "GT"),
            ("LT", "NX"),
            ("GT", "LT"),
            ("GT", "LT", "NX"),
            ("NX", "FOO"),
            ("FOO",),
            ("",),
        )
    ],
    ("EXPIRE", "k", "x", "FOO"),
    *[
        (name, "k", time)
        for name in ("EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT")
        for time in ("x", "1.5", "", " 1", "+1", "01", MAX + 1, -MAX - 2)
    ],
    ("EXPIRE", "k", MAX),
    ("EXPIRE", "k", MAX // 1000),
    ("EXPIREAT", "k", MAX // 1000 + 1),
    ("EXPIREAT", "k", -MAX // 1000 - 1),
    ("PEXPIRE", "k", MAX),
    ("EXPIRE", "none", MAX),
    ("PEXPIREAT", "k", MAX),
    ("PEXPIRETIME", "k"),
    ("EXPIRETIME", "k"),
    ("EXPIREAT", "k", MAX // 1000),
    ("PEXPIRETIME", "k"),
    ("EXPIRE", "k", 0, "GT"),
    ("EXISTS", "k"),
    ("EXPIRE", "k", 0),
    ("EXISTS", "k"),
    ("SET", "k", "v"),
    ("EXPIRE", "k", -1),
    ("EXISTS", "k"),
    ("SET", "k", "v"),
    ("PEXPIREAT", "k", -MAX - 1),
    ("EXISTS", "k"),
    ("SET", "k", "v"),
    ("EXPIREAT", "k", 1, "LT"),
    ("EXISTS", "k"),
    ("SET", "k", "v", "PXAT", 1),
    ("RENAME", "k", "l"),
    ("SET", "k", "v", "PXAT", 1),
    ("DEL", "k"),
    ("SET", "k", "v", "PXAT", 1),
    ("INCR", "k"),
    ("TTL", "k"),
    ("SET", "k", "v", "PXAT", 1),
    ("KEYS", "*"),
    ("SCAN", 0),
    ("SET", "k", "v", "PXAT", 1),
    ("RANDOMKEY",),
]

OBJECT: list[Request] = [
    ("SET", "n", 7),
    ("SET", "big", 10_000),
    ("SET", "k", "v"),
    *[
        ("OBJECT", word, key)
        for word in ("ENCODING", "IDLETIME", "FREQ")
        for key in ("n", "big", "k", "none")
        if word != "IDLETIME" or key == "none"  # a second may pass between the two
    ],
    ("OBJECT",),
    ("OBJECT", "ENCODING"),
    ("OBJECT", "encoding", "k", "x"),
    ("OBJECT", "FOO", "k"),
]

SCANS: list[Request] = [
    ("SCAN", 0),
    ("SCAN", "x"),
    ("SCAN", "1x"),
    ("SCAN", 1 << 64),
    ("SCAN", 0, "COUNT"),
    ("SCAN", 0, "COUNT", 0),
    ("SCAN", 0, "COUNT", -1),
    ("SCAN", 0, "COUNT", "x"),
    ("SCAN", 0, "MATCH"),
    ("SCAN", 0, "TYPE"),
    ("SCAN", 0, "FOO"),
    ("SCAN", 0, "FOO", 1),
    ("SET", "key", "v"),
    ("SCAN", 0, "MATCH", "k*", "COUNT", 100),
    ("SCAN", 0, "MATCH", "x*", "COUNT", 100),
    ("SCAN", 0, "match", "x*", "match", "k?y", "count", 1, "count", 1000),
    ("SCAN", 0, "TYPE", "string", "COUNT", 100),
    ("SCAN", 0, "TYPE", "STRING", "COUNT", 100),
    ("SCAN", 0, "TYPE", "stream", "COUNT", 100),
    ("SCAN", 0, "TYPE", "hash", "COUNT", MAX),
]

NAMES = (
    "DEL UNLINK EXISTS TYPE KEYS SCAN RANDOMKEY RENAME RENAMENX COPY MOVE TOUCH EXPIRE PEXPIRE "
    "EXPIREAT PEXPIREAT EXPIRETIME PEXPIRETIME TTL PTTL PERSIST DBSIZE SWAPDB"
)
WRONG_ARITY: list[Request] = [
    (name, *("x",) * count)
    for name in NAMES.split()
    for count in range(4)
    if (name, count) != ("SCAN", 1)
]


@pytest.mark.parametrize(
    "requests",
    [KEYS, RENAMES, COPIES, EXPIRY, OBJECT, SCANS, WRONG_ARITY],
    ids=["keys", "renames", "copies", "expiry", "object", "scans", "arity"],
)
def test_same_replies(pair: Pair, requests: list[Request]) -> None:
    for request in requests:
        pair.both(*request)


@pytest.mark.since(8, 0)
@pytest.mark.parametrize(
    "cursor",
    ["", " ", " 0", "\t\n\v\f\r 1", "+1", "-", "+", "-0", "-1", "-01", "007", "1\0x", "\0", "0 "],
)
def test_cursors(pair: Pair, cursor: str) -> None:
    pair.both("SCAN", cursor)


@pytest.mark.since(8, 10)
def test_no_value_is_shared(pair: Pair) -> None:
    for key, value in ("n", 7), ("big", 10_000), ("k", "v"):
        pair.both("SET", key, value)
        pair.both("OBJECT", "REFCOUNT", key)
    pair.both("OBJECT", "REFCOUNT", "none")


def test_idle_times(pair: Pair) -> None:
    for number, key in enumerate(("big", "k")):
        pair.both("SET", key, 10_000 + number)
        pair.both_about("OBJECT", "IDLETIME", key, within=10)


def test_resp3_replies(pair3: Pair) -> None:
    for request in [*SCANS, ("FLUSHDB",), *OBJECT, ("FLUSHDB",), ("RANDOMKEY",), *EXPIRY]:
        pair3.both(*request)


def test_relative_deadlines(pair: Pair) -> None:
    pair.both("SET", "k", "v")
    for request, least, most in (
        (("EXPIRE", "k", 100), 90_000, 100_000),
        (("PEXPIRE", "k", 50_000), 40_000, 50_000),
        (("EXPIREAT", "k", int(time.time()) + 100), 90_000, 100_000),
    ):
        pair.both(*request)
        for client in (pair.ours, pair.real):
            left_ms = parse(client.call("PTTL", "k"))
            assert isinstance(left_ms, int)
            assert least < left_ms <= most
            left_s = parse(client.call("TTL", "k"))
            assert isinstance(left_s, int)
            assert left_s * 1000 in range(least, most + 1000)


EVENTS: list[Request] = [
    ("SET", "k", "v"),
    ("SET", "k", "v", "EX", 100),
    ("SET", "k", "v", "KEEPTTL", "GET"),
    ("SETNX", "k", "v"),
    ("SETNX", "n", "v"),
    ("SETEX", "k", 100, "v"),
    ("PSETEX", "p", 100_000, "v"),
    ("GETSET", "k", "v"),
    ("GETEX", "k", "EX", 100),
    ("GETEX", "k", "PERSIST"),
    ("GETEX", "k", "PERSIST"),
    ("GETEX", "k", "PXAT", 1),
    ("GETEX", "k"),
    ("SET", "k", "1"),
    ("INCR", "k"),
    ("DECRBY", "k", 2),
    ("INCRBYFLOAT", "k", 2),
    ("APPEND", "k", "x"),
    ("SETRANGE", "k", 1, "x"),
    ("SETRANGE", "k", 1, ""),
    ("GETDEL", "k"),
    ("GETDEL", "k"),
    ("MSET", "a", 1, "b", 2, "a", 3),
    ("MSETNX", "c", 1, "d", 2),
    ("MSETNX", "e", 1, "d", 2),
    ("EXPIRE", "a", 100),
    ("PEXPIREAT", "a", FAR_MS),
    ("PERSIST", "a"),
    ("PERSIST", "a"),
    ("EXPIRE", "a", -1),
    ("RENAME", "b", "a"),
    ("RENAME", "c", "d"),
    ("RENAMENX", "a", "d"),
    ("COPY", "d", "e"),
    ("COPY", "d", "e", "REPLACE"),
    ("COPY", "d", "e", "DB", 3),
    ("MOVE", "e", 4),
    ("DEL", "a", "d", "none"),
    ("GET", "none"),
    ("EXISTS", "none", "none2"),
    ("TTL", "none"),
    ("TYPE", "none"),
    ("OBJECT", "ENCODING", "none"),
    ("MGET", "none", "none2"),
    ("UNLINK", "p", "n"),
    ("FLUSHALL",),
    ("SWAPDB", 3, 4),
]


@pytest.mark.since(8, 0)  # Valkey tells of a GETEX into the past otherwise
def test_same_events(pair: Pair) -> None:
    """Keyspace events: the same ones, in the same order."""
    heard: list[list[bytes]] = []
    for client in (pair.ours, pair.real):
        client.call("CONFIG", "SET", "notify-keyspace-events", "KEA$nm")
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        heard.append([])
    listeners = []
    try:
        for client in (pair.ours, pair.real):
            listener = RawClient(client.sock.getpeername()[1])
            listener.call("PSUBSCRIBE", "__key*__:*")
            listeners.append(listener)
        for request in EVENTS:
            pair.both(*request)
            for client, listener, events in zip(
                (pair.ours, pair.real), listeners, heard, strict=True
            ):
                client.call("PUBLISH", "__key__:end", "")
                events.clear()
                while not (message := listener.read()).count(b"__key__:end"):
                    events.append(message)
            assert heard[0] == heard[1], request
    finally:
        for listener in listeners:
            listener.close()
        for client in (pair.ours, pair.real):
            client.call("CONFIG", "SET", "notify-keyspace-events", "")
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)


WATCHED: list[Request] = [
    ("SET", "k", "new"),
    ("SET", "other", "new"),
    ("SET", "k", "new", "NX"),
    ("APPEND", "k", ""),
    ("SETRANGE", "k", 0, ""),
    ("GETEX", "k"),
    ("GETEX", "k", "EX", 100),
    ("GETEX", "k", "PERSIST"),
    ("EXPIRE", "k", 100),
    ("EXPIRE", "k", 100, "XX"),
    ("PERSIST", "k"),
    ("TOUCH", "k"),
    ("DEL", "k"),
    ("DEL", "none"),
    ("SET", "none", 1),
    ("RENAME", "k", "k"),
    ("RENAME", "k", "none"),
    ("RENAME", "other", "none"),
    ("COPY", "k", "c"),
    ("COPY", "other", "none"),
    ("COPY", "other", "k", "DB", 1),
    ("MOVE", "k", 1),
    ("FLUSHDB",),
    ("FLUSHALL",),
    ("SWAPDB", 0, 1),
    ("SWAPDB", 1, 2),
    ("GETDEL", "k"),
    ("MSET", "x", 1, "k", 1),
]


@pytest.mark.parametrize("request_", WATCHED, ids=lambda request: "-".join(map(str, request)))
@pytest.mark.parametrize("watched", ["k", "none"])
def test_watch_sees_the_same_changes(pair: Pair, request_: Request, watched: str) -> None:
    pair.both("MSET", "k", "v", "other", "v")
    ours, real = [RawClient(c.sock.getpeername()[1]) for c in (pair.ours, pair.real)]
    others = Pair(ours, real, pair.version)
    try:
        pair.both("WATCH", watched)
        others.both(*request_)
        pair.both("MULTI")
        pair.both("PING")
        pair.both("EXEC")
    finally:
        others.close()
