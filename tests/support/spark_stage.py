"""Streams that a query of a Spark session copies into one, each entry with a number of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_headrace.given import READ
from pyspark_headrace.options import read_options
from pyspark_headrace.resp import Link
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Where = dict[str, str]
TIMEOUT_S = 90


@contextmanager
def until_end(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """A query that is stopped at the end of the block."""
    try:
        yield query
    finally:
        query.stop()


class Stage:
    """Where a server is, what was appended to its streams, and what a query has copied."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.link = Link(read_options({**self.where, "path": "s"}, READ).connection)
        self.added = 0

    def add(self, keys: list[str], each: int = 1) -> None:
        """Append entries with a number of their own each."""
        numbers = range(self.added, self.added + each * len(keys))
        rows = [("XADD", keys[n % len(keys)], "*", "n", n) for n in numbers]
        assert all(isinstance(reply, bytes) for reply in self.link.pipeline(rows))
        self.added += len(rows)

    def copied(self) -> Counter[int]:
        """The numbers in the stream that is written, and how often they are there."""
        entries = self.link.call("XRANGE", "out", "-", "+")
        assert isinstance(entries, list)
        return Counter(
            int(dict(zip(row[0::2], row[1::2], strict=True))[b"n"]) for _, row in entries
        )

    def wait_until_copied(self) -> None:
        """Wait until all numbers are there, each once."""
        wait_until(lambda: len(self.copied()) >= self.added, TIMEOUT_S)
        assert self.copied() == Counter(range(self.added))

    def copying(
        self,
        spark: SparkSession,
        checkpoint: str,
        identity: str,
        writing: Where | None = None,
        **reading: str,
    ) -> StreamingQuery:
        """A query that copies all streams into one."""
        entries = (
            spark.readStream.format("headrace")
            .options(**self.where, subscribePattern="t:*", startingOffsets="earliest")
            .options(pollTimeoutMs="50", **reading)
            .load()
        )
        return (
            entries.selectExpr("key", "id", "fields['n'] AS n")
            .writeStream.format("headrace")
            .options(**self.where, stream="out", identity=identity, pipelineDepth="20")
            .options(checkpointLocation=checkpoint, **(writing or {}))
            .trigger(processingTime="100 milliseconds")
            .start()
        )
