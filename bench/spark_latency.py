"""How long an entry takes through Spark: from its XADD until the sink's copy of it is seen.

A process of its own adds entries at an even rate to one stream, ten at a time. A query copies them
into another stream, source to sink, each exactly once, batch after batch. This program waits for
the copies with XREAD. An entry says when it was added; both ends read one clock.

Run it from an environment with pyspark, on a machine that does nothing else:
``python -m bench.spark_latency``. It prints the load that the machine had before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from multiprocessing import Process
from statistics import quantiles
from typing import cast

from bench.peers import Control, Server, encode, ours
from pyspark_headrace.sessions import session

AT_ONCE = 10
WARM_S = 10.0  # Java compiles what is used, and workers start
GRACE_S = 60.0


def add(port: int, rate: int, seconds: float) -> None:
    """Add entries, each with the moment at which it is sent, never more than are due."""
    control = Control(port)
    began_s = time.monotonic()
    sent = 0
    while sent < rate * seconds:
        due_s = began_s + sent / rate
        time.sleep(max(0.0, due_s - time.monotonic()))
        now = time.monotonic_ns()
        request = encode("XADD", "in", "*", "sent", now, "rider", "ada", "distance", "12.5")
        control.send_all([(request * AT_ONCE, AT_ONCE)])
        sent += AT_ONCE
    control.close()


def watch(port: int, wanted: int, deadline_s: float) -> list[tuple[int, int]]:
    """Return when each copy's entry was sent, and when the copy was seen, in nanoseconds."""
    control = Control(port)
    found: list[tuple[int, int]] = []
    last: bytes = b"0-0"
    while len(found) < wanted and time.monotonic() < deadline_s:
        reply = control.call("XREAD", "BLOCK", 1000, "STREAMS", "out", last)
        now = time.monotonic_ns()
        for _, entries in cast("list[tuple[bytes, list[tuple[bytes, list[bytes]]]]]", reply or []):
            last = entries[-1][0]
            for _, fields in entries:
                facts = dict(zip(fields[0::2], fields[1::2], strict=True))
                found.append((int(facts[b"sent"]), now))
    control.close()
    return found


def measure(port: int, rate: int, seconds: float, cores: int, trigger: str) -> list[float]:
    """Milliseconds from end to end, of all entries but the first ones."""
    spark = session("latency", f"local[{cores}]", {"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("OFF")
    where = {"port": str(port)}
    checkpoint = tempfile.mkdtemp(prefix="headrace-latency-")
    query = (
        spark.readStream.format("headrace")
        .schema("_key string, _id string, sent string, rider string, distance double")
        .options(**where, subscribe="in", startingOffsets="earliest")
        .load()
        .writeStream.format("headrace")
        .options(**where, stream="out")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime=trigger)
        .start()
    )
    adder = Process(target=add, args=(port, rate, WARM_S + seconds))
    adder.start()
    wanted = int(rate * (WARM_S + seconds))
    found = watch(port, wanted, time.monotonic() + WARM_S + seconds + GRACE_S)
    adder.join()
    durations = [each.durationMs["triggerExecution"] for each in query.recentProgress[-20:]]
    query.stop()
    spark.stop()
    shutil.rmtree(checkpoint)
    if len(found) != wanted:
        raise SystemExit(f"{len(found):,} of {wanted:,} copies were seen")
    print(f"batches took {min(durations)} to {max(durations)} ms at the end")
    warm_ns = min(sent for sent, _ in found) + int(WARM_S * 1e9)
    return [(seen - sent) / 1e6 for sent, seen in found if sent >= warm_ns]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1000, help="entries a second")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--trigger", default="0 seconds")
    parser.add_argument("--server", default="", help="command of the server; default: ours")
    chosen = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    print(f"load before: {os.getloadavg()[0]:.2f}")
    with Server(ours(chosen.server)) as server:
        found = measure(server.port, chosen.rate, chosen.seconds, chosen.cores, chosen.trigger)
    cuts = quantiles(found, n=100)
    print(
        f"{len(found):,} entries at {chosen.rate:,}/s: p50 {cuts[49]:.0f} ms, "
        f"p95 {cuts[94]:.0f} ms, p99 {cuts[98]:.0f} ms, most {max(found):.0f} ms"
    )


if __name__ == "__main__":
    main()
