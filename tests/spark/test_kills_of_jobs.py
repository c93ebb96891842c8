"""Jobs whose server and whose workers are killed, again and again: what they make is right.

``HEADRACE_SPARK_KILLS=200`` before ``pytest -s tests/spark/test_kills_of_jobs.py`` kills as often,
and prints what it found. The jobs run at the same time, so all of them miss a server that is
killed. When all is read, what each has made is compared with what was written, and with the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Factory
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.given import READ
from pyspark_headrace.jobs.archive import archive_batches, read_archive, verify
from pyspark_headrace.jobs.reconcile import entries_side, reconcile, totals_side
from pyspark_headrace.jobs.totals import append_changes, totals
from pyspark_headrace.jobs.windows import windows
from pyspark_headrace.options import read_options
from pyspark_headrace.resp import Link
from support.process import Process
from support.spark_kills import DURABLE, KILLS, PATIENT, Killer, Restarted
from support.spark_stage import TIMEOUT_S
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.once, pytest.mark.slow]

KEYS = ["t:1", "t:2", "t:3"]
ROWS = 30  # between two kills
STEP_MS = 100  # from one entry to the next
WINDOW_MS = 2000
GAP_MS = 60_000  # behind all windows that are to be closed
COMMANDS = 150  # at most between two kills, of all jobs
FOLLOWING = {"processingTime": "50 milliseconds"}
TO_THE_END = {"availableNow": True}

# A worker that takes longer than ten seconds to start ends a query; nothing is killed by then.
SLOW_WORKER = "Python worker failed to connect back"
TRIES = 5

Trigger = dict[str, Any]


class Jobs:
    """The queries of the jobs over the same streams, each with a checkpoint.

    Attributes:
        entries: what was written, as milliseconds and rider, by number.
    """

    def __init__(self, spark: SparkSession, server: Process, folder: Path) -> None:
        self._spark = spark
        self._where = {**PATIENT, "port": str(server.port)}
        self._folder = folder
        self.link = Link(read_options({**self._where, "path": "s"}, READ).connection)
        self.entries: list[tuple[int, str]] = []
        self.starts: list[Callable[[Trigger], StreamingQuery]] = [
            self._totals,
            self._windows,
            self._archive,
        ]

    # What is written

    def add(self, rows: int) -> None:
        """Append entries to the streams in turn, whose times say their numbers."""
        for _ in range(rows):
            number = len(self.entries)
            self._append(number * STEP_MS, f"r{number % 5}")

    def close_windows(self) -> None:
        """Append an entry so late that no window before it is open when the next one is read."""
        self._append(self.entries[-1][0] + GAP_MS, "late")

    def _append(self, ms: int, rider: str) -> None:
        number = len(self.entries)
        words = ("XADD", KEYS[number % len(KEYS)], f"{ms}-1", "n", number, "rider", rider)
        assert isinstance(self.link.call(*words), bytes)
        self.entries.append((ms, rider))

    # The queries

    def _read(self, **more: str) -> DataFrame:
        reading = self._spark.readStream.format("headrace").options(
            **self._where, subscribePattern="t:*", startingOffsets="earliest", pollTimeoutMs="50"
        )
        return reading.options(**more).load()

    def _totals(self, trigger: Trigger) -> StreamingQuery:
        changed = totals(self._read(), ["rider"], "n")
        append = append_changes("totals", self._where)
        writer = changed.writeStream.foreachBatch(append).outputMode("update")
        return self._start(writer, "totals", trigger)

    def _windows(self, trigger: Trigger) -> StreamingQuery:
        counted = windows(self._read(), f"{WINDOW_MS} milliseconds", by=["rider"], value="n")
        start = F.unix_millis("start")
        rows = counted.select(
            F.concat_ws("|", start.cast("string"), "rider").alias("_iid"),
            start.alias("start"),
            "rider",
            "count",
            F.col("total").cast("long").alias("total"),
        )
        writer = rows.writeStream.format("headrace").options(
            **self._where, stream="windows", configureIdmp="true"
        )
        return self._start(writer.outputMode("append"), "windows", trigger)

    def _archive(self, trigger: Trigger) -> StreamingQuery:
        batches = archive_batches(f"{self._folder}/archive", f"{self._folder}/kept")
        writer = self._read(fieldsFormat="pairs").writeStream.foreachBatch(batches)
        return self._start(writer, "kept", trigger)

    def _start(self, writer: Any, name: str, trigger: Trigger) -> StreamingQuery:
        query: StreamingQuery = (
            writer.option("checkpointLocation", f"{self._folder}/{name}").trigger(**trigger).start()
        )
        return query

    def finish(self) -> None:
        """Let each of them read what is left."""
        for start in self.starts:
            self._read_to_the_end(start)

    def _read_to_the_end(self, start: Callable[[Trigger], StreamingQuery]) -> None:
        for left in reversed(range(TRIES)):
            try:
                assert start(TO_THE_END).awaitTermination(TIMEOUT_S)
                return
            except StreamingQueryException as error:
                if SLOW_WORKER not in str(error) or not left:
                    raise

    # What they have made

    def _rows(self, stream: str) -> list[dict[str, str]]:
        entries = self.link.call("XRANGE", stream, "-", "+")
        assert isinstance(entries, list)
        texts = [[each.decode() for each in fields] for _, fields in entries]
        return [dict(zip(row[0::2], row[1::2], strict=True)) for row in texts]

    def check(self) -> None:
        """Compare what they have made with what was written."""
        self._check_totals()
        self._check_windows()
        self._check_archive()
        self._check_all_together()

    def _check_totals(self) -> None:
        rows = self._rows("totals")
        twice = Counter((row["rider"], row["batch"]) for row in rows)
        assert set(twice.values()) == {1}
        found = {row["rider"]: (int(row["count"]), int(row["total"])) for row in rows}
        expected: dict[str, tuple[int, int]] = {}
        for number, (_, rider) in enumerate(self.entries):
            count, total = expected.get(rider, (0, 0))
            expected[rider] = count + 1, total + number
        assert found == expected

    def _check_windows(self) -> None:
        found = Counter(
            (int(row["start"]), row["rider"], int(row["count"]), int(row["total"]))
            for row in self._rows("windows")
            if row["rider"] != "late"
        )
        sums: dict[tuple[int, str], tuple[int, int]] = {}
        for number, (ms, rider) in enumerate(self.entries):
            if rider != "late":
                window = ms - ms % WINDOW_MS, rider
                count, total = sums.get(window, (0, 0))
                sums[window] = count + 1, total + number
        assert found == Counter((*window, *figures) for window, figures in sums.items())

    def _check_archive(self) -> None:
        path = f"{self._folder}/archive"
        assert verify(self._spark, path).collect() == []
        kept = Counter(row["id_ms"] for row in read_archive(self._spark, path).collect())
        assert kept == Counter(ms for ms, _ in self.entries)

    def _check_all_together(self) -> None:
        """The job that holds them against each other finds no difference."""
        reading = self._spark.read.format("headrace").options(**self._where)
        sides = {
            "stream": entries_side(reading.load(",".join(KEYS)), key="rider", value="n"),
            "archive": entries_side(
                read_archive(self._spark, f"{self._folder}/archive"), key="rider", value="n"
            ),
            "totals": totals_side(reading.load("totals"), "rider"),
        }
        rows = reconcile(sides).collect()
        assert {row["key"] for row in rows} == {rider for _, rider in self.entries}
        assert [row for row in rows if not row["agrees"]] == []


def commands_of(server: Process) -> int:
    """Return how many commands a server has run since it was started."""
    return int(server.info("stats")["total_commands_processed"])


def test_jobs_killed_again_and_again(
    spark: SparkSession, fresh_server: Factory, tmp_path: Path
) -> None:
    """Totals, windows and an archive, after some commands each time; then all is reconciled."""
    server = fresh_server(*DURABLE)
    jobs = Jobs(spark, server, tmp_path)
    chance = Random(KILLS)
    killer = Killer(spark, server, chance)
    jobs.add(ROWS)
    running = [Restarted(partial(start, FOLLOWING)) for start in jobs.starts]

    def has_run(commands: int) -> bool:
        for each in running:
            each.go_on()
        return commands_of(server) >= commands

    with closing(jobs.link):
        try:
            while killer.killed.total() < KILLS:
                jobs.add(ROWS)
                commands = commands_of(server) + chance.randrange(COMMANDS)
                wait_until(lambda: has_run(commands), TIMEOUT_S)  # noqa: B023
                killer.kill()
        finally:
            for each in running:
                each.query.stop()
        for _ in range(2):
            jobs.close_windows()
            jobs.finish()
        jobs.check()
    print(
        f"\njobs: killed {dict(killer.killed)}, {sum(each.restarts for each in running)} queries "
        f"started again, {len(jobs.entries)} entries: none lost, none twice"
    )
