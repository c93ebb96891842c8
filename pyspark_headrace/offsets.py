"""How far a streaming query has come, as Spark keeps it in its checkpoint.

For two streams, of which the second had nothing in this batch::

    {"k": {"clicks": {"cut": "1700-4/500 1712-0/500", "id": "1719-3", "n": 48211, "rows": 1400},
           "rides":  {"id": "1650-0", "n": 77}},
     "v": 1}

``id``    the last ID of the batch, itself included; the next batch starts after it
``n``     its rank: how many entries were ever added up to it; absent when it cannot be known.
          Lag and loss are differences of ranks.
``cut``   where the batch is split, each piece by its last ID and its number of entries (the number
          is absent where it was not counted); the last piece is what is left
``rows``  entries of the batch, where they were counted
``from``  the batch starts after this ID instead of the last batch's: the stream was made anew
``lost``  entries that were removed before they were read, over the life of the query
``next``  where ``n`` is unknown, or only the least that it can be: the first entry behind ``id``,
          by which a loss is noticed
``seen``  what the stream looked like when the batch was planned, see ``Sight``; by this a stream
          that was replaced by another one is noticed. Absent in offsets of earlier versions

``t``, beside ``k``, says how many pieces each task has, in their order; without it, each has one.

The split stands here, and not in the options, because Spark plans a batch anew when it repeats it:
with other options or more cores the rows would fall into other partitions, and a sink that knows
rows by their place would drop some. What is written is repeated as it was.

Offsets are compared as text: keys are sorted, and a batch without news is the very offset before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.ids import LEAST, StreamID, format_id, parse_id

VERSION: Final = 1

Offset = dict[str, Any]


@dataclass(frozen=True)
class Mark:
    """An entry that is known again: by its ID, and a hash of its fields and values."""

    id: StreamID
    digest: str

    def __str__(self) -> str:
        return f"{format_id(self.id)}/{self.digest}"


@dataclass(frozen=True)
class Sight:
    """What a stream looked like at one moment.

    While it stays the same stream, none of its numbers and IDs becomes less, and no entry appears
    between ``end`` and ``last``. ``loss`` draws the conclusions.

    Attributes:
        added: entries ever added.
        removed: entries ever trimmed or deleted.
        last: the last ID generated.
        deleted: the greatest ID that was deleted by name.
        first, end: the oldest and the newest entry; None when the stream was empty.
    """

    added: int
    removed: int
    last: StreamID
    deleted: StreamID = LEAST
    first: Mark | None = None
    end: Mark | None = None


@dataclass(frozen=True)
class Cut:
    """A piece of a batch: up to an ID, itself included, and how many entries; -1 is unknown."""

    id: StreamID
    rows: int = -1


@dataclass(frozen=True)
class Position:
    """How far one stream has been read; see the module for the fields.

    Attributes:
        n: -1 when it is unknown.
        rows: of the batch that ended here; -1 when they were not counted.
    """

    id: StreamID
    n: int = -1
    cuts: tuple[Cut, ...] = ()
    rows: int = -1
    since: StreamID | None = None
    lost: int = 0
    next: StreamID | None = None
    seen: Sight | None = None

    def is_exact(self) -> bool:
        """Whether the rank is known, and not only the least that it can be."""
        return self.n >= 0 and self.next is None

    def at_rest(self) -> Position:
        """The same place, without the batch that led there."""
        if not self.cuts and self.rows < 0 and self.since is None:
            return self
        return replace(self, cuts=(), rows=-1, since=None)


Positions = dict[str, Position]


@dataclass(frozen=True)
class Piece:
    """Entries of one stream for one task: after an ID, up to another one, itself included.

    Attributes:
        rows: how many there were when it was planned; -1 when they were not counted.
        seen: what the stream looked like then; None in offsets of earlier versions.
        n: the rank of ``after``; -1 when it is not known exactly.
    """

    key: str
    after: StreamID
    upto: StreamID
    rows: int = -1
    seen: Sight | None = None
    n: int = -1


def to_offset(positions: Mapping[str, Position], counts: Sequence[int] = ()) -> Offset:
    """What Spark is to keep.

    Args:
        counts: how many pieces each task has.
    """
    found: Offset = {"k": {key: _to_json(positions[key]) for key in sorted(positions)}}
    if any(count != 1 for count in counts):
        found["t"] = list(counts)
    return {**found, "v": VERSION}


def _to_json(position: Position) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if position.cuts:
        found["cut"] = " ".join(_cut_text(cut) for cut in position.cuts)
    if position.since is not None:
        found["from"] = format_id(position.since)
    found["id"] = format_id(position.id)
    if position.lost:
        found["lost"] = position.lost
    if position.n >= 0:
        found["n"] = position.n
    if position.next is not None:
        found["next"] = format_id(position.next)
    if position.rows >= 0:
        found["rows"] = position.rows
    if position.seen is not None:
        found["seen"] = _sight_to_json(position.seen)
    return found


def _sight_to_json(sight: Sight) -> dict[str, Any]:
    found: dict[str, Any] = {"added": sight.added}
    if sight.deleted != LEAST:
        found["deleted"] = format_id(sight.deleted)
    if sight.end is not None:
        found["end"] = str(sight.end)
    if sight.first is not None:
        found["first"] = str(sight.first)
    found["last"] = format_id(sight.last)
    found["removed"] = sight.removed
    return found


def _cut_text(cut: Cut) -> str:
    return format_id(cut.id) if cut.rows < 0 else f"{format_id(cut.id)}/{cut.rows}"


def from_offset(offset: Mapping[str, Any]) -> Positions:
    """What was kept.

    Raises:
        HeadraceError: it is not ours, or newer than we are.
    """
    if offset.get("v") != VERSION:
        raise HeadraceError(f"this checkpoint holds an offset of another kind: {dict(offset)!r}")
    return {key: _from_json(value) for key, value in offset["k"].items()}


def _from_json(value: Mapping[str, Any]) -> Position:
    cuts = []
    for text in value.get("cut", "").split():
        id_text, slash, rows = text.partition("/")
        cuts.append(Cut(parse_id(id_text), int(rows) if slash else -1))
    since = value.get("from")
    return Position(
        id=parse_id(value["id"]),
        n=value.get("n", -1),
        cuts=tuple(cuts),
        rows=value.get("rows", -1),
        since=None if since is None else parse_id(since),
        lost=value.get("lost", 0),
        next=parse_id(value["next"]) if "next" in value else None,
        seen=_sight_from_json(value["seen"]) if "seen" in value else None,
    )


def _sight_from_json(value: Mapping[str, Any]) -> Sight:
    return Sight(
        added=value["added"],
        removed=value["removed"],
        last=parse_id(value["last"]),
        deleted=parse_id(value.get("deleted", "0-0")),
        first=_mark_from(value.get("first")),
        end=_mark_from(value.get("end")),
    )


def _mark_from(text: str | None) -> Mark | None:
    if text is None:
        return None
    id_text, _, digest = text.partition("/")
    return Mark(parse_id(id_text), digest)


def pieces_between(start: Mapping[str, Position], end: Mapping[str, Position]) -> list[Piece]:
    """The pieces that a batch was split into when its end was written down."""
    found: list[Piece] = []
    for key in sorted(end):
        position = end[key]
        before = start.get(key)
        after = LEAST if before is None else before.id
        rank = before.n if before is not None and before.is_exact() else -1
        if position.since is not None:
            after, rank = position.since, -1
        elif before is position or (before is not None and position.at_rest() == before.at_rest()):
            continue  # this stream had nothing; its last batch's split may still stand there
        left = position.rows
        for cut in position.cuts:
            if after < cut.id < position.id:
                found.append(Piece(key, after, cut.id, cut.rows, position.seen, rank))
                after, rank = cut.id, -1
                left = left - cut.rows if left >= 0 and cut.rows >= 0 else -1
        if after < position.id:
            found.append(Piece(key, after, position.id, left, position.seen, rank))
    return found
