"""A region finds out, while it runs, that another one knows more of it than its files do."""

from __future__ import annotations

import os

import pytest

from support.client import WireError
from support.mesh import Mesh, RegionProcess, wait_until


def is_writable(region: RegionProcess) -> bool:
    return region.info("activeactive")["aa_writable"] == "1"


def start_on_an_earlier_state(mesh: Mesh) -> list[bytes]:
    """Region 1 runs on files that end too early, and has nobody to ask. Returns: all entries."""
    one, two = mesh[1], mesh[2]
    ids = [one.xadd("s") for _ in range(3)]
    (file,) = (one.directory / "appendonlydir").glob("*.incr.aof")
    size = file.stat().st_size
    ids += [one.xadd("s") for _ in range(2)]
    mesh.sync()
    one.kill()
    os.truncate(file, size)
    options = one.options
    one.options = (*options, "--aa-peers", "")
    one.start_again()
    one.options = options
    assert "1.0: its epoch goes on" in one.log()
    assert one.ids("s") == ids[:3]
    assert two.ids("s") == ids
    return ids


def test_it_begins_another_epoch_and_catches_up(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    ids = start_on_an_earlier_state(two_regions)
    two.xadd("other")
    one.call("CONFIG", "SET", "aa-peers", two_regions.peers_of(1, (2,)))
    one.wait_for_log("others know more of it than its files")
    wait_until(lambda: is_writable(one), one)
    assert one.ids("s") == ids
    ids.append(one.xadd("s"))
    two_regions.sync()
    assert one.ids("s") == two.ids("s") == ids
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
    info = one.info("activeactive")
    assert int(info["aa_epoch"]) > 0
    assert info["aa_generation"] == "1"  # an ID of the lost end is not made again
    one.kill()
    one.start_again()
    assert is_writable(one)
    assert one.info("activeactive")["aa_epoch"] == info["aa_epoch"]


def test_a_kill_on_the_way_changes_nothing(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    ids = start_on_an_earlier_state(two_regions)
    two.call("AA", "PAUSE", "ALL")
    one.call("CONFIG", "SET", "aa-peers", two_regions.peers_of(1, (2,)))
    one.wait_for_log("others know more of it than its files")
    one.kill()
    one.start_again()
    one.wait_until_writable()
    two_regions.resume()
    ids.append(one.xadd("s"))
    two_regions.sync()
    assert one.ids("s") == two.ids("s") == ids


def test_one_that_has_written_meanwhile_stops(two_regions: Mesh) -> None:
    """Its record and one that the other has of it have the same number."""
    one = two_regions[1]
    start_on_an_earlier_state(two_regions)
    one.xadd("s")
    one.call("CONFIG", "SET", "aa-peers", two_regions.peers_of(1, (2,)))
    wait_until(lambda: not is_writable(one), one)
    with pytest.raises(WireError, match="AATWIN another server is this region"):
        one.xadd("s")
    assert "has written something else" in one.log()
