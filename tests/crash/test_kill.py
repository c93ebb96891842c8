"""SIGKILL under load: whatever was acknowledged is there after the restart, once, in order."""

from __future__ import annotations

import random
import threading
import time

import pytest
from conftest import Factory

from support.client import RawClient, encode
from support.process import Process

PRODUCERS = 4
ROUNDS = 3
DEPTH = 8


class Producer(threading.Thread):
    """Appends numbered entries to a stream of its own, pipelined, until the server dies.

    Each number goes into a stream and a string, so that order, loss and doubling all show.
    """

    def __init__(self, port: int, name: str, first: int) -> None:
        super().__init__(daemon=True)
        self.name = name
        self.port = port
        self.sent = first  # numbers below were sent
        self.acknowledged = first  # numbers below were acknowledged
        self.trouble = ""

    def run(self) -> None:
        try:
            with RawClient(self.port) as client:
                while True:
                    self.turn(client)
        except (OSError, ValueError):
            return  # the server was killed

    def turn(self, client: RawClient) -> None:
        numbers = range(self.sent, self.sent + DEPTH)
        self.sent += DEPTH
        client.send(
            b"".join(
                encode("XADD", self.name, "*", "n", number)
                + encode("SET", self.name + ":last", number)
                for number in numbers
            )
        )
        for number in numbers:
            added, was_set = client.read(), client.read()
            if not added.startswith(b"$") or was_set != b"+OK\r\n":
                self.trouble = f"{number}: {added!r} {was_set!r}"
                raise ValueError(self.trouble)
            self.acknowledged = number + 1


def check(server: Process, producer: Producer) -> int:
    """What the restarted server holds of a producer's entries; how many."""
    entries = server.call("XRANGE", producer.name, "-", "+")
    assert isinstance(entries, list)
    numbers = [int(fields[1]) for _, fields in entries]
    assert numbers == list(range(len(numbers))), "lost, doubled or out of order"
    assert producer.acknowledged <= len(numbers) <= producer.sent
    last = server.call("GET", producer.name + ":last")
    if last is None:
        assert not producer.acknowledged
    else:
        assert isinstance(last, bytes)
        assert producer.acknowledged - 1 <= int(last) <= len(numbers)
        assert int(last) in (len(numbers) - 1, len(numbers) - 2)
    return len(numbers)


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_nothing_acknowledged_is_lost(fresh_server: Factory, policy: str) -> None:
    """A crash of the process takes nothing with any policy: replies follow the write."""
    chance = random.Random(policy)
    server = fresh_server("--appendonly", "yes", "--appendfsync", policy, debug=False)
    held = [0] * PRODUCERS
    for _ in range(ROUNDS):
        producers = [
            Producer(server.port, f"log{index}", held[index]) for index in range(PRODUCERS)
        ]
        for producer in producers:
            producer.start()
        time.sleep(chance.uniform(0.1, 0.6))
        server.kill()
        for producer in producers:
            producer.join(20)
            assert not producer.is_alive()
            assert not producer.trouble
        server.start()
        held = [check(server, producer) for producer in producers]
    assert sum(held) > 100


def test_a_kill_during_a_rewrite(fresh_server: Factory) -> None:
    """Rewrites one after the other under load: killed anywhere, the files hold everything."""
    chance = random.Random(5)
    server = fresh_server("--appendonly", "yes", debug=False)
    held = [0] * PRODUCERS
    for _ in range(ROUNDS):
        producers = [
            Producer(server.port, f"log{index}", held[index]) for index in range(PRODUCERS)
        ]
        for producer in producers:
            producer.start()
        stop = time.monotonic() + chance.uniform(0.2, 0.8)
        with server.client() as client:
            while time.monotonic() < stop:
                client.call("BGREWRITEAOF")
        server.kill()
        for producer in producers:
            producer.join(20)
            assert not producer.trouble
        server.start()
        held = [check(server, producer) for producer in producers]
        names = {path.name for path in (server.directory / "appendonlydir").iterdir()}
        assert not any(name.startswith("temp-") for name in names), names
        assert len(names) <= 5, names  # lock, manifest, base, and two incr files at most


def test_clients_see_nothing_that_a_crash_takes_back(fresh_server: Factory) -> None:
    """Under always, what a reader has seen of others' writes is there after the crash."""
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always", debug=False)
    producers = [Producer(server.port, f"log{index}", 0) for index in range(PRODUCERS)]
    for producer in producers:
        producer.start()
    seen = 0
    stop = time.monotonic() + 0.7
    with server.client() as reader:
        while time.monotonic() < stop:
            length = reader.call_parsed("XLEN", "log0")
            assert isinstance(length, int)
            seen = length
    server.kill()
    for producer in producers:
        producer.join(20)
    server.start()
    assert seen > 0
    assert check(server, producers[0]) >= seen
