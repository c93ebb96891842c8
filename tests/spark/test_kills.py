"""A query whose server and whose workers are killed, again and again: nothing lost, nothing twice.

``HEADRACE_SPARK_KILLS=100`` before ``pytest -s tests/spark/test_kills.py`` kills as often, and
prints what it found. Drivers are killed by test_crash.py, nodes by test_cluster_with_spark.py.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from conftest import Factory

from support import judges
from support.process import Process, RedisProcess
from support.spark_stage import TIMEOUT_S, Stage
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.once, pytest.mark.slow]

KILLS = int(os.environ.get("HEADRACE_SPARK_KILLS", "6"))
ROWS = 120  # between two kills
KEYS = ["t:1", "t:2", "t:3"]
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def children_of(pids: set[int]) -> set[int]:
    """The processes that some processes have started, as far as they live."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if words[0] != "Z" and int(words[1]) in pids:
            found.add(int(folder.name))
    return found


def kill_a_worker(spark: SparkSession, chance: Random) -> bool:
    """One that plans, reads or writes, or waits to; False where there is none."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    daemons = children_of({gateway.proc.pid})
    workers = sorted(children_of(daemons))
    if not workers:
        return False
    try:
        os.kill(chance.choice(workers), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Copy:
    """A query that is started again from its checkpoint when it has ended."""

    def __init__(self, stage: Stage, start: Callable[[], StreamingQuery]) -> None:
        self._stage = stage
        self._start = start
        self.query = start()
        self.restarts = 0

    def length(self) -> int:
        found = self._stage.link.call("XLEN", "out")
        assert isinstance(found, int)
        return found

    def wait_for(self, rows: int) -> None:
        """Wait until the copy has so many rows."""
        wait_until(lambda: self._has(rows), TIMEOUT_S)

    def _has(self, rows: int) -> bool:
        if not self.query.isActive:
            self.query = self._start()
            self.restarts += 1
        return self.length() >= rows


@pytest.fixture(params=["redis-8.0", "ours"])
def durable(request: pytest.FixtureRequest, fresh_server: Factory) -> Iterator[Process]:
    """A server that has on disk what it has acknowledged."""
    if request.param == "ours":
        yield fresh_server(*DURABLE)
        return
    program = judges.program_of(request.param)
    with RedisProcess(*DURABLE, program=program) as found:
        yield found


def test_killed_again_and_again(spark: SparkSession, checkpoint: str, durable: Process) -> None:
    """Redis 8.0 with a marker, ours by what each row says of itself."""
    identity = "marker" if isinstance(durable, RedisProcess) else "auto"
    more = {"configureIdmp": "true"} if identity == "auto" else {}
    where = {"fetchOffset.numRetries": "9", "fetchOffset.retryIntervalMs": "50"}
    stage = Stage({**where, "port": str(durable.port)})
    copy = Copy(stage, lambda: stage.copying(spark, checkpoint, identity, more))
    chance = Random(KILLS)
    killed: Counter[str] = Counter()
    try:
        while killed.total() < KILLS:
            before = copy.length()
            stage.add(KEYS, ROWS // len(KEYS))
            copy.wait_for(min(before + chance.randrange(ROWS), stage.added - 1))
            if chance.random() < 0.5:
                durable.restart(crash=True)
                killed["server"] += 1
            elif kill_a_worker(spark, chance):
                killed["worker"] += 1
        copy.wait_for(stage.added)
    finally:
        copy.query.stop()
    rows = stage.copied()
    stage.link.close()
    lost, twice = stage.added - len(rows), rows.total() - len(rows)
    print(
        f"\n{identity}: killed {dict(killed)}, {copy.restarts} queries started again, "
        f"{stage.added} rows, {lost} lost, {twice} twice"
    )
    assert rows == Counter(range(stage.added))
