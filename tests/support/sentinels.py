"""A master and a replica of real servers, and a sentinel that looks after them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from support import judges
from support.process import RedisProcess
from support.waiting import wait_until


class Sentinel(RedisProcess):
    """The same program, as a sentinel."""

    name = "sentinel"

    def command(self) -> list[str]:
        return [self._program]

    def spawn(self) -> Self:
        self.options = ("--sentinel",)
        return super().spawn()


@contextmanager
def watched_pair() -> Iterator[tuple[RedisProcess, RedisProcess, int]]:
    """Master, replica and the sentinel's port; the master is called ``mine``."""
    program = judges.program_of("redis-8.0")
    with RedisProcess(program=program) as master, RedisProcess(program=program) as replica:
        replica.call("REPLICAOF", "127.0.0.1", str(master.port))
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
        config = (
            f"sentinel monitor mine 127.0.0.1 {master.port} 1\n"
            "sentinel down-after-milliseconds mine 1000\nsentinel failover-timeout mine 5000\n"
        )
        with Sentinel(program=program, config=config) as sentinel:
            wait_until(lambda: _knows_replica(sentinel))
            yield master, replica, sentinel.port


def _knows_replica(sentinel: Sentinel) -> bool:
    text = sentinel.call("INFO", "sentinel")
    assert isinstance(text, bytes)
    return b"slaves=1" in text
