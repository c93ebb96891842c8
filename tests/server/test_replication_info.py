"""INFO replication, ROLE and CLIENT LIST beside Redis 8.10: the same names, in the same order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import Factory

from support.following import AT_ONCE, is_up
from support.process import Process, RedisProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.since(8, 10)]

Pair = tuple[Process, Process]  # a master and its replica


@pytest.fixture
def pairs(fresh_server: Factory, fresh_redis: Factory) -> tuple[Pair, Pair]:
    """Ours, and real ones, which are no pairs yet."""
    real = fresh_redis(*AT_ONCE)
    assert isinstance(real, RedisProcess)
    if real.version < (8, 10):
        pytest.skip("it shows less")
    ours = fresh_server(*AT_ONCE), fresh_server(*AT_ONCE)
    return ours, (real, fresh_redis(*AT_ONCE))


def names(process: Process) -> list[str]:
    return list(process.info("replication"))


def both(pairs: tuple[Pair, Pair], act: Callable[[Process, Process], object]) -> None:
    """Do something to both pairs, and compare what both servers of them show."""
    for master, replica in pairs:
        act(master, replica)
    (our_master, our_replica), (real_master, real_replica) = pairs
    assert names(our_master) == names(real_master)
    assert names(our_replica) == names(real_replica)


def follow(master: Process, replica: Process) -> None:
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: is_up(replica))


def test_in_all_states(pairs: tuple[Pair, Pair]) -> None:
    both(pairs, lambda master, replica: None)
    both(pairs, lambda master, replica: replica.call("REPLICAOF", "127.0.0.1", 1))
    both(pairs, follow)
    for master, replica in pairs:
        replica.call("CONFIG", "SET", "min-replicas-to-write", 1)
        master.call("CONFIG", "SET", "min-replicas-to-write", 1)
    both(pairs, lambda master, replica: None)
    for _, replica in pairs:
        assert replica.info("replication")["min_slaves_good_slaves"] == "0"

    def part(master: Process, replica: Process) -> None:
        master.stop()
        wait_until(lambda: not is_up(replica))
        assert replica.info("replication")["master_link_down_since_seconds"] in ("0", "1")
        master.start()

    both(pairs, part)
    both(pairs, lambda master, replica: replica.call("REPLICAOF", "NO", "ONE"))


def test_while_a_copy_comes(pairs: tuple[Pair, Pair]) -> None:
    for master, replica in pairs:
        with master.client() as client:
            for number in range(3000):
                client.call("SET", number, "v" * 1000)
        master.call("CONFIG", "SET", "rdb-key-save-delay", 10_000)
        replica.call("CONFIG", "SET", "repl-rdb-channel", "no")

    def begin(master: Process, replica: Process) -> None:
        replica.call("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: "master_sync_total_bytes" in names(replica))

    both(pairs, begin)
    for _, replica in pairs:
        role = replica.call("ROLE")
        assert isinstance(role, list)
        assert role[3:] == [b"sync", -1]
