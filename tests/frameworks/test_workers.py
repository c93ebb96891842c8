"""Frameworks as a user runs them: jobs, workers, and a worker that is killed."""

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
# Whether a job that a killed worker had begun is done by another. Celery gives it back when a
# worker starts, if that is late enough, or after minutes; taskiq on a stream behind a new job that
# comes late enough; kombu after minutes; rq notes that it has failed; those that are False
# otherwise take it off a list and keep no note of it.
FRAMEWORKS = {
    "arq": True,
    "celery": None,
    "dramatiq": True,
    "faststream": False,
    "huey": False,
    "kombu": False,
    "pydocket": True,
    "redis_om": True,
    "rq": False,
    "taskiq": False,
    "taskiq_streams": None,
}
FROM_NPM = ("bee_queue", "bull", "bullmq")  # there it always is
REQUIREMENTS = {"taskiq_streams": "taskiq"}  # where those of another one do


class Workplace:
    """Runs the programs of one framework.

    Args:
        command: the program.
        told: the file to which its programs write.
        environment: more variables.
    """

    def __init__(
        self, command: list[Path | str], port: int, told: Path, **environment: str
    ) -> None:
        self._command = command
        self._told = told
        self._environment = {
            **os.environ,
            "HEADRACE_PORT": str(port),
            "HEADRACE_TOLD": str(told),
            "PYTHONPATH": str(FOLDER / "programs"),  # and nothing of ours
            **environment,
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
        self._wait(what, lambda numbers: len(numbers) >= count)

    def wait_for_all(self, what: str, expected: set[int]) -> None:
        self._wait(what, lambda numbers: set(numbers) >= expected)

    def _wait(self, what: str, is_enough: Callable[[list[int]], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_enough(self.numbers(what)):
            logs = "\n".join(log.read_text() for log in self._told.parent.glob("*.log"))
            assert time.monotonic() < deadline, f"{what}: {self.numbers(what)}\n{logs[-4000:]}"
            time.sleep(0.05)


def kill_a_worker(server: ServerProcess, place: Workplace, *, is_given_back: bool | None) -> None:
    """All jobs are done, each of them once, by another worker and after a crash of the server.

    Args:
        is_given_back: also those that the killed worker had begun; otherwise all but those, or,
            with None, perhaps.
    """
    place.produce(JOBS)
    with place.worker(holds=True) as worker:
        place.wait_for("begun", 1)
        worker.kill()
        worker.wait()
    begun = set(place.numbers("begun"))
    server.restart(crash=True)
    all_jobs = set(range(JOBS))
    expected = all_jobs if is_given_back else all_jobs - begun
    with place.worker():
        place.wait_for_all("done", expected)
    done = place.numbers("done")
    if is_given_back is None:
        done = [number for number in done if number not in begun]
    assert sorted(done) == sorted(expected)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_killed_worker_loses_what_its_framework_says(
    framework: str,
    python_with: Callable[[str], Path],
    fresh_server: Callable[..., ServerProcess],
    tmp_path: Path,
) -> None:
    python = python_with(REQUIREMENTS.get(framework, framework))
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    program = FOLDER / "programs" / f"with_{framework}.py"
    place = Workplace([python, program], server.port, tmp_path / "told")
    kill_a_worker(server, place, is_given_back=FRAMEWORKS[framework])


@pytest.mark.parametrize("framework", FROM_NPM)
def test_a_killed_worker_of_npm_loses_nothing(
    framework: str,
    node_modules: Path,
    fresh_server: Callable[..., ServerProcess],
    tmp_path: Path,
) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    program = FOLDER / "node" / f"with_{framework}.js"
    place = Workplace(
        ["node", program], server.port, tmp_path / "told", NODE_PATH=str(node_modules)
    )
    kill_a_worker(server, place, is_given_back=True)
