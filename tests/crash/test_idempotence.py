"""Producers that retry through crashes of the server: every message is there once, in order."""

from __future__ import annotations

import random
import threading
import time

import pytest
from conftest import Factory

from support.client import RawClient, encode
from support.process import Process
from support.waiting import DEADLINE_S, wait_until

PRODUCERS = 4
ROUNDS = 3
DEPTH = 8


class Producer(threading.Thread):
    """Sends numbered messages in batches; a batch that was not answered whole is sent again."""

    def __init__(self, server: Process, name: str) -> None:
        super().__init__(daemon=True)
        self.name = name
        self.server = server
        self.answered = 0  # numbers below were answered
        self.retries = 0
        self.enough = threading.Event()
        self.trouble = ""

    def run(self) -> None:
        while not self.enough.is_set() and not self.trouble:
            try:
                with RawClient(self.server.port) as client:
                    while not self.enough.is_set() and not self.trouble:
                        self.batch(client)
            except (OSError, ValueError):
                self.retries += 1
                time.sleep(0.01)

    def batch(self, client: RawClient) -> None:
        numbers = range(self.answered, self.answered + DEPTH)
        client.send(
            b"".join(
                encode("XADD", "log", "IDMP", self.name, n, "*", "by", self.name, "n", n)
                for n in numbers
            )
        )
        replies = [client.read() for _ in numbers]
        if any(reply.startswith(b"-LOADING") for reply in replies):
            raise ValueError
        if not all(reply.startswith(b"$") for reply in replies):
            self.trouble = repr(replies)
        self.answered = numbers.stop


def wait_for_batches(producers: list[Producer]) -> None:
    """Wait until each producer has had another batch answered."""
    before = {each: each.answered for each in producers}
    wait_until(lambda: all(each.trouble or each.answered > before[each] for each in producers))


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_a_retry_adds_nothing_through_crashes_and_rewrites(
    fresh_server: Factory, policy: str
) -> None:
    chance = random.Random(policy)
    server = fresh_server("--appendonly", "yes", "--appendfsync", policy, debug=False, port=0)
    producers = [Producer(server, f"producer-{number}") for number in range(PRODUCERS)]
    for producer in producers:
        producer.start()
    for turn in range(ROUNDS):
        wait_for_batches(producers)
        time.sleep(chance.uniform(0.2, 0.5))
        if turn:
            server.call("BGREWRITEAOF")
            time.sleep(chance.uniform(0.0, 0.1))
        server.restart(crash=True)
    wait_for_batches(producers)
    for producer in producers:
        producer.enough.set()
    for producer in producers:
        producer.join(DEADLINE_S)
        assert not producer.is_alive()
        assert not producer.trouble
    assert sum(producer.retries for producer in producers) >= ROUNDS
    check(server, producers)
    server.restart(crash=True)
    check(server, producers)


def check(server: Process, producers: list[Producer]) -> None:
    entries = server.call("XRANGE", "log", "-", "+")
    assert isinstance(entries, list)
    for producer in producers:
        numbers = [int(row[1][3]) for row in entries if row[1][1] == producer.name.encode()]
        assert numbers == list(range(len(numbers))), "lost, doubled or out of order"
        assert len(numbers) >= producer.answered
    assert len(entries) > 100
