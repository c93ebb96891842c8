"""A Spark session that suits this source, on this machine or on a cluster."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from pyspark_headrace.errors import OptionError
from pyspark_headrace.options import PASSWORD_VARIABLE, URL_VARIABLE

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
        master: of a cluster, or ``local[2]``; without it all cores of this machine.
        settings: Spark's own, which have the last word; ``spark.headrace.url`` and
            ``spark.headrace.password`` among them say where the server is.

    Raises:
        OptionError: Spark runs already, so that these two cannot reach it.
    """
    from pyspark.sql import SparkSession

    # Otherwise the workers run whatever python3 is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    chosen = {
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }
    if not master or master.startswith("local"):
        chosen |= {
            "spark.driver.extraJavaOptions": QUICK_JVM,
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        }
    builder = SparkSession.builder.appName(name).master(master or "local[*]")
    given = dict(settings or {})
    for key, value in {**chosen, **_in_environment(given), **given}.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR" if not master else "WARN")
    return found


# A data source in Python does not see what Spark is configured with, but it has the environment of
# the process that started it: the driver's JVM, or an executor.
_VARIABLES: Final = {
    "spark.headrace.url": URL_VARIABLE,
    "spark.headrace.password": PASSWORD_VARIABLE,
}


def _in_environment(settings: dict[str, str]) -> dict[str, str]:
    """Take what says where the server is, and give it to the driver's JVM and the executors."""
    from pyspark import SparkContext

    found: dict[str, str] = {}
    for setting, variable in _VARIABLES.items():
        value = settings.pop(setting, None)
        if value is None:
            continue
        runs = SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ
        if runs and os.environ.get(variable) != value:
            raise OptionError(
                f"{setting}: Spark runs already, and its environment cannot be changed any more; "
                f"start it with the variable {variable}"
            )
        os.environ[variable] = value
        found[f"spark.executorEnv.{variable}"] = value
    return found
