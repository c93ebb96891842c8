"""Every step in which files change, interrupted: the folder can be loaded, and holds everything.

The steps are those of a rewrite, of turning the append-only file on and off, of loading it again,
and of saving a snapshot. At each of them the process is killed, also within the write of a record,
or the step fails as on a full disk. The long form, ``HEADRACE_CRASH_STEPS=all``, kills at each of
them; otherwise at each fourth.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import build
from support.client import RawClient
from support.process import ServerProcess
from support.waiting import wait_until

pytestmark = pytest.mark.once

PROGRAM = build.ROOT / "tests" / "support" / "step_by_step.py"
WHOLE = os.environ.get("HEADRACE_CRASH_STEPS") == "all"
STRIDE = 1 if WHOLE else 4
NAMED_BY = 8  # steps until a new incr file is named; a write cut short meanwhile is in the old one
ALWAYS = (
    *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
    *("--auto-aof-rewrite-percentage", "0"),
)


class SteppingServer(ServerProcess):
    """A server whose files fail, or that dies, at a step that is chosen."""

    def __init__(self, *options: str, directory: Path) -> None:
        super().__init__(*options, directory=directory, debug=False, check_log=False)
        self.control = directory / "control"
        self.control.mkdir(exist_ok=True)

    def command(self) -> list[str]:
        return [sys.executable, "-P", str(PROGRAM), str(self.control)]

    def plan(self, what: str, number: int) -> None:
        (self.control / "steps").write_text("")
        (self.control / "plan").write_text(f"{what} {number}")

    def slow_syncs(self) -> None:
        """Let syncs of records take long from now on."""
        (self.control / "slow").touch()

    def no_plan(self) -> None:
        """Let the steps that still come be."""
        (self.control / "plan").unlink(missing_ok=True)

    def is_over(self) -> bool:
        """Return whether the plan has been carried out."""
        return not (self.control / "plan").exists()

    def steps(self) -> list[str]:
        return (self.control / "steps").read_text().splitlines()


class Oracle:
    """Writes numbered entries and remembers which were acknowledged.

    Args:
        padding: makes one record of each two so much longer.
    """

    def __init__(self, padding: int = 0) -> None:
        self.sent = 0
        self.acknowledged = 0
        self._padding = b"p" * padding

    def write(self, client: RawClient) -> None:
        """One more; an error when the server is gone."""
        self.sent += 1
        assert client.call("XADD", "log", f"{self.sent}-0", "n", self.sent).startswith(b"$")
        assert client.call("SET", "last", b"%d %b" % (self.sent, self._padding)) == b"+OK\r\n"
        self.acknowledged = self.sent

    def check(self, server: ServerProcess) -> None:
        entries = server.call("XRANGE", "log", "-", "+")
        assert isinstance(entries, list)
        numbers = [int(fields[1]) for _, fields in entries]
        assert numbers == list(range(1, len(numbers) + 1)), "lost, doubled or out of order"
        assert self.acknowledged <= len(numbers) <= self.sent
        last = server.call("GET", "last")
        assert isinstance(last, bytes)
        number, _, padding = last.partition(b" ")
        assert self.acknowledged <= int(number) <= self.sent
        assert padding == self._padding
        self.sent = self.acknowledged = len(numbers)
        server.call("SET", "last", b"%d %b" % (self.sent, self._padding))


def rewrite(client: RawClient) -> None:
    client.call("BGREWRITEAOF")


def rewriting(client: RawClient) -> bool:
    return b"aof_rewrite_in_progress:1" in client.call("INFO", "persistence")


def saving(client: RawClient) -> bool:
    return b"rdb_bgsave_in_progress:1" in client.call("INFO", "persistence")


def run_until_over(
    server: SteppingServer,
    oracle: Oracle,
    begin: Callable[[RawClient], None],
    goes_on: Callable[[RawClient], bool],
) -> bool:
    """Write while a job runs; False when the server died."""
    try:
        with server.client() as client:
            begin(client)
            while goes_on(client):
                oracle.write(client)
            for _ in range(3):
                oracle.write(client)
    except OSError:
        server.wait()
        return False
    return True


def start_again(server: SteppingServer) -> None:
    """Start after a kill; where that changes files, it is killed there as well, once."""
    folder = server.directory / "appendonlydir"
    manifests = [path.read_text() for path in folder.glob("*.manifest")]
    if list(folder.glob("temp-*")) or any("type h" in text for text in manifests):
        server.plan("kill", 1)
        server.spawn()
        server.wait()
        assert server.is_over(), server.log()
    server.start()


def load_again(client: RawClient) -> None:
    """Give a rewrite up in order to load what the files hold."""
    client.call("BGREWRITEAOF")
    assert client.call("DEBUG", "LOADAOF") == b"+OK\r\n"


def die_at_each_step(
    server: SteppingServer,
    oracle: Oracle,
    what: str,
    begin: Callable[[RawClient], None],
    goes_on: Callable[[RawClient], bool],
) -> int:
    """Die at a step, start again and see that all is there, step by step; how many there are."""
    number = 1
    with server:
        with server.client() as client:
            oracle.write(client)
        while True:
            server.plan(what, number)
            if run_until_over(server, oracle, begin, goes_on):
                break
            start_again(server)
            oracle.check(server)
            number += 1 if what == "tear" and number < NAMED_BY else STRIDE
        server.no_plan()
        server.restart(crash=True)
        oracle.check(server)
    return number


@pytest.mark.parametrize("form", ["yes", "no"] if WHOLE else ["yes"])
def test_a_kill_at_each_step_of_a_rewrite(tmp_path: Path, form: str) -> None:
    server = SteppingServer(*ALWAYS, "--aof-use-rdb-preamble", form, directory=tmp_path)
    steps = die_at_each_step(server, Oracle(), "kill", rewrite, rewriting)
    assert steps > 20, server.steps()


@pytest.mark.parametrize(
    ("policy", "form", "begin"),
    [
        ("always", "yes", "rewrite"),
        ("everysec", "no", "rewrite"),
        ("everysec", "yes", "save"),
    ],
)
def test_a_kill_within_a_write_at_each_step(
    tmp_path: Path, policy: str, form: str, begin: str
) -> None:
    """A long record is cut short while files change: by the event loop, or by the thread."""
    options = ("--appendfsync", policy, "--aof-use-rdb-preamble", form)
    server = SteppingServer(*ALWAYS, *options, directory=tmp_path)
    server.slow_syncs()
    job = (rewrite, rewriting) if begin == "rewrite" else (save, saving)
    steps = die_at_each_step(server, Oracle(500_000), "tear", *job)
    assert steps > (20 if begin == "rewrite" else 3), server.steps()
    assert server.log().count("ends in the middle of a command") * STRIDE > steps // 2


@pytest.mark.parametrize("what", ["kill", "tear"])
def test_a_kill_at_each_step_of_loading_it_again(tmp_path: Path, what: str) -> None:
    options = (*ALWAYS, "--enable-debug-command", "yes")
    server = SteppingServer(*options, directory=tmp_path)
    die_at_each_step(server, Oracle(), what, load_again, rewriting)
    assert "Append-only file loaded by DEBUG LOADAOF" in server.log()


@pytest.mark.parametrize("what", ["kill", "tear"])
def test_a_kill_at_each_step_of_turning_it_off(tmp_path: Path, what: str) -> None:
    """What was acknowledged while it was on is there, a rewrite under way or not."""
    number = 1
    server = SteppingServer(*ALWAYS, directory=tmp_path)
    oracle = Oracle()
    with server:
        while True:
            with server.client() as client:
                oracle.write(client)
                server.plan(what, number)
                try:
                    client.call("BGREWRITEAOF")
                    for _ in range(number // 4):
                        oracle.write(client)
                    client.call("CONFIG", "SET", "appendonly", "no")
                except OSError:
                    server.wait()
            if not server.is_over():
                break
            server.kill()
            start_again(server)
            oracle.check(server)
            number += STRIDE
    assert number > 4


@pytest.mark.parametrize("what", ["fail", "break"])
def test_a_failure_at_each_step_of_a_rewrite(tmp_path: Path, what: str) -> None:
    """The server goes on, the next rewrite is a good one, and nothing is lost."""
    server = SteppingServer(*ALWAYS, directory=tmp_path)
    oracle = Oracle()
    number = 0
    with server:
        while not number or server.is_over():
            number += 1
            server.plan(what, number)
            assert run_until_over(server, oracle, rewrite, rewriting), server.log()
            if number % 5 == 0:
                server.restart(crash=True)
                oracle.check(server)
        assert number > 20, server.steps()
        assert server.info("persistence")["aof_last_bgrewrite_status"] == "ok"
        server.restart(crash=True)
        oracle.check(server)
        names = sorted(path.name for path in (tmp_path / "appendonlydir").iterdir())
        assert len(names) == 4, names  # the lock, the manifest, a base, an incr file
        assert (what == "break") == ("Traceback" in server.log())
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


def turn_on(client: RawClient) -> None:
    assert client.call("CONFIG", "SET", "appendonly", "yes") == b"+OK\r\n"


@pytest.mark.parametrize(
    ("what", "had_files"),
    [("kill", True), ("tear", True)] + ([("kill", False), ("tear", False)] if WHOLE else []),
)
def test_a_kill_at_each_step_of_turning_it_on(tmp_path: Path, what: str, had_files: bool) -> None:
    """Until it is on, the folder holds what it held; from then on it holds everything."""
    number = 1
    ends = set()
    while True:
        folder = tmp_path / str(number)
        folder.mkdir()
        server = SteppingServer("--appendfsync", "always", "--save", "", directory=folder)
        oracle = Oracle()
        with server:
            before = 0
            with server.client() as client:
                if had_files:
                    turn_on(client)
                    while rewriting(client):
                        oracle.write(client)
                    for _ in range(3):
                        oracle.write(client)
                    before = oracle.sent
                    client.call("CONFIG", "SET", "appendonly", "no")
                for _ in range(4):
                    oracle.write(client)
            server.plan(what, number)
            survived = run_until_over(server, oracle, turn_on, rewriting)
            server.kill()
            server.options = (*ALWAYS, "--appendonly", "yes")
            start_again(server)
            if server.call("XLEN", "log") == before:
                assert not survived
                ends.add("before")
            else:
                oracle.check(server)
                ends.add("after")
        if survived:
            break
        number += STRIDE
    assert number > 15
    assert ends == {"before", "after"}


@pytest.mark.parametrize("what", ["fail", "break"])
def test_failures_while_it_is_turned_on(tmp_path: Path, what: str) -> None:
    """It is refused, and then off, or it is tried again until it works."""
    server = SteppingServer("--appendfsync", "always", "--save", "", directory=tmp_path)
    oracle = Oracle()
    with server:
        with server.client() as client:
            for number in range(1, 30, STRIDE):
                server.plan(what, number)
                reply = client.call("CONFIG", "SET", "appendonly", "yes")
                if reply != b"+OK\r\n":
                    assert b"No space left on device" in reply or what == "break"
                    assert server.info("persistence")["aof_enabled"] == "0"
                    turn_on(client)
                oracle.write(client)
                wait_until(
                    lambda: (
                        b"aof_rewrite_scheduled:0" in client.call("INFO", "persistence")
                        and not rewriting(client)
                    ),
                    100.0,  # after several failures it is tried again in a minute
                )
                oracle.write(client)
                assert server.info("persistence")["aof_enabled"] == "1"
                client.call("CONFIG", "SET", "appendonly", "no")
                assert not list((tmp_path / "appendonlydir").glob("temp-*"))
        server.options = ALWAYS
        server.restart(crash=True)
        oracle.check(server)


def save(client: RawClient) -> None:
    client.call("BGSAVE")


def save_now(client: RawClient) -> None:
    client.call("SAVE")


@pytest.mark.parametrize("what", ["kill", "fail", "break"])
@pytest.mark.parametrize("way", [save, save_now])
@pytest.mark.parametrize("name", ["dump.hrs", "dump.rdb"])
def test_each_step_of_a_snapshot(
    tmp_path: Path, what: str, way: Callable[[RawClient], None], name: str
) -> None:
    """The file on the disk is the one before or the new one, whole."""
    server = SteppingServer("--save", "", "--dbfilename", name, directory=tmp_path)
    oracle = Oracle()
    number = 0
    with server:
        with server.client() as client:
            client.call("ARSET", "a", 0, "v")  # for which RDB files begin otherwise
            oracle.write(client)
            client.call("SAVE")
        while True:
            number += 1
            saved = oracle.sent
            with server.client() as client:
                oracle.write(client)
            server.plan(what, number)
            run_until_over(server, oracle, way, saving)
            if not server.is_over():
                break
            server.kill()
            server.start()
            length = server.call("XLEN", "log")
            assert isinstance(length, int)
            assert saved <= length <= saved + 1, "neither the old one nor the new one"
            oracle.sent = oracle.acknowledged = length
    assert number > 4
