"""The end of the process: what it is asked by, and that nothing is promised after the last save."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path

import pytest
from conftest import Factory

from support.client import RawClient, encode
from support.following import AT_ONCE, have_all, is_up
from support.process import Process, ServerProcess
from support.waiting import DEADLINE_S, wait_until

SAVING = ("--save", "3600 1", "--appendonly", "no")
RECORDING = ("--save", "", "--appendonly", "yes", "--appendfsync")
KEYS_TO_LOAD = 500_000  # half a second, or a little less
SLOWLY = ("CONFIG", "SET", "rdb-key-save-delay", "10000000")  # ten seconds for each key


def end(server: Process, how: str) -> None:
    """Ask for an end in order, and wait for it."""
    if how == "SHUTDOWN":
        with server.client() as client:
            client.send_command("SHUTDOWN")
            assert client.rest_until_close() == b""
    else:
        server.signal(signal.Signals[how])
    assert server.wait() == 0, server.log()


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_a_signal_that_comes_before_the_server_listens_to_it(
    fresh_server: Factory, how: str
) -> None:
    """Whoever starts it blocked the signal, as the image does: process 1 hears of it later."""
    server = fresh_server(start=False)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.Signals[how]])
    try:
        server.spawn()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    end(server, how)


class Counter(threading.Thread):
    """Increments a key of its own, pipelined, until the connection ends."""

    def __init__(self, server: Process, number: int) -> None:
        super().__init__()
        self._client = server.client()
        self.key = f"k{number}"
        self.acknowledged = 0

    def run(self) -> None:
        with self._client as client:
            try:
                while True:
                    client.send(encode("INCR", self.key) * 3)
                    for _ in range(3):
                        self.acknowledged = int(client.read()[1:])
            except (ConnectionError, OSError):
                pass


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "SHUTDOWN"])
@pytest.mark.parametrize(
    "options", [SAVING, (*RECORDING, "always"), (*RECORDING, "everysec"), (*RECORDING, "no")]
)
def test_what_was_answered_is_there_again(
    fresh_server: Factory, how: str, options: tuple[str, ...]
) -> None:
    server = fresh_server(*options)
    counters = [Counter(server, number) for number in range(12)]
    for counter in counters:
        counter.start()
    wait_until(lambda: all(counter.acknowledged > 5 for counter in counters))
    end(server, how)
    for counter in counters:
        counter.join()
    server.start()
    for counter in counters:
        kept = server.call("GET", counter.key)
        assert isinstance(kept, bytes)
        assert int(kept) >= counter.acknowledged, counter.key


def test_a_pipeline_ends_with_shutdown(fresh_server: Factory) -> None:
    server = fresh_server(*SAVING)
    with server.client() as client:
        client.send(
            encode("SET", "before", 1) + encode("SHUTDOWN") + encode("SET", "after", 1) * 100
        )
        assert client.rest_until_close() == b"+OK\r\n"
    assert server.wait() == 0
    server.start()
    assert server.call("KEYS", "*") == [b"before"]


@pytest.mark.parametrize("how", ["SIGTERM", "SHUTDOWN"])
def test_what_was_held_back_is_not_run_at_the_end(fresh_server: Factory, how: str) -> None:
    server = fresh_server(*SAVING)
    server.call("SET", "here", 1)
    with server.client() as held, server.client() as waiting:
        waiting.send_command("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        server.call("CLIENT", "PAUSE", 100_000, "WRITE")
        held.send(encode("XADD", "s", "*", "f", "v") * 3)
        wait_until(lambda: b"cmd=xadd" in all_clients(server))
        end(server, how)
        assert held.rest_until_close() == b""
        assert waiting.rest_until_close() == b""
    server.start()
    assert server.call("KEYS", "*") == [b"here"]


def all_clients(server: Process) -> bytes:
    listed = server.call("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return listed


@pytest.mark.parametrize("how", ["SIGTERM", "SHUTDOWN", "SHUTDOWN SAVE"])
def test_an_end_while_loading_leaves_the_snapshot_as_it_is(fresh_server: Factory, how: str) -> None:
    server = fresh_server(*SAVING)
    pairs = [word for number in range(KEYS_TO_LOAD) for word in (f"k{number}", "v")]
    with server.client() as client:
        for first in range(0, len(pairs), 10_000):
            assert client.call("MSET", *pairs[first : first + 10_000]) == b"+OK\r\n"
        client.call("SAVE")
    server.kill()
    snapshot = server.directory / "dump.hrs"
    before = snapshot.stat()
    server.spawn()
    wait_until(lambda: is_listening(server))
    with server.client() as client:
        if how == "SIGTERM":
            assert client.call("GET", "k0").startswith(b"-LOADING")
            server.signal(signal.SIGTERM)
        else:  # together, so that no loading can end between them
            client.send(encode("GET", "k0") + encode(*how.split()))
            assert client.read().startswith(b"-LOADING")
        assert client.rest_until_close() == b""
    assert server.wait() == 0
    after = snapshot.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    assert server.log().count("Ready to accept connections") == 1


def is_listening(server: Process) -> bool:
    try:
        with server.client():
            return True
    except OSError:
        return False


# A second signal


@pytest.fixture
def saving_slowly(fresh_server: Factory, tmp_path: Path) -> Process:
    """A server whose end takes long, for it saves two keys first."""
    server = fresh_server(*SAVING, "--pidfile", str(tmp_path / "server.pid"))
    with server.client() as client:
        client.pipeline(("SET", "a", 1), ("SET", "b", 1), SLOWLY)
    return server


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_sigint_ends_at_once(
    saving_slowly: Process, tmp_path: Path, first: signal.Signals
) -> None:
    server = saving_slowly
    server.signal(first)
    server.wait_for_log("Saving the final snapshot")
    server.signal(signal.SIGINT)
    assert server.wait() == 1
    assert "You insist... exiting now." in server.log()
    assert list(server.directory.glob("*.hrs")) == []
    assert not (tmp_path / "server.pid").exists()


def test_a_second_sigterm_changes_nothing(fresh_server: Factory) -> None:
    server = fresh_server(*SAVING)
    with server.client() as client:
        client.pipeline(*[("SET", f"k{number}", 1) for number in range(20)])
        client.call("CONFIG", "SET", "rdb-key-save-delay", "20000")
    server.signal(signal.SIGTERM)
    server.wait_for_log("Saving the final snapshot")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    server.start()
    assert server.call("DBSIZE") == 20


# Other signals


@pytest.mark.parametrize("name", ["SIGHUP", "SIGPIPE", "SIGUSR2", "SIGALRM", "SIGCHLD", "SIGURG"])
def test_signals_that_do_not_end_the_server(fresh_server: Factory, name: str) -> None:
    server = fresh_server(*SAVING)
    server.call("SET", "a", 1)
    server.signal(signal.Signals[name])
    for _ in range(3):
        assert server.call("GET", "a") == b"1"
    server.stop()


def test_sigalrm_tells_where_the_threads_are(fresh_server: Factory) -> None:
    server = fresh_server()
    server.signal(signal.SIGALRM)
    server.wait_for_log("thread 0x")


def test_a_crash_is_logged(fresh_server: Factory, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    server = fresh_server("--logfile", str(log))
    server.signal(signal.SIGSEGV)
    assert server.wait() == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in log.read_text()
    server = fresh_server("--logfile", str(log), "--crash-log-enabled", "no")
    log.write_text("")
    server.signal(signal.SIGSEGV)
    assert server.wait() == -signal.SIGSEGV
    assert "Segmentation fault" not in log.read_text()


def test_signals_that_were_ignored_before_the_start_are_heeded(fresh_server: Factory) -> None:
    """As a shell leaves them to what it starts in the background, and nohup does."""
    server = fresh_server(start=False)
    assert isinstance(server, ServerProcess)
    script = 'trap "" INT TERM HUP; exec "$@"'
    command = ["sh", "-c", script, "sh", *server.command(), "--port", "0", "--unixsocket", "socket"]
    with server.log_path.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=server.directory, env=server.variables(), stdout=log, stderr=log
        )
    try:
        server.wait_for_log("Ready to accept connections")
        process.send_signal(signal.SIGHUP)
        with RawClient(path=str(server.directory / "socket")) as client:
            assert client.call("PING") == b"+PONG\r\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0
    finally:
        process.kill()
        process.wait()


# The file with the process ID


def test_pid_file(fresh_server: Factory, tmp_path: Path) -> None:
    path = tmp_path / "server.pid"
    server = fresh_server("--pidfile", str(path))
    assert path.read_text() == f"{server.pid}\n"
    server.stop()
    assert not path.exists()


def test_a_start_that_fails_leaves_no_pid_file(fresh_server: Factory, tmp_path: Path) -> None:
    path = tmp_path / "server.pid"
    server = fresh_server("--pidfile", str(path), start=False)
    (server.directory / "dump.hrs").write_bytes(b"no snapshot")
    server.spawn()
    assert server.wait() == 1
    assert "is no snapshot" in server.log()
    assert not path.exists()


def test_a_start_that_fails_leaves_the_pid_file_of_another(
    fresh_server: Factory, tmp_path: Path
) -> None:
    path = tmp_path / "server.pid"
    server = fresh_server("--pidfile", str(path))
    other = fresh_server("--pidfile", str(path), port=server.port, start=False)
    other.spawn()
    assert other.wait() == 1
    assert path.read_text() == f"{server.pid}\n"
    path.write_text("1\n")
    server.stop()
    assert path.read_text() == "1\n"


# Replicas that lack something


@pytest.fixture
def lagging(fresh_server: Factory) -> tuple[Process, Process]:
    """A master, and a replica of it that has been stopped and lacks a key."""
    master = fresh_server("--save", "", *AT_ONCE)
    replica = fresh_server("--save", "", "--appendonly", "yes")
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: is_up(replica) and have_all(master, replica))
    replica.signal(signal.SIGSTOP)
    master.call("SET", "k", "v")
    return master, replica


@pytest.mark.parametrize("how", ["SHUTDOWN", "SIGTERM"])
def test_replicas_get_all_before_the_end(lagging: tuple[Process, Process], how: str) -> None:
    master, replica = lagging
    with master.client() as client, master.client() as writer:
        if how == "SHUTDOWN":
            client.send_command("SHUTDOWN")
        else:
            master.signal(signal.SIGTERM)
        master.wait_for_log("Waiting for replicas before shutting down")
        writer.send_command("SET", "late", "v")  # is held back
        assert master.call("GET", "k") == b"v"
        replica.signal(signal.SIGCONT)
        assert writer.rest_until_close() == b""
    assert master.wait() == 0
    assert "1 of 1 replicas are in sync when shutting down" in master.log()
    assert replica.call("GET", "k") == b"v"
    assert replica.call("GET", "late") is None


def test_a_shutdown_that_waits_is_called_off(lagging: tuple[Process, Process]) -> None:
    master, replica = lagging
    with master.client() as first, master.client() as second, master.client() as writer:
        first.send_command("SHUTDOWN")
        master.wait_for_log("Waiting for replicas before shutting down")
        second.send_command("SHUTDOWN", "NOW")
        wait_until(lambda: master.info("clients")["blocked_clients"] == "2")
        writer.send_command("SET", "late", "v")
        wait_until(lambda: master.info("clients")["blocked_clients"] == "3")
        assert master.call("SHUTDOWN", "ABORT") == b"OK"
        failed = b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
        assert first.read() == second.read() == failed
        assert writer.read() == b"+OK\r\n"
        assert second.call("SHUTDOWN", "ABORT") == b"-ERR No shutdown in progress.\r\n"
    replica.signal(signal.SIGCONT)
    wait_until(lambda: have_all(master, replica))


@pytest.mark.parametrize(("timeout_s", "word"), [(1, "NOSAVE"), (0, "NOSAVE"), (3600, "NOW")])
def test_the_wait_for_replicas_ends(
    lagging: tuple[Process, Process], timeout_s: int, word: str
) -> None:
    master, replica = lagging
    master.call("CONFIG", "SET", "shutdown-timeout", timeout_s)
    with master.client() as client:
        client.send_command("SHUTDOWN", word)
        assert client.rest_until_close() == b""
    assert master.wait() == 0
    assert ("Waiting for replicas" in master.log()) == (timeout_s == 1)
    replica.signal(signal.SIGCONT)


def test_a_second_sigint_does_not_wait_for_replicas(lagging: tuple[Process, Process]) -> None:
    master, replica = lagging
    master.signal(signal.SIGINT)
    master.wait_for_log("Waiting for replicas before shutting down")
    master.signal(signal.SIGINT)
    assert master.wait() == 1
    replica.signal(signal.SIGCONT)
