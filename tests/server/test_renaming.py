"""``rename-command``: another name for clients, and nothing else for files."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Factory

from support import build
from support.client import Argument, RawClient, to_bytes
from support.process import Process
from support.random_commands import do_things
from support.waiting import wait_until

MORE: list[list[Argument]] = [
    ["XADD", "p", "1-1", "f", "v"],
    ["XADD", "p", "IDMP", "producer", "iid", "*", "f", "v"],
    ["XCFGSET", "p", "IDMP-DURATION", "10"],
    ["XGROUP", "CREATE", "p", "g", "0"],
    ["XGROUP", "CREATECONSUMER", "p", "g", "c"],
    ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "p", ">"],
    ["XNACK", "p", "g", "FAIL", "IDS", "1", "1-1"],
    ["XDELEX", "p", "IDS", "1", "1-1"],
    ["XACKDEL", "p", "g", "IDS", "1", "1-1"],
    ["SETBIT", "k", "1", "1"],
]


class Renaming(RawClient):
    """Calls each command that writes by its other name."""

    renamed: frozenset[str] = frozenset()

    def call(self, *arguments: Argument) -> bytes:
        name = to_bytes(arguments[0]).decode()
        if name in self.renamed:
            return super().call(f"my-{name.lower()}", *arguments[1:])
        return super().call(*arguments)


def writing(server: Process) -> list[str]:
    """The names of all commands that change data, containers included."""
    rows = server.call("COMMAND")
    assert isinstance(rows, list)
    found = []
    for row in rows:
        children = row[9] if len(row) > 9 else []
        if b"write" in row[2] or any(b"write" in child[2] for child in children):
            found.append(row[0].decode().upper())
    return found


def recorded_names(folder: Path) -> set[str]:
    data = b"".join(path.read_bytes() for path in folder.glob("*.incr.aof"))
    return {
        name.decode().upper()
        for name in re.findall(rb"^\*\d+\r\n\$\d+\r\n(.*)\r$", data, re.MULTILINE)
    }


def test_files_hold_the_commands_own_names(fresh_server: Factory, tmp_path: Path) -> None:
    options = ("--appendonly", "yes", "--enable-debug-command", "yes")
    names = writing(fresh_server())
    assert {"XADD", "XGROUP", "XREADGROUP", "COPY", "FLUSHALL"} <= set(names)
    lines = "".join(f"rename-command {name} my-{name.lower()}\n" for name in names)
    server = fresh_server(*options, config=lines, directory=tmp_path)
    Renaming.renamed = frozenset(names)
    with Renaming(server.port) as client:
        assert client.call("EVALUATE").startswith(b"-ERR unknown command")
        do_things(client, random.Random(7), 1500)
        for request in MORE:
            client.call(*request)
    before = server.call("DEBUG", "DIGEST")
    names_found = recorded_names(tmp_path / "appendonlydir")
    assert {"XADD", "COPY", "XGROUP"} <= names_found
    assert not any(name.startswith("MY-") for name in names_found)
    assert server.call("DEBUG", "LOADAOF") == b"OK"
    assert server.call("DEBUG", "DIGEST") == before
    server.restart(crash=True)
    assert server.call("DEBUG", "DIGEST") == before
    server.kill()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "headrace", "check-aof", str(tmp_path / "appendonlydir")],
        capture_output=True,
        check=False,
        env=build.environment(),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "server.conf").write_text("")
    server.start()
    assert server.call("DEBUG", "DIGEST") == before


def test_what_is_taken_away_is_still_loaded(fresh_server: Factory, tmp_path: Path) -> None:
    lines = "".join(f'rename-command {name} ""\n' for name in ("FLUSHALL", "DEL", "XADD", "SET"))
    server = fresh_server("--appendonly", "yes", directory=tmp_path)
    with server.client() as client:
        client.call("SET", "gone", 1)
        client.call("FLUSHALL")
        client.call("SET", "a", 1)
        client.call("SET", "b", 1)
        client.call("DEL", "b")
        client.call("XADD", "s", "1-1", "f", "v")
    server.stop()
    other = fresh_server("--appendonly", "yes", config=lines, directory=tmp_path)
    with other.client() as client:
        assert client.call_parsed("KEYS", "*") == [b"a", b"s"]
        assert client.call("FLUSHALL").startswith(b"-ERR unknown command")
        assert client.call("GETDEL", "a") == b"$1\r\n1\r\n"  # recorded as DEL
    other.restart(crash=True)
    assert other.call("KEYS", "*") == [b"s"]


def test_names_that_change_places(fresh_server: Factory, tmp_path: Path) -> None:
    lines = "rename-command DEL x\nrename-command INCR DEL\nrename-command x INCR\n"
    server = fresh_server("--appendonly", "yes", config=lines, directory=tmp_path)
    with server.client() as client:
        assert client.call("DEL", "n") == b":1\r\n"
        client.call("SET", "gone", 1)
        assert client.call("INCR", "gone") == b":1\r\n"
        assert client.call("EXISTS", "gone") == b":0\r\n"
    server.restart(crash=True)
    assert server.call("GET", "n") == b"1"
    assert server.call("EXISTS", "gone") == 0


@pytest.mark.parametrize(
    "words", [("XREADGROUP", "GROUP", "g", "c"), ("XREAD-GROUP", "GROUP", "g", "NAME", "c")]
)
def test_who_waits_under_another_name_is_served(
    fresh_server: Factory, words: tuple[str, ...]
) -> None:
    server = fresh_server("--appendonly", "yes", config=f"rename-command {words[0]} take\n")
    with server.client() as client, server.client() as other:
        other.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        client.send_command("take", *words[1:], "BLOCK", 0, "STREAMS", "s", ">")
        wait_until(lambda: other.call("INFO", "clients").find(b"blocked_clients:1") >= 0)
        other.call("XADD", "s", "1-1", "f", "v")
        assert b"1-1" in client.read()
    server.restart(crash=True)
    pending = server.call("XPENDING", "s", "g")
    assert isinstance(pending, list)
    assert pending[0] == 1


def test_a_file_of_redis_with_other_names(fresh_server: Factory, tmp_path: Path) -> None:
    """Redis records the names that clients use, and needs the same configuration to read them."""
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    (folder / "appendonly.aof.1.incr.aof").write_bytes(
        b"*3\r\n$6\r\nmy-set\r\n$1\r\na\r\n$1\r\n1\r\n"
    )
    (folder / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    lines = "rename-command SET my-set\n"
    server = fresh_server("--appendonly", "yes", config=lines, directory=tmp_path)
    assert server.call("GET", "a") == b"1"


def test_who_looks_on_sees_what_was_sent(fresh_server: Factory) -> None:
    lines = (
        "rename-command SET put\nrename-command AUTH enter\nrename-command HELLO hi\n"
        "rename-command CONFIG cfg\nrename-command XGROUP xg\n"
    )
    server = fresh_server("--slowlog-log-slower-than", "0", config=lines)
    with server.client() as client, server.client() as monitor:
        monitor.call("MONITOR")
        client.call("put", "a", 1)
        client.call("enter", "default", "secret")
        client.call("hi", 2, "AUTH", "default", "secret", "nonsense")
        assert monitor.read().endswith(b'] "put" "a" "1"\r\n')
        assert monitor.read().endswith(b'] "enter" "(redacted)" "(redacted)"\r\n')
        shown = monitor.read()
        assert shown.endswith(b'"hi" "2" "AUTH" "(redacted)" "(redacted)" "nonsense"\r\n'), shown
        client.call("cfg", "SET", "requirepass", "secret")
        log = client.call_parsed("SLOWLOG", "GET", -1)
        assert [b"put", b"a", b"1"] in [entry[3] for entry in log]  # type: ignore[attr-defined]
        assert b"secret" not in repr(log).encode()
        assert b"+CFG <subcommand>" in client.call("cfg", "HELP")
        assert b"+XG <subcommand>" in client.call("xg", "HELP")
        assert client.call("cfg", "no").endswith(b"unknown subcommand 'no'. Try CFG HELP.\r\n")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rename-command nothing x", "No such command in rename-command: nothing"),
        ("rename-command set get", "Target command name already exists: get"),
    ],
)
def test_renaming_that_cannot_be(fresh_server: Factory, line: str, reason: str) -> None:
    server = fresh_server(config=f"{line}\n", start=False)
    server.spawn()
    assert server.wait() == 1
    assert reason in server.log()
