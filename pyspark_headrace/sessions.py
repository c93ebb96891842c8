"""A Spark session that suits this source, on this machine or on a cluster."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Half the start-up time of a session on one machine, for jobs that are short anyway.
QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def session(
    name: str = "headrace", master: str = "", settings: dict[str, str] | None = None
) -> SparkSession:
    """A session with filter push-down, UTC as its time zone, and workers that run this Python.

    Args:
        name: shown by Spark.
        master: of a cluster; without it all cores of this machine, and no web page.
        settings: Spark's own, which have the last word.
    """
    from pyspark.sql import SparkSession

    # Otherwise the workers run whatever python3 is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    chosen = {
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
    }
    if not master:
        chosen |= {
            "spark.driver.extraJavaOptions": QUICK_JVM,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
            "spark.ui.showConsoleProgress": "false",
        }
    builder = SparkSession.builder.appName(name).master(master or "local[*]")
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR" if not master else "WARN")
    return found
