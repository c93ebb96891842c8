"""How far a streaming query has come, as Spark keeps it in its checkpoint.

For two streams, of which the second had nothing in this batch::

    {"k": {"clicks": "1719-3 n=48211 rows=1400 cut=1700-4/500,1712-0/500",
           "rides":  "1650-0 n=77"},
     "v": 2}

The first word is the last ID of the batch, itself included; the next batch starts after it. The
other words are there where there is something to say:

``n``     its rank: how many entries were ever added up to it; absent when it cannot be known.
          Lag and loss are differences of ranks.
``cut``   where the batch is split, each piece by its last ID and its number of entries (the number
          is absent where it was not counted); the last piece is what is left
``rows``  entries of the batch, where they were counted
``from``  the batch starts after this ID instead of the last batch's: the stream was made anew
``lost``  entries that were removed before they were read, over the life of the query
``next``  where ``n`` is unknown, or only the least that it can be: the first entry behind the ID,
          by which a loss is noticed
``seen``  what the stream looked like when the batch was planned, by which one that was replaced is
          noticed: see ``Sight``, with commas between. A number or an ID that the position has, too,
          is left out

``t``, beside ``k``, says how many pieces each task has, in their order; without it, each has one.

Spark writes the offsets of all streams for each batch, so they are short. Version 1 had an object
for each stream; it is still read.

The split stands here, and not in the options, because Spark plans a batch anew when it repeats it:
with other options or more cores the rows would fall into other partitions, and a sink that knows
rows by their place would drop some. What is written is repeated as it was.

Offsets are compared as text: keys are sorted, and a batch without news is the very offset before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.ids import LEAST, StreamID, format_id, parse_id

VERSION: Final = 2  # the one that is written
LEAST_VERSION: Final = 1
VERSIONS: Final = (LEAST_VERSION, VERSION)
MOST_SHOWN: Final = 100  # letters of an offset that is none

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
        weight: about how many bytes an entry of the batch has, while it is planned; 0 is unknown.
    """

    id: StreamID
    n: int = -1
    cuts: tuple[Cut, ...] = ()
    rows: int = -1
    since: StreamID | None = None
    lost: int = 0
    next: StreamID | None = None
    seen: Sight | None = None
    weight: int = field(default=0, compare=False)

    def is_exact(self) -> bool:
        """Return whether the rank is known, and not only the least that it can be."""
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
        weight: about how many bytes an entry has, while the batch is planned; 0 is unknown.
    """

    key: str
    after: StreamID
    upto: StreamID
    rows: int = -1
    seen: Sight | None = None
    n: int = -1
    weight: int = field(default=0, compare=False)


def to_offset(positions: Mapping[str, Position], counts: Sequence[int] = ()) -> Offset:
    """Return what Spark is to keep.

    Args:
        counts: how many pieces each task has.
    """
    found: Offset = {"k": {key: _to_text(positions[key]) for key in sorted(positions)}}
    if any(count != 1 for count in counts):
        found["t"] = list(counts)
    return {**found, "v": VERSION}


def _to_text(position: Position) -> str:
    words = [format_id(position.id)]
    if position.n >= 0:
        words.append(f"n={position.n}")
    if position.rows >= 0:
        words.append(f"rows={position.rows}")
    if position.cuts:
        words.append(f"cut={','.join(map(_cut_text, position.cuts))}")
    if position.since is not None:
        words.append(f"from={format_id(position.since)}")
    if position.lost:
        words.append(f"lost={position.lost}")
    if position.next is not None:
        words.append(f"next={format_id(position.next)}")
    if position.seen is not None:
        words.append(f"seen={_sight_text(position.seen, position)}")
    return " ".join(words)


def _sight_text(sight: Sight, position: Position) -> str:
    """In the order of the attributes; the newest entry often is the last ID, and then has none."""
    end = "" if sight.end is None else str(sight.end)
    if sight.end is not None and sight.end.id == sight.last:
        end = f"/{sight.end.digest}"
    return ",".join(
        (
            "" if sight.added == position.n else str(sight.added),
            str(sight.removed) if sight.removed else "",
            "" if sight.last == position.id else format_id(sight.last),
            "" if sight.deleted == LEAST else format_id(sight.deleted),
            "" if sight.first is None else str(sight.first),
            end,
        )
    )


def _cut_text(cut: Cut) -> str:
    return format_id(cut.id) if cut.rows < 0 else f"{format_id(cut.id)}/{cut.rows}"


def from_offset(offset: Mapping[str, Any]) -> Positions:
    """Return what was kept.

    Raises:
        HeadraceError: it is not ours, or newer than we are.
    """
    version = offset.get("v")
    if version == VERSION:
        return {key: _from_text(text) for key, text in offset["k"].items()}
    if version == 1:
        return {key: _from_first_version(value) for key, value in offset["k"].items()}
    if "k" in offset and isinstance(version, int):
        raise HeadraceError(
            f"this checkpoint is of a newer pyspark-headrace: its offsets have version {version}, "
            f"and this one reads {LEAST_VERSION} to {VERSION}. Install the newer one again, go "
            "back to a copy of the checkpoint, or begin a new one with startingOffsets set to the "
            "IDs that stand in the last file of its folder offsets"
        )
    shown = str(dict(offset))
    raise HeadraceError(
        "this checkpoint is of another source, for it holds the offset "
        f"{shown if len(shown) <= MOST_SHOWN else shown[:MOST_SHOWN] + '...'}. Give each query a "
        "checkpointLocation of its own"
    )


def _from_text(text: str) -> Position:
    words = text.split(" ")
    place = parse_id(words[0])
    given = dict(word.split("=", 1) for word in words[1:])
    n = int(given.get("n", -1))
    since, behind, seen = given.get("from"), given.get("next"), given.get("seen")
    return Position(
        id=place,
        n=n,
        cuts=_cuts_from(given["cut"].split(",")) if "cut" in given else (),
        rows=int(given.get("rows", -1)),
        since=None if since is None else parse_id(since),
        lost=int(given.get("lost", 0)),
        next=None if behind is None else parse_id(behind),
        seen=None if seen is None else _sight_from(seen, place, n),
    )


def _sight_from(text: str, place: StreamID, n: int) -> Sight:
    added, removed, last, deleted, first, end = text.split(",")
    last_id = parse_id(last) if last else place
    return Sight(
        added=int(added) if added else n,
        removed=int(removed or 0),
        last=last_id,
        deleted=parse_id(deleted) if deleted else LEAST,
        first=_mark_from(first or None),
        end=Mark(last_id, end[1:]) if end.startswith("/") else _mark_from(end or None),
    )


def _cuts_from(texts: Sequence[str]) -> tuple[Cut, ...]:
    cuts = []
    for text in texts:
        id_text, slash, rows = text.partition("/")
        cuts.append(Cut(parse_id(id_text), int(rows) if slash else -1))
    return tuple(cuts)


def _mark_from(text: str | None) -> Mark | None:
    if text is None:
        return None
    id_text, _, digest = text.partition("/")
    return Mark(parse_id(id_text), digest)


def _from_first_version(value: Mapping[str, Any]) -> Position:
    since = value.get("from")
    return Position(
        id=parse_id(value["id"]),
        n=value.get("n", -1),
        cuts=_cuts_from(value.get("cut", "").split()),
        rows=value.get("rows", -1),
        since=None if since is None else parse_id(since),
        lost=value.get("lost", 0),
        next=parse_id(value["next"]) if "next" in value else None,
        seen=_sight_of_first_version(value["seen"]) if "seen" in value else None,
    )


def _sight_of_first_version(value: Mapping[str, Any]) -> Sight:
    return Sight(
        added=value["added"],
        removed=value["removed"],
        last=parse_id(value["last"]),
        deleted=parse_id(value.get("deleted", "0-0")),
        first=_mark_from(value.get("first")),
        end=_mark_from(value.get("end")),
    )


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
        left, weight = position.rows, position.weight
        for cut in position.cuts:
            if after < cut.id < position.id:
                found.append(Piece(key, after, cut.id, cut.rows, position.seen, rank, weight))
                after, rank = cut.id, -1
                left = left - cut.rows if left >= 0 and cut.rows >= 0 else -1
        if after < position.id:
            found.append(Piece(key, after, position.id, left, position.seen, rank, weight))
    return found
