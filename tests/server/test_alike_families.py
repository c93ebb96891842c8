"""What a pipeline of each family runs at once has the replies and records that it has one by one.

``test_alike`` draws the requests of streams and of strings; here are those of the other families
whose commands run at once. A run is of one shape, and each word of a shape that has alternatives
is drawn for each request anew.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest
from conftest import Factory

from support.pipelines import check_at_once, let_expire
from support.process import Process

Words = tuple[str, ...]
Shape = tuple[str | Words, ...]

SOME = tuple("abc")
RARE = ("DEL", "SET")  # one at a time, and few


class Family(NamedTuple):
    """What a server is filled with, and the shapes of requests; likely ones stand there twice."""

    fill: Callable[[Process], None]
    shapes: tuple[Shape, ...]


def numbers(count: int, before: str = "") -> Words:
    return tuple(f"{before}{number}" for number in range(count))


def fill_bits(server: Process) -> None:
    server.call("SET", "text", "some text")
    server.call("SET", "number", "12")
    server.call("RPUSH", "list", "a")
    server.call("SET", "gone", "v")
    let_expire(server, "gone")
    server.call("PFADD", "dense", *range(4000))
    server.call("SET", "torn", b"HYLL\x01" + bytes(10) + b"\x80\x7f\xfe")
    server.call("SETRANGE", "torn", 0, "HYLL")


def fill_geo(server: Process) -> None:
    server.call("GEOADD", "large", *[w for at in range(12_000) for w in (at % 90, 5, f"m{at}")])
    server.call("SET", "text", "v")


def fill_hashes(server: Process) -> None:
    server.call("HSET", "large", *[word for at in range(12_000) for word in (f"f{at}", "1")])
    server.call("HSET", "timed", "f1", "1", "f2", "2")
    server.call("HEXPIRE", "timed", 1000, "FIELDS", 1, "f1")
    server.call("SET", "text", "v")


def fill_lists(server: Process) -> None:
    server.call("RPUSH", "large", *[f"element {number}" for number in range(3000)])
    server.call("SET", "text", "v")
    server.call("RPUSH", "gone", "v")
    let_expire(server, "gone")


def fill_sets(server: Process) -> None:
    server.call("SADD", "large", *[f"m{at}" for at in range(12_000)])
    server.call("SADD", "numbers", 1, 2, 3)
    server.call("SET", "text", "v")


def fill_sorted_sets(server: Process) -> None:
    server.call("ZADD", "large", *[word for at in range(12_000) for word in (at % 5000, f"m{at}")])
    server.call("SET", "text", "v")


BITS = (*SOME, "text", "number", "list", "gone")
OFFSETS = ("0", "7", "9", "100", "20000", "-1", "x", "99999999999", *numbers(200))
SKETCHES = ("h", "i", "dense", "torn", "text", "list", "gone")
COUNTED = numbers(9000)

PLACES = ("a", "b", "large", "text")
EAST = ("13.361389", "-0.5", "180", "2", "181", "x")
NORTH = ("38.1155", "-85", "0", "86")

HASHES = (*SOME, "large", "timed", "text")
FIELDS = numbers(6, "f")
FIELD_VALUES = (*numbers(50), "x" * 80)

LISTS = (*SOME, "large", "gone", "text")
STRINGS = ("", "x" * 5, "x" * 12, "x" * 500, "x" * 9000)
ENDS = ("9223372036854775807", "-9223372036854775808")
INDEXES = ("0", "-1", "3", "500", "-700", "1200", "-3000", "99999", "x", *ENDS)

SETS = ("a", "b", "numbers", "text")
LARGE_SETS = ("large", "turning")  # their members come in no order
MEMBERS = (*numbers(8), *numbers(20, "m"))

SORTED_SETS = (*SOME, "large", "none", "text")
SCORES = ("1", "2", "-3", "0", "-0", "0.5", "1e3", "inf", "-inf", "7000", "x", "123456789012")
SCORED = (*numbers(12, "m"), "m1xxx", "m2" + "x" * 70)
SMALL_SORTED_SETS = (*SOME, "none", "text")
RANGES: tuple[Shape, ...] = (
    ("ZRANGE", SMALL_SORTED_SETS, "0", "-1"),
    ("ZRANGE", SMALL_SORTED_SETS, "-3", "-1", "WITHSCORES"),
    ("ZRANGE", SMALL_SORTED_SETS, "1", "3", "REV"),
    ("ZRANGE", SMALL_SORTED_SETS, "(1", "+inf", "BYSCORE"),
    ("ZRANGE", SMALL_SORTED_SETS, "0", "9", "BYSCORE", "LIMIT", "1", "3"),
    ("ZRANGE", SMALL_SORTED_SETS, "9", "-9", "BYSCORE", "REV"),
    ("ZRANGE", SMALL_SORTED_SETS, "[a", "+", "BYLEX"),
    ("ZRANGE", SMALL_SORTED_SETS, "x", "1"),
    ("ZRANGE", SMALL_SORTED_SETS, "a", "b", "BYLEX"),
)

FAMILIES = {
    "bitmaps": Family(
        fill_bits,
        (
            ("SETBIT", BITS, OFFSETS, ("0", "1", "1", "2")),
            ("SETBIT", ("a",), OFFSETS, ("0", "1")),
            ("GETBIT", BITS, OFFSETS),
            ("BITCOUNT", BITS),
            ("BITCOUNT", BITS, "1", "-2"),
            ("DEL", BITS),
        ),
    ),
    "HyperLogLogs": Family(
        fill_bits,
        (
            ("PFADD", SKETCHES, COUNTED),
            ("PFADD", SKETCHES, COUNTED),
            ("PFADD", SKETCHES),
            ("PFADD", SKETCHES, COUNTED, COUNTED, COUNTED),
            ("PFCOUNT", SKETCHES),
            ("PFCOUNT", SKETCHES, "i"),
            ("DEL", SKETCHES),
        ),
    ),
    "geo": Family(
        fill_geo,
        (
            ("GEOADD", PLACES, EAST, NORTH, numbers(9, "m")),
            ("GEOADD", PLACES, ("NX", "CH"), EAST, NORTH, numbers(9, "m")),
            ("GEOADD", PLACES, EAST, NORTH, numbers(9, "m"), EAST, NORTH, numbers(9, "m")),
            ("GEOPOS", "a", "m1", "m2"),
        ),
    ),
    "hashes": Family(
        fill_hashes,
        (
            ("HGET", HASHES, FIELDS),
            ("HGETALL", (*SOME, "timed", "text")),
            ("HSET", HASHES, FIELDS, FIELD_VALUES),
            ("HSET", HASHES, FIELDS, FIELD_VALUES, "g", FIELD_VALUES),
            ("HINCRBY", HASHES, FIELDS, ("1", "-5", "x", "1" + "0" * 18)),
            ("DEL", HASHES),
            ("SET", HASHES, "v"),
        ),
    ),
    "lists": Family(
        fill_lists,
        (
            ("LPUSH", LISTS, STRINGS),
            ("RPUSH", LISTS, STRINGS),
            ("RPUSH", LISTS, STRINGS, STRINGS, STRINGS),
            ("LPOP", LISTS),
            ("RPOP", LISTS),
            ("LPOP", LISTS, "2"),
            ("LINDEX", LISTS, INDEXES),
            ("LRANGE", LISTS, INDEXES, INDEXES),
            ("DEL", LISTS),
        ),
    ),
    "sets": Family(
        fill_sets,
        (
            ("SADD", SETS, MEMBERS),
            ("SADD", SETS, MEMBERS, MEMBERS),
            ("SADD", LARGE_SETS, (*MEMBERS, "x" * 80)),
            ("SREM", (*SETS, *LARGE_SETS), MEMBERS),
            ("SISMEMBER", (*SETS, *LARGE_SETS), MEMBERS),
            ("SMEMBERS", SETS),
            ("DEL", SETS),
            ("SET", SETS, "v"),
        ),
    ),
    "sorted sets": Family(
        fill_sorted_sets,
        (
            ("ZADD", SORTED_SETS, SCORES, SCORED),
            ("ZADD", SORTED_SETS, SCORES, SCORED, "4", "y"),
            ("ZINCRBY", SORTED_SETS, SCORES, SCORED),
            ("ZSCORE", SORTED_SETS, SCORED),
            ("ZRANK", SORTED_SETS, SCORED),
            ("ZRANK", SORTED_SETS, SCORED, "WITHSCORE"),
            ("ZRANGE", SORTED_SETS, "2", "5"),
            *RANGES,
            ("DEL", SOME),
        ),
    ),
}


def drawn_calls(family: Family, chance: Random, count: int) -> list[tuple[bytes, ...]]:
    made: list[tuple[bytes, ...]] = []
    while len(made) < count:
        shape = chance.choice(family.shapes)
        rare = shape[0] in RARE
        keys = shape[1] if isinstance(shape[1], tuple) else (shape[1],)
        if chance.random() < 0.25:  # a run of one key
            keys = (chance.choice(keys),)
        for _ in range(1 if rare else chance.choice((1, 2, 5, 30))):
            words = [word if isinstance(word, str) else chance.choice(word) for word in shape]
            words[1] = chance.choice(keys)
            made.append(tuple(word.encode() for word in words))
    return made


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FAMILIES)
def test_a_pipeline_is_as_one_by_one(fresh_server: Factory, name: str, seed: int) -> None:
    family = FAMILIES[name]
    check_at_once(fresh_server, family.fill, drawn_calls(family, Random(seed), 700))
