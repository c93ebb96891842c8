"""FUNCTION, FCALL and FCALL_RO against the real Redis."""

from __future__ import annotations

import pytest

from support.process import Pair
from support.scripts import libraries

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

WRONG_CALLS = (
    ("FCALL", "nosuch", "0"), ("FCALL", "f1", "x"), ("FCALL", "f1", "-1"), ("FCALL", "f1"),
    ("FCALL", "f1", "5", "a"), ("FUNCTION", "LIST", "X"), ("FUNCTION", "LIST", "LIBRARYNAME"),
    ("FUNCTION", "LIST", "WITHCODE", "WITHCODE"),
    ("FUNCTION", "LIST", "LIBRARYNAME", "a", "LIBRARYNAME", "b"),
    ("FUNCTION", "LIST", "LIBRARYNAME", "zz"), ("FUNCTION", "STATS"),
    ("FUNCTION", "DELETE", "nosuch"), ("FUNCTION", "KILL"), ("FUNCTION", "FLUSH", "X"),
    ("FUNCTION", "FLUSH", "SYNC", "X"), ("FUNCTION", "RESTORE", "abc"),
    ("FUNCTION", "RESTORE", "abc", "FOO"), ("FUNCTION", "RESTORE", "abc", "FLUSH", "x"),
    ("FUNCTION", "LOAD", "FOO", "BAR"), ("FUNCTION", "LOAD", "REPLACE", "REPLACE", "x"),
    ("FUNCTION",), ("FUNCTION", "X"), ("COMMAND", "GETKEYS", "FCALL", "f", "2", "a", "b", "c"),
    ("COMMAND", "GETKEYS", "EVAL", "f", "0"), ("COMMAND", "GETKEYS", "EVAL", "f", "x"),
)  # fmt: skip


@pytest.fixture(params=[2, 3])
def fresh(pair: Pair, request: pytest.FixtureRequest) -> Pair:
    """With no functions and no keys, in either protocol."""
    pair.ours.call("HELLO", request.param)
    pair.real.call("HELLO", request.param)
    pair.both("FUNCTION", "FLUSH")
    pair.both("FLUSHALL")
    return pair


def payload(reply: bytes) -> bytes:
    """Return what stands in a bulk string."""
    return reply[reply.index(b"\r\n") + 2 : -2]


def test_libraries(fresh: Pair) -> None:
    for library in libraries():
        fresh.both("FUNCTION", "LOAD", "REPLACE", library)
        fresh.both("FUNCTION", "LOAD", library)


def test_calls(fresh: Pair) -> None:
    fresh.both("FUNCTION", "LOAD", libraries()[0])
    for number in range(1, 13):
        fresh.both("FCALL", f"f{number}", 1, "k", "a", "b")
        fresh.both("FCALL_RO", f"f{number}", 1, "k", "a", "b")
    for call in WRONG_CALLS:
        fresh.both(*call)


def test_payloads(fresh: Pair) -> None:
    """Either server takes what either one dumps."""
    fresh.both("FUNCTION", "LOAD", libraries()[0])
    dumped = [payload(client.call("FUNCTION", "DUMP")) for client in (fresh.ours, fresh.real)]
    for data in dumped:
        for policy in ((), ("REPLACE",), ("APPEND",), ("FLUSH",)):
            fresh.both("FUNCTION", "RESTORE", data, *policy)
            fresh.both("FCALL", "f3", 1, "x", "y")
        fresh.both("FUNCTION", "FLUSH")
        fresh.both("FUNCTION", "RESTORE", data)
        fresh.both("FUNCTION", "RESTORE", data[:-1] + b"x")
        fresh.both("FCALL", "f3", 1, "x", "y")
    fresh.both("FUNCTION", "DELETE", "l1")
    fresh.both("FUNCTION", "LIST")
    fresh.both("SET", "s", "x")
    fresh.both("FUNCTION", "RESTORE", payload(fresh.real.call("DUMP", "s")))


def test_function_without_writes(fresh: Pair) -> None:
    fresh.both(
        *("FUNCTION", "LOAD"),
        "#!lua name=one\nredis.register_function{function_name='w', flags={'no-writes'}, "
        "callback=function() return redis.call('SET', 'a', '1') end}",
    )
    fresh.both("FCALL", "w", 0)
    fresh.both("FCALL_RO", "w", 0)
    fresh.both("FUNCTION", "LIST", "WITHCODE")
    fresh.both(
        *("FUNCTION", "LOAD"),
        "#!lua name=two\nredis.register_function{function_name='w', "
        "callback=function() return 1 end}",
    )
    fresh.both("FUNCTION", "DELETE", "one")
