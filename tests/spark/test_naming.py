"""Plans, Spark's web page and progress name the streams and the server, and tell no secrets."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from pyspark_headrace import describe
from pyspark_headrace.errors import OptionError
from pyspark_headrace.naming import title
from support.client import RawClient

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.once

Where = dict[str, str]
TIMEOUT_S = 120


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"subscribe": "rides, clicks"}, "rides, clicks at localhost:6379"),
        ({"path": "rides", "host": "db", "port": "7", "db": "2"}, "rides at db:7/2"),
        ({"subscribePattern": "rides:*"}, "rides:* at localhost:6379"),
        ({"assign": '{"b": ["-", "+"], "a": ["-", "+"]}'}, "a, b at localhost:6379"),
        ({"paths": '["a", "b"]'}, "a, b at localhost:6379"),
        (
            {"stream": "s", "redis.url": "rediss://ada@[::1]/0", "passwordEnv": "SECRET"},
            "s at [::1]:6379",
        ),
        ({"redis.url": "unix:///tmp/s.sock?db=1"}, "/tmp/s.sock/1"),
        (
            {"path": "s", "sentinels": "one,two", "sentinelMaster": "main"},
            "s at main of the sentinels",
        ),
        ({"path": "x" * 99}, f"{'x' * 47}… at localhost:6379"),
        ({"path": f"{'x' * 99},b"}, f"{'x' * 47}… and 1 more at localhost:6379"),
    ],
)
def test_titles(options: Where, text: str) -> None:
    assert title(options) == text


def test_many_streams_are_counted() -> None:
    names = ",".join(f"tenant:{number}" for number in range(10_000))
    assert title({"subscribe": names}) == (
        "tenant:0, tenant:1, tenant:2, tenant:3, tenant:4 and 9,995 more at localhost:6379"
    )


def test_a_wrong_option_is_refused_there_too(spark: SparkSession) -> None:
    with pytest.raises(OptionError, match="did you mean subscribe"):
        describe(spark, {"subscrib": "rides"})


def explained(frame: DataFrame | StreamingQuery) -> str:
    shown = StringIO()
    with redirect_stdout(shown):
        frame.explain(True)
    return shown.getvalue()


def test_plans_and_progress(
    spark: SparkSession, where: Where, client: RawClient, checkpoint: str
) -> None:
    client.call("XADD", "rides", "1-1", "rider", "ada")
    at = f"localhost:{where['port']}"
    source = describe(spark, {**where, "subscribe": "rides"})
    sink = describe(spark, {**where, "stream": "copy"})
    assert (source, sink) == (f"headrace: rides at {at}", f"headrace: copy at {at}")
    frame = spark.read.format(source).options(**where, subscribe="rides").load()
    assert frame.filter("id_ms = 1").count() == 1
    assert f"BatchScan {source}" in explained(frame)
    query = (
        spark.readStream.format(source)
        .options(**where, subscribe="rides", startingOffsets="earliest")
        .load()
        .writeStream.format(sink)
        .options(**where, stream="copy")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(TIMEOUT_S)
    assert client.call_parsed("XLEN", "copy") == 1
    plan = explained(query)
    assert source in plan
    assert f"WriteToMicroBatchDataSource {sink}" in plan
    progress = query.lastProgress
    assert progress is not None
    assert json.loads(str(progress.sources[0].latestOffset))["at"] == at


def test_the_server_of_a_session(spark: SparkSession, where: Where, client: RawClient) -> None:
    """Where the session says it: in the name, and in the workers that read."""
    client.call("XADD", "rides", "1-1", "rider", "ada")
    at = f"localhost:{where['port']}"
    describe(spark, {**where, "subscribe": "rides"})  # of another session
    another = spark.newSession()
    another.conf.set("spark.headrace.url", f"redis://{at}")
    source = describe(another, {"subscribe": "rides"})
    assert source.startswith(f"headrace: rides at {at}")
    assert describe(another, {"subscribe": "rides"}) == source
    assert another.read.format(source).load("rides").count() == 1
