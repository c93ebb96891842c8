"""Real servers of several versions and makers, whose files are read here."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from support.judges import JUDGES, missing
from support.process import Process

NAMES: Final = tuple(judge.name for judge in JUDGES)


def writer_path(name: str) -> str:
    """Return where a server of ``NAMES`` lies; without it the test is skipped, except in CI."""
    program = {judge.name: judge.program() for judge in JUDGES}[name]
    if program is None:
        missing(f"no {name}: `make judges` brings it")
    return program


class Writer(Process):
    """A real server of one version; it saves nothing by itself."""

    def __init__(self, name: str, *options: str, directory: Path | None = None) -> None:
        self._program = writer_path(name)
        super().__init__(*options, directory=directory)
        self.name = name

    def command(self) -> list[str]:
        return [self._program, "--save", "", "--enable-debug-command", "yes"]
