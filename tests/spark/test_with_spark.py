"""The source and the sink in a real session: what only Spark itself can show."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.listener import Lag, LagListener
from support.client import RawClient
from support.process import Process, ServerProcess
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.once

Where = dict[str, str]
TIMEOUT_S = 120


def fill(client: RawClient, key: str, count: int, first: int = 0) -> None:
    """Entries with IDs of a second each, and a few riders."""
    client.pipeline(
        *[
            (
                "XADD",
                key,
                f"{1_700_000_000_000 + 1000 * number}-1",
                "rider",
                f"r{number % 5}",
                "distance",
                number / 4,
            )
            for number in range(first, first + count)
        ]
    )


def read(spark: SparkSession, where: Where, **options: object) -> DataFrame:
    given = {name: str(value) for name, value in options.items()}
    return spark.read.format("headrace").options(**where, **given).load()


def read_stream(spark: SparkSession, where: Where, **options: object) -> DataFrame:
    given = {"startingOffsets": "earliest", **{name: str(v) for name, v in options.items()}}
    return spark.readStream.format("headrace").options(**where, **given).load()


def run_to_end(
    frame: DataFrame, where: Where, checkpoint: str, **options: object
) -> StreamingQuery:
    """Write all there is into a stream, with ``Trigger.AvailableNow``."""
    query = (
        frame.writeStream.format("headrace")
        .options(**where, **{name: str(value) for name, value in options.items()})
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(TIMEOUT_S)
    return query


def last_line(error: BaseException) -> str:
    """Spark's message, of which ours is a part."""
    return str(error)


def test_it_is_found_by_itself(spark: SparkSession, where: Where, client: RawClient) -> None:
    fill(client, "rides", 100)
    frame = spark.read.format("headrace").options(**where).load("rides")
    assert frame.columns == ["key", "id", "id_ms", "id_seq", "timestamp", "fields"]
    first = frame.orderBy("id_ms").first()
    assert first is not None
    assert (first["key"], first["id"]) == ("rides", "1700000000000-1")
    assert first["fields"] == {"rider": "r0", "distance": "0.0"}
    assert first["timestamp"].timestamp() == 1_700_000_000
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING headrace "
        f"OPTIONS (subscribe 'rides', port '{where['port']}')"
    )
    assert spark.sql("SELECT count(*) AS n, max(id) AS last FROM v").collect()[0].asDict() == {
        "n": 100,
        "last": "1700000099000-1",
    }


def test_several_streams_and_other_settings(
    spark: SparkSession, where: Where, client: RawClient
) -> None:
    """Several at once; and as Spark may be set: another time zone, Arrow's large types."""
    fill(client, "rides", 20)
    fill(client, "more", 5)
    reader = spark.read.format("headrace").options(**where)
    assert reader.load(["rides", "more"]).count() == 25
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
        spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
        shown = reader.load("rides").selectExpr("CAST(timestamp AS STRING) AS t", "fields", "id_ms")
        last = shown.orderBy("id_ms", ascending=False).collect()[0]
        assert last["t"] == "2023-11-15 03:58:39"
        assert last["fields"] == {"rider": "r4", "distance": "4.75"}
        spark.sql("SELECT 'ü' AS text, X'FF' AS raw, map('a', X'FE') AS deep").write.format(
            "headrace"
        ).options(**where).mode("append").save("odd")
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    odd = client.call_parsed("XRANGE", "odd", "-", "+")
    assert isinstance(odd, list)
    assert odd[0][1] == [
        *(b"text", "ü".encode()),
        *(b"raw", b"\xff"),
        *(b"deep", b'{"a":{"base64":"/g=="}}'),
    ]


