"""Who takes part: a region that was forgotten does not, until it comes back as a new one."""

from __future__ import annotations

import shutil

import pytest

from headrace.regions.knowledge.region import Region
from headrace.regions.knowledge.stability import Beat, stable_numbers
from support.client import RawClient
from support.mesh import Mesh, RegionProcess, wait_until


def members(region: RegionProcess) -> str:
    return region.info("activeactive")["aa_members"]


def forget_third(mesh: Mesh) -> bytes:
    """Let region 3 write an entry and die, and the others forget it; the ID of the entry."""
    one, two, three = (mesh[number] for number in (1, 2, 3))
    kept = three.xadd("s")
    mesh.wait_until_level()
    three.kill()
    one.call("AA", "FORGET", "3")
    for region in (one, two):
        wait_until(lambda region=region: members(region) == "1,2", region)
    return kept


def garbage(region: RegionProcess) -> int:
    return int(region.info("activeactive")["aa_garbage_keys"])


def test_a_forgotten_region_takes_part_again_in_a_later_epoch() -> None:
    region = Region(1)
    region.peers = {2, 3}
    region.numbers = {b"3.5": 7}
    region.forgotten = {3: 5}
    assert region.members() == [1, 2]
    region.meet(3, 5)
    assert region.members() == [1, 2]
    region.meet(3, 6)
    assert region.members() == [1, 2, 3]
    region.met.clear()
    region.numbers[b"3.6"] = 1
    assert region.members() == [1, 2, 3]
    del region.numbers[b"3.6"]
    assert region.members() == [1, 2]
    region.nonces[b"3.7"] = b"one.5"  # it goes on with the files that it had
    assert region.members() == [1, 2]
    region.nonces[b"3.8"] = b"another.6"  # it was new in epoch 6, and has written nothing yet
    assert region.members() == [1, 2, 3]
    region.forget(3, 8)
    assert region.members() == [1, 2]
    region.forgotten[3] = 5
    region.forgotten[1] = 0  # this region itself, in an earlier life
    region.begin_epoch(9, 0, b"nonce")
    assert region.members() == [1, 2, 3]


def test_what_a_region_had_on_its_disk_before_it_was_forgotten_says_nothing() -> None:
    region = Region(1)
    region.note_beat(2, Beat(5, {b"1.0": 3}, 0))
    assert 2 in region.beats
    region.forget(2, 5)
    assert 2 not in region.beats
    region.note_beat(2, Beat(5, {b"1.0": 4}, 0))  # it may come after that
    assert 2 not in region.beats
    region.note_beat(2, Beat(6, {b"1.0": 4}, 0))
    region.forget(2, 4)
    assert region.beats[2].epoch == 6
    assert region.forgotten == {2: 5}


