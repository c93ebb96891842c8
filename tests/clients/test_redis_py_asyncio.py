"""redis-py, the asynchronous client, in both protocols."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff

from support.process import ServerProcess
from support.redis_py import Client, by_stream
from support.waiting import DEADLINE_S

pytestmark = pytest.mark.once


async def wait_until(
    condition: Callable[[], Awaitable[bool]], timeout_s: float = DEADLINE_S
) -> None:
    deadline = time.monotonic() + timeout_s
    while not await condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


async def blocked(ar: Client, count: int) -> None:
    async def reached() -> bool:
        return bool((await ar.info("clients"))["blocked_clients"] == count)

    await wait_until(reached)


async def test_strings_and_keys(ar: Client) -> None:
    assert await ar.set("k", "v", ex=100, nx=True) is True
    assert await ar.set("k", "w", nx=True) is None
    assert await ar.get("k") == "v"
    assert await ar.ttl("k") == 100
    assert await ar.mset({"a": 1, "b": 2}) is True
    assert await ar.mget("a", "b", "none") == ["1", "2", None]
    assert await ar.incrby("a", 4) == 5
    assert await ar.incrbyfloat("a", 0.5) == 5.5
    assert sorted([key async for key in ar.scan_iter(match="?", count=1)]) == ["a", "b", "k"]
    assert await ar.type("a") == "string"
    assert await ar.object("encoding", "b") == "int"
    assert await ar.delete("a", "b", "none") == 2
    assert await ar.memory_usage("k") > 0
    client = await ar.client_info()
    assert client["lib-name"].startswith("redis-py")


async def test_streams(ar: Client) -> None:
    for n in range(1, 301):
        await ar.xadd("s", {"n": n}, id=f"{n}-0")
    assert await ar.xlen("s") == 300
    assert await ar.xadd("none", {"f": "v"}, nomkstream=True) is None
    assert await ar.xadd("s", {"n": 301}, id="301-*", maxlen=150) == "301-0"
    assert await ar.xlen("s") == 201
    assert await ar.xtrim("s", maxlen=10, approximate=False) == 191
    assert await ar.xdel("s", "301-0", "1-0") == 1
    assert await ar.xrange("s", count=1) == [("292-0", {"n": "292"})]
    assert await ar.xrevrange("s", count=1) == [("300-0", {"n": "300"})]
    info = await ar.xinfo_stream("s")
    assert (info["length"], info["max-deleted-entry-id"]) == (9, "301-0")
    assert info["last-entry"] == ("300-0", {"n": "300"})
    full = await ar.xinfo_stream("s", full=True)
    assert len(full["entries"]) == 9
    assert by_stream(await ar.xread({"s": "299-0"})) == {"s": [("300-0", {"n": "300"})]}
    with pytest.raises(redis.ResponseError, match="equal or smaller"):
        await ar.xadd("s", {"f": "v"}, id="1-1")


async def test_readers_that_wait(ar: Client) -> None:
    """Everyone who waits for a key gets the entry; the others wait on."""
    readers = [
        asyncio.create_task(ar.xread({key: "$"}, block=5000)) for key in ("a", "a", "b", "a")
    ]
    await blocked(ar, 4)
    await ar.xadd("a", {"f": "v"}, id="1-1")
    for index in (0, 1, 3):
        assert by_stream(await readers[index]) == {"a": [("1-1", {"f": "v"})]}
    assert not readers[2].done()
    await ar.xadd("b", {"f": "w"}, id="2-2")
    assert by_stream(await readers[2]) == {"b": [("2-2", {"f": "w"})]}
    assert by_stream(await ar.xread({"a": "$"}, block=20)) == {}


async def test_a_reader_that_gives_up(ar: Client) -> None:
    reader = asyncio.create_task(ar.xread({"s": "$"}, block=0))
    await blocked(ar, 1)
    reader.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reader
    await blocked(ar, 0)
    assert await ar.xadd("s", {"f": "v"}, id="1-1") == "1-1"


async def test_follow_a_stream(ar: Client) -> None:
    async def follow() -> list[str]:
        last, seen = "0-0", list[str]()
        while len(seen) < 200:
            reply = by_stream(await ar.xread({"s": last}, count=7, block=5000))
            seen += [fields["n"] for _, fields in reply["s"]]
            last = reply["s"][-1][0]
        return seen

    followers = [asyncio.create_task(follow()) for _ in range(3)]
    for n in range(200):
        await ar.xadd("s", {"n": n})
    for follower in followers:
        assert await follower == [str(n) for n in range(200)]


@pytest.mark.parametrize("transaction", [True, False])
async def test_pipeline(ar: Client, transaction: bool) -> None:
    async with ar.pipeline(transaction=transaction) as pipe:
        pipe.set("k", "v").xadd("s", {"f": "v"}, id="1-1").xrange("s").xlen("k")
        replies = await pipe.execute(raise_on_error=False)
    assert replies[:3] == [True, "1-1", [("1-1", {"f": "v"})]]
    assert isinstance(replies[3], redis.ResponseError)


async def test_watch(ar: Client) -> None:
    async with ar.pipeline() as pipe:
        await pipe.watch("k")
        await ar.set("k", "changed")
        pipe.multi()
        pipe.set("k", "mine")
        with pytest.raises(redis.WatchError):
            await pipe.execute()
        await pipe.watch("k")
        pipe.multi()
        pipe.set("k", "mine")
        assert await pipe.execute() == [True]


async def next_message(pubsub: Any) -> tuple[str, str | None, str, object]:
    message = await pubsub.get_message(timeout=DEADLINE_S)
    assert message is not None
    return message["type"], message["pattern"], message["channel"], message["data"]


async def test_messages(ar: Client) -> None:
    async with ar.pubsub() as pubsub:
        await pubsub.subscribe("news")
        await pubsub.psubscribe("n?ws")
        assert await next_message(pubsub) == ("subscribe", None, "news", 1)
        assert await next_message(pubsub) == ("psubscribe", None, "n?ws", 2)
        assert await ar.publish("news", "hello") == 2
        assert await next_message(pubsub) == ("message", None, "news", "hello")
        assert await next_message(pubsub) == ("pmessage", "n?ws", "news", "hello")
        await pubsub.unsubscribe("news")
        assert await next_message(pubsub) == ("unsubscribe", None, "news", 1)


async def test_listen_to_keyspace_notifications(ar: Client) -> None:
    await ar.config_set("notify-keyspace-events", "Kt$")
    try:
        async with ar.pubsub() as pubsub:
            await pubsub.psubscribe("__keyspace@0__:*")
            seen = []
            async for message in pubsub.listen():
                if message["type"] == "psubscribe":
                    await ar.xadd("s", {"f": "v"})
                    await ar.set("k", "v")
                    continue
                seen.append((message["channel"], message["data"]))
                if len(seen) == 2:
                    break
        assert seen == [("__keyspace@0__:s", "xadd"), ("__keyspace@0__:k", "set")]
    finally:
        await ar.config_set("notify-keyspace-events", "")


async def test_many_at_once(ar: Client) -> None:
    ids = await asyncio.gather(*(ar.xadd("s", {"n": n}) for n in range(90)))
    assert len(set(ids)) == 90
    assert await ar.xlen("s") == 90


async def test_monitor(ar: Client) -> None:
    async with ar.monitor() as monitor:
        await ar.set("k", "v")
        while not (command := await monitor.next_command())["command"].startswith("SET"):
            pass
    assert command["command"] == "SET k v"


async def test_a_cut_connection_is_made_again(
    server: ServerProcess, protocol: int, ar: Client
) -> None:
    async with redis.asyncio.Redis(
        port=server.port,
        protocol=protocol,
        retry=Retry(ConstantBackoff(0.01), 3),
        single_connection_client=True,
    ) as tough:
        first = await tough.client_id()
        assert await ar.client_kill_filter(_id=first) == 1
        assert await tough.client_id() != first


async def test_unix_socket_and_password(
    fresh_server: Callable[..., ServerProcess], protocol: int
) -> None:
    server = fresh_server("--unixsocket", "redis.sock", "--requirepass", "secret")
    path = str(server.directory / "redis.sock")
    async with redis.asyncio.Redis(
        unix_socket_path=path, protocol=protocol, username="default", password="secret", db=2
    ) as client:
        assert await client.ping() is True
        info: Any = await client.client_info()
        assert (info["db"], info["user"]) == (2, "default")
    wrong = redis.asyncio.Redis(
        unix_socket_path=path,
        protocol=protocol,
        password="wrong",
        retry=Retry(ConstantBackoff(0), 0),
    )
    async with wrong:
        with pytest.raises(redis.ConnectionError, match="invalid username-password pair"):
            await wrong.ping()
