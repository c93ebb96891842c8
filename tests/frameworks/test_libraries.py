"""Libraries: locks, limits, caches, sessions and plans, used before and after a crash."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from frameworks.conftest import FOLDER

from support.process import ServerProcess

pytestmark = [pytest.mark.once, pytest.mark.slow]

PATIENCE_S = 60.0


def use(server: ServerProcess, command: list[Path | str], tmp_path: Path, **more: str) -> None:
    """Run a program before and after the server is killed."""
    environment = {
        **os.environ,
        "HEADRACE_PORT": str(server.port),
        "HEADRACE_TOLD": str(tmp_path / "told"),
        "PYTHONPATH": str(FOLDER / "programs"),
        **more,
    }
    for moment in ("before", "after"):
        done = subprocess.run(
            [*command, moment],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{moment}: {done.stderr}"
        server.restart(crash=True)


@pytest.mark.parametrize("name", ["caches", "django", "limits", "schedules", "stores"])
def test_libraries(
    name: str,
    python_with: Callable[[str], Path],
    fresh_server: Callable[..., ServerProcess],
    tmp_path: Path,
) -> None:
    python = python_with(name)
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    use(server, [python, FOLDER / "programs" / f"use_{name}.py"], tmp_path)


@pytest.mark.parametrize("name", ["limits", "locks", "stores"])
def test_libraries_of_npm(
    name: str, node_modules: Path, fresh_server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    program = FOLDER / "node" / f"use_{name}.js"
    use(server, ["node", program], tmp_path, NODE_PATH=str(node_modules))
