"""Servers, the sentinels that look after them, and clients that ask these for the master."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Self, cast

import redis
from redis.sentinel import Sentinel as SentinelClient

from support import judges
from support.process import Process, RedisProcess
from support.proxy import Proxy
from support.waiting import wait_until

NAME: Final = "mine"
DOWN_AFTER_MS: Final = 2000  # less, and a busy machine makes them take living servers for dead
HOST: Final = "127.0.0.1"


class Sentinel(RedisProcess):
    """The same program, as a sentinel."""

    name = "sentinel"

    def command(self) -> list[str]:
        return [self._program]

    def spawn(self) -> Self:
        self.options = ("--sentinel",)
        return super().spawn()

    def facts(self) -> dict[str, str]:
        """Return what INFO says of the master: ``slaves``, ``sentinels``, ``status``."""
        text = self.call("INFO", "sentinel")
        assert isinstance(text, bytes)
        lines = [line for line in text.decode().splitlines() if line.startswith("master0:")]
        return dict(part.split("=", 1) for part in lines[0].partition(":")[2].split(","))

    def master_port(self) -> int:
        """Return the port of what it names as the master."""
        address = self.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
        assert isinstance(address, list)
        return int(address[1])

    def master(self) -> dict[bytes, bytes]:
        """Return the reply of ``SENTINEL MASTER``."""
        row = self.call("SENTINEL", "MASTER", NAME)
        assert isinstance(row, list)
        return dict(zip(row[::2], row[1::2], strict=True))

    def seen(self, kind: str) -> list[dict[bytes, bytes]]:
        """Return the rows of ``SENTINEL REPLICAS`` or ``SENTINEL SENTINELS``."""
        rows = self.call("SENTINEL", kind, NAME)
        assert isinstance(rows, list)
        return [dict(zip(row[::2], row[1::2], strict=True)) for row in rows]


class Watched:
    """Servers, the first of which begins as the master, under sentinels; the name is ``NAME``.

    Attributes:
        ports: by the port at which a server is announced.
        links: by the server, what it is reached through; empty where that is nothing.
    """

    def __init__(self, ports: dict[int, Process], sentinels: list[Sentinel]) -> None:
        self.ports: Final = ports
        self.servers: Final = list(ports.values())
        self.links: Final[dict[Process, Proxy]] = {}
        self.sentinels: Final = sentinels

    def agreed(self) -> Process | None:
        """Return the server that all sentinels name as the master; None while they differ."""
        ports = {each.master_port() for each in self.sentinels}
        if len(ports) != 1:
            return None
        return self.ports[ports.pop()]

    def wait_for_other(self, old: Process) -> Process:
        """Wait until another server is the master everywhere; return it."""
        wait_until(lambda: self.agreed() not in (None, old))
        new = self.agreed()
        assert new is not None
        return new

    def fail_over(self) -> None:
        """Have one that is ready for it begin a planned failover."""
        wait_until(lambda: self.sentinels[0].call("SENTINEL", "FAILOVER", NAME) == b"OK")

    def follow_one(self) -> bool:
        """Return whether all servers follow the agreed master, and no failover is going on.

        A sentinel that is not through with one does not take part in the next.
        """
        if any(each.master()[b"flags"] != b"master" for each in self.sentinels):
            return False
        master = self.agreed()
        if master is None or _replication_of(master).get("role") != "master":
            return False
        others = [_replication_of(each) for each in self.servers if each is not master]
        return all(
            self.ports.get(int(facts.get("master_port", 0))) is master
            and facts["master_link_status"] == "up"
            for facts in others
        )

    def are_in_place(self) -> bool:
        """As ``follow_one``; and the sentinels see that, which look every ten seconds."""
        replicas = len(self.servers) - 1
        return self.follow_one() and all(
            _sees(each, replicas, len(self.sentinels)) for each in self.sentinels
        )

    def client(self) -> redis.Redis:
        """Return redis-py's client of whatever server is the master."""
        places = [(HOST, each.port) for each in self.sentinels]
        kind = cast("Any", SentinelClient)  # it has no types
        asked = kind(places, sentinel_kwargs={"socket_timeout": 1})
        return cast("redis.Redis", asked.master_for(NAME, socket_timeout=2))


def _replication_of(server: Process) -> dict[str, str]:
    """Return what INFO says; nothing where a sentinel has just cut all clients off."""
    try:
        return server.info("replication")
    except ConnectionError:
        return {}


