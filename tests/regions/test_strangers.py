"""Regions that have nothing to do with each other, or are not what they seem, with processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support import clock
from support.client import RawClient
from support.faults import Rule
from support.faulty_mesh import FaultyMesh, forget_boot
from support.mesh import Mesh, RegionProcess, wait_until
from support.process import claim_port


@contextmanager
def another(number: int, mesh: Mesh, *options: str) -> Iterator[RegionProcess]:
    """One more server, which is to be started; it calls region 2 of the mesh."""
    port, claim = claim_port()
    region = RegionProcess(number, port, "--aa-peers", f"2 127.0.0.1 {mesh[2].aa_port}", *options)
    try:
        yield region
        region.check_log()
    finally:
        region.discard()
        claim.close()


def problem(region: RegionProcess, number: int) -> str:
    """Return why a region has left another one alone."""
    return str(region.peer(number)[b"problem"])


def refusal(region: RegionProcess) -> bytes:
    """Return what a write is answered."""
    with region.client() as client:
        return client.call("XADD", "s", "*", "f", "v")


def is_writable(region: RegionProcess) -> bool:
    return region.info("activeactive")["aa_writable"] == "1"


def test_another_database(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    added = one.xadd("s")
    with another(3, two_regions, "--aa-database", "another") as stranger:
        stranger.start()
        wait_until(lambda: "AADATABASE" in problem(stranger, 2), stranger)
        with stranger.client() as client:
            assert client.call("XADD", "s", "*", "f", "v").startswith(b"-AASYNCING")
    two.sync()
    assert two.ids("s") == [added]
    assert "3" not in two.info("activeactive")["aa_members"].split(",")


@pytest.mark.parametrize("version", [2, 99])
def test_another_version(two_regions: Mesh, version: int) -> None:
    with RawClient(two_regions[2].aa_port) as client:
        words = ("AA", "HELLO", version, "default", 3, 0, 0, "-", "strict", "-")
        assert client.call(*words).startswith(b"-AAVERSION")
        assert client.call("AA", "PULL", 1000).startswith(b"-")


def test_a_copy_of_a_folder_beside_the_original(two_regions: Mesh) -> None:
    """The copy may not write for long, and what it wrote comes to nobody."""
    one, two = two_regions[1], two_regions[2]
    one.xadd("s")
    two_regions.sync()
    with another(1, two_regions) as twin:
        one.kill()
        shutil.copytree(one.directory / "appendonlydir", twin.directory / "appendonlydir")
        one.start_again()
        one.wait_until_writable()
        two.wait_for_peer(1, b"up")
        wait_until(lambda: two.info("activeactive")["aa_callers"] == "1", two)
        twin.start()
        assert not is_writable(twin)
        assert refusal(twin)[:7] == b"-AATWIN"
        assert "Another server is this region" in twin.log()
    assert is_writable(one)
    for _ in range(10):
        one.xadd("s")
        two.xadd("s")
    two_regions.sync()
    assert len(one.ids("s")) == 21
    assert one.ids("s") == two.ids("s")


def test_a_copy_whose_original_is_gone_goes_on(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    copy = one.directory / "copy"
    first = one.xadd("s")
    two_regions.sync()
    one.kill()
    shutil.copytree(one.directory / "appendonlydir", copy)
    one.start_again()
    one.wait_until_writable()
    later = one.xadd("s")
    two_regions.sync()
    one.kill()
    shutil.rmtree(one.directory / "appendonlydir")
    shutil.copytree(copy, one.directory / "appendonlydir")
    one.start_again()
    one.wait_until_writable()
    assert one.ids("s") == [first, later]
    last = one.xadd("s")
    two_regions.sync()
    assert one.ids("s") == two.ids("s") == [first, later, last]
    assert one.info("activeactive")["aa_generation"] == "1"


@pytest.mark.parametrize("part", [0, 7, 60])
def test_a_region_that_is_killed_within_its_first_start(part: int) -> None:
    """It has written who it is, or a part of that, and no manifest yet."""
    with FaultyMesh(2, "--aa-start-wait-ms", "300") as mesh:
        one = mesh.faulty(1)
        one.lose_disk()
        if part:
            one.play(Rule("write", ".incr.aof", part=part, kill=True))
        else:
            one.play(Rule("rename", "manifest", kill=True))
        one.spawn_again()
        one.wait()
        assert list(one.files.glob("*.incr.aof"))
        assert not (one.files / "appendonly.aof.manifest").exists()
        one.play()
        one.start_again()
        one.wait_until_writable()
        added = one.xadd("s")
        mesh.sync()
        assert mesh[2].ids("s") == [added]


def test_who_knows_more_than_a_region_that_lost_its_tail_goes_on() -> None:
    with FaultyMesh(2, "--aa-start-wait-ms", "1500") as mesh:
        one, two = mesh.faulty(1), mesh.faulty(2)
        first = one.xadd("s")
        one.kill()
        one.start_again()  # what was loaded is on the disk
        one.wait_until_writable()
        one.play(Rule("fdatasync", delay_s=30.0))
        more = [one.xadd("s") for _ in range(3)]
        two.sync()
        mesh.proxies[1, 2].cut()  # so that it does not learn at once what the other one knows
        one.kill()
        one.play()
        one.disk.cut_power()
        forget_boot(next(one.files.glob("*.incr.aof")))
        one.spawn_again()
        two.wait_for_log("AAAHEAD")
        one.wait_until_ready()
        mesh.heal()
        mesh.sync()
        assert one.ids("s") == two.ids("s") == [first, *more]
        assert is_writable(one)
        assert is_writable(two)
        one.check_log()
        two.check_log()


@pytest.mark.skipif(not clock.can_be_set(), reason="needs a settable clock")
def test_a_deadline_that_was_put_off_meanwhile_removes_nothing() -> None:
    with (
        clock.Clock() as first,
        clock.Clock() as second,
        Mesh(2, environments=[first.environment, second.environment]) as mesh,
    ):
        one, two = mesh[1], mesh[2]
        mesh.partition({1})
        added = one.xadd("s")
        one.call("PEXPIRE", "s", 1000)
        with one.client() as client:
            for _ in range(40):
                client.pipeline(*[("XADD", "other", "*", "f", "v")] * 500)
        one.call("PERSIST", "s")
        for each in (first, second):
            each.advance(60_000)
        mesh.heal()
        wait_until(lambda: two.call("XLEN", "other") == 20_000, two)
        mesh.sync()
        assert one.ids("s") == two.ids("s") == [added]


def test_what_is_read_as_stable_is_never_late(two_regions: Mesh) -> None:
    """A reader of stable IDs gets every entry, in order, though links are cut meanwhile."""
    one, two = two_regions[1], two_regions[2]
    read: list[bytes] = []

    def read_on() -> None:
        last = read[-1] if read else b"0"
        with one.client() as client:
            reply = client.call_parsed("XREAD", "STABLE", "STREAMS", "s", last)
        if isinstance(reply, list):
            read.extend([entry[0] for entry in reply[0][1]])

    def read_all(count: int) -> bool:
        read_on()
        return len(read) >= count

    ids: list[bytes] = []
    for round_number in range(1, 4):
        ids += [region.xadd("s") for _ in range(10) for region in (one, two)]
        wait_until(lambda: read_all(20 * (2 * round_number - 1)), one)  # noqa: B023
        two_regions.partition({1})
        ids += [region.xadd("s") for _ in range(10) for region in (one, two)]
        before = len(read)
        read_on()
        assert len(read) == before  # the other region may have added something
        two_regions.heal()
        wait_until(lambda: read_all(40 * round_number), one)  # noqa: B023
    two_regions.sync()
    assert read == one.ids("s") == two.ids("s")
    assert sorted(read) == sorted(ids)


def test_a_life_that_took_the_same_epoch_is_known_after_a_restart() -> None:
    """A disk is thought lost and put back: its life and the one meanwhile counted alike."""
    with Mesh(2, "--aa-start-wait-ms", "2000") as mesh:
        one, two = mesh[1], mesh[2]
        wait_until(lambda: b"MET" in one.aof(), one)
        kept = one.xadd("s")
        mesh.partition({1})
        first = [two.xadd("s") for _ in range(5)]
        two.kill()
        disk, aside = two.directory / "appendonlydir", two.directory / "aside"
        disk.rename(aside)
        one.kill()
        one.start_again()
        mesh.heal()
        two.start_again()
        two.wait_until_writable()
        meanwhile = [two.xadd("s") for _ in range(3)]
        mesh.sync()
        for region in (one, two):
            region.kill()
        shutil.rmtree(disk)
        aside.rename(disk)  # the very same files, so they do not look like a copy
        one.start_again()
        two.start_again()
        two.wait_until_writable()
        mesh.wait_until_level()
        ids = one.ids("s")
        assert ids == two.ids("s")
        assert set(ids) == {kept, *first, *meanwhile}
        assert len(set(ids)) == len(ids)
        assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
