"""``HeadraceServer``: a real server for a test, which is ready when it is made and never stays."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

from headrace.testing import HeadraceServer, ServerError
from support.build import ROOT
from support.waiting import wait_until


def test_it_is_ready_and_goes() -> None:
    with HeadraceServer() as server:
        folder, pid = server.folder, server.pid
        assert server.client().ping()
        assert redis.Redis(unix_socket_path=server.unix_socket).ping()
        assert redis.from_url(f"{server.url}/15").ping()
        assert "Ready to accept connections" in server.log()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    server.stop()  # once more does nothing


def test_it_is_there_for_coroutines() -> None:
    async def use() -> None:
        async with HeadraceServer() as server:
            client = server.async_client(decode_responses=True)
            await client.set("k", "v", ex=60)
            server.clock.shift(61)
            assert await client.get("k") is None
            await client.aclose()

    asyncio.run(use())


def test_parameters(tmp_path: Path) -> None:
    users = ["alice", "on", ">secret", "~*", "+@all"]
    with HeadraceServer(folder=tmp_path, appendonly=True, maxmemory="50mb", user=users) as server:
        client = server.client(decode_responses=True)
        assert client.config_get("append*nly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory") == {"maxmemory": str(50 << 20)}
        assert server.client(username="alice", password="secret").ping()
        client.set("k", "v")
    assert (tmp_path / "appendonlydir").is_dir()
    with HeadraceServer(folder=tmp_path, appendonly=True) as server:
        assert server.call("GET", "k") == b"v"


def test_a_password() -> None:
    with HeadraceServer(requirepass="secret") as server:
        assert server.client().ping()
        assert redis.from_url(server.url).ping()
        server.clean()
        with pytest.raises(redis.AuthenticationError):
            server.client(password=None).ping()


def test_it_can_be_started_again() -> None:
    server = HeadraceServer()
    server.stop()
    server.start()
    assert server.call("PING") == b"PONG"
    server.stop()
    assert not server.folder.exists()


def test_restarts_keep_the_port_and_what_is_in_the_files() -> None:
    with HeadraceServer(appendonly=True, appendfsync="always") as server:
        port, pid = server.port, server.pid
        server.call("SET", "k", "v")
        for crash in (True, False):
            server.restart(crash=crash)
            assert server.port == port
            assert server.pid != pid
            assert server.call("GET", "k") == b"v"


def test_a_clean_server_is_as_it_was_started() -> None:
    with HeadraceServer(maxmemory="50mb", user=["bob", "on", "nopass"]) as server:
        client: Any = server.client(decode_responses=True)
        client.execute_command("SELECT", 9)
        client.set("k", "v")
        client.eval("return 1", 0)
        client.function_load("#!lua name=l\nredis.register_function('f', function() end)")
        client.acl_setuser("alice", enabled=True)
        client.execute_command("ACL", "SETUSER", "bob", "off")
        client.config_set("maxmemory", "60mb")
        client.config_set("slave-read-only", "no")
        client.config_set("replica-read-only", "yes")
        client.execute_command("HOTKEYS", "START", "METRICS", 1, "CPU")
        client.config_set("slowlog-log-slower-than", 0)
        client.client_setname("mine")
        client.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
        client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        other: Any = server.client(decode_responses=True)
        with other.pubsub() as listener:
            listener.subscribe("c")
            listener.get_message(timeout=5)
            server.faults.error("GET", "ERR no")
            server.clock.shift(1000)
            server.clean()
        fresh: Any = server.client(decode_responses=True)
        assert fresh.info("keyspace") == {}
        assert fresh.function_list() == []
        assert fresh.script_exists("e0e1f9fabfc9d4800c877a703b823ac0578ff8db") == [False]
        assert fresh.acl_users() == ["bob", "default"]
        assert "on" in fresh.acl_getuser("bob")["flags"]
        assert fresh.config_get("maxmemory", "slowlog-log-slower-than") == {
            "maxmemory": str(50 << 20),
            "slowlog-log-slower-than": "10000",
        }
        assert fresh.config_get("replica-read-only") == {"replica-read-only": "yes"}
        assert fresh.execute_command("HOTKEYS", "GET") is None
        assert fresh.slowlog_get() == []
        assert fresh.pubsub_channels() == []
        assert fresh.client_getname() is None
        assert [each["name"] for each in fresh.client_list()] == ["", ""]
        assert fresh.set("k", "v")
        assert server.faults.list() == []
        assert "headrace_clock" not in fresh.info("server")
        assert "cmdstat_eval" not in fresh.info("commandstats")


def test_many_at_once_get_ports_of_their_own() -> None:
    with ThreadPoolExecutor(8) as pool:
        servers = list(pool.map(lambda _: HeadraceServer(), range(8)))
    assert len({server.port for server in servers}) == 8
    assert all(server.call("PING") == b"PONG" for server in servers)
    for server in servers:
        server.stop()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_runner_that_is_killed(number: int) -> None:
    program = """
        import sys, time
        from headrace.testing import HeadraceServer
        server = HeadraceServer()
        print(server.pid, server.folder, flush=True)
        time.sleep(600)
    """
    words = [sys.executable, "-c", textwrap.dedent(program)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=variables) as runner:
        assert runner.stdout is not None
        pid, folder = runner.stdout.readline().split()
        runner.send_signal(number)
    wait_until(lambda: not Path(f"/proc/{pid}").exists() and not Path(folder).exists())


def test_a_child_of_the_runner_does_not_end_it() -> None:
    with HeadraceServer() as server:
        child = os.fork()
        if not child:
            server.stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert server.call("PING") == b"PONG"


def test_what_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="Bad directive or wrong number of arguments"):
        HeadraceServer(nonsense=1)
    with pytest.raises(ServerError, match="cannot be run: No such file or directory"):
        HeadraceServer(executable="/nonexistent/redis-server")
    with pytest.raises(ServerError, match="does not start:\nit logs nothing"):
        HeadraceServer(executable="/bin/true")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        started_s = time.monotonic()
        with pytest.raises(ServerError, match="Address already in use"):
            HeadraceServer(port=taken.getsockname()[1])
        assert time.monotonic() - started_s < 60
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\nsleep 600\n")
    program.chmod(0o755)
    with pytest.raises(ServerError, match="does not start"):
        HeadraceServer(executable=program, start_s=0.5)


def test_an_unused_database_costs_nothing() -> None:
    def empty_kib(databases: int) -> int:
        with HeadraceServer(databases=databases) as server:
            server.client(db=databases - 1).set("k", "v")
            assert list(server.client().info("keyspace")) == [f"db{databases - 1}"]
            status = Path(f"/proc/{server.pid}/status").read_text()
            return int(status.partition("VmRSS:")[2].split()[0])

    assert empty_kib(100_000) - empty_kib(16) < 4096
