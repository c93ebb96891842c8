"""Offsets and pieces: what is written down is what is read, and every ID is in one piece."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.ids import LEAST, StreamID, format_id, parse_id
from pyspark_headrace.offsets import (
    Cut,
    Mark,
    Piece,
    Position,
    Sight,
    from_offset,
    pieces_between,
    to_offset,
)

pytestmark = pytest.mark.once

IDs = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
SmallIDs = st.tuples(st.integers(0, 5), st.integers(0, 3))


@st.composite
def positions(draw: st.DrawFn, ids: st.SearchStrategy[StreamID] = IDs) -> Position:
    count = st.integers(-1, 2**40)
    return Position(
        id=draw(ids),
        n=draw(count),
        cuts=tuple(draw(st.lists(st.builds(Cut, ids, count), max_size=3))),
        rows=draw(count),
        since=draw(st.none() | ids),
        lost=draw(st.integers(0, 5)),
        next=draw(st.none() | ids),
        seen=draw(st.none() | sights(ids)),
    )


def sights(ids: st.SearchStrategy[StreamID]) -> st.SearchStrategy[Sight]:
    number = st.integers(0, 2**40)
    mark = st.none() | st.builds(Mark, ids, st.text("0123456789abcdef", min_size=16, max_size=16))
    return st.builds(Sight, number, number, ids, ids, mark, mark)


@given(st.dictionaries(st.text(min_size=1), positions(), max_size=3))
def test_there_and_back(found: dict[str, Position]) -> None:
    text = json.dumps(to_offset(found))
    assert from_offset(json.loads(text)) == found
    assert json.dumps(to_offset(from_offset(json.loads(text)))) == text
    assert json.dumps(to_offset(dict(reversed(found.items())))) == text


@given(
    positions(SmallIDs),
    positions(SmallIDs),
    st.lists(SmallIDs, max_size=4, unique=True).map(sorted),
)
def test_every_id_is_in_one_piece(start: Position, end: Position, cuts: list[StreamID]) -> None:
    end = Position(end.id, end.n, tuple(map(Cut, cuts)), -1, end.since)
    low = start.id if end.since is None else end.since
    pieces = pieces_between({"s": start}, {"s": end})
    every = [(ms, seq) for ms in range(7) for seq in range(5)]
    inside = {entry_id for entry_id in every if low < entry_id <= end.id}
    if end.since is None and end.at_rest() == start.at_rest():
        inside = set()
    found = [
        entry_id for piece in pieces for entry_id in every if piece.after < entry_id <= piece.upto
    ]
    assert sorted(found) == sorted(inside)
    assert all(piece.after < piece.upto for piece in pieces)


def test_rows_of_pieces() -> None:
    start = {"a": Position((1, 0), 1)}
    cuts = (Cut((3, 0), 2), Cut((5, 0), 2))
    assert pieces_between(start, {"a": Position((7, 0), 6, cuts, 5)}) == [
        Piece("a", (1, 0), (3, 0), 2, n=1),
        Piece("a", (3, 0), (5, 0), 2),
        Piece("a", (5, 0), (7, 0), 1),
    ]
    # Not counted: what is left is unknown too.
    assert [piece.rows for piece in pieces_between({}, {"a": Position((7, 0), 6, cuts[:1])})] == [
        2,
        -1,
    ]
    assert pieces_between({}, {"a": Position((7, 0))}) == [Piece("a", LEAST, (7, 0))]


def test_what_the_first_version_wrote() -> None:
    seen = {
        "added": 1900,
        "deleted": "1600-0",
        "end": "1719-4/00ff00ff00ff00ff",
        "first": "1500-0/0123456789abcdef",
        "last": "1719-4",
        "removed": 7,
    }
    clicks = {
        "cut": "1700-4/500 1712-0",
        "from": "1600-0",
        "id": "1719-3",
        "lost": 3,
        "n": 1811,
        "next": "1719-4",
        "rows": 1400,
        "seen": seen,
    }
    assert from_offset({"k": {"clicks": clicks, "rides": {"id": "1650-0"}}, "v": 1}) == {
        "clicks": Position(
            (1719, 3),
            1811,
            (Cut((1700, 4), 500), Cut((1712, 0))),
            1400,
            (1600, 0),
            3,
            (1719, 4),
            Sight(
                1900,
                7,
                (1719, 4),
                (1600, 0),
                Mark((1500, 0), "0123456789abcdef"),
                Mark((1719, 4), "00ff00ff00ff00ff"),
            ),
        ),
        "rides": Position((1650, 0)),
    }


def test_offsets_are_short() -> None:
    """Of ten thousand streams, each is written again with every batch."""
    mark = Mark((1_700_000_000_000, 0), "0123456789abcdef")
    end = Mark((1_700_000_900_000, 0), "fedcba9876543210")
    read = Position(end.id, 500, seen=Sight(500, 0, end.id, LEAST, mark, end))
    assert len(json.dumps(to_offset({"stream": read})["k"]["stream"])) < 90


def test_another_kind_of_checkpoint() -> None:
    with pytest.raises(HeadraceError, match="checkpointLocation of its own") as raised:
        from_offset({"topic": {str(number): 17 for number in range(10_000)}})
    assert len(str(raised.value)) < 300
    with pytest.raises(
        HeadraceError, match="its offsets have version 3, and this one reads 1 to 2"
    ):
        from_offset({"k": {"s": "1-0"}, "v": 3})


@given(IDs)
def test_ids(stream_id: StreamID) -> None:
    assert parse_id(format_id(stream_id)) == stream_id


@pytest.mark.parametrize("text", ["", "-", "1-", "-1", "1-2-3", "a", "1-a", "\uff11-0", str(2**64)])
def test_what_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="is no stream ID"):
        parse_id(text)
