"""Workers killed at random: every entry is worked on, whoever dies when."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from support import build
from support.client import RawClient
from support.process import Process
from support.waiting import wait_until

WORKER = build.ROOT / "tests" / "support" / "group_worker.py"
# The long form: HEADRACE_POOL_WORKERS=8 HEADRACE_POOL_ENTRIES=100000.
WORKERS = int(os.environ.get("HEADRACE_POOL_WORKERS", "4"))
ENTRIES = int(os.environ.get("HEADRACE_POOL_ENTRIES", "1500"))
IDLE_MS = 400
COUNT = 10


class Pool:
    """Worker processes, each with a name that it keeps for its next life."""

    def __init__(self, port: int, directory: Path) -> None:
        self.port = port
        self.log = (directory / "workers.log").open("ab")
        self.lives = 0
        self.workers = [self.start(index) for index in range(WORKERS)]

    def start(self, index: int) -> subprocess.Popen[bytes]:
        self.lives += 1
        words = [str(self.port), "work", "pool", f"worker-{index}", str(IDLE_MS), str(COUNT)]
        return subprocess.Popen(
            [sys.executable, "-P", str(WORKER), *words],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )

    def kill_one(self, index: int) -> None:
        worker = self.workers[index]
        assert worker.poll() is None, "a worker ended by itself"
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        self.workers[index] = self.start(index)

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.wait()
        self.log.close()


@pytest.fixture
def pool(fresh_server: Factory) -> Iterator[tuple[Process, Pool]]:
    server = fresh_server("--appendonly", "yes", debug=False)
    server.call("XGROUP", "CREATE", "work", "pool", 0, "MKSTREAM")
    workers = Pool(server.port, server.directory)
    yield server, workers
    workers.end()


def figures(client: RawClient) -> tuple[int, int]:
    """The group's pending entries and its lag."""
    facts = group_facts(client.call_parsed("XINFO", "GROUPS", "work"))
    return facts[b"pending"], facts[b"lag"]


def worked_on(client: RawClient) -> int:
    """Return how often an entry was worked on."""
    count = client.call_parsed("XLEN", "done")
    assert isinstance(count, int)
    return count


def wait_for_work(client: RawClient, count: int) -> None:
    """Wait until so much has been worked on, or there is nothing left to do."""
    wait_until(lambda: worked_on(client) >= count or figures(client) == (0, 0), 60.0)


def group_facts(reply: object) -> dict[bytes, int]:
    """The integers that XINFO GROUPS tells of the one group there is."""
    assert isinstance(reply, list)
    [group] = reply
    pairs = zip(group[::2], group[1::2], strict=True)
    return {name: value for name, value in pairs if isinstance(value, int)}


def test_workers_killed_at_random_lose_nothing(pool: tuple[Process, Pool]) -> None:
    """Every entry is worked on and acknowledged, whoever dies when."""
    server, workers = pool
    chance = random.Random(8)
    deadline = time.monotonic() + 120 + ENTRIES / 50
    with server.client() as client:
        sent = 0
        while True:
            for _ in range(min(ENTRIES - sent, chance.randrange(200))):
                client.call("XADD", "work", "*", "number", sent)
                sent += 1
            pending, lag = figures(client)
            if sent == ENTRIES and pending == 0 and lag == 0:
                break
            assert time.monotonic() < deadline, f"{sent} sent, {pending} pending, {lag} to come"
            # Workers that were killed faster than they start would never get on.
            before = worked_on(client)
            time.sleep(chance.uniform(0.0, 0.2))
            wait_for_work(client, before + COUNT)
            workers.kill_one(chance.randrange(WORKERS))
        done = client.call_parsed("XRANGE", "done", "-", "+")
        assert isinstance(done, list)
        assert {int(fields[1]) for _, fields in done} == set(range(ENTRIES))
        assert client.call_parsed("XPENDING", "work", "pool") == [0, None, None, None]
    assert workers.lives > 2 * WORKERS
    # Twice only what a worker held when it died.
    assert len(done) - ENTRIES <= workers.lives * COUNT
