"""A region has a standby: it has all that its region has, and can be the region."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import judges
from support.client import WireError
from support.following import is_up
from support.mesh import RegionProcess, wait_until
from support.process import RedisProcess, ServerProcess, claim_port
from support.standbys import Standbys

KEYS = ("s", "gone", "idmp", "here")


@pytest.fixture
def regions() -> Iterator[Standbys]:
    with Standbys(2) as mesh:
        yield mesh
        for server in mesh.servers():
            server.check_log()


def do_some_of_all(mesh: Standbys) -> None:
    one, two = mesh.one, mesh[2]
    for region in (one, two):
        for _ in range(10):
            region.xadd("s")
        region.xadd("gone")
        region.call("XADD", "idmp", "IDMP", "producer", f"of {region.number}", "*", "f", "v")
    mesh.sync()
    if not one.call("EXISTS", "here"):
        one.call("XGROUP", "CREATE", "s", "g", "0")
        one.call("XGROUP", "CREATE", "here", "h", "$", "MKSTREAM")
    one.call("XREADGROUP", "GROUP", "g", "Alice", "COUNT", "7", "STREAMS", "s", ">")
    one.call("XACK", "s", "g", one.ids("s")[0])
    one.call("XGROUP", "CREATECONSUMER", "here", "h", "Bob")
    two.call("DEL", "gone")
    one.call("XDEL", "s", one.ids("s")[3])
    mesh.sync()


def groups_of(region: RegionProcess, key: str) -> object:
    """Return all that XINFO says and a standby knows.

    It does not count duplicates, nor is told what is stable, or when a consumer was seen.
    """
    found = region.call("XINFO", "STREAM", key, "FULL")
    assert isinstance(found, list)
    for name in (b"stable-id", b"iids-duplicates"):
        at = found.index(name)
        del found[at : at + 2]
    for group in found[-1]:
        for consumer in group[group.index(b"consumers") + 1]:
            del consumer[2:6]
    return found


def assert_same(one: RegionProcess, other: RegionProcess) -> None:
    for key in KEYS:
        assert one.call("AA", "DIGEST", key) == other.call("AA", "DIGEST", key), key
        if one.call("EXISTS", key):
            assert groups_of(one, key) == groups_of(other, key)
    assert one.call("AA", "DIGEST") == other.call("AA", "DIGEST")
    wait_until(lambda: one.call("AA", "TOKEN") == other.call("AA", "TOKEN"), one)


def test_it_has_all_that_its_region_has(regions: Standbys) -> None:
    one, other = regions.one, regions.other
    do_some_of_all(regions)
    regions.wait_until_copied()
    assert_same(one, other)
    one.call("PUBLISH", "news", "are not kept")
    regions.wait_until_copied()
    assert b"are not kept" not in other.aof()
    other.kill()
    do_some_of_all(regions)
    other.start_again()
    wait_until(lambda: is_up(other), other)
    do_some_of_all(regions)
    regions.wait_until_copied()
    assert_same(one, other)


def fail_over(mesh: Standbys) -> None:
    """Let the standby be the region, and wait until it takes writes."""
    mesh.swap()
    mesh.one.call("REPLICAOF", "NO", "ONE")
    mesh.one.wait_until_writable()


def test_it_takes_over_when_its_region_is_killed(regions: Standbys) -> None:
    """The old one comes back, is refused as a twin, and then is the standby."""
    old, two = regions.one, regions[2]
    do_some_of_all(regions)
    first = old.info("activeactive")
    ids = [old.xadd("s") for _ in range(20)]
    assert old.call("WAIT", "1", "10000") == 1
    seen = old.ids("s")
    old.kill()
    fail_over(regions)
    new = regions.one
    facts = new.info("activeactive")
    assert int(facts["aa_epoch"]) > int(first["aa_epoch"])
    assert facts["aa_generation"] == "1"
    assert new.ids("s") == seen
    ids += [new.xadd("s") for _ in range(20)]
    regions.sync()
    assert len(set(ids)) == 40
    assert set(ids) <= set(two.ids("s"))
    do_some_of_all(regions)
    old.start_again()
    assert "Another server is this region now" in old.log()
    with pytest.raises(WireError, match="AATWIN another server is this region"):
        old.xadd("s")
    two.xadd("s")
    regions.sync()
    old.call("REPLICAOF", "127.0.0.1", new.port)
    wait_until(lambda: is_up(old), old)
    regions.wait_until_copied()
    assert_same(new, old)
    assert two.call("AA", "DIGEST") == new.call("AA", "DIGEST")


def test_a_planned_failover_loses_nothing_and_asks_nobody(regions: Standbys) -> None:
    """The old one goes on as the standby, from where it stood; and then it is the region again."""
    old, new, two = regions.one, regions.other, regions[2]
    do_some_of_all(regions)
    regions.partition({1})
    ids = [old.xadd("s") for _ in range(20)]
    for _ in range(3):
        regions.one.call("FAILOVER")
        regions.swap()
        wait_until(lambda: regions.one.info("replication")["role"] == "master", regions.one)
        ids += [regions.one.xadd("s") for _ in range(20)]
        wait_until(lambda: is_up(regions.other), regions.other)
    regions.wait_until_copied()
    assert_same(old, new)
    regions.heal()
    regions.sync()
    assert set(ids) <= set(two.ids("s"))
    assert len(set(ids)) == 80
    do_some_of_all(regions)
    regions.wait_until_copied()
    assert_same(old, new)
    assert two.call("AA", "DIGEST") == new.call("AA", "DIGEST")
    assert new.log().count("Full copy from the master") == 1
    assert "Full copy from the master" not in old.log()


def test_one_that_is_behind_gets_back_what_its_region_has_sent(regions: Standbys) -> None:
    """It takes no writes before that, however long the others cannot be asked."""
    old, new, two = regions.one, regions.other, regions[2]
    do_some_of_all(regions)
    regions.wait_until_copied()
    regions.between.silence()
    ids = [old.xadd("s") for _ in range(20)]
    old.call("DEL", "idmp")
    regions.sync()
    two.xadd("s")
    seen = two.ids("s")
    regions.partition({1})
    for link in regions.to_other.values():
        link.cut()
    old.kill()
    regions.swap()
    new.call("REPLICAOF", "NO", "ONE")
    with pytest.raises(WireError, match="AASTART"):
        new.xadd("s")
    assert new.info("activeactive")["aa_writable"] == "0"
    assert not set(ids) & set(new.ids("s"))
    regions.heal()
    for link in regions.to_other.values():
        link.heal()
    new.wait_until_writable()
    assert new.ids("s") == seen
    assert new.call("EXISTS", "idmp") == 0
    assert new.xadd("s") not in seen
    do_some_of_all(regions)
    assert two.call("AA", "DIGEST") == new.call("AA", "DIGEST")


def test_of_two_at_once_the_one_that_was_told_to_lead_goes_on(regions: Standbys) -> None:
    old, new, two = regions.one, regions.other, regions[2]
    do_some_of_all(regions)
    regions.wait_until_copied()
    old.call("CLIENT", "KILL", "TYPE", "replica")
    new.call("REPLICAOF", "NO", "ONE")
    regions.swap()
    new.wait_until_writable()
    ids = [new.xadd("s") for _ in range(20)]
    old.wait_for_log("another server is that region, as 1.")
    old.wait_for_log("writes are refused")
    with pytest.raises(WireError, match="AATWIN another server is this region"):
        old.xadd("s")
    regions.sync()
    assert set(ids) <= set(two.ids("s"))
    old.call("REPLICAOF", "127.0.0.1", new.port)
    wait_until(lambda: is_up(old), old)
    do_some_of_all(regions)
    regions.wait_until_copied()
    assert_same(new, old)
    assert two.call("AA", "DIGEST") == new.call("AA", "DIGEST")


def test_nobody_writes_to_a_standby(regions: Standbys) -> None:
    other = regions.other
    other.call("CONFIG", "SET", "replica-read-only", "no")
    other.call("CONFIG", "SET", "aa-other-keys", "local")
    for words in (
        ("XADD", "s", "*", "f", "v"),
        ("SET", "plain", "v"),
        ("AA", "FORGET", "2"),
        ("AA", "JOIN", "3"),
        ("AA", "SYNC"),
        ("AA", "PAUSE", "ALL"),
        ("AA", "RESUME", "2"),
    ):
        with pytest.raises(WireError, match="READONLY"):
            other.call(*words)
    assert other.info("activeactive")["aa_writable"] == "0"
    assert other.call("CONFIG", "GET", "replicaof") == [
        b"replicaof",
        b"127.0.0.1 %d" % regions.between.port,
    ]


REFUSED = "the standby of a region has its aa-region-id and aa-database"


def test_who_is_no_standby_of_a_region_is_refused() -> None:
    port, claim = claim_port()
    with (
        RegionProcess(1, port) as region,
        ServerProcess() as alone,
        RegionProcess(2, 0, "--aa-peers", "") as second,
        RegionProcess(1, 0, "--aa-database", "orders") as orders,
    ):
        for master, replica, why in (
            (region, alone, "The master is region 1 of default and the replica none"),
            (alone, region, "The master is no region and the replica region 1 of default"),
            (region, second, "region 1 of default and the replica region 2 of default"),
            (region, orders, "region 1 of default and the replica region 1 of orders"),
        ):
            replica.call("XADD", "kept", "*", "f", "v")
            replica.call("REPLICAOF", "127.0.0.1", master.port)
            replica.wait_for_log(f"{why}: {REFUSED}")
            assert replica.call("XLEN", "kept") == 1
            replica.call("REPLICAOF", "NO", "ONE")
    claim.close()


def test_a_redis_and_a_region_do_not_copy_each_other() -> None:
    program = judges.program_of("redis-8.10")
    with RegionProcess(1, 0, "--aa-peers", "") as region, RedisProcess(program=program) as redis:
        region.call("REPLICAOF", "127.0.0.1", redis.port)
        region.wait_for_log("Unrecognized REPLCONF option: region")
        region.call("REPLICAOF", "NO", "ONE")
        redis.call("REPLICAOF", "127.0.0.1", region.port)
        redis.wait_for_log(REFUSED)
