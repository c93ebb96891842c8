"""Which entries the next batch holds, and into which pieces it is cut.

With XCOUNT and XSPLIT this takes two or three round trips and is exact, however long the stream.
Without them, a limited batch is found by walking through its entries, up to ``planWalkLimit``;
beyond that its end is guessed from the times in the IDs, and its entries are not counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.ids import ID_MAX, LEAST, StreamID, format_id
from pyspark_headrace.lag import Behind, behind, together
from pyspark_headrace.loss import numbers_contradict, removed_amid, removed_unread
from pyspark_headrace.offsets import Cut, Piece, Position, Positions, Sight
from pyspark_headrace.options import Bound, ReadOptions
from pyspark_headrace.resting import Resting
from pyspark_headrace.server import Figures, Look, Measure, Server
from pyspark_headrace.settling import Settler
from pyspark_headrace.sharing import cuts_by_time, cuts_of, fair_shares, parts_of, shares_within

log = logging.getLogger("pyspark_headrace")

PATTERN_EVERY_S: Final = 2.0
FEW_ROWS: Final = 2
MOST_AWAITED: Final = 1000  # streams that a server is asked to wait for; more are looked at again


@dataclass(frozen=True)
class Backlog:
    """What one stream has for the next batch.

    Attributes:
        base: the position to start from, the losses that were met included.
        target: the ID not to go beyond.
        rank: that of the target; -1 when it is unknown.
        rows: entries up to there; an estimate where the server does not count.
        weight: about how many bytes each of them has.
        moved: whether the base is to be written down, even if there is nothing to read.
    """

    base: Position
    figures: Figures
    target: StreamID
    rank: int
    rows: int = 0
    weight: int = 1
    moved: bool = False

    @property
    def start(self) -> StreamID:
        """The ID to read after."""
        return self.base.id


class Planner:
    """Plans batches; lives as long as the query does."""

    def __init__(self, options: ReadOptions, server: Server) -> None:
        self._options: Final = options
        self._server: Final = server
        self._known: tuple[str, ...] = ()
        self._known_at_s = float("-inf")
        self._targets: dict[str, tuple[StreamID, int]] | None = None
        self._figures: dict[str, Figures] = {}
        self._entry_bytes: dict[str, int] = {}
        self._seen: dict[str, Sight] = {}
        self._resting: Final = Resting(server.link)
        self._at_rest: tuple[Positions, Positions] = ({}, {})
        self._report: Positions | None = None
        self._last_batch_s = time.monotonic()
        self._settler: Final = Settler(options, server)

    def streams(self) -> tuple[str, ...]:
        """The streams that are subscribed to; those of a pattern are looked for now and then."""
        if not self._options.pattern:
            return self._options.keys
        now_s = time.monotonic()
        if now_s - self._known_at_s > PATTERN_EVERY_S:
            known = tuple(self._server.matching(self._options.pattern))
            if known != self._known:
                self._known = known
            self._known_at_s = now_s
        return self._known

    def initial(self) -> Positions:
        """Return where a new query starts."""
        keys = self.streams()
        figures = self._server.settled_figures(keys)
        for key in keys:
            if not figures[key].exists:
                log.warning("stream %s is not there yet; waiting for it", key)
        return {key: self._start(key, figures[key], self._options.start_of(key)) for key in keys}

    def _start(self, key: str, figures: Figures, bound: Bound) -> Position:
        seen = figures.sight()
        if bound.word == "latest":
            if figures.stable == LEAST and figures.length:
                raise HeadraceError(
                    f"stream {key}: not all regions answer, so nobody knows what is the latest; "
                    "start with an ID, or with earliest"
                )
            if figures.settled:
                return Position(figures.last, figures.added, seen=seen)
            bound = Bound("", figures.top)
        place = LEAST if bound.word == "earliest" else bound.id
        if place == LEAST or (figures.length and place < figures.first):
            return Position(place, figures.removed, seen=seen)
        if place >= figures.last or figures.added < 0 or place > figures.top:
            # An ID that is still to come has no rank yet; nor has one that others may come before.
            rank = figures.added if place == figures.last and figures.settled else -1
            return Position(place, rank, seen=seen)
        if not self._server.offers_ranks():
            return Position(place, next=self._server.first_behind(key, place), seen=seen)
        rank = self._server.measure([(key, place, place, 1)])[0].rank
        return Position(place, rank, seen=seen)

    def stop_at_latest(self) -> None:
        """Go no further than what is there at this moment (``Trigger.AvailableNow``)."""
        figures = self._server.settled_figures(self.streams())
        self._targets = {key: (found.top, found.top_rank) for key, found in figures.items()}

    def report(self) -> Positions:
        """Return what the streams were found to hold; the same object until that changes."""
        if self._report is None:
            self._report = {
                key: Position(figures.last, figures.added)
                for key, figures in self._figures.items()
                if figures.exists
            }
        return self._report

    def behind(self, read: Positions) -> Behind:
        """Return what the streams were found to hold behind these positions."""
        return together(
            behind(read.get(key, Position(LEAST)), figures, self._entry_bytes.get(key, 1))
            for key, figures in self._figures.items()
        )

    def latest(self, start: Positions, most: int) -> Positions | None:
        """Return where the next batch ends; None when there is nothing for one.

        Args:
            most: the most entries; 0 is all there are.

        Raises:
            DataLossError: entries were removed before they were read, and that is to be an error.
        """
        found, waiting = self._look(start, most)
        poll_ms = self._options.poll_ms
        if found is not None or self._targets is not None or not poll_ms:
            return found
        places = [(key, start[key].id if key in start else LEAST) for key in self.streams()]
        if waiting or not places or len(places) > MOST_AWAITED:
            time.sleep(poll_ms / 1000)
        elif self._server.wait(places, poll_ms, self._are_stable()):
            found, _ = self._look(start, most)
        return found

    def _are_stable(self) -> bool:
        """Return whether all streams have an ID up to which they can be read."""
        there = [figures for figures in self._figures.values() if figures.exists]
        return bool(there) and all(figures.stable is not None for figures in there)

    def _look(self, start: Positions, most: int) -> tuple[Positions | None, int]:
        """The end of the next batch, if it is time for one, and how many entries are waiting."""
        at_rest = self._rested(start)
        backlogs = self._backlogs(start, at_rest)
        rows = {key: backlog.rows for key, backlog in backlogs.items()}
        total = sum(rows.values())
        moved = any(backlog.moved for backlog in backlogs.values())
        if total and not moved and not self._is_worth_it(total):
            return None, total
        shares = fair_shares(rows, most) if most else {key: n for key, n in rows.items() if n > 0}
        if self._options.max_bytes:
            weights = {key: backlogs[key].weight for key in shares}
            shares = shares_within(shares, weights, self._options.max_bytes)
        ends = self._ends({key: backlogs[key] for key in shares}, shares)
        found = dict(at_rest)
        for key, backlog in backlogs.items():
            if key in ends:
                found[key] = ends[key]
            elif backlog.moved:
                found[key] = backlog.base
                if self._options.pattern and not backlog.figures.exists and not backlog.base.lost:
                    del found[key]
        if found == at_rest:
            return None, 0
        self._last_batch_s = time.monotonic()
        return found, total

    def _rested(self, start: Positions) -> Positions:
        """The same places without the batch that led there; the same objects for the same start."""
        if start is not self._at_rest[0]:
            rested = {key: position.at_rest() for key, position in start.items()}
            self._at_rest = (start, rested)
        return self._at_rest[1]

    def _is_worth_it(self, rows: int) -> bool:
        options = self._options
        if self._targets is not None or rows >= options.min_rows:
            return True
        return time.monotonic() - self._last_batch_s >= options.max_delay_ms / 1000

    def _backlogs(self, start: Positions, at_rest: Positions) -> dict[str, Backlog]:
        keys = self._resting.awake(self._keys(), at_rest)
        known = {
            key: replace(at_rest[key], seen=self._seen.get(key, start[key].seen))
            for key in (*keys, *self._missing(start))
            if key in start
        }
        looks = self._looks(keys, known)
        found: dict[str, Backlog] = {}
        for key, look in looks.items():
            figures = look.figures
            base = known.get(key, Position(LEAST, figures.removed))
            bound = self._options.end_of(key)
            if not bound.word and bound.id <= base.id:
                continue  # read to the end that was asked for
            moved = base
            if key in known:
                moved = self._settler.settled(key, base, look, start[key].seen)
            if moved != base and self._targets is not None:  # its IDs and ranks may be others
                self._targets[key] = (figures.top, figures.top_rank)
            target, rank = figures.top, figures.top_rank
            if self._targets is not None and self._targets[key][0] < target:
                target, rank = self._targets[key]
            if not bound.word and bound.id < target:
                target, rank = bound.id, -1
            found[key] = Backlog(moved, figures, target, rank, moved=moved != base)
        self._remember(looks)
        for key, each in found.items():
            if key in at_rest and not each.moved and each.start >= each.target:
                self._resting.rest(key, at_rest[key], each.figures.length)
        return self._counted(found)

    def _remember(self, looks: Mapping[str, Look]) -> None:
        """Keep what was seen of the streams that were looked at."""
        for key, look in looks.items():
            if self._figures.get(key) != look.figures:
                self._report = None
                self._figures[key] = look.figures
                if not look.figures.exists:
                    del self._figures[key]
            seen = look.figures.sight()
            if seen is not None:
                self._seen[key] = seen
            else:
                self._seen.pop(key, None)

    def _keys(self) -> Sequence[str]:
        """The streams that are subscribed to, as far as they are read."""
        targets, keys = self._targets, self.streams()
        return keys if targets is None else [key for key in keys if key in targets]

    def _missing(self, start: Positions) -> list[str]:
        """The streams of a pattern that it does not find any more."""
        return sorted(start.keys() - set(self.streams())) if self._options.pattern else []

    def _looks(self, keys: Sequence[str], known: Positions) -> dict[str, Look]:
        """Those streams, and those that a pattern does not find any more."""
        found = self._server.looks(keys, known)
        for key in self._server.without_stream(self._missing(known)):
            found[key] = Look(Figures())
            if self._targets is not None:
                self._targets.setdefault(key, (LEAST, 0))
        return found

    def _counted(self, backlogs: dict[str, Backlog]) -> dict[str, Backlog]:
        waiting = {key: each for key, each in backlogs.items() if each.start < each.target}
        if self._server.offers_ranks():
            ranges = [(key, each.start, each.target) for key, each in waiting.items()]
            counts = self._server.count(ranges) if ranges else []
        else:
            counts = [_estimate(each) for each in waiting.values()]
        rows = dict(zip(waiting, counts, strict=True))
        weights = self._weights(rows, {key: each.figures for key, each in waiting.items()})
        self._entry_bytes.update(weights)
        for key, each in waiting.items():
            backlogs[key] = replace(each, rows=rows[key], weight=weights[key])
        return backlogs

    def _weights(self, rows: Mapping[str, int], figures: Mapping[str, Figures]) -> dict[str, int]:
        """About how many bytes an entry of each stream has.

        The oldest and the newest one are known, and have to do where there is little to read.
        """
        many = [key for key, count in rows.items() if count > FEW_ROWS]
        asked = dict(zip(many, self._server.weights(many), strict=True)) if many else {}
        return {key: max(1, figures[key].entry_bytes, asked.get(key, 0)) for key in rows}

    def _ends(self, backlogs: Mapping[str, Backlog], shares: Mapping[str, int]) -> Positions:
        if not backlogs:
            return {}
        total = sum(shares.values())
        parts = {
            key: parts_of(rows, total, self._options, backlogs[key].weight)
            for key, rows in shares.items()
        }
        if self._server.offers_ranks():
            return self._ends_by_rank(backlogs, shares, parts)
        return {
            key: self._end_by_walking(key, each, shares[key], parts[key])
            for key, each in backlogs.items()
        }

    def _ends_by_rank(
        self, backlogs: Mapping[str, Backlog], shares: Mapping[str, int], parts: Mapping[str, int]
    ) -> Positions:
        targets = {key: each.target for key, each in backlogs.items()}
        limited = [key for key, each in backlogs.items() if shares[key] < each.rows]
        wanted = [(key, backlogs[key].start, targets[key], shares[key]) for key in limited]
        if wanted:
            targets.update(zip(limited, self._server.ends(wanted), strict=True))
        ranges = [(key, each.start, targets[key], parts[key]) for key, each in backlogs.items()]
        found: Positions = {}
        for (key, each), measure in zip(
            backlogs.items(), self._server.measure(ranges), strict=True
        ):
            base = self._missed_meanwhile(key, each, measure)
            rank = each.rank if key not in limited and each.rank >= 0 else measure.rank
            found[key] = replace(
                base,
                id=targets[key],
                n=rank,
                cuts=measure.cuts,
                rows=measure.rows,
                next=None,
                seen=each.figures.sight(),
                weight=each.weight,
            )
        return found

    def _missed_meanwhile(self, key: str, backlog: Backlog, measure: Measure) -> Position:
        """The base of a batch, after what was removed up to the moment of its measure."""
        base, figures = backlog.base, measure.figures
        seen = backlog.figures.sight()
        if base.n < 0 or (seen is None and backlog.figures.settled):
            return base
        there = () if seen is None or seen.end is None else (seen.end,)
        if seen is not None and numbers_contradict(seen, Look(figures, there)):
            return base  # replaced since the first question: the tasks will see it, and report it
        loss = removed_unread(key, base, figures)
        if loss is None:
            missing = measure.rank - base.n - measure.rows
            loss = removed_amid(key, base, missing, figures)
        return base if loss is None else self._settler.after_removal(base, figures, loss)

    def _end_by_walking(self, key: str, backlog: Backlog, share: int, parts: int) -> Position:
        options = self._options
        low = backlog.start
        seen = backlog.figures.sight()
        base = replace(backlog.base, next=None, seen=seen, weight=backlog.weight)
        first = max(low, backlog.figures.first)
        # Of the entries from here on none was deleted by name, and the rank is exact.
        exact = backlog.base.is_exact() and backlog.figures.max_deleted <= low
        if share >= backlog.rows:
            end = replace(
                base,
                id=backlog.target,
                n=backlog.rank,
                cuts=cuts_by_time(first, backlog.target, parts),
                rows=backlog.rank - base.n if backlog.rank >= 0 and exact and parts == 1 else -1,
            )
            return end if end.n >= 0 else self._with_next(key, end)
        if share <= options.walk_limit:
            ids = self._server.walk(key, low, backlog.target, share, options.fetch_count)
            if not ids:
                return replace(base, id=backlog.target, n=backlog.rank, rows=0)
            rank = base.n + len(ids) if base.n >= 0 else -1
            end = replace(base, id=ids[-1], n=rank, cuts=cuts_of(ids, parts), rows=len(ids))
            return end if exact else self._with_next(key, end)
        ms = first[0] + (backlog.target[0] - first[0]) * share // backlog.rows
        place = min(max((ms, ID_MAX), (first[0], ID_MAX)), backlog.target)
        log.info("stream %s: this batch ends at %s, by time", key, format_id(place))
        end = replace(base, id=place, n=-1, cuts=cuts_by_time(first, place, parts))
        if place == backlog.target and backlog.rank >= 0:
            return replace(end, n=backlog.rank)
        return self._with_next(key, end)

    def _with_next(self, key: str, end: Position) -> Position:
        return replace(end, next=self._server.first_behind(key, end.id))

    # For a batch read

    def pieces(self, start: Mapping[str, StreamID], end: Mapping[str, StreamID]) -> list[Piece]:
        """Return what ``spark.read`` reads: everything there is at this moment, within the options.

        Args:
            start, end: narrower bounds that filters give, by stream; reading starts after the one
                and ends with the other.

        Raises:
            HeadraceError: a stream that was named is not there.
        """
        keys = [key for key in self.streams() if key in start]
        figures = self._server.settled_figures(keys)
        ranges: dict[str, tuple[StreamID, StreamID]] = {}
        for key in keys:
            if not figures[key].exists and not self._options.pattern:
                raise HeadraceError(f"there is no stream {key}")
            low = self._first(figures[key], self._options.start_of(key))
            bound = self._options.end_of(key)
            high = figures[key].top if bound.word else min(bound.id, figures[key].top)
            low, high = max(low, start[key]), min(high, end[key])
            if low < high and figures[key].length:
                ranges[key] = (low, high)
        if self._server.offers_ranks():
            return self._pieces_by_rank(ranges, figures)
        return self._pieces_by_time(ranges, figures)

    def _first(self, figures: Figures, bound: Bound) -> StreamID:
        return {"earliest": LEAST, "latest": figures.top}.get(bound.word, bound.id)

    def _pieces_by_rank(
        self, ranges: Mapping[str, tuple[StreamID, StreamID]], figures: Mapping[str, Figures]
    ) -> list[Piece]:
        counts = self._server.count([(key, *pair) for key, pair in ranges.items()])
        total = sum(counts)
        rows_of = dict(zip(ranges, counts, strict=True))
        weights = self._weights(rows_of, figures)
        wanted = [
            (key, *ranges[key], parts_of(rows, total, self._options, weights[key]))
            for key, rows in rows_of.items()
            if rows
        ]
        found: list[Piece] = []
        for (key, low, high, _), measure in zip(wanted, self._server.measure(wanted), strict=True):
            seen = figures[key].sight()
            pieces = _pieces_of(key, low, high, measure.cuts, measure.rows, seen)
            found += [replace(piece, weight=weights[key]) for piece in pieces]
        return found

    def _pieces_by_time(
        self, ranges: Mapping[str, tuple[StreamID, StreamID]], figures: Mapping[str, Figures]
    ) -> list[Piece]:
        lengths = {key: figures[key].length for key in ranges}
        total = sum(lengths.values())
        weights = self._weights(lengths, figures)
        found: list[Piece] = []
        for key, (low, high) in ranges.items():
            parts = parts_of(lengths[key], total, self._options, weights[key])
            cuts = cuts_by_time(max(low, figures[key].first), high, parts)
            found += _pieces_of(key, low, high, cuts, -1, figures[key].sight())
        return found


def _pieces_of(
    key: str, low: StreamID, high: StreamID, cuts: Sequence[Cut], rows: int, seen: Sight | None
) -> list[Piece]:
    found: list[Piece] = []
    for cut in cuts:
        found.append(Piece(key, low, cut.id, cut.rows, seen))
        low = cut.id
        rows = rows - cut.rows if rows >= 0 and cut.rows >= 0 else -1
    found.append(Piece(key, low, high, rows, seen))
    return found


def _estimate(backlog: Backlog) -> int:
    """Return how many entries a stream may have for a batch, where the server does not count."""
    figures, low, high = backlog.figures, backlog.start, backlog.target
    if not figures.length:
        return 0
    if backlog.rank >= 0 and backlog.base.n >= 0:
        return min(max(0, backlog.rank - backlog.base.n), figures.length)
    span_ms = max(1, figures.last[0] - figures.first[0])
    part_ms = high[0] - max(low, figures.first)[0]
    return max(1, min(figures.length, figures.length * part_ms // span_ms))
