"""Commands on bitmaps and HyperLogLogs in a pipeline: what they do one by one."""

from __future__ import annotations

from random import Random

import pytest
from conftest import Factory

from support.pipelines import check_at_once, let_expire
from support.process import Process

KEYS = (b"a", b"b", b"c", b"text", b"number", b"list", b"gone")
OFFSETS = (b"0", b"7", b"9", b"100", b"20000", b"-1", b"x", b"99999999999")
SKETCHES = (b"h", b"i", b"dense", b"torn", b"text", b"list", b"gone")


def bit_requests(chance: Random, count: int) -> list[tuple[bytes, ...]]:
    made: list[tuple[bytes, ...]] = []
    while len(made) < count:
        name = chance.choice((b"SETBIT", b"SETBIT", b"GETBIT", b"BITCOUNT", b"DEL"))
        for _ in range(chance.choice((1, 2, 5, 30))):
            key = chance.choice(KEYS)
            offset = chance.choice((*OFFSETS, b"%d" % chance.randrange(200)))
            if name == b"SETBIT":
                made.append((name, key, offset, chance.choice((b"0", b"1", b"1", b"2"))))
            elif name == b"GETBIT":
                made.append((name, key, offset))
            elif name == b"BITCOUNT":
                made.append(chance.choice(((name, key), (name, key), (name, key, b"1", b"-2"))))
            elif chance.random() < 0.1:
                made.append((name, key))
    return made


def sketch_requests(chance: Random, count: int) -> list[tuple[bytes, ...]]:
    made: list[tuple[bytes, ...]] = []
    while len(made) < count:
        name = chance.choice((b"PFADD", b"PFADD", b"PFADD", b"PFCOUNT", b"DEL"))
        width = chance.choice((1, 1, 0, 3))
        for _ in range(chance.choice((1, 2, 5, 30))):
            key = chance.choice(SKETCHES)
            if name == b"PFADD":
                made.append((name, key, *[b"%d" % chance.randrange(9000) for _ in range(width)]))
            elif name == b"PFCOUNT":
                made.append((name, key) if width == 1 else (name, key, b"i"))
            elif chance.random() < 0.03:
                made.append((name, key))
    return made


def begin(server: Process) -> None:
    server.call("SET", "text", "some text")
    server.call("SET", "number", "12")
    server.call("RPUSH", "list", "a")
    server.call("SET", "gone", "v")
    let_expire(server, "gone")
    server.call("PFADD", "dense", *range(4000))
    server.call("SET", "torn", b"HYLL\x01" + bytes(10) + b"\x80\x7f\xfe")
    server.call("SETRANGE", "torn", 0, "HYLL")


@pytest.mark.parametrize("seed", range(3))
def test_bits_of_a_pipeline_are_as_one_by_one(fresh_server: Factory, seed: int) -> None:
    check_at_once(fresh_server, begin, bit_requests(Random(seed), 800))


@pytest.mark.parametrize("seed", range(3))
def test_sketches_of_a_pipeline_are_as_one_by_one(fresh_server: Factory, seed: int) -> None:
    check_at_once(fresh_server, begin, sketch_requests(Random(seed), 800))
