"""Commands on places beside the real Redis."""

from __future__ import annotations

import random

import pytest

from support.process import Pair, RedisProcess, ServerProcess
from support.random_places import RandomPlaces

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

EVENTFUL = [
    "geoadd g 13 38 a 14 39 b", "geoadd g 13 38 a", "geoadd g xx ch 14 38 a", "geopos none a",
    "georadius g 13 38 500 km store h", "georadius g 13 38 1 m storedist h", "geodist none a b",
    "geosearchstore h g frommember a byradius 1000 km", "set s x",
    "geosearchstore h none frommember a bybox 1 1 m", "georadiusbymember g a 500 km store s",
    "geosearch g frommember a bybox 1 1 km", "geosearchstore h g fromlonlat 100 10 byradius 1 m",
]  # fmt: skip


@pytest.mark.parametrize("entries", [128, 0], ids=["small", "large"])
@pytest.mark.parametrize("resp3", [False, True], ids=["resp2", "resp3"])
def test_random_commands(
    server: ServerProcess, redis_server: RedisProcess, resp3: bool, entries: int
) -> None:
    commands = RandomPlaces(random.Random(f"{resp3} {entries}"))
    both = Pair.of(server, redis_server, resp3=resp3)
    both.both("CONFIG", "SET", "zset-max-listpack-entries", entries)
    for _ in range(60):
        batch = [tuple(commands.command()) for _ in range(50)]
        ours, real = both.ours.pipeline(*batch), both.real.pipeline(*batch)
        for words, here, there in zip(batch, ours, real, strict=True):
            assert here == there, words
    both.both("CONFIG", "SET", "zset-max-listpack-entries", 128)
    both.close()


def test_events(pair: Pair, server: ServerProcess, redis_server: RedisProcess) -> None:
    listeners = Pair.of(server, redis_server)
    pair.both("CONFIG", "SET", "notify-keyspace-events", "KEAnmoc")
    listeners.both("PSUBSCRIBE", "__key*")
    for line in EVENTFUL:
        pair.both(*line.split())
        pair.both("PUBLISH", "__key", line)
        while True:
            here, there = listeners.ours.read(), listeners.real.read()
            assert here == there, line
            if line.encode() in here:
                break
    pair.both("CONFIG", "SET", "notify-keyspace-events", "")
    listeners.close()


@pytest.mark.parametrize(
    "line",
    [
        "georadius g 1 2 3 km", "georadius g 1 2 3 km store d",
        "georadiusbymember g m 3 km storedist d",
        "georadius g 1 2 3 km store d storedist e", "georadiusbymember g m 3 km count 1 store",
        "geosearchstore d g frommember a byradius 1 m", "georadius_ro g 1 2 3 km store d",
    ],
)  # fmt: skip
def test_keys(pair: Pair, line: str) -> None:
    pair.both("COMMAND", "GETKEYS", *line.split())


@pytest.mark.parametrize("shape", ["byradius inf m", "bybox inf 1 km", "bybox 1 inf m"])
@pytest.mark.parametrize("place", ["180 48.864716", "-180 -85", "0 0"])
def test_a_shape_without_an_end(pair: Pair, shape: str, place: str) -> None:
    pair.both("GEOADD", "g", 13.361389, 38.115556, "a", -74, 0.0001, "b", 180, -85, "c")
    pair.both("GEOADD", "g", -180, 85, "d", 0, 0, "e", 180, 0, "f", -180, 0, "g")
    pair.both("GEOSEARCH", "g", "FROMLONLAT", *place.split(), *shape.split(), "ASC", "WITHDIST")
    pair.both("GEORADIUS", "g", *place.split(), "inf", "ft", "WITHCOORD")
    pair.both("GEORADIUS", "g", *place.split(), "1e400", "km", "STORE", "near")
    pair.both("GEORADIUSBYMEMBER", "g", "c", "inf", "km", "STOREDIST", "near")
    pair.both("ZRANGE", "near", 0, -1, "WITHSCORES")
