"""What the tests of the examples share: PostgreSQL, and the unified log's programs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.process import ServerProcess
from support.rocket_rides import Start, environment

if TYPE_CHECKING:
    from rocket_rides.postgres import Cluster

NEEDED = ("httpx", "psycopg", "psycopg_pool", "rich", "starlette", "uvicorn")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
if MISSING and os.environ.get("CI"):
    raise pytest.UsageError(f"the examples need {', '.join(MISSING)}: install headrace[demo]")


@pytest.fixture(scope="session")
def _tables(cluster: Cluster) -> None:
    from rocket_rides import setup

    setup.main(["--dsn", cluster.dsn()])


@pytest.fixture
def dsn(cluster: Cluster, _tables: None) -> str:
    """A database whose tables are empty, and to which nobody else is connected."""
    from rocket_rides.database import connect

    with connect(cluster.dsn()) as database:
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        database.execute(
            "TRUNCATE rides, staged_log_records, checkpoints, consumer_states, group_rides, "
            "corrections RESTART IDENTITY"
        )
    return cluster.dsn()


@pytest.fixture
def start(dsn: str, server: ServerProcess, tmp_path: Path) -> Iterator[Start]:
    """Starts a program of the example, ``start("consumer", "--name", "ada")``, for one test."""
    with ExitStack() as stack:

        def run(program: str, *arguments: str) -> subprocess.Popen[bytes]:
            log = stack.enter_context((tmp_path / f"{program}.log").open("ab"))
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"rocket_rides.{program}", *arguments],
                env=environment(dsn, server.port),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            stack.callback(process.wait, 20)
            stack.callback(process.kill)
            return process

        yield run
