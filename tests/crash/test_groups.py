"""Workers and servers killed at random: what was acknowledged stays so, nothing else does."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from support import build
from support.client import RawClient, encode, parse
from support.process import Process

WORKER = build.ROOT / "tests" / "support" / "group_worker.py"
# The long form: HEADRACE_POOL_WORKERS=8 HEADRACE_POOL_ENTRIES=100000.
WORKERS = int(os.environ.get("HEADRACE_POOL_WORKERS", "4"))
ENTRIES = int(os.environ.get("HEADRACE_POOL_ENTRIES", "1500"))
IDLE_MS = 400
COUNT = 10
ROUNDS = 3
DEPTH = 8


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
    deadline = time.monotonic() + 60 + ENTRIES / 50
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
            time.sleep(chance.uniform(0.0, 0.2))
            workers.kill_one(chance.randrange(WORKERS))
        done = client.call_parsed("XRANGE", "done", "-", "+")
        assert isinstance(done, list)
        assert {int(fields[1]) for _, fields in done} == set(range(ENTRIES))
        assert client.call_parsed("XPENDING", "work", "pool") == [0, None, None, None]
    assert workers.lives > 2 * WORKERS
    # Twice only what a worker held when it died.
    assert len(done) - ENTRIES <= workers.lives * COUNT


class Acknowledger(threading.Thread):
    """Reads a stream of its own in a group and acknowledges every second entry, pipelined.

    Attributes:
        acknowledged: the entries whose XACK was answered.
        tried: the entries whose XACK was sent.
    """

    def __init__(self, port: int, name: str) -> None:
        super().__init__(daemon=True)
        self.name = name
        self.port = port
        self.delivered: set[bytes] = set()
        self.acknowledged: set[bytes] = set()
        self.tried: set[bytes] = set()
        self.trouble = ""

    def run(self) -> None:
        try:
            with RawClient(self.port) as client:
                while True:
                    self.turn(client)
        except OSError:
            return  # the server was killed

    def turn(self, client: RawClient) -> None:
        client.send(
            b"".join(encode("XADD", self.name, "*", "f", "v") for _ in range(DEPTH))
            + encode("XREADGROUP", "GROUP", "g", "c", "COUNT", DEPTH, "STREAMS", self.name, ">")
        )
        replies = [client.read() for _ in range(DEPTH + 1)]
        streams = parse(replies[-1])
        assert isinstance(streams, list)
        ids = [entry[0] for entry in streams[0][1]]
        self.delivered.update(ids)
        chosen = ids[::2]
        self.tried.update(chosen)
        client.send(b"".join(encode("XACK", self.name, "g", entry_id) for entry_id in chosen))
        for entry_id in chosen:
            if client.read() != b":1\r\n":
                self.trouble = f"{entry_id!r} was not pending"
                raise OSError(self.trouble)
            self.acknowledged.add(entry_id)


def pending_ids(server: Process, key: str) -> set[bytes]:
    rows = server.call("XPENDING", key, "g", "-", "+", 1_000_000)
    assert isinstance(rows, list)
    return {row[0] for row in rows}


def test_acknowledgements_survive_a_kill_of_the_server(fresh_server: Factory) -> None:
    """Under always: no XACK that was answered is lost, none is there that was not sent."""
    chance = random.Random(4)
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always", debug=False)
    names = ["s0", "s1", "s2"]
    for name in names:
        server.call("XGROUP", "CREATE", name, "g", 0, "MKSTREAM")
    held: dict[str, set[bytes]] = {name: set() for name in names}
    total = 0
    for _ in range(ROUNDS):
        readers = [Acknowledger(server.port, name) for name in names]
        for reader in readers:
            reader.start()
        time.sleep(chance.uniform(0.2, 0.6))
        server.kill()
        for reader in readers:
            reader.join(20)
            assert not reader.is_alive()
            assert not reader.trouble
        server.start()
        for reader in readers:
            pending = pending_ids(server, reader.name)
            total += len(reader.acknowledged)
            assert not pending & reader.acknowledged, "an acknowledgement was lost"
            assert reader.delivered - reader.tried <= pending, "one was invented"
            assert held[reader.name] <= pending, "one of an earlier round was invented"
            held[reader.name] = pending
            facts = group_facts(server.call("XINFO", "GROUPS", reader.name))
            assert facts[b"pending"] == len(pending)
    assert total > 50
