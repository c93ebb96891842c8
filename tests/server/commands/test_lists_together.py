"""Commands on lists in a pipeline: the replies and records that they have one by one."""

from __future__ import annotations

from random import Random

import pytest
from conftest import Factory

from support.client import encode
from support.pipelines import check_at_once, let_expire
from support.process import Process, incr

NAMES = (b"LPUSH", b"RPUSH", b"LPOP", b"RPOP", b"LINDEX", b"LRANGE", b"DEL")
ENDS = (b"9223372036854775807", b"-9223372036854775808")
INDEXES = (b"0", b"-1", b"3", b"500", b"-700", b"1200", b"-3000", b"99999", b"x", *ENDS)
KEYS = (b"a", b"b", b"c", b"large", b"gone", b"text")


def requests_of(chance: Random, count: int) -> list[tuple[bytes, ...]]:
    made: list[tuple[bytes, ...]] = []
    while len(made) < count:
        name = chance.choice(NAMES)
        width = chance.choice((1, 1, 3))
        for _ in range(chance.choice((1, 2, 5, 30))):
            key = chance.choice(KEYS)
            if name in (b"LPUSH", b"RPUSH"):
                strings = [b"x" * chance.choice((0, 5, 12, 500, 9000)) for _ in range(width)]
                made.append((name, key, *strings))
            elif name in (b"LPOP", b"RPOP"):
                made.append((name, key) if width == 1 else (name, key, b"2"))
            elif name == b"LINDEX":
                made.append((name, key, chance.choice(INDEXES)))
            elif name == b"LRANGE":
                made.append((name, key, chance.choice(INDEXES), chance.choice(INDEXES)))
            elif chance.random() < 0.1:
                made.append((name, key))
    return made


def begin(server: Process) -> None:
    server.call("RPUSH", "large", *[f"element {number}" for number in range(3000)])
    server.call("SET", "text", "v")
    server.call("RPUSH", "gone", "v")
    let_expire(server, "gone")


@pytest.mark.parametrize("seed", range(3))
def test_a_pipeline_is_as_one_by_one(fresh_server: Factory, seed: int) -> None:
    check_at_once(fresh_server, begin, requests_of(Random(seed), 800))


def test_pops_of_keys_that_are_not_there_leave_no_record(fresh_server: Factory) -> None:
    calls: list[tuple[bytes, ...]] = [(b"RPUSH", b"a", b"1"), (b"RPUSH", b"b", b"2")]
    calls += [(b"LPOP", key) for key in (b"none", b"a", b"a", b"b", b"none", b"b")]
    check_at_once(fresh_server, lambda server: None, calls)
    server = fresh_server("--appendonly", "yes")
    with server.client() as client:
        client.send(b"".join(encode(*words) for words in calls))
        assert [client.read() for _ in calls]
    assert incr(server).count(b"LPOP") == 2
