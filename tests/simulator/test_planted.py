"""The list of planted bugs fits the sources, and what is planted is what runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import headrace.server.clock
from simulator.mutants import look
from simulator.planted import changed, read_bugs
from simulator.scenarios import SCENARIOS

pytestmark = pytest.mark.once

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


def test_what_finds_a_bug_is_there() -> None:
    for name, bug in read_bugs().items():
        assert bug.scenarios or bug.worlds, name
        assert set(bug.scenarios) <= set(SCENARIOS), name


def test_the_documentation_has_the_same_list() -> None:
    text = (ROOT / "docs" / "active-active.md").read_text()
    for name, bug in read_bugs().items():
        found_by = ", ".join(bug.scenarios) or f"one of the first {bug.worlds} worlds"
        assert f"| {name} | {found_by} |\n" in text


@pytest.mark.slow
@pytest.mark.skipif(not IS_PURE, reason="bugs are planted in sources")
@pytest.mark.parametrize("name", list(read_bugs()))
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    bug = read_bugs()[name]
    assert look(name, bug.scenarios, bug.worlds).text
