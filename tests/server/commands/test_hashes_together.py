"""Commands on hashes in a pipeline: the replies and records that they have one by one."""

from __future__ import annotations

from random import Random

import pytest
from conftest import Factory

from support.pipelines import check_at_once
from support.process import Process


def requests_of(chance: Random, count: int) -> list[tuple[bytes, ...]]:
    made: list[tuple[bytes, ...]] = []
    while len(made) < count:
        name = chance.choice((b"HGET", b"HGETALL", b"HSET", b"HSET", b"HINCRBY", b"DEL", b"SET"))
        width = chance.choice((1, 1, 2))
        for _ in range(chance.choice((1, 2, 5, 30))):
            key = chance.choice((b"a", b"b", b"c", b"large", b"timed", b"text"))
            field = b"f%d" % chance.randrange(6)
            if name == b"HSET":
                pairs = (field, b"%d" % chance.randrange(50), b"g", b"x" * chance.randrange(80))
                made.append((name, key, *pairs[: 2 * width]))
            elif name == b"HINCRBY":
                made.append(
                    (name, key, field, chance.choice((b"1", b"-5", b"x", b"1" + b"0" * 18)))
                )
            elif name == b"HGET":
                made.append((name, key, field))
            elif name == b"HGETALL" and key != b"large":
                made.append((name, key))
            elif name in (b"DEL", b"SET") and chance.random() < 0.1:
                made.append((b"DEL", key) if name == b"DEL" else (b"SET", key, b"v"))
    return made


def begin(server: Process) -> None:
    server.call("HSET", "large", *[word for at in range(12_000) for word in (f"f{at}", "1")])
    server.call("HSET", "timed", "f1", "1", "f2", "2")
    server.call("HEXPIRE", "timed", 1000, "FIELDS", 1, "f1")
    server.call("SET", "text", "v")


@pytest.mark.parametrize("seed", range(3))
def test_a_pipeline_is_as_one_by_one(fresh_server: Factory, seed: int) -> None:
    check_at_once(fresh_server, begin, requests_of(Random(seed), 600))
