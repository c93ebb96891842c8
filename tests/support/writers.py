"""Real servers of several versions and makers, whose files are read here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from support.build import ROOT
from support.process import Process

NAMES: Final = ("redis-7.0", "redis-8.0", "redis-8.10", "valkey-9.1")


def writer_path(name: str) -> Path:
    """Where a server of ``NAMES`` is: in HEADRACE_JUDGES, or where ``make judges`` puts it.

    Without it the test is skipped, except in CI.
    """
    folder = os.environ.get("HEADRACE_JUDGES")
    path = (Path(folder) if folder else ROOT / ".judges" / "bin") / name
    if path.exists():
        return path
    if os.environ.get("CI"):
        pytest.fail(f"{path} is not there")
    pytest.skip(f"{path} is not there: make judges")


class Writer(Process):
    """A real server of one version; it saves nothing by itself."""

    def __init__(self, name: str, *options: str, directory: Path | None = None) -> None:
        self._program = writer_path(name)
        super().__init__(*options, directory=directory)
        self.name = name

    def command(self) -> list[str]:
        return [str(self._program), "--save", "", "--enable-debug-command", "yes"]
