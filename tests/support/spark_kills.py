"""Killing what a query of a Spark session needs, and starting again what has ended by it."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from support.process import Process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KILLS = int(os.environ.get("HEADRACE_SPARK_KILLS", "6"))
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
PATIENT = {"fetchOffset.numRetries": "9", "fetchOffset.retryIntervalMs": "50"}


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


class Killer:
    """Kills the server or a worker, as chance has it.

    Attributes:
        killed: how often which.
    """

    def __init__(self, spark: SparkSession, server: Process, chance: Random) -> None:
        self._spark = spark
        self._server = server
        self._chance = chance
        self.killed: Counter[str] = Counter()

    def kill(self) -> None:
        """Kill one of them; there may be no worker at the moment."""
        if self._chance.random() < 0.5:
            self._server.restart(crash=True)
            self.killed["server"] += 1
        elif kill_a_worker(self._spark, self._chance):
            self.killed["worker"] += 1


class Restarted:
    """A query that is started again from its checkpoint when it has ended.

    Attributes:
        restarts: how often it was.
    """

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self.query = start()
        self.restarts = 0

    def go_on(self) -> None:
        """Start it again if it has ended."""
        if not self.query.isActive:
            self.query = self._start()
            self.restarts += 1
