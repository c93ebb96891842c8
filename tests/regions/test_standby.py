"""A region has a standby: it has all that its region has, and can be the region."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.following import is_up
from support.mesh import RegionProcess, wait_until
from support.standbys import Standbys

KEYS = ("s", "gone", "idmp", "here")


@pytest.fixture
def regions() -> Iterator[Standbys]:
    with Standbys(2) as mesh:
        yield mesh
        for server in mesh.servers():
            server.check_log()


def do_some_of_all(one: RegionProcess, two: RegionProcess, mesh: Standbys) -> None:
    for region in (one, two):
        for _ in range(10):
            region.xadd("s")
        region.xadd("gone")
        region.call("XADD", "idmp", "IDMP", "producer", f"of {region.number}", "*", "f", "v")
    mesh.sync()
    one.call("XGROUP", "CREATE", "s", "g", "0")
    one.call("XREADGROUP", "GROUP", "g", "Alice", "COUNT", "7", "STREAMS", "s", ">")
    one.call("XACK", "s", "g", one.ids("s")[0])
    one.call("MULTI")
    one.call("XGROUP", "CREATE", "here", "h", "$", "MKSTREAM")
    one.call("XGROUP", "CREATECONSUMER", "here", "h", "Bob")
    two.call("DEL", "gone")
    one.call("XDEL", "s", one.ids("s")[3])
    mesh.sync()


def assert_same(one: RegionProcess, other: RegionProcess) -> None:
    for key in KEYS:
        assert one.call("AA", "DIGEST", key) == other.call("AA", "DIGEST", key), key
        assert one.call("XRANGE", key, "-", "+") == other.call("XRANGE", key, "-", "+")
        assert one.call("XINFO", "STREAM", key, "FULL") == other.call("XINFO", "STREAM", key, "FULL")
    assert one.call("AA", "DIGEST") == other.call("AA", "DIGEST")
    assert one.call("AA", "TOKEN") == other.call("AA", "TOKEN")


def test_it_has_all_that_its_region_has(regions: Standbys) -> None:
    one, other, two = regions.one, regions.other, regions[2]
    do_some_of_all(one, two, regions)
    regions.wait_until_copied()
    assert_same(one, other)
    other.kill()
    do_some_of_all(one, two, regions)
    other.start_again()
    wait_until(lambda: is_up(other), other)
    do_some_of_all(one, two, regions)
    regions.wait_until_copied()
    assert_same(one, other)
