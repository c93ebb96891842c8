"""Programs of others that tests install, from npm: into pytest's cache, once for each lock file."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
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
    """The packages that a folder's lock file names, installed."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            unavailable(f"{program} is not installed")
    assert config.cache is not None
    lock = hashlib.sha256((scripts / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = Path(config.cache.mkdir("node-packages")) / lock
    if not folder.exists():
        _install(scripts, folder)
    return folder / "node_modules"


def _install(scripts: Path, into: Path) -> None:
    fresh = Path(tempfile.mkdtemp(prefix="install-", dir=into.parent))
    try:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(scripts / name, fresh)
        words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        try:
            done = subprocess.run(
                words,
                cwd=fresh,
                capture_output=True,
                text=True,
                check=False,
                timeout=INSTALL_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            unavailable(f"npm ci took longer than {INSTALL_TIMEOUT_S} s")
        if done.returncode != 0:
            unavailable(f"npm ci failed: {done.stderr[-2000:]}")
        if not into.exists():  # another run of the tests may have been faster
            fresh.rename(into)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
