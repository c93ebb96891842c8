"""limits and Flask-Limiter: ``before`` a restart of the server, and ``after``."""

from __future__ import annotations

import sys

from flask import Flask
from flask_limiter import Limiter
from limits import parse
from limits.storage import storage_from_string
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)
from told import PORT

URL = f"redis://127.0.0.1:{PORT}"
STRATEGIES = (FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter)

storage = storage_from_string(URL)
limit = parse("3/hour")
app = Flask("limited")
Limiter(
    lambda: "somebody",
    app=app,
    default_limits=["2/hour"],
    storage_uri=URL,
    strategy="moving-window",
)


@app.route("/")
def hello() -> str:
    return "hello"


def answers(count: int) -> list[int]:
    with app.test_client() as client:
        return [client.get("/").status_code for _ in range(count)]


if sys.argv[1] == "before":
    for strategy in STRATEGIES:
        limiter = strategy(storage)
        name = strategy.__name__
        assert [limiter.hit(limit, name) for _ in range(4)] == [True, True, True, False], name
        assert limiter.get_window_stats(limit, name).remaining == 0
        assert limiter.hit(limit, name, "another")
    assert answers(3) == [200, 200, 429]
else:
    for strategy in STRATEGIES:
        limiter = strategy(storage)
        name = strategy.__name__
        assert not limiter.test(limit, name)
        assert limiter.test(limit, name, "another")
        limiter.clear(limit, name)
        assert limiter.hit(limit, name)
    assert answers(1) == [429]
    assert storage.reset()
