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
    taken: list[list[bytes]] = []
    for chunk in (wire, wire, encode("PING"), wire, wire.replace(b"a-stream", b"b-stream"), wire):
        parser.take(chunk, taken)
    first, second, _, third, fourth, _ = taken
    assert all(word is again for word, again in zip(first, second, strict=True))
    assert all(word is not again for word, again in zip(first, third, strict=True) if len(word) > 1)
    assert [word is again for word, again in zip(third, fourth, strict=True)] == 5 * [True] + [
        False,
        True,
    ]
