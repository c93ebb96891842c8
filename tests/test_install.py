"""Installed beside a user's own packages: each finds its own, and uninstalling takes only ours."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from conftest import Factory

from support.wheels import PIP, USERS, only_wheel, run, write_users

pytestmark = pytest.mark.once

USES_THEM = """\
import compat, persistence, protocol.requests, regions, server.cli, storage
for module in (compat, persistence, protocol.requests, regions, server.cli, storage):
    print(module.WHOSE)
import headrace.server.cli, headrace.storage.keyspace
print(headrace.server.cli.__file__)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with our pure wheel; what that needs comes from this one."""
    folder = tmp_path_factory.mktemp("beside")
    wheel = only_wheel(folder / "out", HEADRACE_PURE="1")
    made = run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    assert made.returncode == 0, made.stderr
    own = packages(folder / "venv")
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    options = ["--no-index", "--no-deps", "--ignore-installed"]
    done = run(*PIP, "--python", folder / "venv/bin/python", "install", *options, wheel)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "venv"


def packages(environment: Path) -> Path:
    """Return where libraries lie in an environment."""
    (found,) = environment.glob("lib/python*/site-packages")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_users(tmp_path / "project")


def test_only_our_name_is_taken(environment: Path) -> None:
    (record,) = packages(environment).glob("headrace-*.dist-info/RECORD")
    names = [line.partition(",")[0] for line in record.read_text().splitlines()]
    tops = {name.partition("/")[0] for name in names if not name.startswith("../")}
    assert tops == {"headrace", record.parent.name}
    assert [name for name in names if name.startswith("../")] == ["../../../bin/headrace"]


@pytest.mark.parametrize("words", [["bin/headrace"], ["bin/python", "-m", "headrace"]])
def test_the_server_runs_its_own_code_and_the_user_theirs(
    words: list[str], environment: Path, project: Path, fresh_server: Factory
) -> None:
    server = fresh_server(start=False, directory=project)
    server.command = lambda: [str(environment / words[0]), *words[1:]]  # type: ignore[method-assign]
    server.variables = lambda: {"PATH": os.environ["PATH"], "PYTHONPATH": "."}  # type: ignore[method-assign]
    server.start()
    assert server.call("XADD", "s", "1-1", "f", "v") == b"1-1"
    assert server.info("server")["headrace_build"] == "pure"

    done = subprocess.run(
        [environment / "bin/python", "-c", USES_THEM],
        cwd=project,
        env={"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *whose, file = done.stdout.splitlines()
    assert whose == [
        f"the user's {name}"
        for name in ("compat", "persistence", "protocol", "regions", "server", "storage")
    ]
    assert Path(file).is_relative_to(environment)
    server.stop()


def test_uninstalling_takes_nothing_of_the_users(environment: Path) -> None:
    """Even where the user's packages lie beside ours."""
    own = packages(environment)
    write_users(own)
    done = run(*PIP, "--python", environment / "bin/python", "uninstall", "--yes", "headrace")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (own / "headrace").exists()
    assert not (environment / "bin/headrace").exists()
    for name, text in USERS.items():
        assert (own / name).read_text() == text
