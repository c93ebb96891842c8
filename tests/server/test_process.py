"""What the configuration asks of the process: supervisors, the background, syslog, the kernel."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Factory

from support import build
from support.process import Pair, Process, ServerProcess, state_of
from support.waiting import DEADLINE_S, wait_until

# Supervisors


class Notified:
    """The socket at which systemd is told; a name that begins with ``@`` is no file's."""

    def __init__(self, path: str) -> None:
        self.environment = {"NOTIFY_SOCKET": path}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path.replace("@", "\0"))
        self._socket.settimeout(DEADLINE_S)

    def until(self, line: str) -> list[str]:
        """The lines that come, up to this one."""
        lines: list[str] = []
        while line not in lines:
            lines += self._socket.recv(4096).decode().splitlines()
        return lines

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["file", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Notified]:
    path = str(tmp_path / "notify")
    notified = Notified(path if request.param == "file" else f"@headrace{path}")
    yield notified
    notified.close()


@pytest.mark.parametrize("mode", ["systemd", "auto"])
def test_systemd_is_told(fresh_server: Factory, systemd: Notified, mode: str) -> None:
    server = fresh_server("--supervised", mode, "--save", "3600 1", environment=systemd.environment)
    assert systemd.until("READY=1")[-2:] == ["STATUS=Ready to accept connections", "READY=1"]
    assert server.info("server")["process_supervised"] == "systemd"
    server.call("SET", "a", 1)
    server.stop()
    assert systemd.until("STOPPING=1") == ["STATUS=Saving the final snapshot", "STOPPING=1"]


def test_systemd_is_not_told_of_an_end_that_does_not_come(
    fresh_server: Factory, systemd: Notified
) -> None:
    server = fresh_server(
        "--supervised", "systemd", "--save", "3600 1", environment=systemd.environment
    )
    server.call("SET", "a", 1)
    (server.directory / "dump.hrs").mkdir()
    server.signal(signal.SIGTERM)
    server.wait_for_log("Not shut down")
    (server.directory / "dump.hrs").rmdir()
    server.stop()
    lines = systemd.until("STOPPING=1")
    assert lines.count("STOPPING=1") == 1
    assert "STATUS=The snapshot cannot be saved, so the server stays" in lines


def test_a_supervisor_that_is_not_there(fresh_server: Factory) -> None:
    environment = {"NOTIFY_SOCKET": "/nowhere/at/all"}
    server = fresh_server("--supervised", "systemd", environment=environment)
    assert "systemd cannot be notified" in server.log()
    server = fresh_server("--supervised", "systemd", environment={"NOTIFY_SOCKET": ""})
    assert "there is no NOTIFY_SOCKET" in server.log()
    server = fresh_server("--supervised", "auto", environment={"NOTIFY_SOCKET": ""})
    assert server.info("server")["process_supervised"] == "no"


def test_upstart_is_told_by_a_stop(fresh_server: Factory) -> None:
    server = fresh_server("--supervised", "auto", environment={"UPSTART_JOB": "x"}, start=False)
    server.spawn()
    wait_until(lambda: state_of(server.pid) == "T")
    assert "Ready to accept connections" in server.log()
    server.signal(signal.SIGCONT)
    server.wait_until_ready()
    assert server.info("server")["process_supervised"] == "upstart"
    server.stop()


# The background


def test_daemonize(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server(start=False)
    assert isinstance(server, ServerProcess)
    pid_file = tmp_path / "server.pid"
    options = ["--daemonize", "yes", "--pidfile", str(pid_file), "--logfile", "the.log"]
    options += ["--port", "0", "--unixsocket", "socket", "--dir", str(tmp_path)]
    done = subprocess.run(
        [*server.command(), *options],
        check=False,
        env=server.variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0
    log = tmp_path / "the.log"
    wait_until(lambda: log.exists() and "Ready to accept" in log.read_text())
    pid = int(pid_file.read_text())
    assert os.getsid(pid) == pid
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not pid_file.exists())
    wait_until(lambda: "ready to exit" in log.read_text())


# The kernel


def score_of(server: Process) -> int:
    return int(Path(f"/proc/{server.pid}/oom_score_adj").read_text())


def test_oom_score(fresh_server: Factory) -> None:
    server = fresh_server("--oom-score-adj", "absolute", "--oom-score-adj-values", "300", "1", "1")
    assert score_of(server) == 300
    server.call("CONFIG", "SET", "oom-score-adj-values", "400 1 1")
    assert score_of(server) == 400
    server.call("CONFIG", "SET", "oom-score-adj", "no")
    before = int(Path("/proc/self/oom_score_adj").read_text())
    assert score_of(server) == before
    server.call("CONFIG", "SET", "oom-score-adj", "relative", "oom-score-adj-values", "10 1 1")
    assert score_of(server) == before + 10


def test_mark_of_sockets_that_cannot_be_set_is_logged(fresh_server: Factory) -> None:
    server = fresh_server("--socket-mark-id", "7", check_log=False)
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, 36, 7)
        except OSError:
            assert "socket-mark-id 7 cannot be set" in server.log()
        else:
            assert "socket-mark-id" not in server.log()


# The log