def test_tables_of_sql(spark: SparkSession, where: Where, client: RawClient) -> None:
    """Those whose columns the source gives keep their options; those with columns want WITH."""
    for n in range(3):
        client.call("XADD", "rides", "*", "n", n)

    def rows(query: str) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in spark.sql(query).collect())

    def refused(query: str, text: str) -> None:
        with pytest.raises(AnalysisException, match=text):
            spark.sql(query).collect()

    port = f"port '{where['port']}'"
    options = f"{port}, subscribe 'rides', stream 'copy'"
    try:
        spark.sql(f"CREATE TABLE of_rides USING headrace OPTIONS ({options})")
        assert rows("SELECT fields['n'] FROM of_rides WHERE id_ms > 5") == [("0",), ("1",), ("2",)]
        spark.sql("INSERT INTO of_rides SELECT * FROM of_rides")
        spark.sql("INSERT INTO of_rides WITH (stream 'more') SELECT * FROM of_rides")
        copies = [client.call_parsed("XLEN", key) for key in ("rides", "copy", "more")]
        assert copies == [3, 3, 3]
        last = "WITH (startingTimestamp '2100-01-01T00:00:00')"
        assert rows(f"SELECT count(*) FROM of_rides {last}") == [(0,)]
        assert spark.read.table("of_rides").count() == 3
        refused("INSERT OVERWRITE of_rides SELECT * FROM of_rides", "a stream is only appended to")

        spark.sql(f"CREATE TABLE typed (n int) USING headrace OPTIONS ({options})")
        spark.sql(f"INSERT INTO typed WITH ({port}, stream 'typed') VALUES (7), (8)")
        assert rows(f"SELECT n FROM typed WITH ({port}, subscribe 'typed')") == [(7,), (8,)]
        refused("SELECT * FROM typed", "in SQL: FROM a_table WITH .subscribe")
        refused("INSERT INTO typed VALUES (9)", "in SQL: INSERT INTO a_table WITH .stream")

        spark.sql(
            f"CREATE TEMPORARY VIEW seen (n int) USING headrace OPTIONS ({port}, path 'seen')"
        )
        spark.sql("INSERT INTO seen VALUES (1), (2)")
        assert rows("SELECT n FROM seen") == [(1,), (2,)]

        refused(f"CREATE TABLE x USING headrace OPTIONS ({port}) LOCATION '/x'", "is a folder to")
        refused("CREATE TABLE x USING headrace OPTIONS (fetchCoun '1')", "did you mean fetchCount")
        refused("DELETE FROM typed", "does not support deletes")
    finally:
        for table in ("of_rides", "typed"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")
        spark.catalog.dropTempView("seen")


def test_streaming_from_a_table_into_one(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    client.call("XADD", "rides", "*", "n", 1)
    options = (
        f"port '{where['port']}', subscribe 'rides', stream 'copy', startingOffsets 'earliest'"
    )
    spark.sql(f"CREATE TABLE of_rides USING headrace OPTIONS ({options})")
    try:
        writer = spark.readStream.table("of_rides").writeStream.trigger(availableNow=True)
        query = writer.option("checkpointLocation", checkpoint).toTable("of_rides")
        assert query.awaitTermination(120)
        assert client.call_parsed("XLEN", "copy") == 1
    finally:
        spark.sql("DROP TABLE of_rides")


@pytest.mark.filterwarnings("default")  # Spark's own warnings of pandas 3 are no errors
def test_frames_of_pandas(spark: SparkSession, where: Where, client: RawClient) -> None:
    """Both ways, of pandas 2 and 3, of which Spark warns; without pandas, there are none."""
    pytest.importorskip("pandas")
    fill(client, "rides", 20)
    frame: Any = read(spark, where, subscribe="rides").toPandas()
    assert list(frame["id_ms"]) == [1_700_000_000_000 + 1000 * number for number in range(20)]
    assert [fields["rider"] for fields in frame["fields"][:2]] == ["r0", "r1"]
    assert str(frame["timestamp"].iloc[0]) == "2023-11-14 22:13:20"
    again: Any = spark.createDataFrame(frame[["id", "timestamp", "id_ms"]])
    again.coalesce(1).write.format("headrace").options(**where).mode("append").save("again")
    found = client.call_parsed("XRANGE", "again", "-", "+", "COUNT", 1)
    assert isinstance(found, list)
    assert found[0][1][:4] == [
        *(b"id", b"1700000000000-1"),
        *(b"timestamp", b"2023-11-14T22:13:20.000000Z"),
    ]


def test_a_schema_and_pieces(spark: SparkSession, where: Where, client: RawClient) -> None:
    fill(client, "rides", 100)
    client.call("XADD", "rides", "1700000200000-1", "rider", "odd", "note", b"\xff")
    frame = (
        spark.read.format("headrace")
        .schema("rider string, distance double, _id string, _rest map<string,string>")
        .options(**where, subscribe="rides", minPartitions="4", fetchCount="10")
        .load()
    )
    assert frame.rdd.getNumPartitions() == 4
    totals = {
        row["rider"]: row["sum(distance)"]
        for row in frame.groupBy("rider").sum("distance").collect()
    }
    assert totals == {
        **{f"r{n}": sum(each / 4 for each in range(n, 100, 5)) for n in range(5)},
        "odd": None,
    }
    odd = frame.filter("rider = 'odd'").collect()[0]
    assert odd["_rest"] == {"note": None}


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_filters(spark: SparkSession, where: Where, client: RawClient, enabled: str) -> None:
    """The same rows, pushed down or not; pushed down, fewer are read."""
    fill(client, "rides", 100)
    fill(client, "other", 7)
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, enabled)
    try:
        frame = read(spark, where, subscribe="rides,other", maxRecordsPerPartition=100)
        some = frame.filter("id_ms >= 1700000090000 AND key = 'rides'")
        assert some.count() == 10
        assert some.rdd.getNumPartitions() == (1 if enabled == "true" else 2)
        timed = frame.filter("timestamp < timestamp'2023-11-14 22:13:22.5'")
        assert timed.count() == 6
        assert frame.filter("id = '1700000003000-1'").count() == 2
        assert frame.filter("fields['rider'] = 'r1' AND key IN ('other')").count() == 2
    finally:
        assert before is not None
        spark.conf.set(setting, before)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"subscribee": "rides"}, "unknown option subscribee; did you mean subscribe?"),
        ({"subscribe": "none"}, "there is no stream none"),
        ({"subscribe": "text"}, "text is not a stream"),
        ({"subscribe": "rides", "password": "hush"}, "passwordEnv"),
        ({"subscribe": "rides", "port": "1", "fetchOffset.numRetries": "0"}, "did not answer"),
    ],
)
def test_wrong_reads(
    spark: SparkSession, where: Where, client: RawClient, options: Where, text: str
) -> None:
    client.call("SET", "text", "x")
    with pytest.raises(AnalysisException) as refused:
        spark.read.format("headrace").options(**{**where, **options}).load().collect()
    assert text in str(refused.value)
    assert "hush" not in str(refused.value)


