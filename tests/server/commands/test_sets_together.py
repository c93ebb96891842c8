"""Commands on sets in a pipeline: the replies and records that they have one by one."""

from __future__ import annotations

from random import Random

import pytest
from conftest import Factory

from support.pipelines import check_at_once
from support.process import Process

NAMES = (b"SADD", b"SADD", b"SREM", b"SISMEMBER", b"SMEMBERS", b"DEL", b"SET")
LARGE = (b"large", b"turning")  # their members come in no order
KEYS = (b"a", b"b", b"numbers", b"text", *LARGE)


def requests_of(chance: Random, count: int) -> list[tuple[bytes, ...]]:
    made: list[tuple[bytes, ...]] = []
    while len(made) < count:
        name = chance.choice(NAMES)
        width = chance.choice((1, 1, 2))
        key_of_all = chance.choice((b"", b"a", b"large"))
        for _ in range(chance.choice((1, 2, 5, 30))):
            key = key_of_all or chance.choice(KEYS)
            members = [b"%d" % chance.randrange(8), b"m%d" % chance.randrange(20), b"x" * 80]
            if key not in LARGE:
                members.pop()
            if name == b"SMEMBERS" and key not in LARGE:
                made.append((name, key))
            elif name in (b"SADD", b"SREM"):
                made.append((name, key, *chance.choices(members, k=width)))
            elif name == b"SISMEMBER":
                made.append((name, key, chance.choice(members)))
            elif name in (b"DEL", b"SET") and key != b"large" and chance.random() < 0.1:
                made.append((b"DEL", key) if name == b"DEL" else (b"SET", key, b"v"))
    return made


def begin(server: Process) -> None:
    server.call("SADD", "large", *[f"m{at}" for at in range(12_000)])
    server.call("SADD", "numbers", 1, 2, 3)
    server.call("SET", "text", "v")


@pytest.mark.parametrize("seed", range(3))
def test_a_pipeline_is_as_one_by_one(fresh_server: Factory, seed: int) -> None:
    check_at_once(fresh_server, begin, requests_of(Random(seed), 600))


def test_members_by_chance_of_many_keys(fresh_server: Factory) -> None:
    server = fresh_server()
    for key in range(10):
        server.call("SADD", f"k{key}", f"m{key}", f"n{key}")
    requests = [("SRANDMEMBER", f"k{at % 11}") for at in range(1100)]
    with server.client() as client:
        found = client.pipeline(*requests)
    for key in range(10):
        wanted = {b"$2\r\nm%d\r\n" % key, b"$2\r\nn%d\r\n" % key}
        assert set(found[key::11]) == wanted  # one of them alone: once in 2**99
    assert set(found[10::11]) == {b"$-1\r\n"}
    assert server.info()["keyspace_hits"] == "1000"
    assert server.info()["keyspace_misses"] == "100"
