"""Exactly once, killed at any point: tasks, drivers, the server, with other cores in between.

The long form, with a second driver killed and an archive: ``HEADRACE_SPARK_ROWS=40000`` before
``pytest tests/spark/test_crash.py``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import Factory

from support.build import ROOT, environment
from support.process import Process
from support.spark_driver import fate

pytestmark = pytest.mark.once

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}
ROWS = int(os.environ.get("HEADRACE_SPARK_ROWS", "2400"))
LONG = ROWS >= 40_000
PERCENT = 15
TIMEOUT_S = 180 + ROWS / 50


class Driver:
    """A driver in a process of its own, with its JVM."""

    def __init__(self, plan: dict[str, Any], log: Path) -> None:
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    str(ROOT / "tests/support/spark_driver.py"),
                    json.dumps(plan),
                ],
                stdout=subprocess.PIPE,
                stderr=out,
                env={**environment(), "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )

    def wait_for_rows(self, server: Process, rows: int) -> None:
        """Wait until the copy has so many rows."""
        deadline = time.monotonic() + TIMEOUT_S
        with server.client() as client:
            while True:
                length = client.call_parsed("XLEN", "out")
                assert isinstance(length, int), length
                if length >= rows:
                    return
                assert self._process.poll() is None, self._log.read_text()[-4000:]
                assert time.monotonic() < deadline, self._log.read_text()[-4000:]
                time.sleep(0.005)

    def kill(self) -> None:
        """End it, and its JVM, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def result(self) -> dict[str, Any]:
        """What it says at its end."""
        shown, _ = self._process.communicate(timeout=TIMEOUT_S)
        assert self._process.returncode == 0, self._log.read_text()[-4000:]
        found: dict[str, Any] = json.loads(shown.splitlines()[-1])
        return found


def fill(server: Process, rows: int) -> None:
    with server.client() as client:
        for first in range(0, rows, 1000):
            client.pipeline(
                *[
                    ("XADD", "in", f"{1_700_000_000_000 + n}-1", "n", n, "rider", f"r{n % 7}")
                    for n in range(first, min(rows, first + 1000))
                ]
            )


@pytest.mark.slow
@pytest.mark.parametrize("identity", ["auto", "content"] if LONG else ["auto"])
def test_exactly_once(fresh_server: Factory, tmp_path: Path, identity: str) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    fill(server, ROWS)
    batches = 10 if LONG else 6
    plan = {
        "port": server.port,
        "folder": str(tmp_path),
        "batch_rows": ROWS // batches,
        "parts": 2,
        "cores": 2,
        "percent": PERCENT,
        "identity": identity,
        "archive": LONG,
        "settings": {**SETTINGS, "spark.local.dir": str(tmp_path / "local")},
    }
    fates = {fate(PERCENT, str(batch), part, 0) for batch in range(batches) for part in range(2)}
    assert fates == {"", "fail", "die"}
    log = tmp_path / "driver.log"

    driver = Driver(plan, log)
    try:
        driver.wait_for_rows(server, ROWS * 23 // 100)
        driver.kill()
        driver = Driver({**plan, "cores": 3, "parts": 3}, log)
        driver.wait_for_rows(server, ROWS * 48 // 100)
        server.restart(crash=True)
        if LONG:
            driver.wait_for_rows(server, ROWS * 77 // 100)
            driver.kill()
            driver = Driver({**plan, "parts": 4}, log)
        found = driver.result()
    finally:
        driver.kill()

    entries = server.call("XRANGE", "out", "-", "+")
    assert isinstance(entries, list)
    numbers = Counter(int(row[1]) for _, row in entries)
    assert len(entries) == ROWS
    assert set(numbers) == set(range(ROWS)), "lost"
    assert set(numbers.values()) == {1}, "twice"
    facts = server.call("XINFO", "STREAM", "out")
    assert isinstance(facts, list)
    assert facts[facts.index(b"iids-duplicates") + 1] > 0, "nothing was written twice: no test"
    if LONG:
        assert found["kept"] == found["ids"] == ROWS
        assert found["wrong"] == []