def test_the_state_of_groups(spark: SparkSession, where: Where, client: RawClient) -> None:
    fill(client, "rides", 10)
    client.call("XGROUP", "CREATE", "rides", "g", "0")
    client.call("XREADGROUP", "GROUP", "g", "ada", "COUNT", 4, "STREAMS", "rides", ">")
    groups = read(spark, where, subscribe="rides", resource="groups").collect()
    assert [(row["group"], row["pending"], row["lag"]) for row in groups] == [("g", 4, 6)]
    pending = read(spark, where, subscribe="rides", resource="pending")
    assert pending.groupBy("consumer").count().collect()[0].asDict() == {
        "consumer": "ada",
        "count": 4,
    }


def test_stream_to_stream(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    """Limited batches, more of them after a restart, and progress that tells the lag."""
    fill(client, "rides", 1000)
    frame = read_stream(spark, where, subscribe="rides", maxOffsetsPerTrigger=300, minPartitions=2)
    query = run_to_end(frame, where, checkpoint, stream="copy")
    progress = query.recentProgress
    assert [each.numInputRows for each in progress] == [300, 300, 300, 100]
    source = progress[0].sources[0]
    end = json.loads(source.endOffset)["k"]["rides"]
    words, _, seen = end.partition(" seen=")
    assert words == "1700000299000-1 n=300 rows=300 cut=1700000149000-1/150"
    assert seen.startswith("1000,,1700000999000-1,,1700000000000-1/")
    assert json.loads(source.latestOffset)["k"]["rides"] == "1700000999000-1 n=1000"
    fill(client, "rides", 50, 1000)
    query = run_to_end(frame, where, checkpoint, stream="copy")
    assert sum(each.numInputRows for each in query.recentProgress) == 50
    assert client.call_parsed("XLEN", "copy") == 1050
    originals = client.call_parsed("XRANGE", "rides", "-", "+")
    copies = client.call_parsed("XRANGE", "copy", "-", "+")
    assert isinstance(originals, list)
    assert isinstance(copies, list)
    assert Counter(tuple(row) for _, row in copies) == Counter(tuple(row) for _, row in originals)
    assert client.call_parsed("XINFO", "STREAM", "copy")


def test_a_running_query_waits_and_goes_on(
    spark: SparkSession, where: Where, server: ServerProcess, client: RawClient, checkpoint: str
) -> None:
    """Long polling, streams that a pattern finds later, and a listener that is told."""
    fill(client, "rides:1", 20)
    told: list[Lag] = []
    listener = LagListener(on_lag=told.extend, mirror_group="spark", options=where)
    spark.streams.addListener(listener)
    frame = read_stream(spark, where, subscribePattern="rides:*", pollTimeoutMs=500)
    query = (
        frame.writeStream.format("noop")
        .queryName("watched")
        .option("checkpointLocation", checkpoint)
        .start()
    )
    try:
        query.processAllAvailable()
        wait_until(lambda: server.info("clients")["blocked_clients"] == "1", TIMEOUT_S)
        fill(client, "rides:2", 30)
        wait_until(lambda: any(lag.key == "rides:2" for lag in told), TIMEOUT_S)
    finally:
        query.stop()
        spark.streams.removeListener(listener)
    assert sum(each.numInputRows for each in query.recentProgress) == 50
    assert {lag.query for lag in told} == {"watched"}
    assert {lag.key for lag in told} == {"rides:1", "rides:2"}
    groups = client.call_parsed("XINFO", "GROUPS", "rides:1")
    assert isinstance(groups, list)
    assert groups[0][1] == b"spark"


def test_failing_tasks_write_once(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    """Every first attempt fails after it has written; a worker that dies counts as failed too."""
    from pyspark import TaskContext

    @F.udf("boolean", useArrow=False)
    def second_attempt(entry_id: str) -> bool:
        context = TaskContext.get()
        assert context is not None
        # Behind the first hundred of a partition, which Spark hands on before.
        if context.attemptNumber() == 0 and entry_id.endswith(("140000-1", "290000-1")):
            if context.partitionId() == 0:
                os._exit(1)
            raise RuntimeError("this attempt fails")
        return True

    fill(client, "rides", 300)
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "20")
    try:
        frame = read_stream(
            spark, where, subscribe="rides", maxOffsetsPerTrigger=300, minPartitions=2
        ).filter(second_attempt("id"))
        run_to_end(frame, where, checkpoint, stream="copy", pipelineDepth=10)
    finally:
        assert before is not None
        spark.conf.set(setting, before)
    assert client.call_parsed("XLEN", "copy") == 300
    facts = client.call_parsed("XINFO", "STREAM", "copy")
    assert isinstance(facts, list)
    assert facts[facts.index(b"iids-duplicates") + 1] > 0


def test_for_each_batch_and_batch_jobs(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    """A batch written inside of a query knows the query and the batch, and is repeatable."""
    fill(client, "rides", 100)

    def twice(batch: DataFrame, number: int) -> None:
        counted = batch.groupBy(F.col("fields")["rider"].alias("_iid")).count()
        for _ in range(2):
            counted.write.format("headrace").options(**where, stream="counts").mode("append").save()

    frame = read_stream(spark, where, subscribe="rides", maxOffsetsPerTrigger=50)
    query = (
        frame.writeStream.foreachBatch(twice)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(TIMEOUT_S)
    assert client.call_parsed("XLEN", "counts") == 10
    job = read(spark, where, subscribe="rides")
    for _ in range(2):
        job.write.format("headrace").options(**where, runId="n1").mode("append").save("again")
    assert client.call_parsed("XLEN", "again") == 100


def test_a_loss_ends_the_query_and_can_be_passed_over(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    fill(client, "rides", 100)
    frame = read_stream(spark, where, subscribe="rides", maxOffsetsPerTrigger=50)
    run_to_end(frame, where, checkpoint, stream="copy")
    fill(client, "rides", 100, 100)
    client.call("XTRIM", "rides", "MAXLEN", 60)
    with pytest.raises(StreamingQueryException) as lost:
        run_to_end(frame, where, checkpoint, stream="copy")
    assert "stream rides: 40 entries after 1700000099000-1 were removed" in str(lost.value)
    frame = read_stream(spark, where, subscribe="rides", failOnDataLoss="false")
    query = run_to_end(frame, where, checkpoint, stream="copy")
    end = json.loads(query.recentProgress[-1].sources[0].endOffset)
    assert " lost=40 " in end["k"]["rides"]
    assert client.call_parsed("XLEN", "copy") == 160


@pytest.mark.parametrize(
    ("options", "mode", "text"),
    [
        ({"stream": "copy", "identty": "none"}, "append", "did you mean identity?"),
        ({"stream": "copy", "idColumn": "n"}, "append", "there is no column n"),
        ({"stream": "copy", "subscribe": "n"}, "append", "is for read and readStream"),
        ({"stream": "copy"}, "overwrite", "only appended to"),
    ],
)
def test_wrong_writes(
    spark: SparkSession, where: Where, client: RawClient, options: Where, mode: str, text: str
) -> None:
    fill(client, "rides", 10)
    writer = read(spark, where, subscribe="rides").write.format("headrace").mode(mode)
    with pytest.raises(AnalysisException) as refused:
        writer.options(**where, **options).save()
    assert text in str(refused.value)


def test_a_query_that_would_overwrite(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    fill(client, "rides", 10)
    counts = read_stream(spark, where, subscribe="rides").groupBy("key").count()
    with pytest.raises(StreamingQueryException) as refused:
        (
            counts.writeStream.format("headrace")
            .options(**where, stream="copy", checkpointLocation=checkpoint)
            .outputMode("complete")
            .trigger(availableNow=True)
            .start()
            .awaitTermination(TIMEOUT_S)
        )
    assert "through foreachBatch" in str(refused.value)


def test_another_redis(spark: SparkSession, redis_server: Process, checkpoint: str) -> None:
    """No XSPLIT, no IDMP: read by walking, written at least once."""
    where = {"port": str(redis_server.port)}
    with redis_server.client() as client:
        fill(client, "rides", 500)
        frame = read_stream(
            spark, where, subscribe="rides", maxOffsetsPerTrigger=200, minPartitions=2
        )
        query = run_to_end(frame, where, checkpoint, stream="copy")
        assert [each.numInputRows for each in query.recentProgress] == [200, 200, 100]
        assert client.call_parsed("XLEN", "copy") == 500


def test_a_password_shows_nowhere(
    spark: SparkSession,
    fresh_server: Any,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = fresh_server("--requirepass", "hush-hush", start=False)
    server.spawn().wait_until_ready()
    secret = tmp_path / "secret"
    secret.write_text("hush-hush\n")
    with server.client() as client:
        client.call("AUTH", "hush-hush")
        fill(client, "rides", 10)
    frame = read(spark, {"port": str(server.port)}, passwordFile=secret, subscribe="rides")
    assert frame.count() == 10
    with caplog.at_level(logging.DEBUG):
        frame.explain(True)
        frame.write.format("headrace").options(
            port=str(server.port), passwordFile=str(secret), stream="copy"
        ).mode("append").save()
    (tmp_path / "wrong").write_text("wrong-word")
    with pytest.raises(AnalysisException) as refused:
        read(
            spark, {"port": str(server.port)}, passwordFile=tmp_path / "wrong", path="rides"
        ).count()
    assert "WRONGPASS" in str(refused.value)
    shown = "".join(capfd.readouterr()) + caplog.text + str(refused.value)
    assert "headrace" in shown
    assert "hush-hush" not in shown
    assert "wrong-word" not in shown
