"""Servers that follow one another, for tests of both sides: what they have, and load."""

from __future__ import annotations

import random
import threading
from typing import Self

from support.client import RawClient
from support.process import Process
from support.random_commands import do_things
from support.waiting import wait_until

# A master that does not wait for more replicas to share a full copy.
AT_ONCE = ("--repl-diskless-sync-delay", "0")


def digest(process: Process) -> object:
    return process.call("DEBUG", "DIGEST")


def is_up(replica: Process) -> bool:
    return replica.info("replication")["master_link_status"] == "up"


def full_copies(replica: Process) -> int:
    """Return how often it has begun anew; Valkey has other words for it."""
    return replica.log().count("Full resync from ")


def have_all(master: Process, *replicas: Process) -> bool:
    """Return whether all replicas have the whole stream, of which a PING may be the latest part."""
    end = int(master.info("replication")["master_repl_offset"])
    return all(
        int(each.info("replication").get("slave_repl_offset", -1)) >= end for each in replicas
    )


def assert_same(master: Process, *replicas: Process) -> None:
    wait_until(lambda: have_all(master, *replicas))
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


class Copy:
    """A replica by hand, which is read byte by byte; ``before`` is what it says of itself."""

    def __init__(self, port: int, *before: tuple[object, ...]) -> None:
        self.client = RawClient(port)
        for words in before:
            assert self.client.call(*words) == b"+OK\r\n", words  # type: ignore[arg-type]
        self._data = b""

    def sync(self, request: bytes = b"SYNC\r\n") -> bytes:
        """Ask, and read the snapshot."""
        self.client.send(request)
        while not (line := self.line()).startswith(b"$"):
            pass
        if not line.startswith(b"$EOF:"):
            return self.take(int(line[1:]))
        return self.up_to(line[5:])

    def up_to(self, mark: bytes) -> bytes:
        """Read as far as there."""
        data = bytearray(self._data)
        while mark not in data[-(1 << 17) :]:
            more = self.client.sock.recv(1 << 16)
            assert more, "the link is closed"
            data += more
        taken, _, self._data = bytes(data).partition(mark)
        return taken

    def take(self, size: int) -> bytes:
        while len(self._data) < size:
            more = self.client.sock.recv(1 << 16)
            assert more, "the link is closed"
            self._data += more
        taken, self._data = self._data[:size], self._data[size:]
        return taken

    def line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            line += self.take(1)
        return line.strip()

    def record(self) -> list[bytes]:
        count = int(self.line()[1:])
        return [self.take(int(self.line()[1:]) + 2)[:-2] for _ in range(count)]

    def is_closed(self) -> bool:
        while self.client.sock.recv(1 << 16):
            pass
        return True
