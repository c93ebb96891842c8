"""aiocache, fastapi-cache2 and redis-py's Lock: ``before`` a restart of the server, ``after``."""

from __future__ import annotations

import asyncio
import sys

import redis
from aiocache import Cache
from aiocache.lock import RedLock
from fastapi_cache.backends.redis import RedisBackend
from redis.asyncio import Redis
from redis.exceptions import LockNotOwnedError
from told import PORT


async def caches(moment: str) -> None:
    cache = Cache(Cache.REDIS, endpoint="127.0.0.1", port=PORT, namespace="aio")
    backend = RedisBackend(Redis(port=PORT))
    if moment == "before":
        await cache.set("k", "v", ttl=1000)
        async with RedLock(cache, "k", lease=10):
            assert await cache.get("k") == "v"
        await cache.multi_set([("a", 1), ("b", 2)])
        await backend.set("web:one", b"1", 1000)
        await backend.set("web:two", b"2", 1000)
    else:
        assert await cache.multi_get(["k", "a", "b"]) == ["v", 1, 2]
        assert await cache.increment("a", 5) == 6
        await cache.clear(namespace="aio")
        assert await cache.get("k") is None
        assert (await backend.get_with_ttl("web:one"))[1] == b"1"
        await backend.clear(namespace="web")
        assert await backend.get("web:one") is await backend.get("web:two") is None
    await cache.close()


def locks(moment: str) -> None:
    client = redis.Redis(port=PORT)
    if moment == "before":
        lock = client.lock("kept", timeout=1000)
        assert lock.acquire()
        assert lock.extend(500)
        assert lock.reacquire()
        client.set("token", lock.local.token)
        with client.lock("brief", timeout=10) as brief:
            assert brief.owned()
        assert client.exists("brief") == 0
    else:
        lock = client.lock("kept", timeout=1000)
        assert not lock.acquire(blocking=False)
        lock.local.token = b"another"
        try:
            lock.release()
        except LockNotOwnedError:
            pass
        else:
            raise AssertionError("it is not ours")
        lock.local.token = client.get("token")
        lock.release()
        assert lock.acquire(blocking=False)


asyncio.run(caches(sys.argv[1]))
locks(sys.argv[1])
