"""Clients that are not in Python: node-redis and ioredis, at the versions of ``node/``."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from support.build import ROOT
from support.certificates import Certificates
from support.process import ServerProcess, claim_port

pytestmark = pytest.mark.once

SCRIPTS = ROOT / "tests/clients/node"
INSTALL_TIMEOUT_S = 240
RUN_TIMEOUT_S = 60


def unavailable(reason: str) -> NoReturn:
    """A developer may do without node; what CI runs may not."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def install(into: Path) -> None:
    """Install what the lock file names into a new folder."""
    fresh = Path(tempfile.mkdtemp(prefix="install-", dir=into.parent))
    try:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(SCRIPTS / name, fresh)
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


@pytest.fixture(scope="session")
def node_modules(pytestconfig: pytest.Config) -> Path:
    """The installed packages, in pytest's cache: one folder for each state of the lock file."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            unavailable(f"{program} is not installed")
    assert pytestconfig.cache is not None
    lock = hashlib.sha256((SCRIPTS / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = Path(pytestconfig.cache.mkdir("node-clients")) / lock
    if not folder.exists():
        install(folder)
    return folder / "node_modules"


def run(script: str, node_modules: Path, **environment: str) -> None:
    """Run a script of tests, which all have to pass."""
    done = subprocess.run(
        ["node", "--test-reporter=tap", SCRIPTS / script],
        env={**os.environ, "NODE_PATH": str(node_modules), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=RUN_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout
    assert "# pass 0" not in done.stdout


@pytest.mark.parametrize(
    ("script", "protocol"),
    [("node_redis.js", 2), ("node_redis.js", 3), ("ioredis.js", 2)],
)
def test_client_from_npm(
    script: str, protocol: int, node_modules: Path, server: ServerProcess
) -> None:
    run(
        script,
        node_modules,
        HEADRACE_PORT=str(server.port),
        HEADRACE_PROTOCOL=str(protocol),
    )


@pytest.mark.parametrize("protocol", [2, 3])
def test_clients_of_a_cluster(protocol: int, node_modules: Path) -> None:
    with ServerProcess("--cluster-enabled", "yes", "--cluster-strict-slots", "yes") as server:
        run(
            "cluster.js",
            node_modules,
            HEADRACE_PORT=str(server.port),
            HEADRACE_PROTOCOL=str(protocol),
        )


@pytest.mark.parametrize(("script", "protocol"), [("node_redis.js", 3), ("ioredis.js", 2)])
def test_encrypted(
    script: str, protocol: int, node_modules: Path, certificates: Certificates
) -> None:
    port, claim = claim_port()
    with claim, ServerProcess("--tls-port", str(port), *certificates.options()):
        run(
            script,
            node_modules,
            HEADRACE_PORT=str(port),
            HEADRACE_PROTOCOL=str(protocol),
            HEADRACE_CA=str(certificates.authority.file),
            HEADRACE_CERT=str(certificates.client.file),
            HEADRACE_KEY=str(certificates.client.key),
        )


def test_the_lock_names_no_registry() -> None:
    """It would be the one of whoever wrote the file last."""
    assert '"resolved"' not in (SCRIPTS / "package-lock.json").read_text()
