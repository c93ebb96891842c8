"""GEOADD in a pipeline: the replies and records that it has one by one."""

from __future__ import annotations

from random import Random

import pytest
from conftest import Factory

from support.pipelines import check_at_once
from support.process import Process


def requests_of(chance: Random, count: int) -> list[tuple[bytes, ...]]:
    made: list[tuple[bytes, ...]] = []
    while len(made) < count:
        width = chance.choice((1, 1, 1, 2))
        options = chance.choice(((), (), (b"NX",), (b"CH",)))
        for _ in range(chance.choice((1, 2, 5, 30))):
            words = [b"GEOADD", chance.choice((b"a", b"b", b"large", b"text")), *options]
            for _ in range(width):
                east = chance.choice((b"13.361389", b"-0.5", b"180", b"2", b"181", b"x"))
                north = chance.choice((b"38.1155", b"-85", b"0", b"86"))
                words += [east, north, b"m%d" % chance.randrange(9)]
            made.append(tuple(words))
        made.append((b"GEOPOS", b"a", b"m1", b"m2"))
    return made


def begin(server: Process) -> None:
    server.call("GEOADD", "large", *[w for at in range(12_000) for w in (at % 90, 5, f"m{at}")])
    server.call("SET", "text", "v")


@pytest.mark.parametrize("seed", range(2))
def test_a_pipeline_is_as_one_by_one(fresh_server: Factory, seed: int) -> None:
    check_at_once(fresh_server, begin, requests_of(Random(seed), 400))
