"""Crashes under load: whatever was acknowledged is there after the restart, once, in order.

``HEADRACE_CRASH_ROUNDS=300`` is the long form. What the workers do and how it is checked:
``support.load``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import threading
import time

import pytest
from conftest import Factory

from support.client import RawClient
from support.faults import FaultyServer, Rule, faulty_server
from support.juggler import Juggler
from support.load import Load
from support.waiting import DEADLINE_S, wait_until

ROUNDS = int(os.environ.get("HEADRACE_CRASH_ROUNDS", "3"))
WORKERS = 3


def spend_some_time(load: Load, chance: random.Random) -> None:
    """Let the load run for a while of any length; every worker has been answered by then."""
    load.wait_for_steps(20)
    time.sleep(chance.uniform(0.0, 0.3))


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_kill_9_takes_nothing(fresh_server: Factory, policy: str) -> None:
    """A crash of the process loses nothing with any policy: replies follow the write."""
    chance = random.Random()
    server = fresh_server("--appendonly", "yes", "--appendfsync", policy, debug=False)
    load = Load(server, WORKERS, chance)
    for _ in range(ROUNDS):
        load.begin()
        spend_some_time(load, chance)
        server.kill()
        load.end()
        server.start()
        load.check()
    assert load.total >= 20 * WORKERS * ROUNDS


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_a_kill_within_a_write(policy: str) -> None:
    """The process ends when a part of a turn is in the file: that part is dropped."""
    chance = random.Random()
    with faulty_server(policy) as server:
        load = Load(server, WORKERS, chance)
        for _ in range(ROUNDS):
            part = chance.randint(1, 300)
            server.disk(Rule("write", "incr", skip=chance.randint(20, 60), part=part, kill=True))
            load.begin()
            server.wait()
            load.end()
            server.disk()
            server.start()
            load.check()


def test_a_power_cut_takes_nothing_under_always() -> None:
    """What no sync had put on the disk is gone; nobody had been told of it, nor seen it."""
    chance = random.Random()
    with faulty_server("always") as server:
        load = Load(server, WORKERS, chance)
        for delay_s in [0.0005, 0.003] * ROUNDS:  # syncs inline, and in the thread
            server.disk(Rule("fdatasync", "incr", delay_s=delay_s))
            load.begin()
            spend_some_time(load, chance)
            server.cut_power()
            load.end()
            server.start()
            load.check()


def test_a_power_cut_takes_nothing_that_was_loaded() -> None:
    """What a process that was killed had left to the system is on the disk once it is served."""
    with faulty_server("no") as server:
        server.call("SET", "a", 1)
        server.restart(crash=True)
        assert server.call("GET", "a") == b"1"
        server.cut_power()
        server.start()
        assert server.call("GET", "a") == b"1"


def test_a_power_cut_takes_little_under_everysec() -> None:
    """Two syncs later what was acknowledged is on the disk; what is there is what was, once."""
    chance = random.Random()
    with faulty_server("everysec") as server:
        load = Load(server, WORKERS, chance)
        for _ in range(max(1, ROUNDS // 3)):
            load.begin()
            load.wait_for_steps(20)
            least = [worker.acknowledged for worker in load.workers]
            syncs = server.syncs()
            wait_until_synced(server, syncs + 2)
            server.cut_power()
            load.end()
            server.start()
            load.check(least, seen=False)


def wait_until_synced(server: FaultyServer, syncs: int) -> None:
    wait_until(lambda: server.syncs() >= syncs)


@pytest.mark.parametrize("forms", [("yes",), ("yes", "no")])
def test_a_kill_during_rewrites(fresh_server: Factory, forms: tuple[str, ...]) -> None:
    """Rewrites and snapshots under load: killed anywhere, the files hold everything."""
    chance = random.Random()
    server = fresh_server("--appendonly", "yes", debug=False)
    load = Load(server, WORKERS, chance, forgets="no" in forms)
    juggler = Juggler("ball")
    for number in range(2 * ROUNDS):
        server.call("CONFIG", "SET", "appendfsync", chance.choice(["always", "everysec", "no"]))
        server.call("CONFIG", "SET", "rdb-key-save-delay", chance.choice([0, 3000, 50000]))
        load.begin()
        juggler.begin(server.port)
        rewriter = threading.Thread(target=rewrite_until_the_end, args=(server.port, forms))
        rewriter.start()
        spend_some_time(load, chance)
        server.kill()
        load.end()
        juggler.end()
        rewriter.join(DEADLINE_S)
        assert not rewriter.is_alive()
        server.start()
        load.check()
        juggler.check(server)
        folder = server.directory / "appendonlydir"
        names = {path.name for path in folder.iterdir()}
        assert not any(name.startswith("temp-") for name in names), names
        # Lock, manifest, base, a base that was not named yet, and an incr file for each rewrite
        # that did not end.
        assert len(names) <= 6 + number, names
        assert "type h" not in (folder / "appendonly.aof.manifest").read_text()


def rewrite_until_the_end(port: int, forms: tuple[str, ...]) -> None:
    """Ask for rewrites and snapshots until the server is gone."""
    with contextlib.suppress(OSError, ValueError), RawClient(port) as client:
        for form in itertools.cycle(forms):
            client.call("CONFIG", "SET", "aof-use-rdb-preamble", form)
            client.call("BGREWRITEAOF")
            while b"aof_rewrite_in_progress:1" in client.call("INFO", "persistence"):
                time.sleep(0.003)
            client.call("BGSAVE", "SCHEDULE")
