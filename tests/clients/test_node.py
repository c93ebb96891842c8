"""Clients that are not in Python: node-redis and ioredis, at the versions of ``node/``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support import packages
from support.build import ROOT
from support.certificates import Certificates
from support.process import ServerProcess, claim_port

pytestmark = pytest.mark.once

SCRIPTS = ROOT / "tests/clients/node"
RUN_TIMEOUT_S = 60


@pytest.fixture(scope="session")
def node_modules(pytestconfig: pytest.Config) -> Path:
    """The installed packages."""
    return packages.node_modules(pytestconfig, SCRIPTS)


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
