"""How far a reader is behind its streams: in entries, in bytes and in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark_headrace.ids import GREATEST, LEAST
from pyspark_headrace.offsets import Position, Positions
from pyspark_headrace.server import Figures, Server


@dataclass(frozen=True)
class Behind:
    """What is left to read; None stands for what is not known.

    Attributes:
        entries: that are there and were not read.
        bytes: about how many these take, for an entry counts as the average one of its stream.
        ms: from the last entry that was read to the last one there is; where none was read, from
            the first one there is.
    """

    entries: int | None = 0
    bytes: int | None = 0
    ms: int | None = 0


NOTHING: Final = Behind()
UNKNOWN: Final = Behind(None, None, None)


def behind(read: Position, figures: Figures, entry_bytes: int, rows: int | None = None) -> Behind:
    """Return what is left of a stream.

    Args:
        entry_bytes: of an average entry.
        rows: what is left, where it was counted; else ranks tell, as far as they are known.
    """
    newest = LEAST if figures.newest is None else figures.newest.id
    if newest <= read.id:
        return NOTHING
    if rows is None and read.id < figures.first:
        rows = figures.length
    elif rows is None and figures.added >= 0 and read.n >= 0:
        rows = min(figures.added - read.n, figures.length)
    ms = newest[0] - max(read.id, figures.first)[0]
    return Behind(rows, None if rows is None else rows * entry_bytes, ms)


def lags_between(read: Positions, there: Positions) -> dict[str, Behind]:
    """Return what is left of each stream between two offsets, which know no sizes of entries."""
    return {key: _between(position, there.get(key), there) for key, position in read.items()}


def _between(read: Position, there: Position | None, offset: Positions) -> Behind:
    if not offset:
        return UNKNOWN
    if there is None or there.id <= read.id:
        return NOTHING
    known = there.n >= 0 and read.n >= 0
    ms = None if read.id == LEAST else there.id[0] - read.id[0]
    return Behind(there.n - read.n if known else None, None, ms)


def lags_now(server: Server, read: Positions) -> dict[str, Behind]:
    """Return what is left of each stream at this moment.

    Raises:
        HeadraceError: the server does not answer, or refuses.
    """
    rows: Mapping[str, int | None] = dict.fromkeys(read)
    if server.offers_ranks():
        ranges = [(key, position.id, GREATEST) for key, position in read.items()]
        rows = dict(zip(read, server.count(ranges), strict=True))
    # Most streams have nothing left, and of these nothing else is asked.
    figures = server.figures([key for key, count in rows.items() if count != 0])
    late = [key for key, each in figures.items() if behind(read[key], each, 0) != NOTHING]
    memory = dict(zip(late, server.weights(late), strict=True))
    found = dict.fromkeys(read, NOTHING)
    for key in late:
        entry_bytes = max(figures[key].entry_bytes, memory[key])
        found[key] = behind(read[key], figures[key], entry_bytes, rows[key])
    return found


def together(lags: Iterable[Behind]) -> Behind:
    """Return what is left of all of them: entries and bytes add up, and the longest time counts."""
    each = list(lags)
    return Behind(
        _all_known([lag.entries for lag in each], sum),
        _all_known([lag.bytes for lag in each], sum),
        _all_known([lag.ms for lag in each], _greatest),
    )


def _all_known(figures: Sequence[int | None], add: Callable[[list[int]], int]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return add(known) if len(known) == len(figures) else None


def _greatest(figures: list[int]) -> int:
    return max(figures, default=0)
