"""Another build takes over where this one listens, and nobody who comes meanwhile is refused."""

from __future__ import annotations

import contextlib
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Factory

from support import build
from support.client import RawClient, WireError
from support.process import ServerProcess
from support.waiting import DEADLINE_S, wait_until

READY = "The installed build is ready."
TAKES_OVER = "The installed build takes over"


@pytest.fixture
def server(fresh_server: Factory, tmp_path: Path) -> ServerProcess:
    """A server whose successor is named, and not there yet."""
    named = {"HEADRACE_SUCCESSOR": str(tmp_path / "successor")}
    server = fresh_server("--appendonly", "yes", environment=named)
    assert isinstance(server, ServerProcess)
    return server


def make_successor(path: Path) -> None:
    """Make the program that takes over, all at once."""
    words = [
        *("env", f"PYTHONPATH={build.environment().get('PYTHONPATH', '')}", "AS_SUCCESSOR=1"),
        *(sys.executable, "-P", "-m", "headrace"),
    ]
    made = path.with_suffix(".new")
    made.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    made.chmod(0o755)
    made.rename(path)


def has_taken_over(server: ServerProcess, path: Path) -> bool:
    variables = Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
    return b"AS_SUCCESSOR=1" in variables


def test_a_writer_that_never_stops_connecting_loses_nothing(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Nor is it refused while the successor loads."""
    written = 5000
    with server.client() as client:
        client.pipeline(*(("XADD", "s", f"{n + 1}-0", "f", "v") for n in range(written)))

    def write() -> None:
        nonlocal written
        with server.client() as client:
            assert client.call("XADD", "s", f"{written + 1}-0", "f", "v").startswith(b"$")
        written += 1

    make_successor(tmp_path / "successor")
    while not has_taken_over(server, tmp_path):
        write()
    after = written
    while written < after + 10:
        write()
    assert server.call("XLEN", "s") == written
    assert server.call("XINFO", "STREAM", "s")
    log = server.log()
    assert log.count(TAKES_OVER) == 1
    assert log.count("Ready to accept connections") == 2
    server.restart(crash=True)
    assert server.call("XLEN", "s") == written


# A successor that comes no further: the kernel has made it of the server, and no code of ours runs.
STANDS = """#!/bin/sh
: > "$0.reached"
exec sleep 600
"""


@pytest.mark.parametrize("stage", ["ending", "begun", "loading"])
def test_killed_while_it_takes_over_it_loses_nothing(
    stage: str, server: ServerProcess, tmp_path: Path
) -> None:
    """By a writer's answer alone it is known what must be there; the last one may be there, too."""
    written = 0

    def write(timeout_s: float = DEADLINE_S) -> None:
        nonlocal written
        with RawClient(server.port, timeout_s=timeout_s) as client:
            assert client.call("XADD", "s", f"{written + 1}-0", "f", "v").startswith(b"$")
        written += 1

    while written < 200:
        write()
    successor = tmp_path / "successor"
    if stage == "begun":
        successor.with_suffix(".new").write_text(STANDS)
        successor.with_suffix(".new").chmod(0o755)
        successor.with_suffix(".new").rename(successor)
    else:
        make_successor(successor)
    with contextlib.suppress(OSError, WireError):  # none of its clients is answered any more
        while TAKES_OVER not in server.log():
            write(timeout_s=0.5)
    reached = {
        "ending": lambda: TAKES_OVER in server.log(),
        "begun": successor.with_suffix(".reached").exists,
        "loading": lambda: has_taken_over(server, tmp_path),
    }[stage]
    wait_until(reached)
    successor.unlink()
    server.kill()
    server.start()
    count = server.call("XLEN", "s")
    assert count in (written, written + 1)
    assert server.call("XRANGE", "s", "-", "+") == [
        [b"%d-0" % (number + 1), [b"f", b"v"]] for number in range(count)
    ]


def test_it_waits_for_the_last_client_to_go(server: ServerProcess, tmp_path: Path) -> None:
    with server.client() as client:
        make_successor(tmp_path / "successor")
        server.wait_for_log(READY)
        assert client.call("SET", "k", "v") == b"+OK\r\n"
        assert not has_taken_over(server, tmp_path)
    wait_until(lambda: has_taken_over(server, tmp_path))
    assert server.call("GET", "k") == b"v"
    assert server.log().count(READY) == 1
    server.stop()


@pytest.mark.parametrize(
    "command",
    [
        *(("CONFIG", "SET", "maxclients", "50"), ("ACL", "SETUSER", "ada", "on")),
        ("SCRIPT", "LOAD", "return 1"),
    ],
)
def test_what_no_file_holds_keeps_it(
    command: tuple[str, ...], server: ServerProcess, tmp_path: Path
) -> None:
    server.call(*command)
    server.call("CONFIG", "RESETSTAT")
    make_successor(tmp_path / "successor")
    server.wait_for_log(READY)
    assert not has_taken_over(server, tmp_path)
    assert server.call("PING") == b"PONG"


def test_what_is_saved_or_forgotten_does_not_keep_it(fresh_server: Factory, tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.touch()
    named = {"HEADRACE_SUCCESSOR": str(tmp_path / "successor")}
    server = fresh_server("--appendonly", "yes", "--aclfile", str(file), environment=named)
    assert isinstance(server, ServerProcess)
    with server.client() as client:
        client.call("SCRIPT", "LOAD", "return 1")
        client.call("SCRIPT", "FLUSH")
        client.call("EVAL", "return 2", 0)
        client.call("ACL", "SETUSER", "ada", "on", ">secret", "+@all", "~*")
        assert client.call("ACL", "SAVE") == b"+OK\r\n"
        client.call("ACL", "DELUSER", "ada")
        assert client.call("ACL", "LOAD") == b"+OK\r\n"
    make_successor(tmp_path / "successor")
    wait_until(lambda: has_taken_over(server, tmp_path))
    assert server.call("AUTH", "ada", "secret") == b"OK"


def test_signals_end_the_successor(server: ServerProcess, tmp_path: Path) -> None:
    make_successor(tmp_path / "successor")
    wait_until(lambda: has_taken_over(server, tmp_path))
    server.wait_until_ready()
    server.stop()
    assert "User requested shutdown" in server.log()


# What a supervisor does between fork and exec.
HANDS_OVER = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.executable, [sys.executable, "-P", "-m", "headrace", *sys.argv[2:]])
"""


def test_a_supervisor_hands_over_a_socket(tmp_path: Path) -> None:
    """As systemd does: the variables name the process, and the descriptors begin at 3."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number, port = str(listening.fileno()), str(listening.getsockname()[1])
        process = subprocess.Popen(
            [sys.executable, "-c", HANDS_OVER, number, "--port", port, "--dir", str(tmp_path)],
            env=build.environment(),
            pass_fds=[listening.fileno()],
        )
        client = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
    with client:  # that came before the server
        client.sendall(b"PING\r\n")
        assert client.recv(100).startswith(b"+PONG")
    process.terminate()
    assert process.wait(30) == 0
