"""A query whose server and whose workers are killed, again and again: nothing lost, nothing twice.

``HEADRACE_SPARK_KILLS=100`` before ``pytest -s tests/spark/test_kills.py`` kills as often, and
prints what it found. Jobs are killed by test_kills_of_jobs.py, drivers by test_crash.py, nodes by
test_cluster_with_spark.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

import pytest
from conftest import Factory

from support import judges
from support.process import Process, RedisProcess
from support.spark_kills import DURABLE, KILLS, PATIENT, Killer, Restarted
from support.spark_stage import TIMEOUT_S, Stage
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.once, pytest.mark.slow]

ROWS = 120  # between two kills
KEYS = ["t:1", "t:2", "t:3"]


class Copy(Restarted):
    """A query that copies what is on a stage."""

    def __init__(self, spark: SparkSession, stage: Stage, checkpoint: str, identity: str) -> None:
        more = {"configureIdmp": "true"} if identity == "auto" else {}
        super().__init__(lambda: stage.copying(spark, checkpoint, identity, more))
        self._stage = stage

    def length(self) -> int:
        found = self._stage.link.call("XLEN", "out")
        assert isinstance(found, int)
        return found

    def wait_for(self, rows: int) -> None:
        """Wait until the copy has so many rows."""
        wait_until(lambda: self._has(rows), TIMEOUT_S)

    def _has(self, rows: int) -> bool:
        self.go_on()
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
    stage = Stage({**PATIENT, "port": str(durable.port)})
    copy = Copy(spark, stage, checkpoint, identity)
    chance = Random(KILLS)
    killer = Killer(spark, durable, chance)
    try:
        while killer.killed.total() < KILLS:
            before = copy.length()
            stage.add(KEYS, ROWS // len(KEYS))
            copy.wait_for(min(before + chance.randrange(ROWS), stage.added - 1))
            killer.kill()
        copy.wait_for(stage.added)
    finally:
        copy.query.stop()
    rows = stage.copied()
    stage.link.close()
    lost, twice = stage.added - len(rows), rows.total() - len(rows)
    print(
        f"\n{identity}: killed {dict(killer.killed)}, {copy.restarts} queries started again, "
        f"{stage.added} rows, {lost} lost, {twice} twice"
    )
    assert rows == Counter(range(stage.added))
