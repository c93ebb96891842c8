"""Clients for clusters, with a cluster of one node: redis-py and redis-cli."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from typing import Any

import pytest
import redis
import redis.asyncio
from conftest import Factory

from support.process import Process


@pytest.fixture(params=["no", "yes"])
def node(fresh_server: Factory, request: pytest.FixtureRequest) -> Process:
    return fresh_server("--cluster-enabled", "yes", "--cluster-strict-slots", request.param)


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py(node: Process, protocol: int) -> None:
    client: Any = redis.RedisCluster(host="127.0.0.1", port=node.port, protocol=protocol)
    assert client.set("a", 1)
    assert client.get("a") == b"1"
    assert client.mset_nonatomic({"b": 2, "c": 3})
    assert client.mget_nonatomic("a", "b", "c") == [b"1", b"2", b"3"]
    assert client.mget("{t}a", "{t}b") == [None, None]
    assert client.keyslot("a") == client.cluster_keyslot("a") == 15495
    assert client.cluster_countkeysinslot(15495) == 1
    assert client.cluster_get_keys_in_slot(15495, 10) in (["a"], [b"a"])
    assert len(client.cluster_nodes()) == len(client.get_nodes()) == 1
    assert client.cluster_info()["cluster_state"] == "ok"
    pipe = client.pipeline()
    pipe.set("d", 4).incr("d").get("a")
    assert pipe.execute() == [True, 5, b"1"]
    with client.lock("resource", timeout=5):
        pass
    assert client.register_script("return {KEYS[1], ARGV[1]}")(["k"], ["v"]) == [b"k", b"v"]
    assert sorted(client.scan_iter()) == [b"a", b"b", b"c", b"d"]
    assert client.dbsize() == 4
    client.flushall()
    client.close()


def test_redis_py_transactions_and_channels(node: Process) -> None:
    client: Any = redis.RedisCluster(host="127.0.0.1", port=node.port)
    pipe = client.pipeline(transaction=True)
    pipe.watch("{t}a")
    pipe.multi()
    pipe.set("{t}a", 1)
    pipe.incr("{t}b")
    assert pipe.execute() == [b"OK", 1]
    heard = threading.Event()
    channels = client.pubsub()
    channels.ssubscribe(**{"{t}news": lambda message: heard.set()})
    while not heard.is_set():
        client.spublish("{t}news", "hello")
        channels.get_sharded_message(timeout=1)
    channels.close()
    client.close()


def test_redis_py_without_threads(node: Process) -> None:
    async def use() -> None:
        client = redis.asyncio.RedisCluster(host="127.0.0.1", port=node.port)
        await client.initialize()
        assert await client.set("a", 1)
        assert await client.get("a") == b"1"
        assert await client.mget_nonatomic("a", "b") == [b"1", None]
        assert len(client.get_nodes()) == 1
        await client.aclose()

    asyncio.run(use())


def test_redis_cli(node: Process) -> None:
    if shutil.which("redis-cli") is None:
        pytest.skip("redis-cli is not installed")

    def call(*words: str) -> str:
        done = subprocess.run(
            ["redis-cli", "-c", "-p", str(node.port), *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        return done.stdout

    assert call("SET", "a", "1") == "OK\n"
    assert call("GET", "a") == "1\n"
    report = call("--cluster", "check", f"127.0.0.1:{node.port}")
    assert "[OK] All 16384 slots covered." in report
    assert "1 keys" in report
