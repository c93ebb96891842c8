"""Programs of others, each with the libraries it needs in an environment of its own.

The libraries ask for clients of different versions, so that no one environment holds them all.
What is installed is named by ``requirements/``, and kept in pytest's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support import packages
from support.build import ROOT

FOLDER = ROOT / "tests/frameworks"


@pytest.fixture(scope="session")
def python_with(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    """The interpreter that has a framework: one environment for each state of its file."""

    def found(framework: str) -> Path:
        return packages.python_with(pytestconfig, FOLDER / "requirements" / f"{framework}.txt")

    return found


@pytest.fixture(scope="session")
def node_modules(pytestconfig: pytest.Config) -> Path:
    """The packages of npm that the programs in ``node/`` need."""
    return packages.node_modules(pytestconfig, FOLDER / "node")
