"""Replies of another server: whole, in pieces, and from somebody who means harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.client import BadReply, ReplyError, ReplyReader
from headrace.protocol.replies import ErrorReply, Status, encode

VALUES = st.recursive(
    st.binary(max_size=40) | st.integers(-(2**63), 2**63 - 1),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=20,
)


def depth(value: object) -> int:
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def taken(reader: ReplyReader) -> list[object]:
    found: list[object] = []
    while (value := reader.take()) is not None:
        found.append(value)
    return found


@given(st.lists(VALUES.filter(lambda value: depth(value) <= 4), max_size=5), st.integers(1, 30))
def test_what_is_sent_is_read_however_it_is_cut(values: list[object], step: int) -> None:
    wire = b"".join([encode(value) for value in values])
    reader = ReplyReader(1 << 20)
    found: list[object] = []
    for at in range(0, len(wire), step):
        reader.feed(wire[at : at + step])
        found += taken(reader)
    assert found == values
    assert reader.pending_bytes == 0
    whole = ReplyReader(1 << 20)
    whole.feed(wire)
    assert taken(whole) == values


def test_lines() -> None:
    reader = ReplyReader(1000)
    reader.feed(encode(Status(b"OK")) + encode(ErrorReply(b"AATWIN there are two")) + encode([]))
    status, error, empty = taken(reader)
    assert status == b"OK"
    assert isinstance(error, ReplyError)
    assert error.line == b"AATWIN there are two"
    assert empty == []


def test_a_long_string_in_many_pieces_is_not_looked_at_again_and_again() -> None:
    reader = ReplyReader(1 << 24)
    piece = b"x" * 1000
    reader.feed(b"$10000000\r\n")
    for _ in range(10_000):
        reader.feed(piece)
        assert reader.take() is None
    reader.feed(b"\r\n:5\r\n")
    assert taken(reader) == [b"x" * 10_000_000, 5]


@pytest.mark.parametrize(
    "wire",
    [
        b"*2000000000\r\n",
        b"*-1\r\n",
        b"$-1\r\n",
        b"$2000\r\n",
        b"$99999999999999999999999\r\n",
        b"$3\r\nabcd\r\n",
        b"*5\r\n" + b"$400\r\n" + b"x" * 400 + b"\r\n$400\r\n" + b"x" * 400 + b"\r\n$400\r\n",
        b"*1\r\n" * 6,
        b":1x\r\n",
        b":\r\n",
        b":--1\r\n",
        b"\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"_\r\n",
        b"+" + b"x" * 100_000,
    ],
)
def test_what_nobody_of_ours_sends_is_refused(wire: bytes) -> None:
    reader = ReplyReader(1000)
    reader.feed(wire)
    with pytest.raises(BadReply):
        taken(reader)


def feed_for_ever(reader: ReplyReader) -> None:
    reader.feed(b"*60000\r\n")
    while not taken(reader):
        reader.feed(b":1\r\n" * 60)


def test_an_endless_reply_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(BadReply, match="too long"):
        feed_for_ever(ReplyReader(1000))
