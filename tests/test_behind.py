"""What compiles beside a server says how far it is and how it ended, and ends with the server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.build import ROOT
from support.waiting import wait_until

pytestmark = pytest.mark.once

# A process that starts behind.py as `make run` does: beside itself, and then it becomes the server.
SERVER = """\
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-P", sys.argv[1], str(os.getpid()), *sys.argv[2:]])
time.sleep(60)
"""


class Beside:
    """Commands that are run beside a process which stands for a server."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "behind.log"
        self._shown = folder / "shown"
        self._servers: list[subprocess.Popen[bytes]] = []

    def run(self, script: str) -> subprocess.Popen[bytes]:
        places = [str(ROOT / "behind.py"), str(self.log)]
        words = [sys.executable, "-c", SERVER, *places, "sh", "-c", script]
        with self._shown.open("ab") as shown:
            self._servers.append(subprocess.Popen(words, stderr=shown))
        return self._servers[-1]

    def shown(self) -> str:
        return self._shown.read_text()

    def end(self) -> None:
        for server in self._servers:
            server.kill()
            server.wait()


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    beside = Beside(tmp_path)
    yield beside
    beside.end()


def test_it_says_how_far_it_is_and_that_it_is_done(beside: Beside) -> None:
    beside.run("echo cc -c a.c; echo 'headrace: compiling 50%' >&2")
    wait_until(lambda: "headrace: compiled in" in beside.shown())
    assert beside.shown().startswith("headrace: compiling 50%\nheadrace: compiled in ")
    assert "cc -c a.c" in beside.log.read_text()


def test_a_failure_says_why_in_one_line(beside: Beside) -> None:
    beside.run("echo many words; echo; echo gcc: no space left on device; exit 2")
    wait_until(lambda: beside.shown().endswith("\n"))
    (line,) = beside.shown().splitlines()
    assert "goes on as Python: gcc: no space left on device" in line
    assert str(beside.log) in line


def test_it_ends_with_the_server(beside: Beside, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    server = beside.run(f"sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60' & wait")
    wait_until(pid.exists)
    server.kill()
    compiling = Path(f"/proc/{pid.read_text().strip()}")
    wait_until(lambda: not compiling.exists())
    assert beside.shown() == ""


def test_of_two_in_one_checkout_one_works(beside: Beside, tmp_path: Path) -> None:
    going = tmp_path / "going"
    beside.run(f"touch {going}; sleep 60")
    wait_until(going.exists)
    beside.run("exit 1")
    wait_until(lambda: beside.shown().endswith("\n"))
    assert beside.shown() == "headrace: another `make` is compiling in this checkout\n"
