"""Programs of others, each with the libraries it needs in an environment of its own.

The libraries ask for clients of different versions, so that no one environment holds them all.
What is installed is named by ``requirements/``, and kept in pytest's cache.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from support import packages
from support.build import ROOT
from support.packages import INSTALL_TIMEOUT_S, unavailable

FOLDER = ROOT / "tests/frameworks"


def install(requirements: Path, into: Path) -> None:
    """Make an environment that holds what a file names."""
    fresh = Path(tempfile.mkdtemp(prefix="install-", dir=into.parent))
    try:
        subprocess.run([sys.executable, "-m", "venv", fresh], check=True)
        python = str(fresh / "bin/python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install"]
        try:
            done = subprocess.run(
                [*pip, "--quiet", "--only-binary=:all:", "-r", str(requirements)],
                capture_output=True,
                text=True,
                check=False,
                timeout=INSTALL_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            unavailable(f"pip took longer than {INSTALL_TIMEOUT_S} s")
        if done.returncode != 0:
            unavailable(f"pip failed: {done.stderr[-2000:]}")
        if not into.exists():  # another run of the tests may have been faster
            fresh.rename(into)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@pytest.fixture(scope="session")
def python_with(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    """The interpreter that has a framework: one environment for each state of its file."""

    def found(framework: str) -> Path:
        requirements = FOLDER / "requirements" / f"{framework}.txt"
        words = requirements.read_bytes() + sys.version.encode()
        assert pytestconfig.cache is not None
        parent = Path(pytestconfig.cache.mkdir("frameworks"))
        folder = parent / f"{framework}-{hashlib.sha256(words).hexdigest()[:16]}"
        if not folder.exists():
            install(requirements, folder)
        return folder / "bin/python"

    return found


@pytest.fixture(scope="session")
def node_modules(pytestconfig: pytest.Config) -> Path:
    """The packages of npm that the programs in ``node/`` need."""
    return packages.node_modules(pytestconfig, FOLDER / "node")