def _sees(sentinel: Sentinel, replicas: int, sentinels: int) -> bool:
    facts = sentinel.facts()
    if facts["status"] != "ok" or facts["sentinels"] != str(sentinels):
        return False
    rows = sentinel.seen("REPLICAS")
    return len(rows) == replicas and all(
        row[b"flags"] == b"slave" and row[b"master-link-status"] == b"ok" for row in rows
    )


@contextmanager
def watched(
    servers: Sequence[Process],
    programs: Sequence[str],
    *settings: str,
    down_after_ms: int = DOWN_AFTER_MS,
    timeout_ms: int = 10_000,
    ports: dict[int, Process] | None = None,
    more: Callable[[], list[str]] = list,
) -> Iterator[Watched]:
    """Have one sentinel for each program look after servers, of which the first is the master.

    ``settings`` are such as ``auth-pass secret``; ``timeout_ms`` is failover-timeout. ``ports``
    stands for ``servers`` where these are announced at others than their own; ``more`` returns
    lines for the configuration of the next sentinel.
    """
    ports = ports or {each.port: each for each in servers}
    port = next(iter(ports))
    lines = [
        f"sentinel monitor {NAME} {HOST} {port} {len(programs) // 2 + 1}",
        f"sentinel down-after-milliseconds {NAME} {down_after_ms}",
        f"sentinel failover-timeout {NAME} {timeout_ms}",
    ]
    for setting in settings:
        word, value = setting.split(" ", 1)
        lines.append(f"sentinel {word} {NAME} {value}")
    with ExitStack() as stack:
        sentinels = [
            stack.enter_context(Sentinel(program=program, config="\n".join(lines + more()) + "\n"))
            for program in programs
        ]
        those = Watched(ports, sentinels)
        wait_until(those.are_in_place)
        yield those


class Writer(threading.Thread):
    """Adds entries as fast as it can to the stream ``s``, wherever the master is.

    Attributes:
        acknowledged: the values whose XADD was answered with an ID.
        promised: those of them that WAIT has counted on a replica, too; none unless ``waits``.
        ids: the IDs that they have got.
        longest_s: the longest time between two answers.
    """

    def __init__(self, where: Watched, label: str, *, waits: bool) -> None:
        super().__init__()
        self._where: Final = where
        self._label: Final = label
        self._waits: Final = waits
        self._stopping = threading.Event()
        self.acknowledged: list[bytes] = []
        self.promised: list[bytes] = []
        self.ids: list[bytes] = []
        self.longest_s = 0.0
        self.start()

    def run(self) -> None:
        client = self._where.client()
        number = 0
        last_s = time.monotonic()
        while not self._stopping.is_set():
            number += 1
            value = f"{self._label}-{number}".encode()
            try:
                with client.pipeline(transaction=False) as pipe:
                    pipe.xadd("s", {"n": value})
                    if self._waits:
                        pipe.wait(1, 1000)
                    replies = pipe.execute(raise_on_error=False)
            except (redis.RedisError, OSError):
                time.sleep(0.02)
                continue
            if isinstance(replies[0], bytes):
                self.acknowledged.append(value)
                self.ids.append(replies[0])
                if self._waits and isinstance(replies[1], int) and replies[1] >= 1:
                    self.promised.append(value)
                now_s = time.monotonic()
                self.longest_s = max(self.longest_s, now_s - last_s)
                last_s = now_s
            else:  # such as READONLY: ask anew where the master is
                client.connection_pool.disconnect()
                time.sleep(0.02)

    def stop(self) -> Self:
        self._stopping.set()
        self.join()
        return self


def lost(values: list[bytes], server: Process) -> list[bytes]:
    """Return those of the values that no entry of the stream ``s`` has."""
    with contextlib.closing(redis.Redis(port=server.port, socket_timeout=60)) as client:
        entries = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange("s"))
    there = {fields[b"n"] for _, fields in entries}
    return [value for value in values if value not in there]


@contextmanager
def watched_pair() -> Iterator[tuple[RedisProcess, RedisProcess, int]]:
    """Master, replica and the port of one sentinel; all are real."""
    program = judges.program_of("redis-8.0")
    with RedisProcess(program=program) as master, RedisProcess(program=program) as replica:
        replica.call("REPLICAOF", HOST, str(master.port))
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
        with watched((master, replica), [program], down_after_ms=1000, timeout_ms=5000) as those:
            yield master, replica, those.sentinels[0].port
