"""The source: what Spark asks of a reader, for a batch and for a streaming query.

A reader is built twice, in two planner processes: one plans, the other is pickled into the tasks.
So its constructor opens nothing, and what a planner needs is made when it is first asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_headrace.filling import Bad
from pyspark_headrace.filters import Bounds
from pyspark_headrace.mirror import mirror
from pyspark_headrace.offsets import (
    Offset,
    Piece,
    Positions,
    from_offset,
    pieces_between,
    to_offset,
)
from pyspark_headrace.options import ReadOptions
from pyspark_headrace.paging import Pages
from pyspark_headrace.planner import Planner
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server
from pyspark_headrace.shape import Shape
from pyspark_headrace.tasks import deal, dealt
from pyspark_headrace.watch import Watch

ENOUGH_ROWS: Final = 1000  # in one Arrow batch
ENOUGH_BYTES: Final = 1 << 20
KNOWN_OFFSETS: Final = 3  # Spark asks about the last two, and the next one is made
_PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class PiecePartition(InputPartition):
    """What one task reads."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        super().__init__(None)
        self.pieces: Final = pieces


def read_pieces(
    options: ReadOptions, shape: Shape, pieces: Sequence[Piece]
) -> Iterator[pa.RecordBatch]:
    """The entries of the pieces of a task, in order; those of small pieces stand together.

    Raises:
        DataLossError: see ``read_piece``.
    """
    link = Link(options.connection)
    held: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        for piece in pieces:
            for batch in read_piece(options, shape, piece, link):
                held.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
                if rows >= ENOUGH_ROWS or size >= ENOUGH_BYTES:
                    yield _together(held)
                    held, rows, size = [], 0, 0
        if held:
            yield _together(held)
    finally:
        link.close()


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)


def read_piece(
    options: ReadOptions, shape: Shape, piece: Piece, link: Link
) -> Iterator[pa.RecordBatch]:
    """The entries of a piece, page by page.

    Raises:
        DataLossError: there were fewer entries than when the piece was planned, because they were
            trimmed in the meantime, or because the stream is not what it was.
    """
    watch = Watch(options, piece, link)
    pages = Pages(link, piece.key, piece.after, piece.upto, options.fetch_count, watch.questions())
    rows = 0
    bad = Bad()
    while not pages.done:
        low = pages.low
        page, replies = pages.next()
        if not watch.allows(page, low, replies):
            break
        pages.ask_ahead()
        rows += len(page)
        if len(page):
            yield shape.batch(piece.key, page, bad)
    watch.finish(rows)
    bad.report(piece.key, options.mode)


def partitions_of(pieces: Sequence[Piece], counts: Sequence[int]) -> list[InputPartition]:
    """A partition for each task."""
    return [PiecePartition(each) for each in dealt(pieces, counts)]


class BatchReader(DataSourceReader):
    """``spark.read``: everything there is when the query is planned, within the options."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._shape = Shape(schema, options.frame, options.mode, options.encoding)
        self._bounds = Bounds()

    def partitions(self) -> list[InputPartition]:
        """One for each task, which reads one piece or many."""
        link = Link(self._options.connection)
        try:
            planner = Planner(self._options, Server(link))
            keys = [key for key in planner.streams() if self._bounds.allows(key)]
            low = dict.fromkeys(keys, self._bounds.after)
            high = dict.fromkeys(keys, self._bounds.upto)
            pieces = planner.pieces(low, high)
            return partitions_of(pieces, deal(pieces, self._options))
        finally:
            link.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The entries of the pieces of a task."""
        if not isinstance(partition, PiecePartition):
            return iter(())  # Spark asks once where there are no partitions at all
        return read_pieces(self._options, self._shape, partition.pieces)


class FilteringBatchReader(BatchReader):
    """A batch reader that reads only the IDs and streams that a query's filters let through.

    Spark refuses a reader with this method unless ``spark.sql.python.filterPushdown.enabled``.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take what can be said with IDs; the others are Spark's to apply."""
        return self._bounds.take(filters, self._shape.meta_names())


def batch_reader(options: ReadOptions, schema: StructType) -> BatchReader:
    """The reader that fits how Spark is set."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    pushing = _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", "") == _PUSHDOWN_WORKER
    kind = FilteringBatchReader if pushing else BatchReader
    return kind(options, schema)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """``spark.readStream``."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._shape = Shape(schema, options.frame, options.mode, options.encoding)
        self._planner: Planner | None = None
        self._initial: Offset | None = None
        self._known: list[tuple[Offset, Positions]] = []
        self._end: Positions = {}  # of the batch that was planned last
        self._mirrored: Positions = {}
        self._reported: tuple[Positions, Positions, Offset] | None = None

    def __getstate__(self) -> dict[str, Any]:
        empty: dict[str, Any] = {
            "_planner": None,
            "_known": [],
            "_end": {},
            "_mirrored": {},
            "_reported": None,
        }
        return {**self.__dict__, **empty}

    def _positions(self, offset: Offset) -> Positions:
        """Return what an offset says; comparing it with known ones is faster than reading."""
        for known, positions in self._known:
            if known == offset:
                return positions
        positions = from_offset(offset)
        self._remember(offset, positions)
        return positions

    def _remember(self, offset: Offset, positions: Positions) -> None:
        self._known = [(offset, positions), *self._known[: KNOWN_OFFSETS - 1]]

    def _plan(self) -> Planner:
        if self._planner is None:
            self._link = Link(self._options.connection)
            self._planner = Planner(self._options, Server(self._link))
        return self._planner

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return where a new query starts; Spark asks more than once and gets the same answer."""
        if self._initial is None:
            self._initial = to_offset(self._plan().initial())
        return self._initial

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the streams end now."""
        self._plan().stop_at_latest()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The most entries, or else the most bytes: Spark knows no limit of both."""
        if self._options.max_rows:
            return ReadMaxRows(self._options.max_rows)
        if self._options.max_bytes:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return where the next batch ends: ``start`` itself when there is nothing new."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        positions = self._positions(start)
        self._mirror(positions)  # up to there all batches are done
        found = self._plan().latest(positions, most)
        self._end = positions if found is None else found
        if found is None:
            return start
        counts = deal(pieces_between(positions, found), self._options)
        offset = to_offset(found, counts)
        self._remember(offset, found)
        return offset

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """Return what the streams held at ``latestOffset``, on which server, and what is left.

        Spark shows it as it is in the progress of a query, and does nothing else with it.
        """
        found = self._plan().report()
        known = self._reported
        if known is None or known[0] is not found or known[1] is not self._end:
            lag = asdict(self._plan().behind(self._end))
            shown = {**to_offset(found), "lag": lag, "at": self._options.connection.label}
            self._reported = known = (found, self._end, shown)
        return known[2] if found else None

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The pieces that stand in ``end``; the same ones when a batch is repeated."""
        pieces = pieces_between(self._positions(start), self._positions(end))
        return partitions_of(pieces, end.get("t", ()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The entries of the pieces of a task."""
        assert isinstance(partition, PiecePartition)
        return read_pieces(self._options, self._shape, partition.pieces)

    def commit(self, end: Offset) -> None:
        """A batch is done for good; Spark says so a batch later, or when the query starts again."""
        self._mirror(self._positions(end))

    def _mirror(self, positions: Positions) -> None:
        if self._options.mirror_group and positions != self._mirrored:
            self._plan()
            mirror(self._link, self._options.mirror_group, positions)
            self._mirrored = positions
