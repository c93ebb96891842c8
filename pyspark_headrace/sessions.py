"""A Spark session that suits this source, on this machine or on a cluster."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from pyspark_headrace.connection import PASSWORD_VARIABLE, URL_VARIABLE
from pyspark_headrace.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

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
            ``spark.headrace.password`` among them say where the server is, and are kept from the
            command line of the JVM.

    Raises:
        OptionError: this process is a client of Spark Connect.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise OptionError(
            "session() starts a Spark of its own, which a client of Spark Connect cannot; "
            "SparkSession.builder.remote(...) gives a session that finds the source"
        )
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
    variables = {
        variable: given.pop(setting) for setting, variable in VARIABLES.items() if setting in given
    }
    for key, value in {**chosen, **given}.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    os.environ.update(variables)  # what connects in this process knows the server too
    found.sparkContext.environment.update(variables)  # and so do other tasks in Python
    if variables:
        _register(found, variables)
    found.sparkContext.setLogLevel("ERROR" if not master else "WARN")
    return found


# A data source in Python does not see what Spark is configured with. But it runs with the variables
# that are known when it is registered, in planners and in tasks.
VARIABLES: Final = {
    "spark.headrace.url": URL_VARIABLE,
    "spark.headrace.password": PASSWORD_VARIABLE,
}


def register(spark: SparkSession, source: type[DataSource] | None = None) -> None:
    """Let the sources and sinks of any session know where its configuration says the server is.

    ``spark.headrace.url`` and ``spark.headrace.password`` are read now; what options say counts
    more. Sessions of one Spark may lead to different servers.

    Args:
        source: to register instead of the one that is named ``headrace``.

    Raises:
        OptionError: the session is one of Spark Connect, whose workers do not hear of it.
    """
    found = {
        variable: value
        for setting, variable in VARIABLES.items()
        if (value := spark.conf.get(setting, None)) is not None
    }
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        if not found:
            if source is not None:
                spark.dataSource.register(source)
            return
        raise OptionError(
            f"{' and '.join(VARIABLES)} do not reach the workers of a Spark Connect server: "
            f"start it with {URL_VARIABLE} and {PASSWORD_VARIABLE} in its environment, or use "
            "options (redis.url, passwordEnv, passwordFile)"
        )
    _register(spark, found, source)


def _register(
    spark: SparkSession, variables: dict[str, str], source: type[DataSource] | None = None
) -> None:
    from pyspark_headrace.source import HeadraceSource

    context = spark.sparkContext
    before = context.environment
    context.environment = {**before, **variables}
    if URL_VARIABLE in variables and PASSWORD_VARIABLE not in variables:
        context.environment[PASSWORD_VARIABLE] = ""  # that of another server is not sent
    try:
        spark.dataSource.register(source or HeadraceSource)
    finally:
        context.environment = before
