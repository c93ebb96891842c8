"""The first minute: what compiles beside a server ends with it, and what is missing is said.

``make run`` in a fresh clone serves as Python and has the compiled build made meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.build import ROOT
from support.process import has_ended
from support.waiting import wait_until
from support.wheels import run

pytestmark = pytest.mark.once

# A process that starts behind.py as `make run` does: beside itself, and then it becomes the server.
SERVER = """\
import os, signal, subprocess, sys, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)  # the tests may have been told to ignore it
subprocess.Popen([sys.executable, "-P", sys.argv[1], str(os.getpid()), *sys.argv[2:]])
time.sleep(600)
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
            self._servers.append(subprocess.Popen(words, stderr=shown, start_new_session=True))
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
    wait_until(lambda: "headrace: done in" in beside.shown())
    assert beside.shown().startswith("headrace: compiling 50%\nheadrace: done in ")
    assert "cc -c a.c" in beside.log.read_text()


def test_a_failure_says_why_in_one_line(beside: Beside) -> None:
    beside.run("echo many words; echo; echo gcc: no space left; echo 'make: *** Error 1'; exit 2")
    wait_until(lambda: beside.shown().endswith("\n"))
    (line,) = beside.shown().splitlines()
    assert "goes on as Python: gcc: no space left (" in line
    assert str(beside.log) in line


def test_a_full_disk_takes_the_log_alone(beside: Beside) -> None:
    beside.log = Path("/dev/full")
    beside.run("echo cc -c a.c; echo headrace: compiling 50%")
    wait_until(lambda: "headrace: done in" in beside.shown())
    assert beside.shown().startswith("headrace: compiling 50%\nheadrace: done in ")


def test_a_log_that_cannot_be_written_is_a_sentence(beside: Beside, tmp_path: Path) -> None:
    beside.log = tmp_path / "nowhere" / "behind.log"
    beside.run("echo headrace: compiling 50%")
    wait_until(lambda: beside.shown().endswith("\n"))
    (line,) = beside.shown().splitlines()
    assert line.startswith("headrace: not compiled, the server goes on as Python: [Errno 2]")


@pytest.mark.parametrize(
    ("number", "all_of_it"),
    [(signal.SIGKILL, False), (signal.SIGINT, True), (signal.SIGHUP, True), (signal.SIGTERM, True)],
)
def test_it_ends_with_the_server(
    number: signal.Signals, all_of_it: bool, beside: Beside, tmp_path: Path
) -> None:
    """The server alone is killed, or all that the terminal has started gets a signal."""
    pid = tmp_path / "pid"
    server = beside.run(f"sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600' & wait")
    wait_until(pid.exists)
    (os.killpg if all_of_it else os.kill)(server.pid, number)
    wait_until(lambda: has_ended(int(pid.read_text())))
    server.wait()
    assert "headrace" not in beside.shown()


# What make itself does, in an environment whose libraries are those of this one.


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    assert run(sys.executable, "-m", "venv", "--without-pip", folder).returncode == 0
    (folder / "bin/pip").touch()
    (libraries,) = folder.glob("lib/python*/site-packages")
    (libraries / "pip").symlink_to(Path(sysconfig.get_path("purelib"), "pip"))
    return folder


def make(environment: Path, *words: str) -> list[str]:
    return ["make", "--no-print-directory", "-C", str(ROOT), f"VENV={environment}", *words]


def test_without_a_network_it_says_what_is_needed(environment: Path) -> None:
    made = environment / "requirements-run.txt"
    done = run(*make(environment, str(made)), PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode == 2
    assert "This needs a network" in done.stderr.splitlines()[-2]
    assert not made.exists()


def test_an_environment_that_was_cut_short_is_made_whole(environment: Path, tmp_path: Path) -> None:
    (environment / "bin/pip").unlink()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" && touch {environment}/bin/pip\n')
    python.chmod(0o755)
    words = make(environment, str(environment / "requirements-run.txt"), f"PYTHON={python}")
    done = run(*words, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert f"-m venv {environment}" in done.stdout
    assert (environment / "bin/pip").exists()


def test_of_two_in_one_checkout_one_works(environment: Path, tmp_path: Path) -> None:
    """Whatever they are asked for: `make run`, `make test` or another."""
    (libraries,) = environment.glob("lib/python*/site-packages")
    (libraries / "here.pth").write_text(sysconfig.get_path("purelib"))
    words = make(environment, str(environment / "requirements-run.txt"))
    told = tmp_path / "told"
    with (environment / "lock").open("w") as lock, told.open("w") as file:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(words, stderr=file)
        wait_until(lambda: "waiting for another `make`" in told.read_text())
        assert not (environment / "requirements-run.txt").exists()
    assert waiting.wait(60) == 0, told.read_text()
    assert (environment / "requirements-run.txt").exists()


def test_a_build_does_not_wait_for_what_is_fetched(environment: Path, tmp_path: Path) -> None:
    """In CI Spark is fetched while the server is compiled."""
    for name in ("run", "pure"):
        (environment / f"requirements-{name}.txt").touch()
    stamp, told = environment / ".installed-pure", tmp_path / "told"
    with (environment / "lock").open("w") as fetching, told.open("w") as file:
        fcntl.flock(fetching, fcntl.LOCK_EX)
        with (environment / "lock-of-build").open("w") as building:
            fcntl.flock(building, fcntl.LOCK_EX)
            words = make(environment, str(stamp), "HEADRACE_PURE=1")
            waiting = subprocess.Popen(words, stderr=file)
            wait_until(lambda: "waiting for another `make`" in told.read_text())
            stamp.touch()  # the other has built it
        assert waiting.wait(60) == 0, told.read_text()


def test_another_python_is_refused(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.14.0\nexit 1\n')
    python.chmod(0o755)
    done = run(*make(tmp_path / "venv", "run", f"PYTHON={python}"))
    assert "headrace needs Python 3.11 to 3.13" in done.stderr
    assert "is Python 3.14.0." in done.stderr
    assert not (tmp_path / "venv").exists()
