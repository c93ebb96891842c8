"""Frameworks that need no Lua, as a user runs them: jobs, workers, and a worker that is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from frameworks.conftest import FOLDER

from support.process import ServerProcess

pytestmark = [pytest.mark.once, pytest.mark.slow]

JOBS = 20
PATIENCE_S = 60.0
# Whether a job that a killed worker had begun is done by another. kombu gives it back by a script
# in Lua, as soon as a worker is idle; the others take it off a list and keep no note of it.
FRAMEWORKS = {"arq": True, "kombu": False, "redis_om": True, "taskiq": False, "faststream": False}


class Workplace:
    """Runs the programs of one framework.

    Args:
        python: the interpreter that has it.
        told: the file to which its programs write.
    """

    def __init__(self, framework: str, python: Path, port: int, told: Path) -> None:
        self._command = [python, FOLDER / "programs" / f"with_{framework}.py"]
        self._told = told
        self._environment = {
            **os.environ,
            "HEADRACE_PORT": str(port),
            "HEADRACE_TOLD": str(told),
            "PYTHONPATH": str(FOLDER / "programs"),  # and nothing of ours
        }
        told.touch()

    def produce(self, count: int) -> None:
        done = subprocess.run(
            [*self._command, "produce", str(count)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr

    @contextlib.contextmanager
    def worker(self, *, holds: bool = False) -> Iterator[subprocess.Popen[bytes]]:
        """A worker that runs until the end of the block; one that holds never ends a job."""
        log = self._told.with_suffix(f".{holds}.log")
        with log.open("ab") as out:
            process = subprocess.Popen(
                [*self._command, "work"],
                env={**self._environment, "HEADRACE_HOLDS": str(int(holds))},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def numbers(self, what: str) -> list[int]:
        """The jobs of which this was told, in its order."""
        lines = [line.split() for line in self._told.read_text().splitlines()]
        return [int(number) for _, kind, number in lines if kind == what]

    def wait_for(self, what: str, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.numbers(what)) < count:
            logs = "\n".join(log.read_text() for log in self._told.parent.glob("*.log"))
            assert time.monotonic() < deadline, f"{what}: {self.numbers(what)}\n{logs[-4000:]}"
            time.sleep(0.05)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_killed_worker_loses_what_its_framework_says(
    framework: str,
    python_with: Callable[[str], Path],
    fresh_server: Callable[..., ServerProcess],
    tmp_path: Path,
) -> None:
    """All other jobs are done, each of them once, and after a crash of the server, too."""
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    place = Workplace(framework, python_with(framework), server.port, tmp_path / "told")
    place.produce(JOBS)
    with place.worker(holds=True) as worker:
        place.wait_for("begun", 1)
        worker.kill()
        worker.wait()
    begun = set(place.numbers("begun"))
    server.restart(crash=True)
    all_jobs = set(range(JOBS))
    expected = all_jobs if FRAMEWORKS[framework] else all_jobs - begun
    with place.worker():
        place.wait_for("done", len(expected))
    assert sorted(place.numbers("done")) == sorted(expected)
