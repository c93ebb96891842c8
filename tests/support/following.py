"""Servers that follow one another, for tests of both sides: what they have, and load."""

from __future__ import annotations

import random
import threading
from typing import Self

from support.process import Process
from support.random_commands import do_things
from support.waiting import wait_until


def digest(process: Process) -> object:
    return process.call("DEBUG", "DIGEST")


def is_up(replica: Process) -> bool:
    return replica.info("replication")["master_link_status"] == "up"


def full_copies(replica: Process) -> int:
    """How often it has begun anew; Valkey has other words for it."""
    return replica.log().count("Full resync from ")


def have_all(master: Process, *replicas: Process) -> bool:
    """Whether all replicas have the whole stream, of which a PING may be the latest part."""
    end = int(master.info("replication")["master_repl_offset"])
    return all(
        int(each.info("replication").get("slave_repl_offset", -1)) >= end for each in replicas
    )


def assert_same(master: Process, *replicas: Process) -> None:
    wait_until(lambda: have_all(master, *replicas), 30)
    expected = digest(master)
    for replica in replicas:
        assert digest(replica) == expected, replica.log()[-3000:]


class Load:
    """Random commands of some clients, until the end of the block."""

    def __init__(self, process: Process, clients: int = 2) -> None:
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(process, seed)) for seed in range(clients)
        ]

    def _run(self, process: Process, seed: int) -> None:
        chance = random.Random(seed)
        with process.client() as client:
            while not self._stopping.is_set():
                do_things(client, chance, 50)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
