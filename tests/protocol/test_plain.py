"""The fast way by itself: whatever the request before was, the same words come out."""

from __future__ import annotations

import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.protocol.plain import PlainParser
from support.alike import changed
from support.client import encode

WORDS = [b"", b"a", b"b", b"ab", b"\r\n", b"a" * 9, b"a" * 10, b"a" * 65, b"a" * 66, b"a" * 99]
WORDS += [
    b"b" * 10,
    b"b" * 65,
    b"abcd",
    b"abce",
    b"xbcd",
    b"a" * 100,
    b"a" * 64 + b"b",
    b"b" + b"a" * 64,
    b"a" * 991,
    b"a" * 1000,
]
UNTAKEN = [
    b"*1\r\n$4\r\nabcdef\r\n",
    b"*1\r\n$4\nabcdef\r\n",
    b"",
    b"*",
    b"*3\r\n$1\r\na\r\n",
    b"PING\r\n",
    b"*1\r\n$01\r\na\r\n",
    b"*1\r\n$1\r\nabc",
]

changes = st.lists(st.tuples(st.integers(0, 6), st.sampled_from(WORDS)), max_size=6)


cut_off = st.tuples(st.integers(0, 6), st.sampled_from(WORDS), st.integers(1, 12))
beginnings = st.sampled_from([1, 2, 3, 9, 10, 11, 63, 64, 65]).flatmap(
    lambda width: st.lists(st.sampled_from(WORDS[:6]), min_size=width, max_size=width)
)


@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    beginnings,
    st.lists(st.tuples(changes, st.booleans(), st.sampled_from(UNTAKEN) | cut_off), max_size=12),
)
@settings(max_examples=300)
@example(
    [b"a"],
    [b"b"],
    [([(9, b"")], False, b""), ([(9, b"")], False, b"*1\r\n$1\r\n"), ([(0, b"b")], False, b"")],
)
@example([b"", b""], [b"b"], [([(0, b"")], False, b"*1\r\n$01\r\na\r\n"), ([(0, b"")], True, b"")])
@example([b"a", b"b"], [b"b"], [([(9, b"")], False, (0, b"b", 1)), ([(9, b"")], False, b"")])
@example([b"a", b"b"], [b"b"] * 10, [([(9, b"")], True, b""), ([(9, b""), (0, b"b")], True, b"")])
def test_chunk_after_chunk(
    words: list[bytes],
    others: list[bytes],
    chunks: list[tuple[list[tuple[int, bytes]], bool, bytes | tuple[int, bytes, int]]],
) -> None:
    """All whole requests of each chunk are taken, and what becomes of them is no matter.

    In some chunks requests of another width come between, and some end within a request.
    """
    parser = PlainParser()
    for steps, is_mixed, untaken in chunks:
        if not isinstance(untaken, bytes):
            place, word, missing = untaken
            whole = encode(*changed(words, place, word, 5))
            untaken = whole[: max(1, len(whole) - missing)]
        expected = []
        for place, word in steps:
            words = changed(words, place, word, 5)
            expected.append(words)
            if is_mixed:
                expected.append(others)
        wire = b"".join(encode(*request) for request in expected)
        requests: list[list[bytes]] = []
        assert parser.take(wire + untaken, requests) == len(wire)
        assert requests == expected
        for request in requests:
            request[:] = [b"spoiled"]


def test_words_of_the_request_before_are_not_made_anew() -> None:
    parser = PlainParser()
    wire = encode("XREADGROUP", "GROUP", "g", "c", "STREAMS", "a-stream-of-many-words", ">")
    other = encode("seven", "words", "of", "quite", "another", "kind", "and so on")
    taken: list[list[bytes]] = []
    for chunk in (wire, wire, other, wire, wire.replace(b"a-stream", b"b-stream"), wire):
        parser.take(chunk, taken)
    first, second, _, third, fourth, _ = taken
    assert all(word is again for word, again in zip(first, second, strict=True))
    assert all(word is not again for word, again in zip(first, third, strict=True) if len(word) > 1)
    assert [word is again for word, again in zip(third, fourth, strict=True)] == 5 * [True] + [
        False,
        True,
    ]


def test_requests_of_other_widths_do_not_come_between() -> None:
    parser = PlainParser()
    add = encode("XADD", "jobs", "*", "work", "to do")
    read = encode("XREADGROUP", "GROUP", "g", "c", "COUNT", "10", "STREAMS", "jobs", ">")
    acknowledge = encode("XACK", "jobs", "g", "1-1")
    taken: list[list[bytes]] = []
    for chunk in (add, read, acknowledge, add + read + acknowledge, add, read, acknowledge):
        parser.take(chunk, taken)
    for number in range(3):
        for again in (number + 3, number + 6):
            assert all(
                word is other for word, other in zip(taken[number], taken[again], strict=True)
            )


def test_a_request_that_is_cut_off_leaves_nothing_behind() -> None:
    parser = PlainParser()
    whole = encode("ECHO", "a")
    taken: list[list[bytes]] = []
    for chunk in (whole, encode("PING", "b")[:-1], whole):
        parser.take(chunk, taken)
    assert taken == [[b"ECHO", b"a"]] * 2


@pytest.mark.parametrize("others", [(), ("PING",)])
def test_a_chunk_is_freed(others: tuple[str, ...]) -> None:
    parser = PlainParser()
    chunk = encode("ECHO", "a") + encode("ECHO", "b") + b"".join(map(encode, others))
    references = sys.getrefcount(chunk)
    parser.take(chunk, [])
    assert sys.getrefcount(chunk) == references


@pytest.mark.parametrize(("last", "is_known"), [("x" * 1900, True), ("x" * 2100, False)])
def test_a_large_request_is_known_to_the_next_one_if_it_is_not_too_large(
    last: str, *, is_known: bool
) -> None:
    parser = PlainParser()
    taken: list[list[bytes]] = []
    for _ in range(2):
        parser.take(encode("ECHO", last), taken)
    assert (taken[0][0] is taken[1][0]) == is_known


def test_what_is_known_is_bounded() -> None:
    """Of requests of other widths only small ones are known, and no two of the same place."""
    parser = PlainParser()
    large = encode("LARGE", *("word",) * 20)
    long = encode("LONG", "x" * 300)
    places = [encode("WIDTH", *("word",) * width) for width in (2, 10)]
    taken: list[list[bytes]] = []
    for wire in (large, long, *places):
        for _ in range(2):
            parser.take(wire, taken)
            parser.take(encode("BETWEEN"), taken)
    for first in range(0, 8, 4):
        assert taken[first][0] is not taken[first + 2][0]
    assert taken[8][0] is taken[10][0]
    parser.take(places[0], taken)
    assert taken[-1] == taken[8]
    assert taken[-1][0] is not taken[8][0]
