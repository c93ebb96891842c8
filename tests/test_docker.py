"""The image's steps, without Docker: its build script, its entry point, its health check."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.build import ROOT
from support.client import RawClient
from support.process import free_port

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def instructions(name: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    return [line.partition(" ")[2].strip() for line in joined.splitlines() if line.startswith(name)]


def copied() -> list[str]:
    """Every path of the checkout that a COPY names."""
    sources = []
    for words in map(shlex.split, instructions("COPY")):
        if not any(word.startswith("--from") for word in words):
            sources += [word for word in words if not word.startswith("--")][:-1]
    return sources


def test_every_copy_has_its_source_and_is_not_ignored() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    for source in copied():
        assert (ROOT / source).exists(), source
        top = source.partition("/")[0]
        assert any(fnmatch.fnmatch(top, pattern) for pattern in allowed), source


def test_every_package_is_copied() -> None:
    import tomllib

    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "packages"
    ]
    assert {package.partition(".")[0] for package in packages} <= set(copied())


def test_the_image_is_what_it_promises() -> None:
    assert instructions("EXPOSE") == ["6379"]
    assert instructions("VOLUME") == ["/data"]
    assert instructions("USER") == ["999:999"]  # a number: a cluster can tell it is not root
    assert instructions("WORKDIR") == ["/data"]
    assert len(instructions("FROM")) == 2
    assert "healthcheck.py" in instructions("HEALTHCHECK")[0]


def entrypoint(*arguments: str, path: Path) -> list[str]:
    """What the entry point would execute: programs on ``path`` print their command line."""
    done = subprocess.run(
        [ROOT / "docker/entrypoint.sh", *arguments],
        env={"PATH": f"{path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    program = tmp_path / "headrace"
    program.write_text('#!/bin/sh\necho headrace\nfor word in "$@"; do echo "$word"; done\n')
    program.chmod(0o755)
    return tmp_path


OPEN = ["headrace", "--bind", "* -::*", "--protected-mode", "no"]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ([], OPEN),
        (["headrace"], OPEN),
        (["--appendonly", "yes"], [*OPEN, "--appendonly", "yes"]),
        (["headrace", "--port", "7"], [*OPEN, "--port", "7"]),
        (["--bind", "10.0.0.1"], [*OPEN, "--bind", "10.0.0.1"]),
        (["-"], ["headrace", "-"]),
        (["echo", "hello"], ["hello"]),
    ],
)
def test_entrypoint(arguments: list[str], command: list[str], stub: Path) -> None:
    assert entrypoint(*arguments, path=stub) == command


def test_entrypoint_leaves_the_users_file_alone(stub: Path, tmp_path: Path) -> None:
    config = tmp_path / "my.conf"
    config.write_text("port 7\n# bind 1.2.3.4\n")
    assert entrypoint(str(config), "--port", "8", path=stub) == [
        *["headrace", str(config), "--bind", "* -::*", "--protected-mode", "no", "--port", "8"]
    ]
    config.write_text("bind 10.0.0.1\nprotected-mode yes\n")
    assert entrypoint("headrace", str(config), path=stub) == ["headrace", str(config)]


def health(**variables: str) -> int:
    command = [sys.executable, "-P", str(ROOT / "docker/healthcheck.py")]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, check=False, timeout=30
    )
    return done.returncode


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("HEADRACE_EXPECT_BUILD") != "compiled",
    reason="the image is compiled: built and started once, beside the compiled build",
)
def test_the_image_builds_starts_and_stops(tmp_path: Path) -> None:
    """As in the Dockerfile: copy what COPY names, build, start by the entry point, ask PING."""
    source, prefix, data = tmp_path / "src", tmp_path / "prefix", tmp_path / "data"
    source.mkdir()
    data.mkdir()
    for name in copied():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", ROOT / name, target], check=True)
    before = sorted(path for path in source.rglob("*") if "__pycache__" not in path.parts)

    variables = {"PYTHON": sys.executable, "HEADRACE_PURE": "0"}
    compiled = Path(sys.prefix, "build")
    if compiled.is_dir():  # by `make install`: saves compiling the same once more
        variables["HEADRACE_BUILD_DIR"] = str(compiled)
    built = subprocess.run(
        [source / "docker/build.sh", source, prefix],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    after = sorted(path for path in source.rglob("*") if "__pycache__" not in path.parts)
    assert after == before, "the build wrote into its sources"

    port = free_port()
    log = tmp_path / "log"
    path = f"{prefix}/bin:{os.environ['PATH']}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [ROOT / "docker/entrypoint.sh", "--appendonly", "yes", "--port", str(port)],
            cwd=data,
            env={"PATH": path},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        assert health(HEADRACE_PORT=str(free_port())) == 1
        deadline = time.monotonic() + 30
        while health(HEADRACE_PID=str(process.pid)) != 0:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        with RawClient(port) as client:
            assert client.call("XADD", "s", "1-1", "f", "v") == b"$3\r\n1-1\r\n"
        assert (data / "appendonlydir").is_dir()
        process.terminate()
        assert process.wait(20) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
