"""A region finds out, while it runs, that another one knows more of it than its files do."""

from __future__ import annotations

import os
import shutil

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
    mesh.partition({1})
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
    two_regions.heal()
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
    two_regions.heal()
    one.call("CONFIG", "SET", "aa-peers", two_regions.peers_of(1, (2,)))
    one.wait_for_log("others know more of it than its files")
    one.kill()
    one.start_again()
    one.wait_until_writable()
    two_regions.resume()
    ids.append(one.xadd("s"))
    two_regions.sync()
    assert one.ids("s") == two.ids("s") == ids


def test_it_hears_of_that_when_the_other_one_calls(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    ids = start_on_an_earlier_state(two_regions)
    two_regions.heal()
    one.wait_for_log("others know more of it than its files")
    assert not is_writable(one)
    one.call("CONFIG", "SET", "aa-peers", two_regions.peers_of(1, (2,)))
    wait_until(lambda: is_writable(one), one)
    assert one.ids("s") == two.ids("s") == ids


def test_one_that_has_written_meanwhile_stops(two_regions: Mesh) -> None:
    """Its record and one that the other has of it have the same number."""
    one = two_regions[1]
    start_on_an_earlier_state(two_regions)
    one.xadd("s")
    two_regions.heal()
    one.call("CONFIG", "SET", "aa-peers", two_regions.peers_of(1, (2,)))
    wait_until(lambda: not is_writable(one), one)
    with pytest.raises(WireError, match="AATWIN another server is this region"):
        one.xadd("s")
    assert "has written something else" in one.log()


def without(mesh: Mesh, number: int, left_out: int) -> None:
    """Let a region have no address of another one, now and when it starts again."""
    region = mesh[number]
    peers = mesh.peers_of(number, [other for other in mesh.regions if other != left_out])
    options = list(region.options)
    options[options.index("--aa-peers") + 1] = peers
    region.options = tuple(options)
    region.call("CONFIG", "SET", "aa-peers", peers)


def test_who_has_no_address_here_is_asked_when_it_calls(three_regions: Mesh) -> None:
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    without(three_regions, 1, 3)
    without(three_regions, 2, 3)
    one.call("AA", "JOIN", "3")
    ids = [one.xadd("s")]
    three_regions.wait_until_level()
    one.kill()
    one.start_again()
    assert "1.0: its epoch goes on" in one.log()  # region 3 has called meanwhile
    three_regions.partition({2})
    ids.append(one.xadd("s"))
    file = max((one.directory / "appendonlydir").glob("*.incr.aof"))
    size = file.stat().st_size
    ids.append(one.xadd("s"))
    wait_until(lambda: three.ids("s") == ids, three)
    one.kill()
    os.truncate(file, size)
    three_regions.heal()
    one.start_again()  # region 2 knows less of it, and region 3 more
    assert "others know more of it than its files" in one.log()
    assert not is_writable(one)
    one.call("CONFIG", "SET", "aa-peers", three_regions.peers_of(1, (2, 3)))
    one.wait_until_writable()
    assert one.ids("s") == ids
    without(three_regions, 1, 3)
    three.kill()
    one.kill()
    one.start_again()
    assert "not all others have answered: 3 has not" in one.log()
    ids.append(one.xadd("s"))
    two.call("CONFIG", "SET", "aa-peers", three_regions.peers_of(2, (1, 3)))
    three.start_again()
    three_regions.wait_until_level()
    assert one.ids("s") == two.ids("s") == three.ids("s") == ids


def test_who_calls_a_region_that_starts_has_not_said_whom_it_has_met(two_regions: Mesh) -> None:
    """Region 1 has written nothing when its disk is lost, and is heard while it hears nobody."""
    one, two = two_regions[1], two_regions[2]
    two.wait_for_peer(1, b"up")
    one.kill()
    two_regions.proxies[1, 2].cut()
    shutil.rmtree(one.directory / "appendonlydir")
    one.start_again()
    assert "there is no data, and others may know some of it" in one.log()
    two_regions.heal()
    one.wait_until_writable()
    added = [one.xadd("s")]
    wait_until(lambda: two.ids("s") == added, two)


@pytest.mark.parametrize("writes", [False, True])
def test_an_epoch_that_another_life_has_begun_is_left(two_regions: Mesh, writes: bool) -> None:
    """Region 1 loses its disk, and begins as it did before, because it has nobody to ask."""
    one, two = two_regions[1], two_regions[2]
    two.wait_for_peer(1, b"up")
    added = [two.xadd("s")]
    one.kill()
    shutil.rmtree(one.directory / "appendonlydir")
    options = one.options
    one.options = (*options, "--aa-peers", "")
    one.start_again()
    one.options = options
    assert "1.0: all begins" in one.log()
    if writes:
        one.xadd("s")
    one.call("CONFIG", "SET", "aa-peers", two_regions.peers_of(1, (2,)))
    if writes:
        one.wait_for_log("has met another life of this region (AATWIN")
        assert not is_writable(one)
        return
    wait_until(lambda: is_writable(one) and int(one.info("activeactive")["aa_epoch"]) > 0, one)
    assert one.ids("s") == added
    added.append(one.xadd("s"))
    wait_until(lambda: two.ids("s") == added, two)
