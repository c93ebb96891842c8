"""Frameworks as a user runs them: jobs, workers, and a worker that is killed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from frameworks.conftest import FOLDER
from frameworks.workplace import Workplace

from support.process import ServerProcess

pytestmark = [pytest.mark.once, pytest.mark.slow]

JOBS = 20
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
    "rq_scheduler": False,
    "streaq": True,
    "taskiq": False,
    "taskiq_streams": None,
}
FROM_NPM = ("bee_queue", "bull", "bullmq")  # there it always is
REQUIREMENTS = {"taskiq_streams": "taskiq"}  # where those of another one do


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


@pytest.mark.skipif(shutil.which("sidekiq") is None, reason="sidekiq is not here (ruby-sidekiq)")
def test_a_killed_worker_of_sidekiq_loses_its_job_alone(
    fresh_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    program = FOLDER / "ruby" / "with_sidekiq.rb"
    place = Workplace(["ruby", program], server.port, tmp_path / "told")
    kill_a_worker(server, place, is_given_back=False)
