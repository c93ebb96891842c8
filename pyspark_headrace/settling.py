"""Where a query goes on when entries are gone, or a stream is not what it was.

A loss is an error, or with ``failOnDataLoss=false`` a warning and a new position: what is there now
is then read, each entry once, as far as anybody can tell which of them were read before.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from pyspark_headrace.errors import DataLossError
from pyspark_headrace.ids import LEAST, StreamID, format_id
from pyspark_headrace.loss import (
    GO_ON,
    Loss,
    Turn,
    is_older,
    known_unread,
    removed_unread,
    replaced,
    turn_of,
    unread,
)
from pyspark_headrace.offsets import Position, Sight
from pyspark_headrace.options import ReadOptions
from pyspark_headrace.server import Figures, Look, Server

log = logging.getLogger("pyspark_headrace")


class Settler:
    """Settles what a look at a stream has brought to light."""

    def __init__(self, options: ReadOptions, server: Server) -> None:
        self._options: Final = options
        self._server: Final = server
        self._reported: set[str] = set()

    def settled(self, key: str, base: Position, look: Look, earlier: Sight | None) -> Position:
        """Return where to go on after what has become of a stream meanwhile; else ``base``.

        Args:
            earlier: what was seen when the position was written down.

        Raises:
            DataLossError: entries are lost, and that is to be an error.
        """
        figures = look.figures
        turn = turn_of(base, look)
        if turn is Turn.ANEW and self._is_older(key, base, look, earlier):
            turn = Turn.OLDER
        if turn is Turn.SAME:
            loss = removed_unread(key, base, figures)
            return base if loss is None else self.after_removal(base, figures, loss)
        if turn is Turn.SET:
            return self._after_reset(key, base, look)
        if turn is Turn.GONE and self._options.pattern and not known_unread(base):
            log.warning("stream %s is gone; all that was seen of it had been read", key)
        else:
            self._report(loss := replaced(key, base, turn, look))
            base = replace(base, lost=base.lost + loss.rows)
        if turn is Turn.GONE:
            return Position(LEAST, 0, since=LEAST, lost=base.lost)
        if turn is Turn.ANEW:
            return Position(
                LEAST, figures.removed, since=LEAST, lost=base.lost, seen=figures.sight()
            )
        return self._placed(key, base, min(base.id, figures.last), look)

    def _is_older(self, key: str, base: Position, look: Look, earlier: Sight | None) -> bool:
        most = self._options.walk_limit
        return any(
            is_older(self._server, key, replace(base, seen=seen), look, most)
            for seen in dict.fromkeys((base.seen, earlier))
        )

    def _placed(self, key: str, base: Position, place: StreamID, look: Look) -> Position:
        """A position in a stream whose counters are not what they were."""
        figures = look.figures
        rank = -1
        if place == figures.last:
            rank = figures.added
        elif figures.begins_behind(place):
            rank = figures.removed
        elif place == base.id and look.behind >= 0:
            rank = figures.added - look.behind
        return Position(
            place,
            rank,
            since=None if place == base.id else place,
            lost=base.lost,
            next=None if rank >= 0 else self._server.first_behind(key, place),
            seen=figures.sight(),
        )

    def _after_reset(self, key: str, base: Position, look: Look) -> Position:
        """Go on in a stream whose counters were set; none of its entries is another one."""
        figures, seen = look.figures, base.seen
        assert seen is not None
        assert seen.end is not None
        if figures.begins_behind(base.id) and figures.oldest != seen.first:
            loss = Loss(
                unread(base),
                f"stream {key}: {Turn.SET.value}; entries after {format_id(base.id)} may have been "
                "removed before they were read",
            )
            self._report(loss)
            base = replace(base, lost=base.lost + loss.rows)
        else:
            log.warning("stream %s: %s; reading on", key, Turn.SET.value)
        return self._placed(key, base, min(base.id, seen.end.id), look)

    def after_removal(self, base: Position, figures: Figures, loss: Loss) -> Position:
        """Go on behind what the same stream has lost.

        Raises:
            DataLossError: that is to be an error.
        """
        self._report(loss)
        return replace(
            base,
            n=figures.removed,
            lost=base.lost + loss.rows,
            next=None,
            seen=figures.sight(),
        )

    def _report(self, loss: Loss) -> None:
        if self._options.fail_on_loss:
            raise DataLossError(f"{loss.text}. {GO_ON}")
        if loss.text not in self._reported:
            self._reported.add(loss.text)
            log.warning("%s; failOnDataLoss is false, reading on", loss.text)
