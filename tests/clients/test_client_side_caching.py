"""redis-py with its client-side cache: what it keeps is true, whoever changes it, and however."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import redis
from redis.cache import CacheConfig

from support.process import ServerProcess
from support.redis_py import Client
from support.waiting import wait_until


@pytest.fixture
def cached(server: ServerProcess) -> Iterator[Client]:
    """A client that keeps what it has read."""
    with redis.Redis(
        port=server.port, protocol=3, decode_responses=True, cache_config=CacheConfig()
    ) as client:
        yield client


@pytest.fixture
def writer(server: ServerProcess) -> Iterator[Client]:
    with redis.Redis(port=server.port, decode_responses=True) as client:
        yield client


def reads(server: ServerProcess, command: str) -> int:
    """Return how many calls of a command have come to the server."""
    line = server.info("commandstats").get(f"cmdstat_{command}", "calls=0,")
    return int(line.removeprefix("calls=").partition(",")[0])


def test_a_value_is_asked_for_once(server: ServerProcess, cached: Client, writer: Client) -> None:
    writer.set("k", "old")
    assert cached.get("k") == "old"
    before = reads(server, "get")
    assert [cached.get("k") for _ in range(100)] == ["old"] * 100
    assert reads(server, "get") == before
    assert cached.get_cache().size == 1
    writer.set("k", "new")
    wait_until(lambda: cached.get("k") == "new")
    assert reads(server, "get") == before + 1


def test_whatever_changes_it(cached: Client, writer: Client) -> None:
    writer.hset("h", "f", 1)
    assert cached.hgetall("h") == {"f": "1"}
    writer.hincrby("h", "f", 4)
    wait_until(lambda: cached.hgetall("h") == {"f": "5"})
    writer.rename("h", "other")
    wait_until(lambda: cached.hgetall("h") == {})
    writer.set("k", "v", px=30)
    assert cached.get("k") == "v"
    wait_until(lambda: cached.get("k") is None)
    writer.set("k", "v")
    wait_until(lambda: cached.get("k") == "v")
    writer.eval("redis.call('set', KEYS[1], 'by a script')", 1, "k")
    wait_until(lambda: cached.get("k") == "by a script")
    writer.flushall()
    wait_until(lambda: cached.get("k") is None)


def test_its_own_writes(cached: Client) -> None:
    cached.set("k", 1)
    assert cached.get("k") == "1"
    cached.incr("k")
    wait_until(lambda: cached.get("k") == "2")


def has(client: Client, number: int) -> bool:
    return bool(client.get("k") == str(number))


def test_a_cache_never_lags_for_long(cached: Client, writer: Client) -> None:
    """What was written is seen by whoever reads a moment later, thousands of times."""
    for number in range(2000):
        writer.set("k", number)
        wait_until(partial(has, cached, number))
