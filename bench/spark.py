"""The Spark source and sink beside what one would write first: redis-py, tuples, rows.

One core (``local[1]``), one partition, a stream of entries with four short fields. Ours and the
obvious ones take turns in one session, so that whatever else the machine does meets all of them;
figures are medians of the rounds, ratios are to the obvious one. Reading ends in Spark's ``noop``
sink. CPU is that of Spark with all its Python processes, not of the server.

Run it from an environment with the extra ``spark`` and redis-py: ``python -m bench.spark``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)

from bench.peers import Control, Server, encode, ours
from pyspark_headrace.sessions import session

FIELDS = ("rider", "driver", "distance", "note")
BATCH = 1000
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ObviousReader(DataSourceReader):
    """XRANGE with redis-py, a tuple for each entry."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """All entries."""
        client = obvious_client(self._options)
        last = "-"
        while True:
            page = client.xrange(self._options["stream"], last, "+", count=BATCH)
            yield from page
            if len(page) < BATCH:
                break
            last = f"({page[-1][0]}"


class ObviousWriter(DataSourceWriter):
    """XADD with redis-py's pipeline, row by row."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Append all rows."""
        client = obvious_client(self._options)
        pipe = client.pipeline(transaction=False)
        for number, row in enumerate(iterator, 1):
            pipe.xadd(self._options["stream"], row.asDict())
            if number % BATCH == 0:
                pipe.execute()
        pipe.execute()
        return WriterCommitMessage()


def obvious_client(options: dict[str, str]) -> Any:
    """redis-py as ``pip install redis`` gives it, or (``parser=hiredis``) with hiredis."""
    import redis
    from redis._parsers import _HiredisParser, _RESP2Parser

    parser = _HiredisParser if options["parser"] == "hiredis" else _RESP2Parser
    pool = redis.ConnectionPool(
        port=int(options["port"]), protocol=2, decode_responses=True, parser_class=parser
    )
    return redis.Redis(connection_pool=pool)


class ObviousSource(DataSource):
    """What a first afternoon gives."""

    @classmethod
    def name(cls) -> str:
        """Its name in ``format``."""
        return "obvious"

    def schema(self) -> str:
        """An ID, and a map."""
        return "id string, fields map<string,string>"

    def reader(self, schema: Any) -> DataSourceReader:
        """For reading."""
        return ObviousReader(dict(self.options))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        """For writing."""
        return ObviousWriter(dict(self.options))


class Sample(NamedTuple):
    """What one run took."""

    wall_s: float
    cpu_s: float


def children() -> dict[int, list[int]]:
    """All processes by their parent."""
    found: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        found.setdefault(parent, []).append(int(place.name))
    return found


def cpu_s(leave_out: int) -> float:
    """CPU time of this process and all that it started, but one; of those that have ended, too."""
    tree = children()
    waiting = [os.getpid()]
    ticks = 0
    while waiting:
        pid = waiting.pop()
        if pid == leave_out:
            continue
        waiting += tree.get(pid, [])
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS_PER_S


def timed(work: Callable[[], object], server_pid: int) -> Sample:
    """Run once."""
    cpu = cpu_s(server_pid)
    start = time.perf_counter()
    work()
    return Sample(time.perf_counter() - start, cpu_s(server_pid) - cpu)


def take_turns(
    works: dict[str, Callable[[], object]], rounds: int, server_pid: int
) -> dict[str, list[Sample]]:
    """Everything once to warm up, then in turns."""
    for work in works.values():
        work()
    samples: dict[str, list[Sample]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            samples[name].append(timed(work, server_pid))
    return samples


def report(title: str, rows: int, samples: dict[str, list[Sample]], baseline: str) -> None:
    """Print the medians, and the medians of the ratios within each round."""
    print(f"\n{title}, {rows:,} entries")
    print(f"  {'':44} {'entries/s':>10} {'CPU us each':>12} {'ratio':>7}")
    for name, taken in samples.items():
        wall = median(each.wall_s for each in taken)
        cpu = median(each.cpu_s for each in taken)
        pairs = zip(samples[baseline], taken, strict=True)
        ratio = median(other.wall_s / mine.wall_s for other, mine in pairs)
        print(f"  {name:44} {rows / wall:10,.0f} {1e6 * cpu / rows:12.1f} {ratio:7.1f}")


def fill(port: int, entries: int) -> None:
    """A stream of entries of four short fields."""
    control = Control(port)

    def chunks() -> Iterator[tuple[bytes, int]]:
        for first in range(0, entries, BATCH):
            numbers = range(first, min(entries, first + BATCH))
            requests = b"".join(
                encode(
                    *(
                        "XADD",
                        "rides",
                        f"{1_700_000_000_000 + number}-1",
                        "rider",
                        f"r{number % 97}",
                    ),
                    *("driver", f"d{number % 13}", "distance", f"{number % 1000}.5"),
                    *("note", "eight ch"),
                )
                for number in numbers
            )
            yield requests, len(numbers)

    control.send_all(chunks())
    control.close()


def to_nowhere(frame: DataFrame) -> None:
    """Read all of a frame."""
    frame.write.format("noop").mode("overwrite").save()


def reads(spark: SparkSession, port: int) -> dict[str, Callable[[], object]]:
    """The ways of reading."""

    def obvious(parser: str) -> Callable[[], object]:
        options = {"port": str(port), "stream": "rides", "parser": parser}
        return lambda: to_nowhere(spark.read.format("obvious").options(**options).load())

    def headrace(schema: str = "") -> Callable[[], object]:
        def work() -> None:
            reader = spark.read.format("headrace").option("port", port)
            # One piece, as the others have it.
            reader = reader.option("minRowsPerPartition", 10**9)
            to_nowhere((reader.schema(schema) if schema else reader).load("rides"))

        return work

    columns = ", ".join(f"{name} string" for name in FIELDS)
    return {
        "obvious: redis-py, tuples, a map": obvious("python"),
        "the same with hiredis": obvious("hiredis"),
        "headrace, a map": headrace(),
        "headrace, columns": headrace(f"_id string, {columns}"),
    }


def writes(spark: SparkSession, port: int, entries: int) -> dict[str, Callable[[], object]]:
    """The ways of writing."""
    columns = ", ".join(f"{name} string" for name in FIELDS)
    reader = spark.read.format("headrace").option("port", port)
    frame = reader.schema(columns).load("rides").limit(entries).coalesce(1).cache()
    frame.count()

    def write(form: str, **options: str) -> Callable[[], object]:
        def work() -> None:
            with_port = {"port": str(port), "stream": "out", **options}
            frame.write.format(form).options(**with_port).mode("append").save()

        return work

    return {
        "obvious: rows, redis-py's pipeline": write("obvious", parser="python"),
        "the same with hiredis": write("obvious", parser="hiredis"),
        "headrace, known again (IDMP)": write("headrace"),
        "headrace, identity=none": write("headrace", identity="none"),
    }


def main() -> None:
    """Measure reading and writing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", default="", help="command of the server; default: ours")
    chosen = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session(
        "bench",
        "local[1]",
        {
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(ObviousSource)
    with Server(ours(chosen.server)) as server:
        fill(server.port, chosen.entries)
        done = take_turns(reads(spark, server.port), chosen.rounds, server.pid)
        report("Reading on one core", chosen.entries, done, "obvious: redis-py, tuples, a map")
        rows = chosen.entries // 2
        done = take_turns(writes(spark, server.port, rows), chosen.rounds, server.pid)
        report("Writing on one core", rows, done, "obvious: rows, redis-py's pipeline")
    spark.stop()


if __name__ == "__main__":
    main()
