"""The files of regions as processes: what a region lacks is read from them, until all have it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.persistence.aof.manifest import Manifest, read
from headrace.regions.exchange.retention import least
from support.mesh import Mesh, RegionProcess, wait_until
from support.tools import tool


@pytest.fixture
def small_memory() -> Iterator[Mesh]:
    """Two regions that have next to nothing of the log in memory."""
    with Mesh(2, "--aa-backlog-bytes", "64kb") as mesh:
        yield mesh
        for region in mesh.regions.values():
            region.check_log()


def test_what_all_have_is_the_least_of_what_each_has() -> None:
    one = {b"1.0": 5, b"2.0": 9}
    assert least([]) == {}
    assert least([one]) == one
    assert least([one, {b"1.0": 7, b"3.0": 1}]) == {b"1.0": 5}
    assert least([{b"1.0": 7}, one, {b"1.0": 3}]) == {b"1.0": 3}
    assert least([one, {}]) == {}


def folder(region: RegionProcess) -> Path:
    return region.directory / "appendonlydir"


def manifest(region: RegionProcess) -> Manifest:
    return read(bytes(folder(region) / "appendonly.aof.manifest"))


def rewrite(region: RegionProcess) -> None:
    """Write the files anew, and wait for it."""
    base = manifest(region).base_seq
    region.call("BGREWRITEAOF")
    wait_until(lambda: manifest(region).base_seq > base, region)
    wait_until(lambda: region.info("persistence")["aof_rewrite_in_progress"] == "0", region)


@pytest.mark.parametrize("policy", ["no", "always"])
def test_a_region_syncs_whatever_the_policy_is(policy: str) -> None:
    with Mesh(2, "--appendfsync", policy, "--aa-beat-ms", "100") as mesh:
        mesh[1].xadd("s")
        mesh[1].call("DEL", "s")
        wait_until(lambda: mesh[1].info("activeactive")["aa_garbage_keys"] == "0", mesh[1])


def test_files_are_kept_until_the_others_have_them(small_memory: Mesh) -> None:
    one, two = small_memory[1], small_memory[2]
    added = [one.xadd("s")]
    wait_until(lambda: two.ids("s") == added, two)
    small_memory.partition({1}, {2})
    for _ in range(3):
        with one.client() as client:
            for _ in range(200):
                client.send_command("XADD", "s", "*", "f", "v" * 1000)
            for _ in range(200):
                found = client.read_parsed()
                assert isinstance(found, bytes)
                added.append(found)
        rewrite(one)
    kept = manifest(one).kept
    assert len(kept) >= 3
    assert kept[-1].last == {b"1.0": 601}
    assert folder(one).joinpath(kept[0].name.decode()).exists()
    small_memory.heal()
    wait_until(lambda: two.ids("s") == added, two)
    assert two.call("AA", "TOKEN") == one.call("AA", "TOKEN")
    wait_until(lambda: not manifest(one).kept, one)
    named = {file.name.decode() for file in manifest(one).incrs}
    wait_until(lambda: {path.name for path in folder(one).glob("*.incr.aof")} == named, one)


def test_what_was_kept_is_there_after_a_crash(small_memory: Mesh) -> None:
    one, two = small_memory[1], small_memory[2]
    small_memory.partition({1}, {2})
    added = [one.xadd("s") for _ in range(20)]
    rewrite(one)
    added += [one.xadd("s") for _ in range(20)]
    one.restart(crash=True)
    added += [one.xadd("s") for _ in range(20)]
    assert manifest(one).kept
    small_memory.heal()
    wait_until(lambda: two.ids("s") == added, two)
    small_memory.wait_until_level()


def test_checked_files_of_a_region_are_valid(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    one.xadd("s")
    two.xadd("t")
    two_regions.wait_until_level()
    rewrite(one)
    one.xadd("s")
    one.stop()
    checked = tool("check-aof", str(one.directory))
    assert checked.returncode == 0, checked
    assert b"records of regions up to 1.0=" in checked.stdout


@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_nothing_answered_is_lost_by_crashes(policy: str) -> None:
    """Killed again and again under load and rewrites; what was answered is in both regions."""
    with Mesh(2, "--appendfsync", policy, "--aa-backlog-bytes", "64kb") as mesh:
        one, two = mesh[1], mesh[2]
        answered: set[bytes] = set()
        for life in range(3):
            over = threading.Event()

            def load(over: threading.Event = over, life: int = life) -> None:
                with one.client() as client:
                    while not over.is_set():
                        try:
                            found = client.call_parsed("XADD", "s", "*", "life", life)
                            client.call("MULTI")
                            client.call("XADD", "s", "*", "life", "x" * 500)
                            client.call("XADD", "t", "*", "life", life)
                            pair = client.call_parsed("EXEC")
                        except OSError:
                            return
                        assert isinstance(found, bytes)
                        assert isinstance(pair, list)
                        answered.update((found, pair[0]))

            thread = threading.Thread(target=load)
            thread.start()
            wanted = len(answered) + 300
            wait_until(lambda wanted=wanted: len(answered) > wanted, one)
            if life % 2:
                one.call("BGREWRITEAOF")
            one.kill()
            over.set()
            thread.join()
            one.restart(crash=True)
        with mesh[1].client() as client:
            client.call("XADD", "end", "*", "f", "v")
        mesh.wait_until_level()
        for region in (one, two):
            ids = region.ids("s")
            assert ids == sorted(ids, key=lambda each: tuple(map(int, each.split(b"-"))))
            assert answered <= set(ids)
        assert one.ids("s") == two.ids("s")


def test_a_folder_that_vanishes_is_written_anew(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    added = [one.xadd("s")]
    wait_until(lambda: two.ids("s") == added, two)
    shutil.rmtree(folder(one))
    wait_until(lambda: (folder(one) / "appendonly.aof.manifest").exists(), one)
    wait_until(lambda: one.info("persistence")["aof_last_write_status"] == "ok", one)
    added.append(one.xadd("s"))
    wait_until(lambda: two.ids("s") == added, two)
    added.append(two.xadd("s"))
    wait_until(lambda: one.ids("s") == added, one)
    one.restart(crash=True)
    assert one.ids("s") == added
    added.append(one.xadd("s"))
    wait_until(lambda: two.ids("s") == added, two)
