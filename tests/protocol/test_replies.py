"""Reply values to bytes: each type in both versions of the protocol, doubles as Redis has them."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.client import LongRequest, request
from headrace.protocol.doubles import double
from headrace.protocol.replies import (
    NO_REPLY,
    NULL_ARRAY,
    OK,
    PONG,
    QUEUED,
    Attributed,
    BigNumber,
    Decimal,
    ErrorReply,
    Map,
    Packed,
    PackedReplies,
    Push,
    Replies,
    Set,
    Status,
    Verbatim,
    encode,
)
from support.client import parse
from support.process import Pair, RedisProcess

BOTH = [
    (b"", b"$0\r\n\r\n"),
    (b"a\r\nb", b"$4\r\na\r\nb\r\n"),
    (b"x" * 1023, b"$1023\r\n" + b"x" * 1023 + b"\r\n"),
    (b"x" * 1024, b"$1024\r\n" + b"x" * 1024 + b"\r\n"),
    (b"x" * 100_000, b"$100000\r\n" + b"x" * 100_000 + b"\r\n"),
    (0, b":0\r\n"),
    (1023, b":1023\r\n"),
    (1024, b":1024\r\n"),
    (-1, b":-1\r\n"),
    (2**63 - 1, b":9223372036854775807\r\n"),
    (-(2**63), b":-9223372036854775808\r\n"),
    ([], b"*0\r\n"),
    ([1, b"a", [OK, []]], b"*3\r\n:1\r\n$1\r\na\r\n*2\r\n+OK\r\n*0\r\n"),
    ((1, 2), b"*2\r\n:1\r\n:2\r\n"),
    ([0] * 300, b"*300\r\n" + b":0\r\n" * 300),
    (OK, b"+OK\r\n"),
    (PONG, b"+PONG\r\n"),
    (QUEUED, b"+QUEUED\r\n"),
    (Status(b"RESET"), b"+RESET\r\n"),
    (ErrorReply(b"ERR no"), b"-ERR no\r\n"),
    (ErrorReply(b"ERR two\r\nlines\n"), b"-ERR two  lines\r\n"),
    (Packed(b"*1\r\n:1\r\n"), b"*1\r\n:1\r\n"),
    (PackedReplies(b":1\r\n:2\r\n"), b":1\r\n:2\r\n"),
    ([Packed(b"*1\r\n:1\r\n"), 2], b"*2\r\n*1\r\n:1\r\n:2\r\n"),
    (NO_REPLY, b""),
    (Replies([1, b"a"]), b":1\r\n$1\r\na\r\n"),
    ([Replies([1, 2]), 3], b"*2\r\n:1\r\n:2\r\n:3\r\n"),
]

DIFFERENT = [
    (None, b"$-1\r\n", b"_\r\n"),
    (NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
    (True, b":1\r\n", b"#t\r\n"),
    (False, b":0\r\n", b"#f\r\n"),
    (1.5, b"$3\r\n1.5\r\n", b",1.5\r\n"),
    (math.inf, b"$3\r\ninf\r\n", b",inf\r\n"),
    (-math.inf, b"$4\r\n-inf\r\n", b",-inf\r\n"),
    (math.nan, b"$3\r\nnan\r\n", b",nan\r\n"),
    (Map([(b"k", 1)]), b"*2\r\n$1\r\nk\r\n:1\r\n", b"%1\r\n$1\r\nk\r\n:1\r\n"),
    (Map([]), b"*0\r\n", b"%0\r\n"),
    (Set([1, 2]), b"*2\r\n:1\r\n:2\r\n", b"~2\r\n:1\r\n:2\r\n"),
    (Push([b"a", None]), b"*2\r\n$1\r\na\r\n$-1\r\n", b">2\r\n$1\r\na\r\n_\r\n"),
    (Decimal(b"0.1"), b"$3\r\n0.1\r\n", b",0.1\r\n"),
    (BigNumber(2**70), b"$22\r\n1180591620717411303424\r\n", b"(1180591620717411303424\r\n"),
    (Verbatim(b"hi"), b"$2\r\nhi\r\n", b"=6\r\ntxt:hi\r\n"),
    (Verbatim(b"# hi", b"mkd"), b"$4\r\n# hi\r\n", b"=8\r\nmkd:# hi\r\n"),
    ([None, [NULL_ARRAY]], b"*2\r\n$-1\r\n*1\r\n*-1\r\n", b"*2\r\n_\r\n*1\r\n_\r\n"),
    (
        Attributed([(b"k", [1, None])], b"a"),
        b"$1\r\na\r\n",
        b"|1\r\n$1\r\nk\r\n*2\r\n:1\r\n_\r\n$1\r\na\r\n",
    ),
    (Map([(1, Map([]))]), b"*2\r\n:1\r\n*0\r\n", b"%1\r\n:1\r\n%0\r\n"),
]


@pytest.mark.parametrize(("value", "wire"), BOTH)
def test_same_in_both(value: object, wire: bytes) -> None:
    assert encode(value, False) == wire
    assert encode(value, True) == wire


@pytest.mark.parametrize(("value", "wire2", "wire3"), DIFFERENT)
def test_different(value: object, wire2: bytes, wire3: bytes) -> None:
    assert encode(value, False) == wire2
    assert encode(value, True) == wire3


def test_what_is_no_reply_is_a_bug_of_ours() -> None:
    with pytest.raises(TypeError):
        encode({1: 2})
    with pytest.raises(TypeError):
        encode("text")


def test_requests() -> None:
    assert request([b"SET", b"k", b""]) == b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"


@given(st.lists(st.lists(st.binary(max_size=12), max_size=4), max_size=6))
def test_a_long_request_is_one_request(runs: list[list[bytes]]) -> None:
    long = LongRequest()
    for words in runs:
        long.add(words)
    every = [word for words in runs for word in words]
    assert b"".join(long.pieces(b"DEL")) == request([b"DEL", *every])


def test_a_very_long_request_comes_in_pieces() -> None:
    long = LongRequest()
    words = [b"%020d" % number for number in range(1000)]
    for _ in range(100):
        long.add(words)
    pieces = long.pieces(b"DEL")
    assert len(pieces) > 5
    assert b"".join(pieces) == request([b"DEL", *(words * 100)])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, b"0"),
        (-0.0, b"-0"),
        (3.0, b"3"),
        (-17.0, b"-17"),
        (0.1, b"0.1"),
        (1 / 3, b"0.3333333333333333"),
        (3.141, b"3.141"),
        (1e7, b"10000000"),
        (1e8, b"100000000"),
        (2.0**62, b"4611686018427387904"),
        (-(2.0**62) - 1024, b"-4611686018427389000"),
        (4.7e18, b"4.7e+18"),
        (123e7, b"1230000000"),
        (0.001, b"0.001"),
        (0.000001, b"0.000001"),
        (1.25e-9, b"1.25e-9"),
        (1e-7, b"1e-7"),
        (1e21, b"1e+21"),
        (1e23, b"99999999999999990000000"),
        (0.0165863, b"0.016586299999999998"),
        (2.2250738585072014e-308, b"2.2250738585072014e-308"),
        (1.5e300, b"1.5e+300"),
        (5e-324, b"5e-324"),
        (123456789.123, b"123456789.123"),
    ],
)
def test_doubles(value: float, text: bytes) -> None:
    assert double(value) == text


@given(st.floats(allow_nan=False))
def test_a_double_comes_back(value: float) -> None:
    assert float(double(value)) == value


def any_double(chance: random.Random) -> float:
    """One of any size, with many digits or few."""
    kind = chance.randrange(4)
    if kind == 0:
        value: float = struct.unpack("<d", chance.randbytes(8))[0]
        return value if math.isfinite(value) else 1e23
    if kind == 1:
        return round(chance.uniform(-1000, 1000), chance.randrange(8))
    if kind == 2:
        bits = chance.getrandbits(chance.randrange(1, 60))  # the least ones, which have few bits
        return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    return chance.random() * 10.0 ** chance.randint(-20, 30)


@pytest.mark.judge
@pytest.mark.since(8, 0)  # older ones write 17 digits, or read no hexadecimal ones
def test_doubles_as_the_real_redis(fresh_redis: Callable[..., RedisProcess]) -> None:
    """Scores of a sorted set are what Redis answers as doubles."""
    with fresh_redis("--zset-max-listpack-entries", "0").client(resp3=True) as client:
        chance = random.Random(1)
        values = [0.1, 1 / 3, 2.0**70, 5e-324, 4.0, 12345678901234567.0, 0.3, 123456.789, -0.0]
        values += [digits * 10.0**power for power in range(-25, 25) for digits in (1, -1.5, 123)]
        values += [any_double(chance) for _ in range(5000)]
        for start in range(0, len(values), 500):
            some = values[start : start + 500]
            client.call("DEL", "z")
            words = [word for at, value in enumerate(some) for word in (value.hex(), f"{at}")]
            client.call("ZADD", "z", *words)
            scores = client.call("ZMSCORE", "z", *range(len(some)))
            assert scores == encode(list(some), True)


@pytest.mark.judge
def test_debug_protocol(pair: Pair, pair3: Pair) -> None:
    for kind in (
        "string", "integer", "double", "null", "array", "set", "map", "bignum", "true", "false",
        "verbatim",
    ):  # fmt: skip
        pair.both("DEBUG", "PROTOCOL", kind)
        pair3.both("DEBUG", "PROTOCOL", kind)


def test_what_a_client_reads() -> None:
    value = Map([(b"a", [1, None, True]), (b"b", Set([b"x"]))])
    assert parse(encode(value, True)) == {b"a": [1, None, True], b"b": [b"x"]}
    assert parse(encode(value, False)) == [b"a", [1, None, 1], b"b", [b"x"]]