def test_a_region_that_is_left_alone_remembers_nothing(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    one.xadd("s")
    one.call("XGROUP", "CREATE", "s", "g", "0")
    two_regions.wait_until_level()
    two.kill()
    one.call("XGROUP", "DESTROY", "s", "g")
    one.call("DEL", "s")
    assert garbage(one) == 1
    one.call("AA", "FORGET", "2")
    wait_until(lambda: garbage(one) == 0, one)
    one.xadd("t")
    one.call("DEL", "t")
    wait_until(lambda: garbage(one) == 0, one)


def test_what_a_member_has_of_a_forgotten_region_is_waited_for() -> None:
    """It may pass on what was written before a removal was known, so that is not stable here."""
    removal = {b"1.0": 4, b"2.0": 2}
    beats = {1: Beat(0, {**removal, b"3.0": 7}, 0), 2: Beat(0, removal, 0)}
    known = {b"1.0": 5, b"2.0": 3}
    assert stable_numbers(beats, [1, 2], known, {}) == {}
    known[b"3.0"] = 7
    assert stable_numbers(beats, [1, 2], known, {}) == removal
    assert stable_numbers(beats, [1, 2], known, {b"1.0": 4}) == removal
    assert stable_numbers(beats, [1, 2], known, {b"1.0": 5}) == {}  # it may be given more of it


def test_a_region_that_knows_of_a_forgotten_one_says_so_once() -> None:
    region = Region(1)
    region.peers = {2}
    region.synced = {b"1.0": 3}
    assert not region.wants_beat(False)
    region.partings = {b"2.0": 9}
    assert not region.wants_beat(False)
    region.synced[b"2.0"] = 9
    assert region.wants_beat(False)
    region.beats[1] = Beat(0, {b"2.0": 9}, 0)
    assert not region.wants_beat(False)


def test_a_forgotten_region_that_starts_alone_is_refused_when_it_meets_others(
    three_regions: Mesh,
) -> None:
    """Nobody answers when it starts, so it begins another epoch: it is no new region for that."""
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    kept = forget_third(three_regions)
    three_regions.partition({3}, {1, 2})
    three.start_again()
    assert int(three.info("activeactive")["aa_epoch"]) > 0
    lost = three.xadd("s")
    three_regions.heal()
    wait_until(lambda: three.info("activeactive")["aa_writable"] == "0", three)
    with three.client() as client:
        assert client.call("XADD", "s", "*", "f", "v").startswith(b"-AAFORGOTTEN ")
    assert three.ids("s") == [kept, lost]
    added = two.xadd("s")
    wait_until(lambda: one.ids("s") == [kept, added], one)
    for region in (one, two):
        assert members(region) == "1,2"
        assert lost not in region.ids("s")


def test_a_region_is_forgotten_that_has_written_nothing_since_its_disk_was_lost(
    three_regions: Mesh,
) -> None:
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    three.xadd("s")
    three_regions.wait_until_level()
    three.kill()
    shutil.rmtree(three.directory / "appendonlydir")
    three.start_again()
    three.wait_until_writable()
    three_regions.wait_until_level()
    three.kill()
    one.call("AA", "FORGET", "3")
    for region in (one, two):
        wait_until(lambda region=region: members(region) == "1,2", region)


def test_a_region_that_was_forgotten_comes_back_as_a_new_one(three_regions: Mesh) -> None:
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    kept = forget_third(three_regions)
    shutil.rmtree(three.directory / "appendonlydir")
    three.start_again()
    wait_until(lambda: three.info("activeactive")["aa_writable"] == "1", three)
    added = three.xadd("s")
    assert three.ids("s") == [kept, added]
    for region in (one, two, three):
        wait_until(lambda region=region: members(region) == "1,2,3", region)
        wait_until(lambda region=region: region.ids("s") == [kept, added], region)
    # Nothing is forgotten before it has heard of it, and then it is.
    three_regions.partition({3}, {1, 2})
    one.call("DEL", "s")
    wait_until(lambda: two.call("EXISTS", "s") == 0, two)
    assert garbage(one) == 1
    three_regions.heal()
    for region in (one, two, three):
        wait_until(lambda region=region: garbage(region) == 0, region)


def test_a_region_that_came_back_is_known_by_its_greeting_alone(two_regions: Mesh) -> None:
    """What it has from then on it counts on, also if this region is killed before it writes."""
    one, two = two_regions[1], two_regions[2]
    one.xadd("s")
    two_regions.wait_until_level()
    two.kill()
    one.call("AA", "FORGET", "2")
    wait_until(lambda: members(one) == "1", one)
    database = one.info("activeactive")["aa_database"]
    with RawClient(one.aa_port) as client:
        hello = ("AA", "HELLO", 1, database, 2, 7, 0, "twin.7", "strict", "-")
        assert client.call(*hello).startswith(b"*")
    one.kill()
    one.start_again()
    assert members(one) == "1,2"


@pytest.mark.parametrize("hears_of_it", [True, False])
def test_a_region_that_runs_and_is_forgotten_takes_no_writes(
    three_regions: Mesh, hears_of_it: bool
) -> None:
    """What it would write came to nobody: whether the record reaches it, or an answer alone."""
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    kept = three.xadd("s")
    three_regions.wait_until_level()
    if not hears_of_it:
        three_regions.partition({3}, {1, 2})
    one.call("AA", "FORGET", "3")
    wait_until(lambda: members(two) == "1,2", two)
    three_regions.heal()
    wait_until(lambda: three.info("activeactive")["aa_writable"] == "0", three)
    with three.client() as client:
        assert client.call("XADD", "s", "*", "f", "v").startswith(b"-AAFORGOTTEN ")
    three.wait_for_log("This region has been forgotten")
    assert three.ids("s") == [kept]
    added = one.xadd("s")
    wait_until(lambda: two.ids("s") == [kept, added], two)
    three.stop()
    shutil.rmtree(three.directory / "appendonlydir")
    three.start_again()
    three.wait_until_writable()
    assert three.ids("s") == [kept, added]
    last = three.xadd("s")
    wait_until(lambda: one.ids("s") == [kept, added, last], one)


def test_a_region_starts_beside_one_that_it_has_forgotten_and_that_comes_back() -> None:
    """Both ask at the same time: the other one still seems to be who was forgotten."""
    with Mesh(3) as mesh:
        one, two, three = (mesh[number] for number in (1, 2, 3))
        kept = two.xadd("s")
        mesh.wait_until_level()
        three.kill()  # so that the others wait for it when they start
        one.kill()
        two.call("AA", "FORGET", "1")
        shutil.rmtree(one.directory / "appendonlydir")
        two.kill()
        one.spawn_again()
        wait_until(lambda: is_asking(one), one)
        two.start_again()
        assert two.ids("s") == [kept]
        three.start_again()
        one.wait_until_ready()
        one.wait_until_writable()
        wait_until(lambda: one.ids("s") == [kept], one)


def is_asking(region: RegionProcess) -> bool:
    """Return whether it is there for other regions, of whatever version."""
    try:
        with RawClient(region.aa_port) as client:
            words = ("AA", "HELLO", 99, "default", 2, 0, 0, "-", "strict", "-")
            return client.call(*words).startswith(b"-AAVERSION")
    except OSError:
        return False
