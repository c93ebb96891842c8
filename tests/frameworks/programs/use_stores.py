"""Caches and sessions of other kinds, and pottery: ``before`` a restart of the server, ``after``.

cashews, dogpile.cache, Flask-Caching, Flask-Session.
"""

from __future__ import annotations

import asyncio
import sys

from cashews import Cache
from dogpile.cache import make_region
from dogpile.cache.api import NO_VALUE
from flask import Flask, session
from flask_caching import Cache as FlaskCache
from flask_session import Session
from pottery import RedisCounter, RedisDict, Redlock
from redis import Redis
from told import PORT

URL = f"redis://127.0.0.1:{PORT}/0"
client = Redis(port=PORT)

app = Flask("stores")
app.config.update(SESSION_TYPE="redis", SESSION_REDIS=client, CACHE_TYPE="RedisCache")
app.config.update(CACHE_REDIS_URL=URL, CACHE_KEY_PREFIX="flask:")
Session(app)
pages = FlaskCache(app)
made: list[str] = []


@app.route("/page/<name>")
@pages.cached(timeout=1000)
def page(name: str) -> str:
    made.append(name)
    return f"page {name}"


@app.route("/visit")
def visit() -> str:
    session["visits"] = session.get("visits", 0) + 1
    return str(session["visits"])


def in_flask(moment: str) -> None:
    with app.test_client() as browser:
        for _ in range(2):
            assert browser.get("/page/one").text == "page one"
        assert made == (["one"] if moment == "before" else [])
        if moment == "before":
            assert [browser.get("/visit").text for _ in range(3)] == ["1", "2", "3"]
            cookie = browser.get_cookie("session")
            assert cookie is not None
            client.set("cookie", cookie.value)
        else:
            kept = client.get("cookie")
            assert isinstance(kept, bytes)
            browser.set_cookie("session", kept.decode())
            assert browser.get("/visit").text == "4"
    with app.app_context():
        if moment == "before":
            assert pages.set_many({"a": 1, "b": [2]}, timeout=1000) == ["a", "b"]
            assert pages.add("a", 5) is False
        else:
            assert pages.get_many("a", "b") == [1, [2]]
            assert pages.delete_many("a", "b")
            pages.clear()
            assert pages.get("a") is None


def in_dogpile(moment: str) -> None:
    region = make_region().configure(
        "dogpile.cache.redis",
        expiration_time=1000,
        arguments={"port": PORT, "distributed_lock": True, "thread_local_lock": False},
    )
    if moment == "before":
        assert region.get_or_create("made", lambda: {"n": 1}) == {"n": 1}
        region.set_multi({"x": 1, "y": 2})
    else:
        assert region.get_or_create("made", lambda: {"n": 2}) == {"n": 1}
        assert region.get_multi(["x", "y", "z"]) == [1, 2, NO_VALUE]
        region.delete_multi(["x", "y"])
        assert region.get("x") is NO_VALUE


async def in_cashews(moment: str) -> None:
    cache = Cache()
    cache.setup(URL, client_side=False)
    if moment == "before":
        await cache.set("cashew:k", {"n": 1}, expire=1000)
        assert await cache.incr("cashew:count", expire=1000) == 1
        assert await cache.set_lock("cashew:lock", "mine", expire=1000)
        assert not await cache.set_lock("cashew:lock", "yours", expire=1000)
        for number in range(5):
            await cache.set(f"cashew:many:{number}", number, expire=1000)
    else:
        assert await cache.get("cashew:k") == {"n": 1}
        assert await cache.incr("cashew:count") == 2
        assert await cache.is_locked("cashew:lock")
        assert not await cache.unlock("cashew:lock", "yours")
        assert await cache.unlock("cashew:lock", "mine")
        assert not await cache.is_locked("cashew:lock")
        assert len([key async for key in cache.scan("cashew:many:*")]) == 5
        await cache.delete_match("cashew:many:*")
        assert [key async for key in cache.scan("cashew:many:*")] == []
    await cache.close()


def in_pottery(moment: str) -> None:
    words = RedisDict(redis=client, key="words")
    counts = RedisCounter(redis=client, key="counts")
    if moment == "before":
        words["a"] = [1]
        counts.update(["x", "x", "y"])
        lock = Redlock(key="pottery", masters={client}, auto_release_time=1000)
        assert lock.acquire()
        lock.extend()
        with Redlock(key="brief", masters={client}, auto_release_time=10) as brief:
            assert brief.locked()
    else:
        assert dict(words.items()) == {"a": [1]}
        assert counts.most_common(1) == [("x", 2)]
        lock = Redlock(key="pottery", masters={client}, auto_release_time=1000)
        assert not lock.acquire(blocking=False)


in_flask(sys.argv[1])
in_dogpile(sys.argv[1])
asyncio.run(in_cashews(sys.argv[1]))
in_pottery(sys.argv[1])
