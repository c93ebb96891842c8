"""The real servers that judge ours: Redis of three versions, and Valkey.

They lie in the folder that ``make judges`` fills, ``.judges/bin``, or in that of HEADRACE_JUDGES; a
``redis-server`` on the PATH serves for its own version. Where they differ the newest Redis decides,
and a test says from which version on it compares.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import pytest

from support import build


class Judge(NamedTuple):
    """A server to compare with."""

    name: str
    follows: tuple[int, int]  # the version of Redis whose ways it has

    def program(self) -> str | None:
        """Return where it lies, or None."""
        folder = os.environ.get("HEADRACE_JUDGES") or build.ROOT / ".judges" / "bin"
        fetched = Path(folder) / self.name
        if fetched.exists():
            return str(fetched)
        return _on_path() if self.name == _name_on_path() else None


# The one that decides comes first. Valkey left Redis at 7.2 and tells so in INFO.
JUDGES: Final = (
    Judge("redis-8.10", (8, 10)),
    Judge("redis-8.0", (8, 0)),
    Judge("valkey-9.1", (7, 2)),
    Judge("redis-7.0", (7, 0)),
)
USUAL: Final = ("redis-8.10", "valkey-9.1")


def present() -> list[Judge]:
    """Those that are there, the one that decides first."""
    return [judge for judge in JUDGES if judge.program() is not None]


def chosen() -> list[Judge]:
    """Those that tests compare with: the newest Redis and Valkey, or all where all is asked for."""
    asked = [each for each in JUDGES if everything() or each.name in USUAL]
    if required():
        return asked
    return [each for each in asked if each.program() is not None] or asked[:1]


def everything() -> bool:
    """Return whether to run what a release is tested with, and a push is not (`make test-all`)."""
    return os.environ.get("HEADRACE_EVERYTHING") == "1"


def required() -> bool:
    """Return whether all of them have to be there, as in CI."""
    return bool(os.environ.get("CI") or os.environ.get("HEADRACE_REQUIRE_JUDGE"))


def missing(what: str) -> NoReturn:
    """Skip the test that lacks a real server, or fail where that has to be there."""
    if required():
        pytest.fail(what)
    pytest.skip(what)


def program_of(name: str) -> str:
    """The program of the judge with this name; without it the test is skipped, or fails."""
    program = next(judge for judge in JUDGES if judge.name == name).program()
    if program is None:
        missing(f"no {name}: `make judges` brings it")
    return program


def _on_path() -> str | None:
    return shutil.which("redis-server")


@functools.cache
def _name_on_path() -> str:
    program = _on_path()
    if program is None:
        return ""
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    version = told.stdout.partition(" v=")[2].split(".")
    return f"redis-{'.'.join(version[:2])}" if told.stdout.startswith("Redis ") else ""
