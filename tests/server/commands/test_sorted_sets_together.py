"""Commands on sorted sets in a pipeline: the replies and records that they have one by one."""

from __future__ import annotations

from random import Random

import pytest
from conftest import Factory

from support.pipelines import check_at_once
from support.process import Process

SCORES = (
    b"1", b"2", b"-3", b"0", b"-0", b"0.5", b"1e3", b"inf", b"-inf", b"7000", b"x", b"123456789012",
)  # fmt: skip
RANGES = (
    (b"0", b"-1"), (b"2", b"5"), (b"-3", b"-1", b"WITHSCORES"), (b"1", b"3", b"REV"),
    (b"(1", b"+inf", b"BYSCORE"), (b"0", b"9", b"BYSCORE", b"LIMIT", b"1", b"3"),
    (b"9", b"-9", b"BYSCORE", b"REV"), (b"[a", b"+", b"BYLEX"), (b"x", b"1"),
    (b"a", b"b", b"BYLEX"),
)  # fmt: skip


def requests_of(chance: Random, count: int) -> list[tuple[bytes, ...]]:
    names = (b"ZADD", b"ZADD", b"ZINCRBY", b"ZSCORE", b"ZRANK", b"ZRANGE", b"DEL")
    made: list[tuple[bytes, ...]] = []
    while len(made) < count:
        name = chance.choice(names)
        bounds = chance.choice(RANGES)
        wide = chance.random() < 0.2
        for _ in range(chance.choice((1, 2, 5, 30))):
            key = chance.choice((b"a", b"b", b"c", b"large", b"none", b"text"))
            member = b"m%d" % chance.randrange(12) + b"x" * chance.choice((0, 0, 0, 3, 70))
            if name == b"ZADD":
                made.append((name, key, chance.choice(SCORES), member, *((b"4", b"y") * wide)))
            elif name == b"ZINCRBY":
                made.append((name, key, chance.choice(SCORES), member))
            elif name == b"ZSCORE" or (name == b"ZRANK" and not wide):
                made.append((name, key, member))
            elif name == b"ZRANK":
                made.append((name, key, member, b"WITHSCORE"))
            elif name == b"ZRANGE" and (key != b"large" or bounds[1] == b"5"):
                made.append((name, key, *bounds))
            elif name == b"DEL" and chance.random() < 0.1:
                made.append((b"DEL", chance.choice((b"a", b"b", b"c"))))
    return made


def begin(server: Process) -> None:
    server.call("ZADD", "large", *[word for at in range(12_000) for word in (at % 5000, f"m{at}")])
    server.call("SET", "text", "v")


@pytest.mark.parametrize("seed", range(3))
def test_a_pipeline_is_as_one_by_one(fresh_server: Factory, seed: int) -> None:
    check_at_once(fresh_server, begin, requests_of(Random(seed), 600))
