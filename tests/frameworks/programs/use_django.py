"""django-redis and channels-redis: ``before`` a restart of the server, and ``after``."""

from __future__ import annotations

import asyncio
import sys

import django
from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer
from django.conf import settings
from told import PORT

URL = f"redis://127.0.0.1:{PORT}/0"
settings.configure(
    CACHES={
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": URL,
            "OPTIONS": {"CLIENT_CLASS": "django_redis.client.DefaultClient"},
        }
    }
)
django.setup()


def cached(moment: str) -> None:
    from django.core.cache import cache

    if moment == "before":
        cache.set("number", 1, timeout=1000)
        assert cache.incr("number", 5) == 6
        cache.set_many({"a": [1], "b": {"x": "y"}})
        assert not cache.add("a", 2)
        with cache.lock("resource", timeout=100):
            assert not cache.lock("resource", timeout=100).acquire(blocking=False)
        assert cache.ttl("number") > 900
    else:
        assert cache.get("number") == 6
        assert cache.get_many(["a", "b"]) == {"a": [1], "b": {"x": "y"}}
        assert sorted(cache.iter_keys("*")) == ["a", "b", "number"]
        assert cache.delete_pattern("[ab]") == 2
        assert cache.incr("number") == 7


async def layered(moment: str) -> None:
    layer = RedisChannelLayer([URL], capacity=3)
    if moment == "before":
        await layer.group_add("group", "one")
        await layer.group_add("group", "two")
    await layer.group_send("group", {"type": moment})
    for channel in ("one", "two"):
        message = await asyncio.wait_for(layer.receive(channel), 60)
        assert message["type"] == moment
    for number in range(5):  # more than a channel holds: the rest is dropped
        await layer.group_send("group", {"type": "many", "number": number})
    assert [(await layer.receive("one"))["number"] for _ in range(3)] == [0, 1, 2]
    for _ in range(3):
        await layer.receive("two")
    await layer.close_pools()


async def published() -> None:
    layer = RedisPubSubChannelLayer([URL])
    channel = await layer.new_channel()
    await layer.group_add("heard", channel)
    await layer.group_send("heard", {"type": "hello"})
    assert await asyncio.wait_for(layer.receive(channel), 60) == {"type": "hello"}
    await layer.flush()


async def both(moment: str) -> None:
    await layered(moment)
    await published()


cached(sys.argv[1])
asyncio.run(both(sys.argv[1]))
