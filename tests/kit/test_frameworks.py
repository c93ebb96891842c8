"""Recipes of frameworks: what docs/testing.md shows, run by pytest and by their own runner."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.conftest import guide, run

from headrace.testing import HeadraceServer
from support.build import ROOT

pytestmark = pytest.mark.once

# Tasks run in the process that sent them: no other worker of xdist takes them away.
TASKS = """
import os
import pytest

@pytest.mark.parametrize("number", range(20))
def test_mine(celery_session_app, celery_session_worker, number):
    @celery_session_app.task
    def process():
        return os.getpid()

    celery_session_worker.reload()
    assert process.delay().get(timeout=30) == os.getpid()
"""
SETTINGS = """
import os

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": os.environ.get("REDIS_URL"),
    }
}
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
SECRET_KEY = "-"
TEST_RUNNER = "runner.Runner"
USE_TZ = True
"""
MANAGE = """
import os, sys
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    execute_from_command_line(sys.argv)
"""
# Two processes that empty, write and read at the same time.
APART = """
import os, time
from pathlib import Path
from django.core.cache import cache
from django.test import TestCase

class One(TestCase):
    def meet(self, when):
        Path(f"{when}-{type(self).__name__}").touch()
        until = time.monotonic() + 60
        while len(list(Path().glob(f"{when}-*"))) < 2:
            assert time.monotonic() < until, "the other one does not come"
            time.sleep(0.01)

    def test_apart(self):
        cache.clear()
        self.meet("emptied")
        self.assertTrue(cache.add("mine", os.getpid()))
        self.meet("written")
        self.assertEqual(cache.get("mine"), os.getpid())

class Other(One):
    pass
"""

Suite = Callable[..., str]


@pytest.fixture
def suite(executable: Path, python: Path, tmp_path: Path) -> Suite:
    """Runs pytest in the folder of a user, with our plugin and nothing else of ours."""
    for name in ("headrace", "pytest_headrace"):
        (tmp_path / "site" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "site" / name).symlink_to(ROOT / name)

    def pytest_says(*words: str) -> str:
        options = ["-q", "-p", "pytest_headrace", "-p", "no:cacheprovider"]
        options += [f"--headrace-exec={executable}", f"--rootdir={tmp_path}"]
        place = os.pathsep.join([str(tmp_path / "site"), str(tmp_path)])
        return run([python, "-m", "pytest", *options, *words, tmp_path], PYTHONPATH=place)

    return pytest_says


def test_celery(suite: Suite, tmp_path: Path) -> None:
    conftest, recipe = guide()["Celery"]
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_recipe.py").write_text(recipe)
    assert "1 passed" in suite()
    (tmp_path / "test_recipe.py").write_text(TASKS)
    assert "20 passed" in suite("-n", "2")


def test_django(suite: Suite, executable: Path, python: Path, tmp_path: Path) -> None:
    runner, conftest, recipe = guide()["Django"]
    for name, text in {
        "settings.py": SETTINGS,
        "manage.py": MANAGE,
        "runner.py": runner,
        "conftest.py": conftest,
        "test_visits.py": recipe,
    }.items():
        (tmp_path / name).write_text(text)
    assert "1 passed" in suite("--ds=settings")
    (tmp_path / "test_apart.py").write_text(APART)
    words: list[str | Path] = [python, "manage.py", "test", "--parallel", "2"]
    with HeadraceServer(executable=executable, databases=100) as server:
        told = run(words, folder=tmp_path, REDIS_URL=server.url)
        assert "Ran 3 tests" in told
        with server.client() as client:
            assert set(client.info("keyspace")) == {"db1", "db2"}
