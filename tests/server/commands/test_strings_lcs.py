"""LCS, here and in Redis 8.10."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from support.client import Argument, RawClient, WireError
from support.process import Pair, Process

STRINGS = WireError(b"ERR The specified keys must contain string values")
SYNTAX = WireError(b"ERR syntax error")


@pytest.fixture
def client(tested: Process) -> Iterator[RawClient]:
    with tested.client() as connection:
        connection.call("MSET", "a", "ohmytext", "b", "mynewtext", "n", 12345)
        connection.call("XADD", "x", "1-1", "f", "v")
        yield connection


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("a", "b"), b"mytext"),
        (("a", "b", "LEN"), 6),
        (
            ("a", "b", "IDX"),
            [b"matches", [[[4, 7], [5, 8]], [[2, 3], [0, 1]]], b"len", 6],
        ),
        (
            ("a", "b", "idx", "MINMATCHLEN", 4, "withmatchlen"),
            [b"matches", [[[4, 7], [5, 8], 4]], b"len", 6],
        ),
        (("a", "b", "IDX", "MINMATCHLEN", -3, "MINMATCHLEN", 9), [b"matches", [], b"len", 6]),
        (("a", "none"), b""),
        (("none", "none", "IDX"), [b"matches", [], b"len", 0]),
        (("n", "n", "LEN"), 5),
        (("x", "a", "FOO"), STRINGS),
        (("none", "x"), STRINGS),
        (("a", "b", "FOO"), SYNTAX),
        (("a", "b", "MINMATCHLEN"), SYNTAX),
        (
            ("a", "b", "MINMATCHLEN", "x"),
            WireError(b"ERR value is not an integer or out of range"),
        ),
        (
            ("a", "b", "LEN", "IDX"),
            WireError(b"ERR If you want both the length and indexes, please just use IDX."),
        ),
    ],
)
def test_replies(client: RawClient, words: tuple[Argument, ...], reply: object) -> None:
    assert client.call_parsed("LCS", *words) == reply


def test_too_large(client: RawClient) -> None:
    client.call("SETRANGE", "long", 11_600, "x")
    refused = client.call_parsed("LCS", "long", "long", "LEN")
    assert refused == WireError(
        b"ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
    )
    client.call("SET", "short", b"\x00" * 11_000)
    assert client.call_parsed("LCS", "short", "long", "LEN") == 11_000


@pytest.mark.judge
def test_same_as_redis(pair: Pair, pair3: Pair) -> None:
    chance = Random(1)
    for number in range(60):
        letters = [b"ab", b"acgt", b"abcdefghijklmnop", bytes(range(256))][number % 4]
        for key in ("a", "b"):
            size = chance.choice([1, 5, 60, 300, 1500])
            pair.both("SET", key, bytes(chance.choices(letters, k=size)))
        pair.both("LCS", "a", "b")
        pair.both("LCS", "b", "a", "LEN")
        pair3.both("LCS", "a", "b", "IDX")
        pair.both("LCS", "a", "b", "IDX", "WITHMATCHLEN", "MINMATCHLEN", chance.randrange(5))
