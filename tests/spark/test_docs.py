"""docs/spark.md says what is true: its examples run, its tables name what there is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.given import NAMES
from pyspark_headrace.shape import META
from support.build import ROOT
from support.client import RawClient
from support.extras import python_with
from support.process import Process
from support.spark_page import PAGE, job_lines, run_snippet, shown_by, snippets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.once

# A session on which plans are run once, on a few rows.
SETTINGS = """\
spark.driver.memory 512m
spark.ui.enabled false
spark.sql.codegen.wholeStage false
spark.sql.adaptive.enabled false
spark.sql.streaming.metricsEnabled false
"""
# What a snippet needs that neither pip nor this repository brings: a class, and where it is from.
PACKAGES = {
    "avro": ("org.apache.spark.sql.avro.AvroDataToCatalyst", "spark-avro"),
    "delta": ("io.delta.sql.DeltaSparkSessionExtension", "delta-spark"),
}


@pytest.mark.slow
def test_the_examples_run(server: Process, client: RawClient, tmp_path: Path) -> None:
    """In an environment that has what the page installs, and no more: no pandas, say."""
    python = python_with(tmp_path / "venv", "drawings")
    assert subprocess.run([python, "-c", "import pandas"], capture_output=True).returncode
    (tmp_path / "spark-defaults.conf").write_text(SETTINGS)
    done = subprocess.run(
        [python, "-P", "-m", "support.spark_page", str(server.port), str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "tests"),
            "PYTHONSAFEPATH": "1",
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "SPARK_CONF_DIR": str(tmp_path),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert 'headrace_lag_entries{query="' in (tmp_path / "lag.prom").read_text()
    assert (tmp_path / "rides.png").exists()
    assert (tmp_path / "reconciled.png").exists()
    assert client.call("XRANGE", "rides-restored", "-", "+") == client.call(
        "XRANGE", "rides", "-", "+"
    )


def test_the_page_has_every_job() -> None:
    told = {words[0] for words in job_lines("")}
    assert told == {"totals", "windows", "archive", "replay", "reconcile", "lag"}
    assert len(snippets("python")) >= 8


@pytest.mark.parametrize("package", PACKAGES)
def test_recipes_with_other_packages(
    spark: SparkSession,
    where: dict[str, str],
    client: RawClient,
    tmp_path: Path,
    package: str,
) -> None:
    """They run where the package is among Spark's jars (``spark.jars``, ``$SPARK_HOME/jars``)."""
    (body,) = snippets(f"python {package}")
    compile(body, "docs/spark.md", "exec")
    kind, name = PACKAGES[package]
    assert spark._jvm is not None
    try:
        spark._jvm.java.lang.Class.forName(kind)
    except Py4JJavaError:
        pytest.skip(f"{name} is not among Spark's jars, and comes from Maven alone")
    rides = spark.createDataFrame(
        [("ada", 12.5), ("grace", 30.0), ("ada", 7.25)], "rider string, distance double"
    )
    rides.write.format("headrace").options(**where).mode("append").save("rides")
    names = {"spark": spark, "rides": rides, "F": F}
    assert run_snippet(body, names, where["port"], str(tmp_path)) == shown_by(body)


def test_the_tables_name_every_option() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    options = set(NAMES) - {"path", "paths"}
    assert sorted(options - told) == []
    for name in META:
        assert f"`{name}`" in PAGE


def test_defaults() -> None:
    """The tables' defaults are the parser's."""
    from pyspark_headrace.connection import Connection
    from pyspark_headrace.given import READ, STREAM
    from pyspark_headrace.options import read_options, write_options

    reading = read_options({"path": "s"}, STREAM)
    writing = write_options({"stream": "s"})
    real: dict[str, object] = {
        "maxTriggerDelay": f"{reading.max_delay_ms // 60_000}m",
        "minRowsPerPartition": reading.min_rows_per_partition,
        "failOnDataLoss": str(reading.fail_on_loss).lower(),
        "fetchCount": reading.fetch_count,
        "planWalkLimit": reading.walk_limit,
        "pollTimeoutMs": reading.poll_ms,
        "includeId": str(reading.frame.include_id).lower(),
        "includeHeaders": str(reading.frame.include_headers).lower(),
        "includeCorrupt": str(reading.frame.include_corrupt).lower(),
        "fieldsFormat": reading.frame.fields_format,
        "mode": reading.mode,
        "encoding": reading.encoding,
        "resource": reading.frame.resource,
        "requestTimeoutMs": Connection().timeout_ms,
        "fetchOffset.numRetries": Connection().retries,
        "fetchOffset.retryIntervalMs": Connection().retry_ms,
        "identity": writing.identity,
        "idScope": writing.id_scope,
        "idmpProducers": writing.producers,
        "configureIdmp": str(writing.configure_idmp).lower(),
        "pipelineDepth": writing.depth,
        "maxInFlightBytes": writing.max_bytes,
    }
    assert read_options({"path": "s"}, READ).start.word == "earliest"
    assert reading.start.word == "latest"
    for name, value in real.items():
        rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}`")]
        assert any(f"| `{value}` |" in row for row in rows), (name, value)
