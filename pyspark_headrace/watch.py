"""Whether what a task reads is what was planned.

Behind each page, in the same round trip, a task asks what the stream looks like. A page of a stream
that was replaced is not handed on: the next batch reads the new stream from its beginning, and each
of its entries is to come once.
"""

from __future__ import annotations

import logging
from typing import Final

from pyspark_headrace.client import Words
from pyspark_headrace.columnar import Page
from pyspark_headrace.errors import DataLossError
from pyspark_headrace.ids import StreamID, format_id, parse_id
from pyspark_headrace.loss import GO_ON, Turn, is_older, turn_of
from pyspark_headrace.offsets import Piece, Position, Sight
from pyspark_headrace.options import ReadOptions
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Figures, Look, Server, figures_of, marks_of, newest_of

log = logging.getLogger("pyspark_headrace")

AMID: Final = "between planning and reading"


class Watch:
    """Looks after one piece while a task reads it."""

    def __init__(self, options: ReadOptions, piece: Piece, link: Link) -> None:
        self._options: Final = options
        self._piece: Final = piece
        self._server: Final = Server(link)
        self._reported = False

    def questions(self) -> list[Words]:
        """Return what to ask behind a page; nothing for pieces of earlier versions."""
        piece = self._piece
        if piece.seen is None:
            return []
        return [newest_of(piece.key, piece.seen), ("XINFO", "STREAM", piece.key)]

    def allows(self, page: Page, low: StreamID, replies: list[object]) -> bool:
        """Return whether a page is of the planned stream; if not, the piece ends before it.

        Args:
            low: what the page was to follow.

        Raises:
            DataLossError: it is not, or entries of the page were trimmed, and that is to be an
                error.
        """
        piece, seen = self._piece, self._piece.seen
        if seen is None:
            return True
        look = Look(figures_of(replies[1], piece.key), marks_of(replies[0]))
        position = Position(piece.after, seen=seen)
        turn = turn_of(position, look)
        most = self._options.walk_limit
        if turn is Turn.ANEW and is_older(self._server, piece.key, position, look, most):
            turn = Turn.OLDER
        if turn is Turn.SAME:
            if piece.rows < 0:
                self._judge_trimming(page, low, seen, look.figures)
        elif turn is not Turn.SET:
            self._report(
                f"stream {piece.key}: {turn.value} {AMID}; entries after "
                f"{format_id(piece.after)} may be lost"
            )
        return turn not in (Turn.GONE, Turn.ANEW)

    def _judge_trimming(self, page: Page, low: StreamID, seen: Sight, figures: Figures) -> None:
        """Report entries that were trimmed before a page that was not counted could be read.

        Trimming takes the oldest first: as long as an entry before the page lives, it took none of
        it; nor did it when the page begins with what was the first entry of all.
        """
        piece = self._piece
        known = low == piece.after and piece.n >= 0
        gone = figures.removed - (piece.n if known else seen.removed)
        if gone <= 0 or not figures.begins_behind(low) or seen.first is None or seen.end is None:
            return
        first = parse_id(page.ids[0]) if len(page) else None
        if first == seen.first.id or seen.first.id > piece.upto or seen.end.id <= low:
            return
        self._report(_removed(piece.key, low, f"up to {gone}"))

    def finish(self, rows: int) -> None:
        """Compare what was read with what was counted; deleting some by name is no loss.

        Raises:
            DataLossError: entries are missing, and that is to be an error.
        """
        piece = self._piece
        missing = piece.rows - rows
        if piece.rows < 0 or missing <= 0 or self._reported:
            return
        figures = self._server.figures([piece.key])[piece.key]
        deleted = figures.max_deleted > piece.after
        if deleted and not figures.begins_behind(piece.after):
            return
        count = f"up to {missing}" if deleted else f"{missing}"
        self._report(_removed(piece.key, piece.after, count))

    def _report(self, text: str) -> None:
        if self._options.fail_on_loss:
            raise DataLossError(f"{text}. {GO_ON}")
        if not self._reported:
            self._reported = True
            log.warning("%s; failOnDataLoss is false, reading on", text)


def _removed(key: str, place: StreamID, count: str) -> str:
    return f"stream {key}: {count} entries after {format_id(place)} were removed {AMID}"
