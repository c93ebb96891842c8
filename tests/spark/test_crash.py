"""Exactly once, killed at any point: tasks, drivers, the server, with other cores in between.

The long form, in which two drivers are killed while they copy and two while they archive, and that
is done with both kinds of identity: ``HEADRACE_SPARK_ROWS=40000`` before
``pytest -s tests/spark/test_crash.py``, which prints what it found.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
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
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
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
        with server.client() as client:

            def there() -> bool:
                length = client.call_parsed("XLEN", "out")
                assert isinstance(length, int), length
                return length >= rows

            self.wait_for(there)

    def wait_for(self, done: Callable[[], bool]) -> None:
        """Wait until it has come so far."""
        deadline = time.monotonic() + TIMEOUT_S
        while not done():
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
        """Return what it says at its end."""
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


def in_the_middle_of(folder: Path, batch: int, part: str) -> Callable[[], bool]:
    """Whether the archive's query writes files of a batch, or has not told yet that it did."""

    def there() -> bool:
        data, manifest = (
            next((folder / "archive" / which).glob(f"query=*/batch={batch}"), folder / "nowhere")
            for which in ("data", "manifest")
        )
        if part == "data":
            return (data / "_temporary").exists()
        return (data / "_SUCCESS").exists() and not (manifest / "_SUCCESS").exists()

    return there


def kept_ids(folder: Path, key: str) -> list[str]:
    """The IDs in an archive, as any reader of Parquet sees them."""
    files = ds.dataset(folder / "archive/data", partitioning="hive", exclude_invalid_files=True)
    found: list[str] = files.to_table(columns=["id"], filter=ds.field("key") == key)[
        "id"
    ].to_pylist()
    return found


def chain(folder: Path, key: str) -> list[tuple[str, str, int]]:
    """The manifest of a stream: after, upto and the number of entries, batch by batch."""
    found: dict[int, tuple[str, str, int]] = {}
    for batch in (folder / "archive/manifest").glob("query=*/batch=*"):
        for line in "".join(part.read_text() for part in batch.glob("*.json")).splitlines():
            facts = json.loads(line)
            if facts["key"] == key:
                found[int(batch.name[6:])] = (facts["after"], facts["upto"], facts["rows"])
    return [found[number] for number in sorted(found)]


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
        for batch, part in [(1, "data"), (2, "manifest")][: 2 if LONG else 1]:
            driver.wait_for(in_the_middle_of(tmp_path, batch, part))
            driver.kill()
            assert not (tmp_path / f"kept/commits/{batch}").exists()
            driver = Driver(plan, log)
        found = driver.result()
    finally:
        driver.kill()

    entries = {key: server.call("XRANGE", key, "-", "+") for key in ("in", "out")}
    assert isinstance(entries["out"], list)
    numbers = Counter(int(row[1]) for _, row in entries["out"])
    facts = server.call("XINFO", "STREAM", "out")
    assert isinstance(facts, list)
    known_again = facts[facts.index(b"iids-duplicates") + 1]
    ended = (tmp_path / "ended").read_text().splitlines()
    lost = len(set(range(ROWS)) - set(numbers))
    print(
        f"\nidentity {identity}: {ROWS} rows, {len(ended)} attempts ended, {known_again} rows "
        f"known again; {len(entries['out'])} entries, {len(entries['out']) - len(numbers)} "
        f"duplicates, {lost} lost; archived {found['kept']}, wrong {found['wrong']}"
    )
    assert len(entries["out"]) == ROWS
    assert set(numbers) == set(range(ROWS)), "lost"
    assert set(numbers.values()) == {1}, "twice"
    assert known_again > 0, "nothing was written twice: no test"
    assert ended

    assert found["kept"] == {"in": ROWS, "out": ROWS}
    assert found["ids"] == 2 * ROWS
    assert found["wrong"] == []
    for key, rows in entries.items():
        assert isinstance(rows, list)
        assert sorted(kept_ids(tmp_path, key)) == sorted(row[0].decode() for row in rows)
        links = chain(tmp_path, key)
        assert [after for after, _, _ in links] == ["0-0", *(upto for _, upto, _ in links[:-1])]
        assert links[-1][1] == rows[-1][0].decode()
        assert sum(count for _, _, count in links) == ROWS


@pytest.mark.slow
def test_exactly_once_from_many_streams(fresh_server: Factory, tmp_path: Path) -> None:
    """A thousand streams of a few entries each; drivers are killed in the midst of batches."""
    server = fresh_server("--appendonly", "yes")
    rows = 3000
    with server.client() as client:
        client.pipeline(*[("XADD", f"in:{n % 1000}", "*", "n", n) for n in range(rows)])
    plan = {
        "port": server.port,
        "folder": str(tmp_path),
        "pattern": "in:*",
        "batch_rows": 700,
        "parts": 3,
        "cores": 2,
        "percent": PERCENT,
        "identity": "auto",
        "settings": {**SETTINGS, "spark.local.dir": str(tmp_path / "local")},
    }
    log = tmp_path / "driver.log"
    driver = Driver(plan, log)
    try:
        for part, cores in ((20, 3), (55, 2)):
            driver.wait_for_rows(server, rows * part // 100)
            driver.kill()
            driver = Driver({**plan, "cores": cores, "parts": cores + 2}, log)
        driver.result()
    finally:
        driver.kill()
    entries = server.call("XRANGE", "out", "-", "+")
    assert isinstance(entries, list)
    numbers = Counter(int(fields[1]) for _, fields in entries)
    assert set(numbers) == set(range(rows)), "lost"
    assert set(numbers.values()) == {1}, "twice"
    facts = server.call("XINFO", "STREAM", "out")
    assert isinstance(facts, list)
    assert facts[facts.index(b"iids-duplicates") + 1] > 0, "nothing was written twice: no test"
