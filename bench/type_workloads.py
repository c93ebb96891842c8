"""What `bench.types` measures: commands on values of each type, and values that take memory.

Elements are of 15 bytes and values of 10, where nothing else is said.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

SMALL_KEYS: Final = 1_000  # that commands on small values meet by turns

Words = tuple[str | bytes | int, ...]


class Workload(NamedTuple):
    """A command that is measured.

    Attributes:
        family: what it is about.
        name: what is said of it, in a few words.
        prepare: the calls that fill its keys, for so many elements.
        command: the call with this number, for so many elements.
        bar: what the ratio is meant to be at most.
    """

    family: str
    name: str
    prepare: Callable[[int], Iterator[Words]]
    command: Callable[[int, int, random.Random], Words]
    bar: float


# What fills the keys.


def _member(number: int) -> str:
    return f"member:{number:08d}"


def _filled(name: str, *with_each: Callable[[int], str | int]) -> Callable[[int], Iterator[Words]]:
    """Calls that fill the key "large", a hundred elements each."""

    def prepare(count: int) -> Iterator[Words]:
        for first in range(0, count, 100):
            numbers = range(first, min(count, first + 100))
            yield (name, "large", *[make(number) for number in numbers for make in with_each])

    return prepare


def _small(
    name: str, size: int, *with_each: Callable[[int], str | int]
) -> Callable[[int], Iterator[Words]]:
    """Calls that fill a thousand small keys with so many elements each."""

    def prepare(count: int) -> Iterator[Words]:
        for key in range(SMALL_KEYS):
            yield (name, f"small:{key}", *[m(number) for number in range(size) for m in with_each])

    return prepare


def _value(number: int) -> str:
    return f"value{number % 100_000:05d}"


def _score(number: int) -> int:
    return number * 7919 % 1_000_003


def _nothing(count: int) -> Iterator[Words]:
    yield ("DEL", "large")


_SET: Final = _filled("SADD", _member)
_HASH: Final = _filled("HSET", _member, _value)
_ZSET: Final = _filled("ZADD", _score, _member)
_LIST: Final = _filled("RPUSH", _value)
_SMALL_SET: Final = _small("SADD", 10, _member)
_SMALL_HASH: Final = _small("HSET", 5, lambda number: f"field{number}", _value)
_SMALL_ZSET: Final = _small("ZADD", 10, _score, _member)
_SMALL_LIST: Final = _small("RPUSH", 10, _value)


def _bits(count: int) -> Iterator[Words]:
    yield ("SET", "large", random.Random(1).randbytes(max(1, count // 8)))


def _geo(count: int) -> Iterator[Words]:
    drawn = random.Random(1)
    for number in range(min(count, 10_000)):
        place = (f"{drawn.uniform(13, 16):.6f}", f"{drawn.uniform(37, 39):.6f}")
        yield ("GEOADD", "large", *place, _member(number))


def _key(number: int) -> str:
    return f"small:{number % SMALL_KEYS}"


WORKLOADS: Final = (
    Workload("string", "GET", _small("SET", 1, _value), lambda i, n, r: ("GET", _key(i)), 1.0),
    Workload(
        "string", "SET", _small("SET", 1, _value), lambda i, n, r: ("SET", _key(i), _value(i)), 1.0
    ),
    Workload(
        "set",
        "SISMEMBER",
        _SET,
        lambda i, n, r: ("SISMEMBER", "large", _member(r.randrange(n))),
        0.7,
    ),
    Workload("set", "SADD new", _SET, lambda i, n, r: ("SADD", "large", f"new:{i:011d}"), 0.7),
    Workload("set", "SREM", _SET, lambda i, n, r: ("SREM", "large", _member(r.randrange(n))), 0.7),
    Workload("set", "SRANDMEMBER", _SET, lambda i, n, r: ("SRANDMEMBER", "large"), 1.0),
    Workload(
        "set",
        "SISMEMBER, small",
        _SMALL_SET,
        lambda i, n, r: ("SISMEMBER", _key(i), _member(i % 10)),
        1.0,
    ),
    Workload(
        "set", "SADD, small", _SMALL_SET, lambda i, n, r: ("SADD", _key(i), _member(i % 10)), 1.0
    ),
    Workload("set", "SMEMBERS of 10", _SMALL_SET, lambda i, n, r: ("SMEMBERS", _key(i)), 1.0),
    Workload(
        "hash", "HGET", _HASH, lambda i, n, r: ("HGET", "large", _member(r.randrange(n))), 0.8
    ),
    Workload(
        "hash",
        "HSET",
        _HASH,
        lambda i, n, r: ("HSET", "large", _member(r.randrange(n)), _value(i)),
        0.8,
    ),
    Workload(
        "hash",
        "HSET new",
        _HASH,
        lambda i, n, r: ("HSET", "large", f"new:{i:011d}", _value(i)),
        0.8,
    ),
    Workload(
        "hash", "HGET, small", _SMALL_HASH, lambda i, n, r: ("HGET", _key(i), f"field{i % 5}"), 1.0
    ),
    Workload(
        "hash",
        "HSET, small",
        _SMALL_HASH,
        lambda i, n, r: ("HSET", _key(i), f"field{i % 5}", _value(i)),
        1.0,
    ),
    Workload(
        "hash",
        "HINCRBY, small",
        _SMALL_HASH,
        lambda i, n, r: ("HINCRBY", _key(i), "number", 1),
        1.0,
    ),
    Workload("hash", "HGETALL of 5", _SMALL_HASH, lambda i, n, r: ("HGETALL", _key(i)), 0.5),
    Workload(
        "sorted-set",
        "ZSCORE",
        _ZSET,
        lambda i, n, r: ("ZSCORE", "large", _member(r.randrange(n))),
        0.65,
    ),
    Workload(
        "sorted-set",
        "ZADD",
        _ZSET,
        lambda i, n, r: ("ZADD", "large", r.randrange(n), _member(r.randrange(n))),
        0.65,
    ),
    Workload(
        "sorted-set",
        "ZADD new",
        _ZSET,
        lambda i, n, r: ("ZADD", "large", r.randrange(n), f"new:{i:011d}"),
        0.65,
    ),
    Workload(
        "sorted-set",
        "ZRANK",
        _ZSET,
        lambda i, n, r: ("ZRANK", "large", _member(r.randrange(n))),
        0.65,
    ),
    Workload(
        "sorted-set",
        "ZRANGE of 10",
        _ZSET,
        lambda i, n, r: ("ZRANGE", "large", k := r.randrange(n), k + 9),
        0.65,
    ),
    Workload(
        "sorted-set",
        "ZRANGE of 100",
        _ZSET,
        lambda i, n, r: ("ZRANGE", "large", k := r.randrange(n), k + 99),
        0.65,
    ),
    Workload(
        "sorted-set",
        "ZRANGE BYSCORE, 10",
        _ZSET,
        lambda i, n, r: ("ZRANGE", "large", r.randrange(n), "+inf", "BYSCORE", "LIMIT", 0, 10),
        0.65,
    ),
    Workload(
        "sorted-set",
        "ZADD, small",
        _SMALL_ZSET,
        lambda i, n, r: ("ZADD", _key(i), i % 997, _member(i % 10)),
        1.0,
    ),
    Workload(
        "sorted-set",
        "ZSCORE, small",
        _SMALL_ZSET,
        lambda i, n, r: ("ZSCORE", _key(i), _member(i % 10)),
        1.0,
    ),
    Workload(
        "sorted-set",
        "ZRANGE of 10, small",
        _SMALL_ZSET,
        lambda i, n, r: ("ZRANGE", _key(i), 0, -1),
        1.0,
    ),
    Workload("list", "RPUSH", _LIST, lambda i, n, r: ("RPUSH", "large", _value(i)), 0.8),
    Workload("list", "LPUSH", _LIST, lambda i, n, r: ("LPUSH", "large", _value(i)), 0.8),
    Workload("list", "LPOP", _LIST, lambda i, n, r: ("LPOP", "large"), 0.8),
    Workload("list", "RPOP", _LIST, lambda i, n, r: ("RPOP", "large"), 0.8),
    Workload("list", "LINDEX", _LIST, lambda i, n, r: ("LINDEX", "large", r.randrange(n)), 0.8),
    Workload(
        "list",
        "LRANGE of 100",
        _LIST,
        lambda i, n, r: ("LRANGE", "large", k := r.randrange(n), k + 99),
        0.3,
    ),
    Workload(
        "list", "LRANGE of 10, small", _SMALL_LIST, lambda i, n, r: ("LRANGE", _key(i), 0, -1), 1.0
    ),
    Workload(
        "list",
        "LPUSH or RPOP, small",
        _SMALL_LIST,
        lambda i, n, r: ("LPUSH", _key(i // 2), _value(i)) if i % 2 else ("RPOP", _key(i // 2)),
        1.0,
    ),
    Workload(
        "bitmap", "SETBIT", _bits, lambda i, n, r: ("SETBIT", "large", r.randrange(n), i % 2), 1.0
    ),
    Workload("bitmap", "GETBIT", _bits, lambda i, n, r: ("GETBIT", "large", r.randrange(n)), 1.0),
    Workload("bitmap", "BITCOUNT", _bits, lambda i, n, r: ("BITCOUNT", "large"), 1.0),
    Workload(
        "hyperloglog",
        "PFADD",
        _nothing,
        lambda i, n, r: ("PFADD", "large", _member(r.randrange(n))),
        1.0,
    ),
    Workload(
        "hyperloglog",
        "PFCOUNT",
        _filled("PFADD", _member),
        lambda i, n, r: ("PFCOUNT", "large"),
        1.0,
    ),
    Workload(
        "geo",
        "GEOADD",
        _geo,
        lambda i, n, r: (
            "GEOADD",
            "large",
            f"{r.uniform(13, 16):.6f}",
            f"{r.uniform(37, 39):.6f}",
            _member(i % 10_000),
        ),
        1.0,
    ),
    Workload(
        "geo",
        "GEOSEARCH",
        _geo,
        lambda i, n, r: (
            "GEOSEARCH",
            "large",
            "FROMLONLAT",
            f"{r.uniform(13, 16):.6f}",
            f"{r.uniform(37, 39):.6f}",
            "BYRADIUS",
            5,
            "km",
        ),
        1.0,
    ),
)


class Kind(NamedTuple):
    """A value whose memory is measured.

    Attributes:
        words: the call that adds the elements from the first to the last to a key.
        each: how many elements a small value has; 0: one large value.
        bar: what the ratio is meant to be at most.
    """

    family: str
    name: str
    words: Callable[[str, range], Words]
    each: int
    bar: float


def _text(number: int, size: int) -> str:
    return f"{number * 2654435761 % 2**32:08x}{number:0{size - 8}d}"[:size]


def _pairs(*makes: Callable[[int], str | int]) -> Callable[[range], list[str | int]]:
    return lambda numbers: [make(number) for number in numbers for make in makes]


def _adds(name: str, *makes: Callable[[int], str | int]) -> Callable[[str, range], Words]:
    each = _pairs(*makes)
    return lambda key, numbers: (name, key, *each(numbers))


def _of(size: int) -> Callable[[int], str]:
    return lambda number: _text(number, size)


KINDS: Final = (
    Kind("set", "15 B", _adds("SADD", _of(15)), 0, 0.75),
    Kind("set", "64 B", _adds("SADD", _of(64)), 0, 0.75),
    Kind("set", "integers", _adds("SADD", lambda number: number * 7919), 0, 0.75),
    Kind("hash", "field 15 B, value 10 B", _adds("HSET", _of(15), _of(10)), 0, 0.8),
    Kind("hash", "field 15 B, value 64 B", _adds("HSET", _of(15), _of(64)), 0, 0.8),
    Kind("sorted-set", "15 B", _adds("ZADD", _score, _of(15)), 0, 0.55),
    Kind("list", "10 B", _adds("RPUSH", _of(10)), 0, 1.7),
    Kind("list", "100 B", _adds("RPUSH", _of(100)), 0, 1.1),
    Kind("string", "10 B, a key", lambda key, numbers: ("SET", key, _text(numbers[0], 10)), 1, 2.2),
    Kind(
        "hash",
        "5 of 6 and 10 B, a key",
        _adds("HSET", lambda number: f"field{number % 5}", _of(10)),
        5,
        2.2,
    ),
    Kind(
        "hash",
        "20 of 6 and 10 B, a key",
        _adds("HSET", lambda number: f"fld{number % 20:03d}", _of(10)),
        20,
        2.2,
    ),
    Kind("set", "10 of 15 B, a key", _adds("SADD", _of(15)), 10, 2.2),
    Kind("set", "10 integers, a key", _adds("SADD", lambda number: number), 10, 2.2),
    Kind("sorted-set", "10 of 15 B, a key", _adds("ZADD", _score, _of(15)), 10, 2.2),
    Kind("list", "10 of 10 B, a key", _adds("RPUSH", _of(10)), 10, 2.2),
)
