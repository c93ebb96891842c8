"""The source: what Spark asks of a reader, for a batch and for a streaming query.

A reader is built twice, in two planner processes: one plans, the other is pickled into the tasks.
So its constructor opens nothing, and what a planner needs is made when it is first asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
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
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_headrace.filling import Bad
from pyspark_headrace.filters import Bounds
from pyspark_headrace.mirror import mirror
from pyspark_headrace.offsets import Offset, Piece, from_offset, pieces_between, to_offset
from pyspark_headrace.options import ReadOptions
from pyspark_headrace.paging import Pages
from pyspark_headrace.planner import Planner
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server
from pyspark_headrace.shape import Shape
from pyspark_headrace.watch import Watch

_PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class PiecePartition(InputPartition):
    """What one task reads."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(None)
        self.piece: Final = piece


def read_piece(options: ReadOptions, shape: Shape, piece: Piece) -> Iterator[pa.RecordBatch]:
    """The entries of a piece, page by page.

    Raises:
        DataLossError: there were fewer entries than when the piece was planned, because they were
            trimmed in the meantime, or because the stream is not what it was.
    """
    link = Link(options.connection)
    watch = Watch(options, piece, link)
    pages = Pages(link, piece.key, piece.after, piece.upto, options.fetch_count, watch.questions())
    rows = 0
    bad = Bad()
    try:
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
        bad.tell(piece.key, options.mode)
    finally:
        link.close()


class BatchReader(DataSourceReader):
    """``spark.read``: everything there is when the query is planned, within the options."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._shape = Shape(schema, options.frame, options.mode, options.encoding)
        self._bounds = Bounds()

    def partitions(self) -> list[InputPartition]:
        """One for each piece of each stream."""
        link = Link(self._options.connection)
        try:
            planner = Planner(self._options, Server(link))
            keys = [key for key in planner.streams() if self._bounds.allows(key)]
            low = dict.fromkeys(keys, self._bounds.after)
            high = dict.fromkeys(keys, self._bounds.upto)
            return [PiecePartition(piece) for piece in planner.pieces(low, high)]
        finally:
            link.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The entries of one piece."""
        if not isinstance(partition, PiecePartition):
            return iter(())  # Spark asks once where there are no partitions at all
        return read_piece(self._options, self._shape, partition.piece)


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

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planner": None}

    def _plan(self) -> Planner:
        if self._planner is None:
            self._link = Link(self._options.connection)
            self._planner = Planner(self._options, Server(self._link))
        return self._planner

    def initialOffset(self) -> Offset:  # noqa: N802
        """Where a new query starts; Spark asks more than once and gets the same answer."""
        if self._initial is None:
            self._initial = to_offset(self._plan().initial())
        return self._initial

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the streams end now."""
        self._plan().stop_at_latest()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """``maxOffsetsPerTrigger``."""
        most = self._options.max_rows
        return ReadMaxRows(most) if most else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Where the next batch ends: ``start`` itself when there is nothing new."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        found = self._plan().latest(from_offset(start), most)
        return start if found is None else to_offset(found)

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """What the streams held when ``latestOffset`` looked: less the batch's end, the lag."""
        found = self._plan().report()
        return to_offset(found) if found else None

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The pieces that stand in ``end``; the same ones when a batch is repeated."""
        pieces = pieces_between(from_offset(start), from_offset(end))
        return [PiecePartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The entries of one piece."""
        assert isinstance(partition, PiecePartition)
        return read_piece(self._options, self._shape, partition.piece)

    def commit(self, end: Offset) -> None:
        """A batch is done for good; Spark tells one batch late, or when the query starts again."""
        if self._options.mirror_group:
            self._plan()
            mirror(self._link, self._options.mirror_group, from_offset(end))
