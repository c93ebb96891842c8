"""A client of Spark Connect that does what a session can do with streams.

Run as a program with the port of a Connect server, that of a server of streams, and a folder;
prints one line of JSON. In a process of its own, because one that has been a client cannot start a
Spark of its own any more.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import QueryTerminatedEvent

from pyspark_headrace import LagListener, register, session
from pyspark_headrace.errors import OptionError
from pyspark_headrace.jobs import totals
from pyspark_headrace.jobs.replay import restore
from pyspark_headrace.listener import Lag

ROWS = 50
TIMEOUT_S = 120
MOST_S = 240  # Spark's client has waits of its own that are longer, or have no end


class Listener(LagListener):
    """Keeps how far behind queries were, and counts those that have ended."""

    def __init__(self) -> None:
        self.lags: list[Lag] = []
        self.ended = 0
        super().__init__(on_lag=self.lags.extend)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The last event of a query."""
        self.ended += 1


class Client:
    """A session, the options that lead to the server, and a folder for checkpoints."""

    def __init__(self, connect_port: str, port: str, folder: str) -> None:
        self.spark = SparkSession.builder.remote(f"sc://localhost:{connect_port}").getOrCreate()
        self.where = {"port": port}
        self.folder = folder

    def read(self, stream: str, **options: str) -> DataFrame:
        return self.spark.read.format("headrace").options(**self.where, **options).load(stream)

    def run(self, name: str, write: Callable[[Any], Any], **options: str) -> None:
        """A query over the rides, to its end."""
        entries = self.spark.readStream.format("headrace").options(
            **self.where, subscribe="rides", startingOffsets="earliest", **options
        )
        writer = entries.load().writeStream
        writer = writer.option("checkpointLocation", f"{self.folder}/{name}")
        query = write(writer).trigger(availableNow=True).start()
        assert query.awaitTermination(TIMEOUT_S)

    def append(self, batch: DataFrame, number: int) -> None:
        batch.write.format("headrace").options(**self.where).mode("append").save("each")


def refusal(work: Callable[[], object]) -> str:
    """The error of what cannot be done."""
    try:
        work()
    except (OptionError, PySparkException) as error:
        return str(error)
    return ""


def main() -> None:
    """Do it all, and print what came of it."""
    faulthandler.dump_traceback_later(MOST_S, exit=True)
    client = Client(*sys.argv[1:])
    spark, where = client.spark, client.where
    rows = [(f"r{n % 5}", n) for n in range(ROWS)]
    rides = spark.createDataFrame(rows, "rider string, n int")
    rides.write.format("headrace").options(**where).mode("append").save("rides")
    listener = Listener()
    spark.streams.addListener(listener)
    client.run("copy", lambda writer: writer.format("headrace").options(**where, stream="copy"))
    client.run("each", lambda writer: writer.foreachBatch(client.append))
    # An event that comes while a listener is removed is a deadlock in Spark's client (4.3).
    until_s = time.monotonic() + TIMEOUT_S
    while listener.ended < 2:
        assert time.monotonic() < until_s, "the queries have not ended"
        time.sleep(0.05)
    spark.streams.removeListener(listener)
    groups = totals(client.read("rides"), by=["rider"], value="n").collect()
    found = {
        "read": client.read("rides").filter("id_ms > 0").count(),
        "lag": [lag.entries for lag in listener.lags][-1:],
        "totals": {row["rider"]: int(row["total"]) for row in groups},
        "restored": restore(client.read("rides", fieldsFormat="pairs"), where, "again"),
        "unknown": refusal(lambda: client.read("rides", nonsense="1").count()),
        "session": refusal(session),
    }
    register(spark)
    spark.conf.set("spark.headrace.url", "redis://localhost")
    spark.conf.set("spark.headrace.password", "hush-hush")
    found["register"] = refusal(lambda: register(spark))
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
