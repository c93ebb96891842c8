"""Streams that are replaced while Spark itself reads them: queries, their restarts, batch reads."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.offsets import from_offset
from support.client import RawClient
from support.process import Process
from support.spark_query import add
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.once

TIMEOUT_S = 120


@pytest.fixture(params=["ours", "redis"])
def live(request: pytest.FixtureRequest) -> Process:
    """Both servers in turn."""
    name = {"ours": "server", "redis": "redis_server"}[request.param]
    process: Process = request.getfixturevalue(name)
    return process


class Reading:
    """A query that keeps what it reads, and can be started again from its checkpoint."""

    def __init__(self, spark: SparkSession, process: Process, checkpoint: str) -> None:
        self._spark = spark
        self._where = {"port": str(process.port), "subscribe": "s", "startingOffsets": "earliest"}
        self.checkpoint = checkpoint
        self.values: list[str] = []

    def _keep(self, batch: DataFrame, number: int) -> None:
        self.values += [row[0] for row in batch.select(F.col("fields")["f"]).collect()]

    def start(self, at_once: bool, /, **options: object) -> StreamingQuery:
        given = {name: str(value) for name, value in options.items()}
        frame = self._spark.readStream.format("headrace").options(**self._where, **given).load()
        writer = frame.writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", self.checkpoint)
        return (writer.trigger(availableNow=True) if at_once else writer).start()

    def run(self, **options: object) -> StreamingQuery:
        query = self.start(True, **options)
        assert query.awaitTermination(TIMEOUT_S)
        return query


def ids(first: int, last: int) -> list[str]:
    return [f"{n}-1" for n in range(first, last + 1)]


def make_anew(client: RawClient, first: int, last: int) -> list[str]:
    client.call("DEL", "s")
    add(client, "s", *ids(first, last), value="new")
    return [f"new:{each}" for each in ids(first, last)]


def lost_in(query: StreamingQuery) -> int:
    return from_offset(json.loads(query.recentProgress[-1].sources[0].endOffset))["s"].lost


@pytest.mark.parametrize(("first", "last"), [(151, 270), (30, 400)])
def test_made_anew_while_a_query_does_not_run(
    spark: SparkSession, live: Process, checkpoint: str, first: int, last: int
) -> None:
    """100 were read; 50 that had been seen were not. Higher IDs, and such as pass the place."""
    reading = Reading(spark, live, checkpoint)
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        reading.run(endingTimestamp=101)
        new = make_anew(client, first, last)
        with pytest.raises(StreamingQueryException) as lost:
            reading.run()
        assert "stream s: it was deleted and made anew" in str(lost.value)
        # Where ranges are not counted, a batch that ends by time has no rank.
        counted = live.name == "headrace"
        assert ("50 of them had been seen" in str(lost.value)) == counted
        assert len(reading.values) == 100
        query = reading.run(failOnDataLoss="false", minPartitions=3)
        assert lost_in(query) == (50 if counted else 0)
        assert sorted(reading.values[100:]) == sorted(new)
        reading.run()
        assert len(reading.values) == 100 + len(new)


def test_a_running_query_whose_server_is_emptied(
    spark: SparkSession, live: Process, checkpoint: str
) -> None:
    """A batch without a piece says what was lost; then the new stream comes, in whole."""
    reading = Reading(spark, live, checkpoint)
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        query = reading.start(False, failOnDataLoss="false", pollTimeoutMs=50)
        try:
            wait_until(lambda: len(reading.values) == 150, TIMEOUT_S)
            client.call("FLUSHALL")
            wait_until(
                lambda: any(
                    '"s": "0-0' in each.sources[0].endOffset
                    for each in query.recentProgress
                    if each.batchId > 0
                ),
                TIMEOUT_S,
            )
            add(client, "s", *ids(1, 200), value="new")
            wait_until(lambda: len(reading.values) >= 350, TIMEOUT_S)
            query.processAllAvailable()
        finally:
            query.stop()
    assert len(reading.values) == 350
    assert len(set(reading.values[150:])) == 200


def test_replaced_before_a_batch_is_repeated(
    spark: SparkSession, live: Process, checkpoint: str
) -> None:
    """The batch was planned and never finished; its entries are those of another stream now."""
    reading = Reading(spark, live, checkpoint)
    with live.client() as client:
        add(client, "s", *ids(1, 150))
        reading.run(minPartitions=2)
        commits = Path(checkpoint, "commits")
        for each in (*commits.glob("0"), *commits.glob(".0.crc")):
            each.unlink()
        reading.values.clear()
        new = make_anew(client, 1, 170)
        with pytest.raises(StreamingQueryException) as lost:
            reading.run()
        assert "made anew between planning and reading" in str(lost.value)
        reading.run(failOnDataLoss="false")
        assert sorted(reading.values) == sorted(new)


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_batch_read_whose_stream_goes(spark: SparkSession, live: Process, strict: str) -> None:
    """The first task deletes the stream, and no task ends before that: the last ones read later."""
    port = live.port

    @F.udf("boolean", useArrow=False)
    def deletes(entry_id: str) -> bool:
        # A worker has none of the helpers of tests.
        with socket.create_connection(("127.0.0.1", port), 10) as plain, plain.makefile() as lines:
            if entry_id == "1-1":
                plain.sendall(b"DEL s\r\nXADD s 999-1 f another\r\n")
                return [next(lines) for _ in range(3)] != []
            until_s = time.monotonic() + TIMEOUT_S
            while time.monotonic() < until_s:
                plain.sendall(b"XLEN s\r\n")
                if next(lines) == ":1\n":
                    return True
        return False

    with live.client() as client:
        add(client, "s", *ids(1, 300))
    options: dict[str, Any] = {"port": str(port), "minPartitions": "6", "fetchCount": "10"}
    frame = spark.read.format("headrace").options(**options, failOnDataLoss=strict).load("s")
    if strict == "true":
        with pytest.raises(PySparkException) as lost:
            frame.filter(deletes("id")).collect()
        assert "made anew between planning and reading" in str(lost.value)
    else:
        values = [row["fields"]["f"] for row in frame.filter(deletes("id")).collect()]
        assert len(values) < 300
        assert set(values) == {"v"}
