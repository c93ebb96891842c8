"""The list of planted bugs fits the sources, and what is planted is what runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace.server.clock
from simulator.planted import VARIABLE, changed, read_bugs

ROOT = Path(__file__).parents[2]
IS_PURE = str(headrace.server.clock.__file__).endswith(".py")


@pytest.mark.parametrize("name", list(read_bugs()))
def test_the_lines_are_there(name: str) -> None:
    edits = read_bugs()[name].edits
    assert edits
    for module, old, new in edits:
        path = ROOT / f"{module.replace('.', '/')}.py"
        source = changed(path.read_text(), old, new)
        compile(source, str(path), "exec")


@pytest.mark.skipif(not IS_PURE, reason="bugs are planted in sources")
def test_a_planted_bug_is_found() -> None:
    environment = {**os.environ, VARIABLE: "no region in IDs", "PYTHONHASHSEED": "0"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    words = ["--seeds", "1-20", "--steps", "60", "--failures", "1", "--no-shrink"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "simulator", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "VIOLATION" in done.stdout, done.stderr
    assert done.returncode == 1
