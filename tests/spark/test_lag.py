"""How far a query is behind: what is told is what the server says at that moment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from pyspark_headrace.connection import connection_from
from pyspark_headrace.given import Given
from pyspark_headrace.lag import NOTHING, UNKNOWN, Behind, behind, lags_now, together
from pyspark_headrace.listener import Lag, LagListener, lags_in
from pyspark_headrace.offsets import Position, from_offset
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Figures, Server, pairs_of
from support.client import RawClient
from support.process import Process
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.once

Where = dict[str, str]
TIMEOUT_S = 120


def add(client: RawClient, key: str, first: int, count: int, size: int = 20) -> None:
    """Entries of a second each."""
    for number in range(first, first + count):
        client.call("XADD", key, f"{1000 * number}-1", "f", "x" * size)


def entry_bytes(client: RawClient, key: str, shown: int) -> int:
    """Of an average entry: what the server keeps of it, or what it shows if that is more."""
    memory = client.call_parsed("MEMORY", "USAGE", key)
    length = client.call_parsed("XLEN", key)
    assert isinstance(memory, int)
    assert isinstance(length, int)
    return max(shown, memory // length)


def test_what_is_left_of_a_stream() -> None:
    server = Figures(exists=True, length=4, added=10, last=(9000, 1), first=(6000, 1))
    assert behind(Position((3000, 0), 3), server, 9) == NOTHING, "the last ones were deleted"
    assert together([]) == NOTHING
    assert together([Behind(1, 2, 3), Behind(4, 5, 1)]) == Behind(5, 7, 3)
    assert together([Behind(1, 2, 3), UNKNOWN]) == UNKNOWN
    assert together([Behind(1, None, 3), Behind(4, 5, 9)]) == Behind(5, None, 9)


def test_what_the_server_says(every_server: Process) -> None:
    """Read in part, not at all, whole, beyond the end, with a hole, and not there."""
    link = Link(connection_from(Given({"port": str(every_server.port)}, "read")))
    read = {
        "part": Position((3000, 1), 3),
        "unread": Position((0, 0), 0),
        "whole": Position((5000, 1), 5),
        "beyond": Position((9000, 1), 9),
        "trimmed": Position((2000, 1), 2),
        "gone": Position((7000, 1), 7),
    }
    with RawClient(every_server.port) as client:
        for key in read:
            add(client, key, 1, 5)
        client.call("XTRIM", "trimmed", "MAXLEN", 2)
        client.call("DEL", "gone")
        found = lags_now(Server(link), read)
        sizes = {key: entry_bytes(client, key, 21) for key in ("part", "unread", "trimmed")}
        assert found["part"] == Behind(2, 2 * sizes["part"], 2000)
        assert found["unread"] == Behind(5, 5 * sizes["unread"], 4000)
        assert found["trimmed"] == Behind(2, 2 * sizes["trimmed"], 1000)
        assert [found[key] for key in ("whole", "beyond", "gone")] == [NOTHING] * 3
    link.close()


def test_unknown_ranks_are_counted_where_that_can_be(every_server: Process) -> None:
    link = Link(connection_from(Given({"port": str(every_server.port)}, "read")))
    server = Server(link)
    with RawClient(every_server.port) as client:
        add(client, "s", 1, 5)
        client.call("XDEL", "s", "4000-1")
        found = lags_now(server, {"s": Position((2000, 1))})
    assert found["s"].entries == (2 if server.offers_ranks() else None)
    assert found["s"].ms == 3000
    link.close()


def stream_of(spark: SparkSession, where: Where, **options: str) -> DataFrame:
    given = {"startingOffsets": "earliest", **options}
    return spark.readStream.format("headrace").options(**where, **given).load()


def test_lag_of_a_query(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    """In progress as planned; at a listener as XLEN says when the batch is done."""
    add(client, "s", 1, 10)
    told: list[Lag] = []
    lengths: list[object] = []

    def take(lags: list[Lag]) -> None:
        with RawClient(int(where["port"])) as another:
            lengths.append(another.call_parsed("XLEN", "s"))
        told.extend(lags)

    def work(batch: DataFrame, number: int) -> None:
        batch.count()
        if number == 0:
            with RawClient(int(where["port"])) as another:
                add(another, "s", 11, 3, 200)

    listener = LagListener(on_lag=take, options=where)
    spark.streams.addListener(listener)
    query = (
        stream_of(spark, where, subscribe="s", maxOffsetsPerTrigger="4")
        .writeStream.foreachBatch(work)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        wait_until(lambda: query.exception() or (told and told[-1].batch == 3), TIMEOUT_S)
    finally:
        query.stop()
        spark.streams.removeListener(listener)
    size = entry_bytes(client, "s", (21 + 201) // 2)
    assert lengths == [13] * 4
    assert [lag.entries for lag in told] == [13 - 4, 13 - 8, 13 - 12, 0]
    assert [lag.bytes for lag in told] == [9 * size, 5 * size, size, 0]
    assert [lag.ms for lag in told] == [9000, 5000, 1000, 0]
    progress = [each for each in query.recentProgress if each.numInputRows]
    assert [lag.entries for each in progress for lag in lags_in(each)] == [6, 5, 1, 0]
    reports = [json.loads(str(each.sources[0].latestOffset)) for each in progress]
    assert [report["lag"]["entries"] for report in reports] == [6, 5, 1, 0]
    assert [report["lag"]["ms"] for report in reports] == [6000, 5000, 1000, 0]
    assert reports[1]["lag"]["bytes"] == 5 * size
    assert {report["at"] for report in reports} == {f"localhost:{where['port']}"}


def test_lag_of_many_streams(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    keys = [f"m:{number:03d}" for number in range(300)]
    for number, key in enumerate(keys):
        client.call("XADD", key, f"{1000 * number + 1}-1", "f", "v")
        client.call("XADD", key, f"{1000 * number + 501}-1", "f", "v")
    told: dict[int, list[Lag]] = {}
    listener = LagListener(on_lag=lambda lags: told.update({lags[0].batch: lags}), options=where)
    spark.streams.addListener(listener)
    frame = stream_of(spark, where, subscribePattern="m:*", maxOffsetsPerTrigger="150")
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(TIMEOUT_S)
        wait_until(lambda: len(told) == 4, TIMEOUT_S)
    finally:
        spark.streams.removeListener(listener)
    sums = [sum(cast("int", lag.entries) for lag in told[number]) for number in range(4)]
    assert sums == [450, 300, 150, 0]
    for batch, progress in enumerate(query.recentProgress):
        read = from_offset(json.loads(str(progress.sources[0].endOffset)))
        report = json.loads(str(progress.sources[0].latestOffset))
        assert report["lag"]["entries"] == sums[batch]
        assert report["lag"]["ms"] == (0 if batch == 3 else 500)
        for lag in told[batch]:
            info = pairs_of(client.call_parsed("XINFO", "STREAM", lag.key))
            assert lag.entries == cast("int", info["entries-added"]) - read[lag.key].n
    assert sorted(lag.key for lag in told[3]) == keys
