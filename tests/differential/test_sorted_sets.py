"""Commands on sorted sets beside the real Redis: what is answered, reported and kept."""

from __future__ import annotations

import random

import pytest

from support.process import Pair, RedisProcess, ServerProcess
from support.random_sorted_sets import RandomSortedSets

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("resp3", [False, True], ids=["resp2", "resp3"])
@pytest.mark.parametrize("entries", [128, 5])
def test_random_commands(
    server: ServerProcess, redis_server: RedisProcess, large: bool, resp3: bool, entries: int
) -> None:
    chance = random.Random(f"{large} {resp3} {entries}")
    commands = RandomSortedSets(chance, large or entries < 128)
    both = Pair.of(server, redis_server, resp3=resp3)
    both.both("SET", "text", "x")
    both.both("CONFIG", "SET", "zset-max-listpack-entries", entries)
    history: list[list[str]] = []
    for _ in range(60):
        batch = [commands.command() for _ in range(50)]
        history += batch
        ours = both.ours.pipeline(*[tuple(words) for words in batch])
        real = both.real.pipeline(*[tuple(words) for words in batch])
        for words, here, there in zip(batch, ours, real, strict=True):
            if words[0] == "ZRANDMEMBER" and here[:1] in b"*$" and here[:3] == there[:3]:
                continue  # whichever it is
            assert here == there, words
    both.both("CONFIG", "SET", "zset-max-listpack-entries", 128)
    both.close()


def test_scans(pair: Pair) -> None:
    pair.both("ZADD", "z", 1.5, "a", "-0", "b", 1e20, "c", "inf", "d", 1e-7, "e")
    for words in ([], ["MATCH", "[ab]"], ["COUNT", 1], ["MATCH", "x*", "COUNT", 100]):
        pair.both("ZSCAN", "z", 0, *words)
    for words in (
        ["none", 0, "FOO"], ["none", "abc"], ["z", "abc"], ["z", 0, "FOO"], ["z", 0, "COUNT", 0],
        ["z", 0, "COUNT", "x"], ["z", 0, "MATCH"], ["z", 0, "NOVALUES"], ["z", 0, "COUNT"],
    ):  # fmt: skip
        pair.both("ZSCAN", *words)
    pair.both("SET", "text", "x")
    pair.both("ZSCAN", "text", 0, "FOO")


def test_a_scan_of_a_large_set_writes_17_digits(pair: Pair) -> None:
    pair.both("CONFIG", "SET", "zset-max-listpack-entries", 0)
    for score in (0.1, "-0", 1e20, "inf", "-inf", 1e-7, 3, 2**62, 123456789.123):
        pair.both("DEL", "z")
        pair.both("ZADD", "z", score, "m")
        pair.both("ZSCAN", "z", 0)
    pair.both("CONFIG", "SET", "zset-max-listpack-entries", 128)


@pytest.mark.parametrize(
    "line",
    [
        "zrange z 0 1 rev rev", "zrange z 0 1 byscore bylex", "zrange z 0 1 limit 0 -1 limit 1 1",
        "zrange z 0 1 withscores withscores", "zrevrange z 0 1 rev", "zrangebyscore z 0 1 byscore",
        "zrange z 1 2 limit 0 1 byscore withscores", "zrange z - + bylex withscores",
        "bzmpop x 0 z min", "bzmpop x 1 z min", "bzmpop -1 1 z min", "bzmpop 1e400 1 z foo",
        "zscan z 18446744073709551615 count 9223372036854775807", "zincrby z nx a",
        "zincrby z incr a", "zincrby s Gt a", "zincrby z x a", "zincrby s x a",
    ],
)  # fmt: skip
def test_options_that_do_not_fit(pair: Pair, line: str) -> None:
    pair.both("SET", "s", "x")
    pair.both("ZADD", "z", 1, "a", 2, "b")
    pair.both(*line.split())


EVENTFUL = [
    "zadd z 1 a 2 b", "zadd z 1 a", "zadd z 5 a", "zadd z incr 1 a", "zadd z nx 1 a",
    "zincrby z 2 b", "zadd z xx 1 none", "zrem z none", "zrem z a none",
    "zadd z 1 a 2 b 3 c 4 d 5 e", "zpopmin z", "zpopmax z 2", "zpopmin z 0", "zmpop 2 none z min",
    "zrangestore t z 0 -1", "zrangestore t none 0 1", "zunionstore t 1 z", "zinterstore t 1 z",
    "zdiffstore t 1 z", "zdiffstore t 2 z z", "zdiffstore t 2 z z", "set s x",
    "zunionstore s 1 z", "zadd z 1 a 2 b 3 c", "zremrangebyrank z 0 0", "zremrangebyscore z 2 2",
    "zremrangebyscore z 99 99", "zremrangebylex z - +", "zadd z 1 a", "bzpopmin z 0",
    "zadd z 1 a", "bzmpop 0 1 z max", "zscore none a", "zrange none 0 1", "zadd z 1 a",
    "zremrangebylex z [a [a", "zunion 2 z none", "zadd z 1 a", "zrangestore z z 5 6",
    "zcard none", "zinter 1 none", "zpopmin none", "zadd none xx 1 a", "zrem none a"
]  # fmt: skip


def test_events(pair: Pair, server: ServerProcess, redis_server: RedisProcess) -> None:
    listeners = Pair.of(server, redis_server)
    pair.both("CONFIG", "SET", "notify-keyspace-events", "KEAnmoc")
    listeners.both("PSUBSCRIBE", "__key*")
    for line in EVENTFUL:
        words = line.split()
        pair.both(*words)
        pair.both("PUBLISH", "__key", line)
        while True:
            here, there = listeners.ours.read(), listeners.real.read()
            assert here == there, line
            if line.encode() in here:
                break
    pair.both("CONFIG", "SET", "notify-keyspace-events", "")
    listeners.close()


@pytest.mark.parametrize("longest", [64, 3])
def test_a_dump_of_a_zero_with_a_sign(pair: Pair, longest: int) -> None:
    pair.both("CONFIG", "SET", "zset-max-listpack-value", longest)
    pair.both("ZADD", "z", "-inf", "long", "-0", "z", "-0", "a")
    payload = pair.ours.call_parsed("DUMP", "z")
    assert isinstance(payload, bytes)
    pair.both("RESTORE", "z", 0, payload, "REPLACE")
    pair.both("ZRANGE", "z", 0, -1, "WITHSCORES")
    pair.both("OBJECT", "ENCODING", "z")
    pair.both("CONFIG", "SET", "zset-max-listpack-value", 64)
