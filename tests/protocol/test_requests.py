"""Bytes to requests: every request whole, one byte at a time, cut anywhere, and broken."""

from __future__ import annotations

import gc
import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.protocol.requests import SLICE_BYTES, ProtocolError, RequestParser
from support.alike import changed
from support.campaigns import drawn
from support.client import encode

BIG = b"x" * 70_000

GOOD: list[tuple[bytes, list[list[bytes]]]] = [
    (b"*1\r\n$4\r\nPING\r\n", [[b"PING"]]),
    (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", [[b"ECHO", b""]]),
    (b"*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n", [[b"ECHO", b"\r\n"]]),
    (b"*2\r\n$4\r\nECHO\r\n$12\r\n*1\r\n$4\r\nPING\r\n", [[b"ECHO", b"*1\r\n$4\r\nPING"]]),
    (b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nTIME\r\n", [[b"PING"], [b"TIME"]]),
    (b"*0\r\n*1\r\n$4\r\nPING\r\n", [[b"PING"]]),
    (b"*-1\r\n*-7\r\n*1\r\n$4\r\nPING\r\n", [[b"PING"]]),
    (b"*1\r\n$4\r\nPINGxy*1\r\n$4\r\nTIME\r\n", [[b"PING"], [b"TIME"]]),  # any two bytes end it
    (b"*1\rx$4\rxPING\r\n", [[b"PING"]]),  # any byte may follow the CR of a header
    (b"*1\r\n$10\r\n0123456789\r\n", [[b"0123456789"]]),
    (encode(*range(300)), [[b"%d" % number for number in range(300)]]),
    (encode("SET", "k", BIG) + encode("PING"), [[b"SET", b"k", BIG], [b"PING"]]),
    (b"PING\r\n", [[b"PING"]]),
    (b"PING\n", [[b"PING"]]),
    (b"\r\n\n  \r\nPING\r\n", [[b"PING"]]),
    (b"  SET  k\tv  \r\n", [[b"SET", b"k", b"v"]]),
    (b'SET k "a b"\r\n', [[b"SET", b"k", b"a b"]]),
    (b'SET k "\\x41\\n\\r\\t\\b\\a\\"\\\\\\q\\xZZ"\r\n', [[b"SET", b"k", b'A\n\r\t\b\a"\\qxZZ']]),
    (b"SET k 'a \\'b\\n'\r\n", [[b"SET", b"k", b"a 'b\\n"]]),
    (b"SET k ''\r\n", [[b"SET", b"k", b""]]),
    (b'ab"c d"\r\n', [[b"abc d"]]),
    (b"PING\r\n*1\r\n$4\r\nTIME\r\nECHO x\r\n", [[b"PING"], [b"TIME"], [b"ECHO", b"x"]]),
    (b"*1\r\n$4\r\nPING\r\nTIME\r\n*1\r\n$4\r\nPING\r\n", [[b"PING"], [b"TIME"], [b"PING"]]),
    (b">1\r\n", [[b">1"]]),  # not an aggregate: only `*` opens a request
    (b"*1\r\n$4\r\nPING\r\n>1\r\n", [[b"PING"], [b">1"]]),
    (b"*1\r\n$9\r\n%12345678\r\n", [[b"%12345678"]]),  # looks dangerous and is not
    (b"*2\r\n$1\r\na\r\n$9\r\n*12345678\r\n", [[b"a", b"*12345678"]]),
]

BAD: list[tuple[bytes, bytes]] = [
    (b"*\r\n", b"invalid multibulk length"),
    (b"*x\r\n", b"invalid multibulk length"),
    (b"*01\r\n", b"invalid multibulk length"),
    (b"*+1\r\n", b"invalid multibulk length"),
    (b"* 1\r\n", b"invalid multibulk length"),
    (b"*-0\r\n", b"invalid multibulk length"),
    (b"*2147483648\r\n", b"invalid multibulk length"),
    (b"*99999999999999999999\r\n", b"invalid multibulk length"),
    (b"*1\r\n$-1\r\n", b"invalid bulk length"),
    (b"*1\r\n$\r\n", b"invalid bulk length"),
    (b"*1\r\n$x\r\n", b"invalid bulk length"),
    (b"*1\r\n$04\r\nPING\r\n", b"invalid bulk length"),
    (b"*1\r\n$536870913\r\n", b"invalid bulk length"),
    (b"*1\r\n+PING\r\n", b"expected '$', got '+'"),
    (b"*1\r\n=8\r\ntxt:PING\r\n", b"expected '$', got '='"),
    (b"*1\r\n*1\r\n$4\r\nPING\r\n", b"expected '$', got '*'"),
    (b"*1\r\n:1\r\n", b"expected '$', got ':'"),
    (b"*2\r\n$1\r\na\r\n*2147483647\r\n", b"expected '$', got '*'"),
    (b"*1\r\n\r\n", b"expected '$', got ' '"),
    (b"*1\r\n\n\r\n", b"expected '$', got ' '"),
    # What one word lacks in length, another has too much.
    (b"*2\r\n+0123456789\r\n=8\r\ntxt:PING\r\n", b"expected '$', got '+'"),
    (b'SET k "a\r\n', b"unbalanced quotes in request"),
    (b"SET k 'a\r\n", b"unbalanced quotes in request"),
    (b'SET k "a"b\r\n', b"unbalanced quotes in request"),
    (b"SET k 'a'b\r\n", b"unbalanced quotes in request"),
    (b'SET k "a\\\r\n', b"unbalanced quotes in request"),
    (b"x" * 65_537, b"too big inline request"),
    (b"x" * 65_537 + b"\r\n", b"too big inline request"),
    (b"*" + b"1" * 65_537, b"too big mbulk count string"),
    (b"*1\r\n$" + b"1" * 65_537, b"too big bulk count string"),
]


def drain(parser: RequestParser) -> list[list[bytes]]:
    found: list[list[bytes]] = []
    while requests := parser.take():
        found += requests
    return found


def parse(pieces: list[bytes], **options: object) -> tuple[list[list[bytes]], bytes]:
    """All requests in ``pieces``, and the text of the error that ended them."""
    parser = RequestParser()
    for name, value in options.items():
        setattr(parser, name, value)
    found: list[list[bytes]] = []
    for piece in pieces:
        parser.feed(piece)
        try:
            while requests := parser.take():
                found += requests
        except ProtocolError as error:
            return found, error.text
    return found, b""


def one_by_one(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


def slow(data: bytes, **options: object) -> tuple[list[list[bytes]], bytes]:
    """As ``parse``, by the exact parser alone: hiredis never sees a whole request."""
    return parse(one_by_one(data), **options)


@pytest.mark.parametrize(("data", "requests"), GOOD)
def test_whole(data: bytes, requests: list[list[bytes]]) -> None:
    assert parse([data]) == (requests, b"")


@pytest.mark.parametrize(("data", "requests"), GOOD)
def test_one_byte_at_a_time(data: bytes, requests: list[list[bytes]]) -> None:
    assert slow(data) == (requests, b"")


@pytest.mark.parametrize(("data", "requests"), GOOD)
def test_cut_anywhere(data: bytes, requests: list[list[bytes]]) -> None:
    step = max(1, len(data) // 400)
    for cut in range(0, len(data), step):
        assert parse([data[:cut], data[cut:]]) == (requests, b""), cut


@pytest.mark.parametrize(("data", "text"), BAD)
def test_broken(data: bytes, text: bytes) -> None:
    before = encode("SET", "k", "v")
    assert parse([data]) == ([], text)
    assert parse([before + data]) == ([[b"SET", b"k", b"v"]], text)
    if len(data) < 1000:
        assert slow(data) == ([], text)
        for cut in range(len(data)):
            assert parse([data[:cut], data[cut:]])[1] == text


def test_an_error_stays() -> None:
    parser = RequestParser()
    parser.feed(b"*x\r\n")
    for _ in range(2):
        with pytest.raises(ProtocolError):
            parser.take()
        parser.feed(encode("PING"))


pieces_of_wire = st.sampled_from(
    [
        b"*1\r\n", b"*2\r\n", b"*3\r\n", b"*0\r\n", b"*-1\r\n", b"$1\r\na\r\n", b"$4\r\nPING\r\n",
        b"$0\r\n\r\n", b"$10\r\n0123456789\r\n", b"$-1\r\n", b"+PING\r\n", b"+0123456789\r\n",
        b":1\r\n", b"=8\r\ntxt:PING\r\n", b"(12\r\n", b"_\r\n", b"#t\r\n", b",1.5\r\n",
        b"-ERR x\r\n", b">1\r\n", b"~1\r\n", b"%1\r\n", b"|1\r\n", b"PING\r\n", b"\r\n", b"\n",
        b"\r", b"*", b"$", b"1", b"x", b"'", b'"', b"*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n", b"*1234567\r\n", b"*1\r\n$4\r\nPINGab",
    ]
)  # fmt: skip


@settings(max_examples=drawn(1500))
@given(
    st.lists(pieces_of_wire, max_size=12).map(b"".join), st.lists(st.integers(0, 80), max_size=3)
)
@example(b"*1\r\n$4\r\nPING\r\n>1\r\n$4\r\nPING\r\n", [])
@example(b"*2\r\n+0123456789\r\n=8\r\ntxt:PING\r\n", [])
@example(b"*1\r\n$4\r\nPING\r\n*1\r\n+PING\r\n*1\r\n$04\r\nPING\r\n", [])
def test_however_it_arrives_the_same_comes_out(data: bytes, cuts: list[int]) -> None:
    expected = slow(data)
    assert parse([data]) == expected
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert parse([data[a:b] for a, b in pairwise(places)]) == expected


@settings(max_examples=drawn(200))
@given(
    st.lists(
        st.lists(
            st.binary(max_size=40) | st.sampled_from([b"*", b"%", BIG]), min_size=1, max_size=8
        ),
        max_size=12,
    ),
    st.integers(1, 5000),
)
def test_requests_round_trip(requests: list[list[bytes]], size: int) -> None:
    data = b"".join(encode(*request) for request in requests)
    assert parse([data[at : at + size] for at in range(0, len(data), size)]) == (requests, b"")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*11\r\n", b"unauthenticated multibulk length"),
        (b"*1\r\n$16385\r\n", b"unauthenticated bulk length"),
        (b"*-1\r\n*x\r\n", b"invalid multibulk length"),
    ],
)
def test_bounds_before_auth(data: bytes, text: bytes) -> None:
    assert parse([data], trusted=False) == ([], text)
    assert slow(data, trusted=False) == ([], text)


def test_one_request_at_a_time_before_auth() -> None:
    parser = RequestParser()
    parser.trusted = False
    parser.feed(encode("AUTH", "x") + encode(*range(20)) + b"PING\r\n")
    assert parser.take() == [[b"AUTH", b"x"]]
    parser.trusted = True
    assert drain(parser) == [[b"%d" % number for number in range(20)], [b"PING"]]


def test_longest_bulk_is_configured() -> None:
    assert parse([encode("GET", "x" * 11)], max_bulk_bytes=10) == ([], b"invalid bulk length")
    assert parse([encode("GET", "x" * 10)], max_bulk_bytes=10)[1] == b""


def test_a_huge_array_costs_nothing() -> None:
    """No more than a small one, of which as little has come."""
    unfinished = (
        b"*2147483647\r\n",
        b"*1\r\n$4\r\nPING\r\n*2147483647\r\n$1\r\na\r\n",
        b"*1\r\n*2147483647\r\n",
        b"*1\r\n$1\r\na\r\n%2147483647\r\n",
        b"*1\r\n>2147483647\r\n:1\r\n",
        b"*1\r\n|1147483647\r\n:1\r\n",
        b"*1\r\n$600\r\n" + b"x" * 600 + b"\r\n*1\r\n*2147483647\r\n",
        b"*2\r\n$1\r\naxx~2147483647\r\n",
    )
    small = [re.sub(rb"\d{10}", b"100", data) for data in unfinished]
    spent_s = []
    for some in (small, unfinished):
        start = time.process_time()
        for data in some:
            parse([data])
            for cut in range(1, len(data) - 1):
                parse([data[:cut], data[cut:]])
        spent_s.append(time.process_time() - start)
    assert spent_s[1] < 10 * spent_s[0]


@pytest.mark.once
def test_time_grows_with_the_bytes_and_not_faster() -> None:
    def spent(data: bytes, size: int) -> float:
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        gc.collect()
        gc.disable()
        start = time.process_time()
        try:
            parse(pieces)
            return time.process_time() - start
        finally:
            gc.enable()

    for unit in (b"PING\r\n", encode("PING"), b"*1\r\n$4\r\nPINGab", b"*0\r\n", b"\n"):
        small = min(spent(unit * 20_000, 1 << 18) for _ in range(3))
        large = min(spent(unit * 160_000, 1 << 18) for _ in range(3))
        assert large < 40 * small, unit
    words = [encode(bytes(size)) for size in (2_000_000, 20_000_000)]
    small, large = (min(spent(word, 4096) for _ in range(3)) for word in words)
    assert large < 50 * small


def test_what_has_piled_up_is_taken_in_slices() -> None:
    """So that the requests of half a gigabyte are not all there before the first one is run."""
    sent = [[b"SET", b"k%d" % number, b"x" * (number % 3000)] for number in range(3000)]
    sent[1500].append(b"y" * 3 * SLICE_BYTES)  # in none of the slices
    wire = b"".join(encode(*words) for words in sent)
    parser = RequestParser()
    parser.feed(wire[:1])
    parser.feed(wire[1:])
    taken: list[list[bytes]] = []
    while not parser.is_drained:
        found = parser.take()
        assert found
        if len(taken) < 1000:
            assert sum(len(encode(*words)) for words in found) <= SLICE_BYTES
        taken += found
    assert taken == sent


def test_pending_bytes() -> None:
    parser = RequestParser()
    parser.feed(b"*2\r\n$3\r\nabc\r\n$100000\r\n")
    assert parser.take() == []
    assert parser.pending_bytes <= 3 + 10
    parser.feed(b"x" * 99_999)
    assert parser.take() == []
    assert parser.pending_bytes == 3 + 99_999
    parser.feed(b"x\r")
    assert parser.take() == []
    parser.feed(b"\n*1\r\n")
    assert drain(parser) == [[b"abc", b"x" * 100_000]]


def test_words_of_an_unfinished_request_are_counted_once() -> None:
    """However many have come in, one more costs the same; the client's buffer is bounded by it."""

    def spent(words: int) -> float:
        """Return what a hundred packets cost behind so many words of the same request."""
        parser = RequestParser()
        parser.feed(b"*2000000000\r\n")
        for _ in range(words // 10_000):
            parser.feed(b"$1\r\nk\r\n" * 10_000)
            assert parser.take() == []
        assert parser.pending_bytes == words
        start = time.process_time()
        for _ in range(100):
            parser.feed(b"$1\r\nk\r\n" * 10)
            assert parser.take() == []
            assert parser.pending_bytes >= words
        return time.process_time() - start

    few = min(spent(10_000) for _ in range(3))
    many = min(spent(1_000_000) for _ in range(3))
    assert many < 10 * few


@given(
    st.lists(st.sampled_from([b"", b"k", b"\r\n", b"$1\r\nk", b"x" * 99, BIG]), max_size=40),
    st.lists(st.sampled_from([1, 7, 63, 64, 65, 200, 4096]), min_size=1, max_size=5),
    st.integers(0, 60),
)
def test_many_words_however_they_come(words: list[bytes], sizes: list[int], odd: int) -> None:
    """Those in the canonical form, which are taken together, and one that is not among them."""
    request = [b"MSET", *words, b"end"]
    parts = [b"*%d\r\n" % len(request)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in request]
    if odd < len(parts):
        parts[odd] = parts[odd][:-2] + (b"\r!" if odd == 0 else b"ab")  # as Redis, we let it pass
    wire = b"".join(parts) + encode("PING")
    pieces: list[bytes] = []
    at = 0
    while at < len(wire):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(wire[at : at + size])
        at += size
    assert parse(pieces) == ([request, [b"PING"]], b"")


def test_drained() -> None:
    def drained() -> bool:
        return parser.is_drained

    parser = RequestParser()
    assert drained()
    for data in (encode("SET", "k", "x" * 5000), encode("PING") + encode("TIME"), b"PING\r\n"):
        parser.feed(data)
        assert not drained()
        assert parser.take()
        assert drained()
    parser.feed(encode("PING") + b"*x\r\n")
    assert parser.take() == [[b"PING"]]
    assert not drained()  # there is an error to tell


WORDS = [b"a" * size for size in range(19)] + [b"a" * size + b"b" for size in range(17)]
WORDS += [b"b" + b"a" * size for size in range(17)] + [b"aaaaaaaabaaaaaaa", b"\r\naaaa\r\n"]


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=10), max_size=60))
def test_words_that_come_again(requests: list[list[bytes]]) -> None:
    """At a place where one is remembered, the same and others that look alike."""
    wire = b"".join(encode(*request) for request in requests)
    assert parse([wire])[0] == requests
    assert parse([wire, wire])[0] == requests + requests


@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(WORDS)), max_size=60),
    st.integers(0, 5000),
)
def test_requests_that_begin_alike(
    words: list[bytes], changes: list[tuple[int, bytes]], cut: int
) -> None:
    """From each to the next one word changes, or none, or the last one comes or goes."""
    requests = [words]
    for place, word in changes:
        requests.append(changed(requests[-1], place, word, 11))
    wire = b"".join(encode(*request) for request in requests)
    assert parse([wire])[0] == requests
    assert parse([wire[:cut], wire[cut:]])[0] == requests
