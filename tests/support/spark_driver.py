"""A driver to be killed: copies a stream, while some of its tasks fail, then archives both.

Run as a program with one argument, JSON; prints one line of JSON when it has come to the end.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyspark_headrace.jobs.archive import archive_batches, read_archive, verify
from pyspark_headrace.sessions import session

BATCH = "streaming.sql.batchId"


def fate(percent: int, batch: str, partition: int, attempt: int) -> str:
    """Return what becomes of an attempt: nothing, an error, or (a third of them) a dead worker."""
    number = crc32(f"{batch}:{partition}:{attempt}".encode()) % 300
    if number >= 3 * percent:
        return ""
    return "die" if number < percent else "fail"


def failing(percent: int, ended: Path) -> Any:
    """A filter that passes everything, and ends some attempts after their first rows.

    Args:
        ended: gets a line for each attempt that was ended.
    """

    @F.udf("boolean", useArrow=False)
    def passes(number: str) -> bool:
        context = TaskContext.get()
        assert context is not None
        if int(number) % 200 == 160:  # Spark hands over a hundred rows at once; some are written
            batch = context.getLocalProperty(BATCH) or ""
            what = fate(percent, batch, context.partitionId(), context.attemptNumber())
            if what:
                with ended.open("a") as lines:
                    lines.write(f"{batch} {context.partitionId()} {what}\n")
            if what == "die":
                os._exit(1)
            if what == "fail":
                raise RuntimeError("this attempt fails")
        return True

    return passes


def copy(spark: SparkSession, plan: dict[str, Any]) -> int:
    """One stream, or all that a pattern matches, to a stream; how many rows this run has read."""
    pattern = plan.get("pattern", "")
    which = {"subscribePattern": pattern} if pattern else {"subscribe": "in"}
    where = {"port": str(plan["port"]), "fetchOffset.retryIntervalMs": "200"}
    entries = (
        spark.readStream.format("headrace")
        .options(
            **where,
            **which,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=str(plan["batch_rows"]),
            minPartitions=str(plan["parts"]),
        )
        .load()
        .filter(failing(plan["percent"], Path(plan["folder"], "ended"))(F.col("fields")["n"]))
    )
    query = (
        entries.writeStream.format("headrace")
        .options(
            **where,
            stream="out",
            configureIdmp="true",
            pipelineDepth="10",
            identity=plan["identity"],
            checkpointLocation=f"{plan['folder']}/copy",
        )
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(each.numInputRows for each in query.recentProgress)


def archive(spark: SparkSession, plan: dict[str, Any]) -> dict[str, Any]:
    """Both streams to Parquet; what the archive holds in the end."""
    path, checkpoint = f"{plan['folder']}/archive", f"{plan['folder']}/kept"
    query = (
        spark.readStream.format("headrace")
        .options(
            port=str(plan["port"]),
            subscribe="in,out",
            startingOffsets="earliest",
            fieldsFormat="pairs",
            maxOffsetsPerTrigger=str(4 * plan["batch_rows"]),
            minPartitions=str(plan["parts"]),
        )
        .load()
        .writeStream.foreachBatch(archive_batches(path, checkpoint))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    kept = read_archive(spark, path)
    problems = [row["problem"] for row in verify(spark, path).collect()]
    rows = {row["key"]: row["count"] for row in kept.groupBy("key").count().collect()}
    return {"kept": rows, "ids": kept.select("key", "id").distinct().count(), "wrong": problems}


def main() -> None:
    """Do what the plan says."""
    plan = json.loads(sys.argv[1])
    settings = {
        **plan["settings"],
        "spark.buffer.size": "4096",  # what an attempt has written before it fails is not held back
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
    }
    spark = session("killed", f"local[{plan['cores']},8]", settings)
    spark.sparkContext.setLogLevel("OFF")
    rows = copy(spark, plan)
    kept = {} if plan.get("pattern") else archive(spark, plan)
    print(json.dumps({"rows": rows, **kept}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
