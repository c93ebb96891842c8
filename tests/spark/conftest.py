"""Fixtures for the Spark source and sink: one Spark session for all tests that need the JVM."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import build, judges
from support.process import Process, RedisProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.process import ServerProcess

MUST_BE_THERE = bool(os.environ.get("HEADRACE_REQUIRE_SPARK"))

# Without pyspark these modules cannot even be imported; test_there.py tells why they are left out.
collect_ignore_glob: list[str] = []
if find_spec("pyspark") is None or find_spec("pyarrow") is None:
    collect_ignore_glob = ["test_[!t]*.py", "test_t[!h]*.py"]

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    # Plans are run once, on a few rows: compiling them, or changing them midway, does not pay.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    # What a task has written before it fails is not held back.
    "spark.buffer.size": "4096",
    # A server of Spark Connect in the same JVM, on any port.
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.port": "0",
    # Files that are renamed and not synced: a checkpoint costs a quarter of the time.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}


JUDGES = judges.chosen()


def leave_out(reason: str) -> None:
    """Skip a test; where Spark has to be there, fail."""
    if MUST_BE_THERE:
        pytest.fail(reason)
    pytest.skip(reason)


def prepare_workers() -> None:
    """Let Spark's workers run this Python, and import what the tests import."""
    for name, value in build.environment().items():
        os.environ[name] = value
    if not build.use_tree():
        os.environ.pop("PYTHONPATH", None)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores in which a failed task is tried again."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        leave_out("Spark needs Java 17: there is no java on the PATH")
    from pyspark_headrace.sessions import session

    prepare_workers()
    where = tmp_path_factory.mktemp("spark")
    settings = {**SETTINGS, "spark.sql.warehouse.dir": str(where), "spark.local.dir": str(where)}
    found = session("tests", "local[2,4]", settings)
    found.sparkContext.setLogLevel("OFF")
    gateway = found.sparkContext._gateway
    yield found
    with warnings.catch_warnings():
        # Connections to the JVM of threads that have ended are open until they are collected.
        warnings.simplefilter("ignore", ResourceWarning)
        found.stop()
        if gateway is not None:
            gateway.shutdown()
            process = getattr(gateway, "proc", None)
            if process is not None:
                process.stdin.close()
                process.wait(30)
        gc.collect()


@pytest.fixture
def where(server: ServerProcess) -> dict[str, str]:
    """Options that lead to the shared server."""
    return {"port": str(server.port)}


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A place for a query's checkpoint."""
    return str(tmp_path / "checkpoint")


@pytest.fixture(params=["ours", *JUDGES], ids=["ours", *(judge.name for judge in JUDGES)])
def every_server(
    request: pytest.FixtureRequest, _shared_judges: dict[str, RedisProcess]
) -> Process:
    """Ours and each real server in turn, emptied."""
    judge = request.param
    if judge == "ours":
        ours: Process = request.getfixturevalue("server")
        return ours
    program = judge.program()
    if program is None:
        judges.missing(f"no {judge.name} to compare with: `make judges` brings it")
    return _shared_judges.setdefault(program, RedisProcess(program=program)).start_or_empty()
