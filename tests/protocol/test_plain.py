"""The fast way by itself: whatever the request before was, the same words come out."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocol.plain import PlainParser
from support.alike import changed
from support.client import encode

WORDS = [b"", b"a", b"b", b"ab", b"\r\n", b"a" * 9, b"a" * 10, b"a" * 65, b"a" * 66, b"a" * 99]
WORDS += [b"a" * 100, b"a" * 64 + b"b", b"b" + b"a" * 64, b"a" * 991, b"a" * 1000]
UNTAKEN = [b"", b"*", b"*3\r\n$1\r\na\r\n", b"PING\r\n", b"*1\r\n$01\r\na\r\n", b"*1\r\n$1\r\nabc"]

changes = st.lists(st.tuples(st.integers(0, 6), st.sampled_from(WORDS)), max_size=6)


@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.lists(st.tuples(changes, st.sampled_from(UNTAKEN)), max_size=12),
)
@settings(deadline=None, max_examples=300)
@example([b"a"], [([(9, b"")], b""), ([(9, b"")], b"*1\r\n$1\r\n"), ([(0, b"b")], b"")])
@example([b"", b""], [([(0, b"")], b"*1\r\n$01\r\na\r\n"), ([(0, b"")], b"")])
def test_chunk_after_chunk(
    words: list[bytes], chunks: list[tuple[list[tuple[int, bytes]], bytes]]
) -> None:
    """All whole requests of each chunk are taken, and what becomes of them is no matter."""
    parser = PlainParser()
    for steps, untaken in chunks:
        expected = []
        for place, word in steps:
            words = changed(words, place, word, 5)
            expected.append(words)
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


def test_what_is_known_is_bounded() -> None:
    """Nothing is known of a large request, nor of one that another of its place has replaced."""
    parser = PlainParser()
    large = encode("LARGE", *("word",) * 100)
    long = encode("LONG", "x" * 3000)
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