def test_syslog(fresh_server: Factory) -> None:
    path = Path("/dev/log")
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        receiver.bind(str(path))
    except OSError:
        receiver.close()
        pytest.skip("there is a syslog here, or none can be made")
    try:
        receiver.settimeout(DEADLINE_S)
        fresh_server(
            "--syslog-enabled", "yes", "--syslog-ident", "mine", "--syslog-facility", "local3"
        )
        lines: list[str] = []
        while not any("Ready to accept" in line for line in lines):
            lines.append(receiver.recv(4096).decode())
    finally:
        receiver.close()
        with suppress(OSError):
            path.unlink()
    assert re.match(r"<157>.* mine\[\d+\]: Ready to accept connections", lines[-1])  # local3.notice


def test_user_data_can_be_kept_out_of_the_log(tmp_path: Path) -> None:
    code = (
        "from headrace.server import log\n"
        "log.setup(b'notice', b'')\n"
        "for hides in (False, True):\n"
        "    log.hide_data(hides)\n"
        "    try:\n"
        "        raise ValueError('somebody')\n"
        "    except ValueError:\n"
        "        log.log.exception('a command failed')\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        check=True,
        timeout=60,
        env=build.environment(),
        cwd=tmp_path,
    )
    shown, hidden = done.stdout.decode().split("a command failed")[1:]
    assert "ValueError: somebody" in shown
    assert "somebody" not in hidden
    assert "Traceback" not in hidden.partition("line")[0]
    assert "ValueError" in hidden


def test_what_a_recorded_command_held_can_be_kept_out_of_the_log(
    fresh_server: Factory, tmp_path: Path
) -> None:
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    (folder / "appendonly.aof.1.incr.aof").write_bytes(b"*2\r\n$2\r\nXX\r\n$8\r\nsomebody\r\n")
    (folder / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    for hides in ("no", "yes"):
        server = fresh_server(
            "--appendonly", "yes", "--hide-user-data-from-log", hides, start=False,
            directory=tmp_path,
        )  # fmt: skip
        server.log_path = tmp_path / f"{hides}.log"
        server.spawn()
        assert server.wait() == 1
        assert ("somebody" in server.log()) == (hides == "no")


# Promises that cannot be kept are refused, or said


@pytest.mark.judge
def test_writes_are_refused_where_replicas_are_asked_for(
    fresh_server: Factory, fresh_redis: Factory
) -> None:
    ours, real = fresh_server(), fresh_redis()
    pair = Pair(ours.client(), real.client())
    pair.both("XADD", "s", "1-1", "f", "v")
    pair.both("CONFIG", "SET", "min-replicas-to-write", 1)
    for request in (
        ("SET", "a", 1), ("GET", "a"), ("PING",), ("XADD", "s", "2-1", "f", "v"), ("XLEN", "s"),
        ("MULTI",), ("SET", "a", 1), ("EXEC",), ("EXPIRE", "s", 10), ("PUBLISH", "a", "b"),
    ):  # fmt: skip
        pair.both(*request)
    assert ours.info("replication")["min_slaves_good_slaves"] == "0"
    assert list(real.info("replication"))[:3] == list(ours.info("replication"))[:3]
    pair.both("CONFIG", "SET", "min-slaves-max-lag", 0)
    assert "min_slaves_good_slaves" not in ours.info("replication")
    pair.both("SET", "a", 1)
    pair.close()
    ours.wait_for_log("there are fewer, so all writes are refused")


def test_replicas_are_asked_for_at_start(fresh_server: Factory) -> None:
    server = fresh_server("--min-replicas-to-write", "2")
    with server.client() as client:
        refused = b"-NOREPLICAS Not enough good replicas to write.\r\n"
        assert client.call("SET", "a", 1) == refused


def test_a_limit_below_what_is_in_use_is_said(fresh_server: Factory) -> None:
    server = fresh_server("--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru")
    assert "bytes are in use" not in server.log()
    server.call("CONFIG", "SET", "maxmemory", "100kb")
    server.wait_for_log("maxmemory 102400: ")


# maxmemory-clients


def test_the_largest_clients_make_room(fresh_server: Factory) -> None:
    server = fresh_server("--maxmemory-clients", "3mb", "--hz", "100")
    small, large, spared = server.client(), server.client(), server.client()
    spared.call("CLIENT", "NO-EVICT", "on")
    for client, size in ((small, 600_000), (large, 2_000_000), (spared, 900_000)):
        client.send(b"*2\r\n$3\r\nGET\r\n$%d\r\n" % size + b"x" * (size - 100_000))
    assert large.rest_until_close() == b""
    assert spared.silent()
    small.send(b"x" * 100_000 + b"\r\n")
    assert small.read() == b"$-1\r\n"
    assert server.info("stats")["evicted_clients"] == "1"
    for client in (small, large, spared):
        client.close()
    server.call("CONFIG", "SET", "maxmemory-clients", "50%")  # of no maxmemory
    with server.client() as client:
        client.send(b"*2\r\n$3\r\nGET\r\n$9000000\r\n" + b"x" * 9_000_000 + b"\r\n")
        assert client.read() == b"$-1\r\n"
