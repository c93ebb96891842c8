"""Entries that do not fit, and rows that cannot be written: each is counted, and none is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812

from support.client import RawClient

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.once

Where = dict[str, str]
TIMEOUT_S = 120
PAIRS = "array<struct<name:binary,value:binary>>"
SCHEMA = f"rider string, distance double, _rest map<string,string>, _corrupt {PAIRS}"


def fill(client: RawClient, key: str = "s") -> None:
    """A good entry, a value and a name that are no text, a number that is none; a good one."""
    client.call("XADD", key, "1-1", "rider", "ada", "distance", "1.5")
    client.call("XADD", key, "2-1", "rider", b"\xff\xfe", "distance", "2.5")
    client.call("XADD", key, "3-1", "rider", "bob", b"\xff", "1")
    client.call("XADD", key, "4-1", "rider", "cy", "distance", "far")
    client.call("XADD", key, "5-1", "rider", "di", "distance", "5.5")


def stream_of(spark: SparkSession, where: Where, schema: str, **options: str) -> DataFrame:
    given = {"startingOffsets": "earliest", "subscribe": "s", **options}
    return spark.readStream.format("headrace").schema(schema).options(**where, **given).load()


def run_to_end(frame: DataFrame, checkpoint: str, each: Any = None) -> StreamingQuery:
    writer = frame.writeStream.format("noop") if each is None else frame.writeStream
    if each is not None:
        writer = writer.foreachBatch(each)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(TIMEOUT_S)
    return query


def test_progress_counts_them_and_they_go_elsewhere(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    """As docs/spark.md shows it: observed, and put aside as they were, byte for byte."""
    fill(client)
    kept: list[tuple[object, ...]] = []

    def part(batch: DataFrame, number: int) -> None:
        batch.persist()
        kept.extend(
            tuple(row) for row in batch.filter("_corrupt is null").drop("_corrupt").collect()
        )
        bad = batch.filter("_corrupt is not null").select(F.col("_corrupt").alias("pairs"))
        bad.write.format("headrace").options(**where).mode("append").save("dead")
        batch.unpersist()

    frame = stream_of(spark, where, SCHEMA)
    frame = frame.observe("malformed", F.count("_corrupt").alias("entries"))
    query = run_to_end(frame, checkpoint, part)
    progress = query.lastProgress
    assert progress is not None
    assert progress.observedMetrics["malformed"]["entries"] == 3, progress
    assert progress.numInputRows == 5
    assert kept == [("ada", 1.5, {}), ("di", 5.5, {})]
    dead = client.call_parsed("XRANGE", "dead", "-", "+")
    assert isinstance(dead, list)
    assert [fields for _, fields in dead] == [
        [b"rider", b"\xff\xfe", b"distance", b"2.5"],
        [b"rider", b"bob", b"\xff", b"1"],
        [b"rider", b"cy", b"distance", b"far"],
    ]


@pytest.mark.parametrize("form", ["map", "json", "pairs"])
def test_no_form_has_a_null_without_a_sign(
    spark: SparkSession, where: Where, client: RawClient, form: str
) -> None:
    """Names and values that are no text are whole in one column, or the entry counts as bad."""
    fill(client)
    frame = spark.read.format("headrace").options(**where, fieldsFormat=form, includeCorrupt="true")
    rows = frame.load("s").orderBy("id_ms").collect()
    signs = {"map": [False, True, True, False, False], "json": [False, False, True, False, False]}
    assert [row["corrupt"] is not None for row in rows] == signs.get(form, [False] * 5)
    if form == "json":
        assert rows[1]["json"] == '{"rider":{"base64":"//4="},"distance":"2.5"}'
    if form == "pairs":
        assert [bytes(pair["name"]) for pair in rows[2]["pairs"]] == [b"rider", b"\xff"]


def test_they_are_left_out(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    fill(client)
    seen: list[str] = []
    frame = stream_of(spark, where, SCHEMA, mode="DROPMALFORMED")
    query = run_to_end(
        frame, checkpoint, lambda batch, _: seen.extend(row[0] for row in batch.collect())
    )
    assert seen == ["ada", "di"]
    assert query.lastProgress is not None
    assert query.lastProgress.numInputRows == 2


def test_the_first_one_ends_the_query(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    fill(client)
    frame = stream_of(spark, where, SCHEMA, mode="FAILFAST")
    with pytest.raises(StreamingQueryException) as raised:
        run_to_end(frame, checkpoint)
    text = str(raised.value)
    assert "stream s, entry 2-1: field rider, b'\\xff\\xfe', is not UTF-8" in text


def test_rows_that_cannot_be_written(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    """A streaming sink puts them into the stream of errors, each once, and goes on."""
    client.call("SET", "text", "x")
    for number, target in enumerate(["good", "text", "good"], 1):
        client.call("XADD", "s", f"{number}-1", "to", target, "n", str(number))
    frame = stream_of(spark, where, "to string, n long").withColumnRenamed("to", "key")
    query = (
        frame.writeStream.format("headrace")
        .options(**where, errorStream="errors")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(TIMEOUT_S)
    assert client.call_parsed("XLEN", "good") == 2
    errors = client.call_parsed("XRANGE", "errors", "-", "+")
    assert isinstance(errors, list)
    assert len(errors) == 1
    facts = dict(zip(errors[0][1][0::2], errors[0][1][1::2], strict=True))
    assert facts[b"_stream"] == b"text"
    assert facts[b"_error"] == b"text is not a stream"
    assert facts[b"n"] == b"2"
