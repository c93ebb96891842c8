"""Programs of others that tests install into pytest's cache, once for each state of their list."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

INSTALL_TIMEOUT_S = 300


def unavailable(reason: str) -> NoReturn:
    """A developer may do without; what CI runs may not."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def node_modules(config: pytest.Config, scripts: Path) -> Path:
    """The packages that a folder's lock file names, from npm."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            unavailable(f"{program} is not installed")
    folder = _kept(config, "node-packages", (scripts / "package-lock.json").read_bytes())
    if not folder.exists():
        with _fresh_folder(folder) as fresh:
            for name in ("package.json", "package-lock.json", ".npmrc"):
                shutil.copy(scripts / name, fresh)
            _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], fresh)
    return folder / "node_modules"


def python_with(config: pytest.Config, requirements: Path) -> Path:
    """The interpreter of an environment that holds what a file names, from PyPI."""
    folder = _kept(config, "frameworks", requirements.read_bytes() + sys.version.encode())
    if not folder.exists():
        with _fresh_folder(folder) as fresh:
            _run([sys.executable, "-m", "venv", str(fresh)], fresh)
            pip = [str(fresh / "bin/python"), "-m", "pip", "--disable-pip-version-check"]
            chosen = ["install", "--quiet", "--only-binary=:all:", "-r", str(requirements)]
            _run([*pip, *chosen], fresh)
    return folder / "bin/python"


def _kept(config: pytest.Config, kind: str, named: bytes) -> Path:
    """Return where that is kept which a list names."""
    assert config.cache is not None
    return Path(config.cache.mkdir(kind)) / hashlib.sha256(named).hexdigest()[:16]


@contextlib.contextmanager
def _fresh_folder(into: Path) -> Iterator[Path]:
    """A folder that gets its final name when all is in it."""
    fresh = Path(tempfile.mkdtemp(prefix="install-", dir=into.parent))
    try:
        yield fresh
        if not into.exists():  # another run of the tests may have been faster
            fresh.rename(into)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _run(words: list[str], folder: Path) -> None:
    """Run an installer."""
    name = Path(words[0]).name
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        unavailable(f"{name} took longer than {INSTALL_TIMEOUT_S} s")
    if done.returncode != 0:
        unavailable(f"{name} failed: {done.stderr[-2000:]}")
