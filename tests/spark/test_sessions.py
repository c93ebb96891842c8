"""Where the server is, said by Spark's configuration: any session hands it to its workers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Factory
from pyspark.errors import AnalysisException, PySparkException

from pyspark_headrace import register
from support.process import Process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.once

SECRET = "hush-hush-word"
URL, PASSWORD = "spark.headrace.url", "spark.headrace.password"


@pytest.fixture
def guarded(fresh_server: Factory) -> Process:
    """A server that wants a password, with three entries."""
    server = fresh_server("--requirepass", SECRET, start=False)
    server.spawn().wait_until_ready()
    with server.client() as client:
        client.call("AUTH", SECRET)
        client.pipeline(*[("XADD", "rides", "*", "n", n) for n in range(3)])
    return server


@pytest.fixture
def plain(spark: SparkSession) -> SparkSession:
    """Another session of the same Spark, with a configuration and a registry of its own."""
    return spark.newSession()


def numbers(session: SparkSession, **options: str) -> set[int]:
    found = session.read.format("headrace").options(**options).load("rides")
    return {int(row["fields"]["n"]) for row in found.collect()}


def test_a_session_hands_over_its_configuration(
    plain: SparkSession, guarded: Process, tmp_path: Path
) -> None:
    """In planners and tasks, of sources and sinks, of batches and queries."""
    plain.conf.set(URL, f"redis://localhost:{guarded.port}")
    plain.conf.set(PASSWORD, SECRET)
    register(plain)
    assert numbers(plain) == {0, 1, 2}
    query = (
        plain.readStream.format("headrace")
        .options(subscribe="rides", startingOffsets="earliest")
        .load()
        .writeStream.format("headrace")
        .options(stream="copy", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    with guarded.client() as client:
        client.call("AUTH", SECRET)
        assert client.call_parsed("XLEN", "copy") == 3
    plain.sql("CREATE OR REPLACE TEMPORARY VIEW v USING headrace OPTIONS (subscribe 'copy')")
    assert plain.sql("SELECT count(*) FROM v").collect()[0][0] == 3
    for file in (tmp_path / "checkpoint").rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


def test_sessions_lead_to_servers_of_their_own(
    spark: SparkSession, plain: SparkSession, guarded: Process, server: Process
) -> None:
    """What options say counts more; and no password goes to another server."""
    server.call("XADD", "rides", "*", "n", "7")
    plain.conf.set(URL, f"redis://localhost:{guarded.port}")
    plain.conf.set(PASSWORD, SECRET)
    register(plain)
    other = spark.newSession()
    other.conf.set(URL, f"redis://localhost:{server.port}")
    register(other)
    assert numbers(other) == {7}
    assert numbers(plain) == {0, 1, 2}
    assert numbers(plain, port=str(guarded.port)) == {0, 1, 2}
    other.conf.set(URL, f"redis://localhost:{guarded.port}")
    register(other)
    with pytest.raises(PySparkException, match="NOAUTH"):
        numbers(other)


def test_secrets_show_nowhere(
    plain: SparkSession,
    guarded: Process,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not in plans, nor in errors of planners and tasks, nor in what is logged."""
    plain.conf.set(URL, f"redis://localhost:{guarded.port}")
    plain.conf.set(PASSWORD, SECRET)
    register(plain)
    frame = plain.read.format("headrace").load("rides")
    frame.explain(True)
    shown = [frame._jdf.queryExecution().toString()]
    plain.conf.set(PASSWORD, f"no-{SECRET}")
    register(plain)
    with (
        caplog.at_level(logging.DEBUG, "pyspark_headrace"),
        pytest.raises(PySparkException) as error,
    ):
        numbers(plain)
    assert "HEADRACE_PASSWORD is to hold the password" in str(error.value)
    plain.conf.set(URL, f"redis://me:{SECRET}@localhost:{guarded.port}")
    register(plain)
    with pytest.raises(AnalysisException, match="HEADRACE_URL holds a password") as refused:
        numbers(plain)
    shown += [str(error.value), str(refused.value), caplog.text, *capfd.readouterr()]
    assert not [text for text in shown if SECRET in text]
