"""Strings against the real Redis: the same bytes for every request, right or wrong."""

from __future__ import annotations

import random

import pytest

from support.client import Argument, parse
from support.process import Pair

pytestmark = pytest.mark.judge

FAR_S = 4102444800  # the year 2100: a deadline that both servers show alike
FAR_MS = FAR_S * 1000
MAX = (1 << 63) - 1

Request = tuple[Argument, ...]

SET_OPTIONS: list[Request] = [
    ("SET", "k", "v"),
    ("SET", "k", "v", "NX"),
    ("SET", "k", "w", "nx"),
    ("SET", "k", "w", "XX"),
    ("SET", "none", "w", "XX"),
    ("SET", "k", "w", "NX", "XX"),
    ("SET", "k", "w", "XX", "NX"),
    ("SET", "k", "x", "NX", "NX"),
    ("SET", "k", "x", "GET"),
    ("SET", "new", "x", "GET"),
    ("SET", "k", "y", "NX", "GET"),
    ("SET", "k", "y", "GET", "XX", "get"),
    ("SET", "none", "y", "XX", "GET"),
    ("SET", "k", "v", "EXAT", FAR_S),
    ("PEXPIRETIME", "k"),
    ("SET", "k", "w", "KEEPTTL"),
    ("PEXPIRETIME", "k"),
    ("SET", "k", "w", "KEEPTTL", "KEEPTTL", "GET"),
    ("SET", "k", "w", "PXAT", FAR_MS + 7, "XX", "GET"),
    ("PEXPIRETIME", "k"),
    ("EXPIRETIME", "k"),
    ("SET", "k", "w", "PXAT", 5, "PXAT", FAR_MS),
    ("PEXPIRETIME", "k"),
    ("SET", "k", "w"),
    ("PEXPIRETIME", "k"),
    ("SET", "k", "w", "EX"),
    ("SET", "k", "w", "EX", "ten"),
    ("SET", "k", "w", "EX", ""),
    ("SET", "k", "w", "EX", "1.5"),
    ("SET", "k", "w", "EX", 0),
    ("SET", "k", "w", "PX", -1),
    ("SET", "k", "w", "EXAT", 0),
    ("SET", "k", "w", "PXAT", -5),
    ("SET", "k", "w", "EX", MAX),
    ("SET", "k", "w", "EX", MAX // 1000),
    ("SET", "k", "w", "EX", MAX // 1000 + 1),
    ("SET", "k", "w", "PX", MAX),
    ("SET", "k", "w", "EXAT", MAX // 1000 + 1),
    ("SET", "k", "w", "EX", MAX + 1),
    ("SET", "k", "w", "EX", 10, "PX", 10),
    ("SET", "k", "w", "PX", 10, "EXAT", 10),
    ("SET", "k", "w", "EX", 10, "KEEPTTL"),
    ("SET", "k", "w", "KEEPTTL", "EX", 10),
    ("SET", "k", "w", "PERSIST"),
    ("SET", "k", "w", "FOO"),
    ("SET", "k", "w", ""),
    ("SET", "k", "w", "NX", "EX", "x", "FOO"),
    ("SET", "k", "w", "PXAT", 1),
    ("GET", "k"),
    ("SET", "", ""),
    ("GET", ""),
    ("SET", b"\x00\xff", b"\r\n\x00"),
    ("GET", b"\x00\xff"),
    ("SETNX", "k", "1"),
    ("SETNX", "k", "2"),
    ("SETEX", "k", 10, "v"),
    ("SETEX", "k", 0, "v"),
    ("SETEX", "k", -1, "v"),
    ("SETEX", "k", "x", "v"),
    ("SETEX", "k", MAX, "v"),
    ("PSETEX", "k", 10000, "v"),
    ("PSETEX", "k", 0, "v"),
    ("PSETEX", "k", MAX, "v"),
    ("PSETEX", "k", "1 ", "v"),
    ("GETSET", "k", "a"),
    ("TTL", "k"),
    ("GETSET", "other", "a"),
    ("GETDEL", "k"),
    ("GETDEL", "k"),
    ("EXISTS", "k"),
]

GETEX: list[Request] = [
    ("GETEX", "none"),
    ("GETEX", "none", "EX", "x"),
    ("GETEX", "none", "EX", 0),
    ("SET", "k", "v"),
    ("GETEX", "k"),
    ("GETEX", "k", "EXAT", FAR_S),
    ("PEXPIRETIME", "k"),
    ("GETEX", "k"),
    ("PEXPIRETIME", "k"),
    ("GETEX", "k", "PXAT", FAR_MS + 1),
    ("PEXPIRETIME", "k"),
    ("GETEX", "k", "PERSIST"),
    ("PEXPIRETIME", "k"),
    ("GETEX", "k", "PERSIST"),
    ("GETEX", "k", "PERSIST", "EX", 10),
    ("GETEX", "k", "EX", 10, "PERSIST"),
    ("GETEX", "k", "EX", 10, "PX", 10),
    ("GETEX", "k", "KEEPTTL"),
    ("GETEX", "k", "NX"),
    ("GETEX", "k", "GET"),
    ("GETEX", "k", "EX"),
    ("GETEX", "k", "EX", 0),
    ("GETEX", "k", "EX", "x"),
    ("GETEX", "k", "PX", -1),
    ("GETEX", "k", "PX", MAX),
    ("GETEX", "k", "EX", MAX),
    ("GETEX", "k", "EXAT", 5, "EXAT", FAR_S),
    ("PEXPIRETIME", "k"),
    ("GETEX", "k", "PXAT", 1),
    ("EXISTS", "k"),
]

NUMBERS: list[Request] = [
    ("INCR", "n"),
    ("INCR", "n"),
    ("DECR", "n"),
    ("INCRBY", "n", 10),
    ("DECRBY", "n", -10),
    ("GET", "n"),
    ("INCRBY", "n", "x"),
    ("INCRBY", "n", "1.0"),
    ("INCRBY", "n", "+1"),
    ("INCRBY", "n", " 1"),
    ("INCRBY", "n", "01"),
    ("INCRBY", "n", MAX),
    ("INCRBY", "n", MAX + 1),
    ("DECRBY", "n", -MAX - 1),
    ("DECRBY", "n", -MAX - 2),
    ("INCRBY", "n", -MAX - 1),
    ("SET", "n", MAX),
    ("INCR", "n"),
    ("DECR", "n"),
    ("SET", "n", -MAX - 1),
    ("DECR", "n"),
    ("INCRBY", "n", -1),
    ("INCRBY", "n", MAX),
    ("SET", "n", MAX + 1),
    ("INCR", "n"),
    ("SET", "n", " 1"),
    ("INCR", "n"),
    ("SET", "n", "1 "),
    ("INCR", "n"),
    ("SET", "n", "-0"),
    ("INCR", "n"),
    ("SET", "n", ""),
    ("INCR", "n"),
    ("SET", "n", "0"),
    ("DECRBY", "n", 7),
    ("SET", "n", "5", "EXAT", FAR_S),
    ("INCR", "n"),
    ("INCRBYFLOAT", "n", "0.5"),
    ("PEXPIRETIME", "n"),
    ("INCR", "n"),
    ("APPEND", "n", "0"),
    ("INCRBYFLOAT", "n", "1e2"),
    ("INCRBYFLOAT", "n", "x"),
    ("INCRBYFLOAT", "n", ""),
    ("INCRBYFLOAT", "n", " 1"),
    ("INCRBYFLOAT", "n", "nan"),
    ("INCRBYFLOAT", "n", "inf"),
    ("INCRBYFLOAT", "n", "-inf"),
    ("INCRBYFLOAT", "n", "1e5000"),
    ("INCRBYFLOAT", "n", "1e-5000"),
    ("INCRBYFLOAT", "f", "0"),
    ("INCRBYFLOAT", "f", "-0"),
    ("INCRBYFLOAT", "f", "3.0e3"),
    ("SET", "f", "foo"),
    ("INCRBYFLOAT", "f", "1"),
    ("APPEND", "m", "12"),
    ("APPEND", "m", "3"),
    ("INCR", "m"),
    ("GET", "m"),
]

PARTS: list[Request] = [
    ("SET", "s", "Hello World"),
    ("SET", "i", "-12345"),
    ("STRLEN", "s"),
    ("STRLEN", "i"),
    ("STRLEN", "none"),
    ("GETRANGE", "none", 0, -1),
    ("GETRANGE", "s", "a", 1),
    ("GETRANGE", "s", 0, "b"),
    ("GETRANGE", "none", "a", "b"),
    ("GETRANGE", "s", 0, MAX),
    ("GETRANGE", "s", -MAX - 1, MAX),
    ("GETRANGE", "s", -MAX - 1, -MAX - 1),
    ("GETRANGE", "s", 0, MAX + 1),
    *[
        (name, key, start, end)
        for name, key in (("GETRANGE", "s"), ("SUBSTR", "i"), ("GETRANGE", "empty"))
        for start in (-100, -12, -11, -3, -1, 0, 1, 5, 10, 11, 100)
        for end in (-101, -100, -12, -11, -3, -1, 0, 1, 5, 10, 11, 100)
    ],
    ("SETRANGE", "s", 6, "Redis"),
    ("GET", "s"),
    ("SETRANGE", "s", 0, ""),
    ("SETRANGE", "none", 0, ""),
    ("SETRANGE", "none", 5, ""),
    ("EXISTS", "none"),
    ("SETRANGE", "none", 3, "x"),
    ("GET", "none"),
    ("SETRANGE", "none", 1, "abcdef"),
    ("GET", "none"),
    ("SETRANGE", "i", 1, "9"),
    ("GET", "i"),
    ("SETRANGE", "s", -1, "x"),
    ("SETRANGE", "s", "x", "x"),
    ("SETRANGE", "s", 536870908, "world"),
    ("SETRANGE", "none2", 536870908, "world"),
    ("SETRANGE", "none2", MAX, "world"),
    ("SETRANGE", "s", MAX, "world"),
    ("SETRANGE", "s", MAX, ""),
    ("EXISTS", "none2"),
    ("APPEND", "a", ""),
    ("EXISTS", "a"),
    ("APPEND", "a", "x" * 50),
    ("APPEND", "a", b"\x00\r\n"),
    ("GETRANGE", "a", 48, -1),
    ("STRLEN", "a"),
]

MANY: list[Request] = [
    ("MSET", "a", 1, "b", "two"),
    ("MGET", "a", "b", "c", "a"),
    ("MSET", "a"),
    ("MSET", "a", 1, "b"),
    ("MSETNX", "c", 1, "a", 2),
    ("EXISTS", "c"),
    ("MSETNX", "c", 1, "d", 2, "c", 3),
    ("MGET", "c", "d"),
    ("MSETNX", "x"),
    ("MSETNX", "x", 1, "y"),
    ("SET", "a", "v", "EXAT", FAR_S),
    ("MSET", "a", 1),
    ("TTL", "a"),
    ("MSET", "a", 1, "a", 2),
    ("GET", "a"),
]

NAMES = (
    "GET SET SETNX SETEX PSETEX GETSET GETDEL GETEX GETRANGE SUBSTR SETRANGE STRLEN APPEND "
    "INCR DECR INCRBY DECRBY INCRBYFLOAT MGET MSET MSETNX"
)
WRONG_ARITY: list[Request] = [
    (name, *("x",) * count)
    for name in NAMES.split()
    for count in (0, 1, 2, 3, 4)
    if (name, count) not in {("SETNX", 2), ("GETSET", 2), ("APPEND", 2)}
]

NUMBER_EDGES = (
    "inf 1e4932 -1.18973149535723176502e4932 1.2e4932 3.6e-4951 1.8e-4951 0x1p3 0x.8p-4 "
    "0x1p16383 0x1p16384 0x 1e 1e+ 1e99999999999999999999 0e999999999999 -0.0 .5 5. . "
    "18446744073709551617.5 0x1.fffffffffffffffffp0 1e4931 --1 1_0"
)

ENCODINGS: list[Request] = [
    ("SET", "e", "1"),
    ("SET", "e", "-1"),
    ("SET", "e", "01"),
    ("SET", "e", MAX),
    ("SET", "e", MAX + 1),
    ("SET", "e", -MAX - 1),
    ("SET", "e", "x" * 40),
    ("SET", "e", "x" * 45),
    ("SET", "e", ""),
    ("APPEND", "e", "1"),
    ("SET", "e", "1"),
    ("APPEND", "e", "1"),
    ("INCR", "e"),
    ("INCRBYFLOAT", "e", "1"),
    ("INCR", "e"),
    ("SETRANGE", "e", 0, ""),
    ("SETRANGE", "e", 0, "7"),
    ("DEL", "e"),
    ("APPEND", "e", "12"),
    ("GETSET", "e", "12"),
    ("MSET", "e", "12"),
    ("SETEX", "e", 100, "12"),
    ("GETEX", "e", "PERSIST"),
    ("DEL", "e"),
    ("SETRANGE", "e", 0, "12"),
]


@pytest.mark.parametrize(
    "requests",
    [
        SET_OPTIONS,
        pytest.param(GETEX, marks=pytest.mark.since(8, 0)),  # Valkey checks times first
        NUMBERS,
        PARTS,
        MANY,
        WRONG_ARITY,
    ],
    ids=["set", "getex", "numbers", "parts", "many", "arity"],
)
def test_same_replies(pair: Pair, requests: list[Request]) -> None:
    for request in requests:
        pair.both(*request)


def test_resp3_nulls(pair3: Pair) -> None:
    for request in [*MANY, ("GET", "none"), ("GETDEL", "none"), ("SET", "none", 1, "XX")]:
        pair3.both(*request)


@pytest.mark.since(8, 0)  # Valkey embeds what APPEND made
def test_encodings(pair: Pair) -> None:
    for request in ENCODINGS:
        pair.both(*request)
        pair.both("OBJECT", "ENCODING", "e")


@pytest.mark.since(8, 10)
def test_key_and_value_are_in_one_object(pair: Pair) -> None:
    for key in ("k", "k" * 20, "k" * 40, "k" * 41, "k" * 42, "k" * 300):
        for size in (0, 1, 20, 21, 22, 40, 41, 44, 45):
            pair.both("SET", key, "x" * size)
            pair.both("OBJECT", "ENCODING", key)
        pair.both("SET", key, 7)
        pair.both("OBJECT", "ENCODING", key)


@pytest.mark.parametrize(
    "request_",
    [
        ("GET", "x"),
        ("SET", "x", 1, "GET"),
        ("SET", "x", 1, "NX", "GET"),
        ("GETSET", "x", 1),
        ("GETDEL", "x"),
        pytest.param(("GETEX", "x", "EX", 0), marks=pytest.mark.since(8, 0)),
        ("GETRANGE", "x", 0, 1),
        ("SUBSTR", "x", 0, 1),
        ("STRLEN", "x"),
        ("APPEND", "x", "v"),
        ("SETRANGE", "x", 0, "v"),
        ("SETRANGE", "x", 0, ""),
        ("SETRANGE", "x", -1, ""),
        ("INCR", "x"),
        ("DECRBY", "x", 1),
        ("INCRBYFLOAT", "x", "foo"),
        ("MGET", "x", "y"),
        ("SETNX", "x", 1),
        ("MSETNX", "x", 1),
        ("SET", "x", 1, "NX"),
        ("TYPE", "x"),
        ("SET", "x", 1, "XX"),
    ],
)
def test_another_type(pair: Pair, request_: Request) -> None:
    pair.both("XADD", "x", "1-1", "field", "value")
    pair.both(*request_)
    pair.both("TYPE", "x")


def test_floats_add_up_alike(pair: Pair) -> None:
    chance = random.Random(1)
    special = NUMBER_EDGES.split()
    special += ["9" * 4990, "0." + "0" * 4600 + "1", "1" * 5119, "1" * 5120]

    def number() -> str:
        kind = chance.random()
        if kind < 0.2:
            return chance.choice(special)
        if kind < 0.6:
            return f"{chance.uniform(-1000, 1000):.{chance.randrange(20)}f}"
        power = chance.choice((3, 40, 4990))
        return f"{chance.randrange(-(2**70), 2**70)}e{chance.randrange(-power, power)}"

    for _ in range(600):
        pair.both("SET", "f", number())
        pair.both("INCRBYFLOAT", "f", number())
        pair.both("GET", "f")


def test_relative_deadlines(pair: Pair) -> None:
    for request, least, most in (
        (("SET", "k", "v", "EX", 100), 90_000, 100_000),
        (("SET", "k", "v", "PX", 50_000), 40_000, 50_000),
        (("SETEX", "k", 100, "v"), 90_000, 100_000),
        (("PSETEX", "k", 50_000, "v"), 40_000, 50_000),
        (("GETEX", "k", "EX", 70), 60_000, 70_000),
        (("GETEX", "k", "PX", 30_000), 20_000, 30_000),
    ):
        pair.both(*request)
        for client in (pair.ours, pair.real):
            left_ms = parse(client.call("PTTL", "k"))
            assert isinstance(left_ms, int)
            assert least < left_ms <= most
