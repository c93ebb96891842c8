"""Spark Connect: a client has no part in reading and writing, so nearly all works as it does."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.build import ROOT, environment
from support.extras import python_with
from support.process import Process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.once, pytest.mark.slow]

PARTS = ("grpc", "grpc_status", "pandas", "zstandard")


@pytest.mark.skipif(
    not all(map(find_spec, PARTS)), reason="pyspark[connect] is not installed: " + ", ".join(PARTS)
)
def test_a_client(spark: SparkSession, server: Process, tmp_path: Path) -> None:
    """In an environment of its own; the session that all tests share is a Connect server too."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    service = getattr(gateway.jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    connect_port = getattr(service, "MODULE$").localPort()
    python = str(python_with(tmp_path / "venv", "connect"))
    variables = {**environment(), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    program = str(ROOT / "tests/support/spark_connect.py")
    done = subprocess.run(
        [python, "-P", program, str(connect_port), str(server.port), str(tmp_path)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert found["read"] == 50
    assert found["lag"] == [0]
    assert found["totals"] == {f"r{n}": sum(range(n, 50, 5)) for n in range(5)}
    assert found["restored"] == {"again": [50, 0]}
    assert [server.call("XLEN", key) for key in ("rides", "copy", "each", "again")] == [50] * 4
    assert "unknown option nonsense" in found["unknown"]
    assert found["session"].startswith("session() starts a Spark of its own")
    assert "do not reach the workers of a Spark Connect server" in found["register"]
    assert "hush-hush" not in done.stdout + done.stderr
