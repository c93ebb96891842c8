"""INFO keysizes: of few keys exact, of many what the last look at them has found."""

from __future__ import annotations

from random import Random

import pytest
from conftest import Factory

from support.client import RawClient
from support.process import Pair, Process, RedisProcess
from support.waiting import wait_until


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_as_redis(pair: Pair) -> None:
    chance = Random(1)
    pair.both("INFO", "keysizes")
    for number in range(300):
        key = f"k{chance.randrange(60)}"
        size = chance.choice([1, 2, 3, 7, 8, 100, 1023, 1024, 5000, 70_000])
        kind = chance.randrange(9)
        if kind == 0:
            pair.both("SET", key, "x" * size)
        elif kind == 1:
            pair.both("SETRANGE", key, size, "x")
        elif kind == 2:
            pair.both("APPEND", key, "y" * (size % 50))
        elif kind == 3:
            pair.both("RPUSH", key, *range(size % 60 + 1))
        elif kind == 4:
            pair.both("SADD", key, *range(size % 50 + 1))
        elif kind == 5:
            pair.both("DEL", key)
        elif kind == 6:
            pair.both("SET", key, "")
        elif kind == 7:
            pair.both("LPOP", key, size)
        else:
            pair.both("SELECT", chance.randrange(3))
        if number % 5 == 0:
            pair.both("INFO", "keysizes")
    pair.both("SETBIT", "large", (1 << 24) - 1, 1)
    pair.both("SWAPDB", 0, 1)
    pair.both("INFO", "keysizes")
    pair.both("FLUSHALL")
    pair.both("INFO", "keysizes")


@pytest.mark.since(8, 10)
def test_memory_is_counted_if_that_is_asked_for_at_the_start(
    fresh_server: Factory, fresh_redis: Factory
) -> None:
    options = ("--key-memory-histograms", "yes")
    ours, real = fresh_server(*options), fresh_redis(*options)
    assert isinstance(real, RedisProcess)
    pair = Pair.of(ours, real)
    for number in range(6):
        pair.both("RPUSH", f"l{number}", *range(1 << number))
        pair.both("ZADD", f"z{number}", 1, "a")
        pair.both("HSET", f"h{number}", "f", "v" * (10 << number))
    shown = _titles(ours)
    assert shown == _titles(real)
    assert b"db0_distrib_zsets_sizes" in shown
    pair.both("CONFIG", "SET", "key-memory-histograms", "no")
    pair.both("INFO", "keysizes")
    pair.both("CONFIG", "SET", "key-memory-histograms", "yes")
    pair.both("CONFIG", "GET", "key-memory-histograms")
    pair.close()


def _titles(server: Process) -> list[bytes]:
    shown = server.call("INFO", "keysizes")
    assert isinstance(shown, bytes)
    return [line.partition(b":")[0] for line in shown.splitlines()]


def test_what_takes_more_is_counted_as_more(fresh_server: Factory) -> None:
    server = fresh_server("--key-memory-histograms", "yes")
    server.call("HSET", "h", "f", "v" * 4096)
    server.call("SADD", "s", 1)
    shown = server.call("INFO", "keysizes")
    assert isinstance(shown, bytes)
    assert b"db0_distrib_hashes_sizes:4K=1\r\n" in shown
    assert b"db0_distrib_sets_sizes:64=1\r\n" in shown


def test_of_many_keys(client: RawClient) -> None:
    for start in range(0, 30_000, 1000):
        words = [word for number in range(start, start + 1000) for word in (number, "x" * 9)]
        client.call("MSET", *words)

    def shown() -> bytes:
        reply = client.call_parsed("INFO", "keysizes")
        assert isinstance(reply, bytes)
        return reply

    wait_until(lambda: shown() == b"# Keysizes\r\ndb0_distrib_strings_sizes:8=30000\r\n")
    client.call("DEL", *range(29_900))
    assert shown() == b"# Keysizes\r\ndb0_distrib_strings_sizes:8=100\r\n"
