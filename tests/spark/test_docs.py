"""docs/spark.md says what is true: its examples run, its tables name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.cli import program
from pyspark_headrace.given import NAMES
from pyspark_headrace.shape import META
from support.build import ROOT
from support.client import RawClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.once

PAGE = (ROOT / "docs/spark.md").read_text()
FENCE = re.compile(r"^```(\w+(?: \w+)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a snippet needs that neither pip nor this repository brings: a class, and where it is from.
PACKAGES = {
    "avro": ("org.apache.spark.sql.avro.AvroDataToCatalyst", "spark-avro"),
    "delta": ("io.delta.sql.DeltaSparkSessionExtension", "delta-spark"),
}


def snippets(language: str) -> list[str]:
    return [body for name, body in FENCE.findall(PAGE) if name == language]


def shown_by(body: str) -> list[str]:
    """What a snippet says that it prints: behind a ``print``, and in the comments below it."""
    found: list[str] = []
    below = False
    for line in body.splitlines():
        behind = re.search(r"print\(.*\)  # (.*)$", line)
        more = re.fullmatch(r"\s+# (.*)", line)
        if behind:
            found.append(behind[1])
        elif more and below:
            found.append(more[1])
        below = bool(behind or (more and below))
    return found


def run_snippet(body: str, names: dict[str, Any], port: str, folder: Path) -> None:
    code = body.replace('format("headrace")', f'format("headrace").option("port", "{port}")')
    code = code.replace('{"host": "localhost"', f'{{"port": "{port}"')
    code = code.replace("OPTIONS (", f"OPTIONS (port '{port}', ")
    code = code.replace("/tmp/headrace", str(folder))
    exec(compile(code, "docs/spark.md", "exec"), names)


def test_the_examples_run(
    spark: SparkSession,
    where: dict[str, str],
    client: RawClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In order, one behind the other, as a reader would type them."""
    port = where["port"]
    names: dict[str, Any] = {}
    examples = snippets("python")
    assert len(examples) >= 8
    for body in examples:
        run_snippet(body, names, port, tmp_path)
        shown = capsys.readouterr().out
        if expected := shown_by(body):
            assert shown.splitlines() == expected, body
        else:
            assert "spark" in names
    spark.streams.removeListener(names["listener"])
    spark.catalog.dropTempView("rides")
    assert 'headrace_lag_entries{query="' in (tmp_path / "lag.prom").read_text()

    # The jobs work on what the examples have left.
    lines = "".join(snippets("sh")).replace("\\\n", " ").splitlines()
    jobs = [shlex.split(line) for line in lines if line.startswith("headrace-pipeline")]
    assert {words[1] for words in jobs} == {
        "totals",
        "windows",
        "archive",
        "replay",
        "reconcile",
        "lag",
    }
    for words in jobs:
        words = [word.replace("/tmp/headrace", str(tmp_path)) for word in words[1:]]
        assert program.main([*words, "--url", f"redis://localhost:{port}"]) == 0, words
    assert (tmp_path / "rides.png").exists()
    assert (tmp_path / "reconciled.png").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_recipes_with_other_packages(
    spark: SparkSession,
    where: dict[str, str],
    client: RawClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
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
    run_snippet(body, {"spark": spark, "rides": rides, "F": F}, where["port"], tmp_path)
    assert capsys.readouterr().out.splitlines() == shown_by(body)


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
