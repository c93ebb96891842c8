"""What tests of kits share: a redis-server that is ours, an environment with kits, the guide."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import build, packages
from support.build import ROOT

HERE = ROOT / "tests/kit"
PATIENCE_S = 120
FRAMEWORKS = ("Celery", "Django")  # headings of the guide below which something needs that one


@pytest.fixture(scope="session")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program called redis-server that is the build under test."""
    made = tmp_path_factory.mktemp("bin") / "redis-server"
    main = "import sys; from headrace.server.cli import main; sys.exit(main())"
    place = f"import sys; sys.argv[0] = {str(made)!r}; " + (
        f"sys.path.insert(0, {str(ROOT)!r}); " if build.use_tree() else ""
    )
    made.write_text(f'#!/bin/sh\nexec {sys.executable} -I -c {shlex.quote(place + main)} "$@"\n')
    made.chmod(0o755)
    return made


@pytest.fixture
def python(pytestconfig: pytest.Config) -> Path:
    """The interpreter of an environment with the kits of PyPI, and without ours."""
    return packages.python_with(pytestconfig, HERE / "requirements.txt")


def run(words: list[str | Path], folder: Path | None = None, **environment: str) -> str:
    """Run a program to its end; return what it says."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", "PYTHONSAFEPATH": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def guide() -> dict[str, list[str]]:
    """Return the Python that docs/testing.md shows below each of its headings."""
    text = (ROOT / "docs/testing.md").read_text()
    _, *parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    block = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    headed = zip(parts[::2], parts[1::2], strict=True)
    return {heading: block.findall(part) for heading, part in headed}
