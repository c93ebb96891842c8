"""A region whose files are of an earlier time, for which the logs of the others begin too late."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from support.client import encode
from support.mesh import Mesh, RegionProcess, wait_until

SMALL_LOG = ("--aa-log-max-bytes", "1mb", "--aa-backlog-bytes", "64kb", "--aa-beat-ms", "50")


def fill(region: RegionProcess, key: str) -> None:
    """Add entries of some megabytes in all, and let the log begin behind them."""
    with region.client() as client:
        client.send(encode("XADD", key, "*", "f", os.urandom(50_000)) * 60)
        for _ in range(60):
            assert isinstance(client.read_parsed(), bytes)


def write_anew(region: RegionProcess) -> None:
    wait_until(lambda: region.info("persistence")["aof_rewrite_in_progress"] == "0", region)
    region.call("BGREWRITEAOF")
    wait_until(lambda: region.info("persistence")["aof_rewrite_in_progress"] == "0", region)


def refuses(region: RegionProcess) -> str:
    return region.info("activeactive")["aa_not_writable_because"].partition(" ")[0]


def put_back(region: RegionProcess, backup: Path) -> None:
    shutil.rmtree(region.directory / "appendonlydir")
    shutil.copytree(backup, region.directory / "appendonlydir")


def forgotten(region: RegionProcess) -> bool:
    found = region.info("activeactive")
    return found["aa_graves"] == found["aa_garbage_keys"] == "0"


def test_what_was_deleted_and_forgotten_does_not_come_back(tmp_path: Path) -> None:
    """It would, if the old state were joined: nobody remembers that it was deleted."""
    with Mesh(2, *SMALL_LOG) as mesh:
        one, two = mesh[1], mesh[2]
        for _ in range(3):
            two.xadd("gone")
            one.xadd("gone")
        two.xadd("kept")
        mesh.sync()
        one.call("XGROUP", "CREATE", "kept", "g", "0")
        one.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "kept", ">")
        one.call("XGROUP", "CREATE", "kept", "dies", "0")
        mesh.sync()
        one.stop()
        shutil.copytree(one.directory / "appendonlydir", tmp_path / "backup")
        one.start_again()
        one.wait_until_writable()
        two.call("DEL", "gone")
        two.call("XGROUP", "DESTROY", "kept", "dies")
        mine = one.xadd("new")
        mesh.sync()
        for region in (one, two):
            wait_until(lambda region=region: forgotten(region), region)
        fill(two, "t")
        mesh.sync()
        one.stop()
        fill(two, "t")
        write_anew(two)
        put_back(one, tmp_path / "backup")
        one.start_again()
        assert len(one.ids("gone")) == 6
        wait_until(lambda: "its copy has replaced what was here" in one.log(), one)
        one.wait_until_writable()
        mesh.wait_until_level()
        assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
        assert one.call("EXISTS", "gone") == two.call("EXISTS", "gone") == 0
        assert one.ids("new") == [mine]
        pending = one.call("XPENDING", "kept", "g")
        assert isinstance(pending, list)
        assert pending[0] == 1  # that is local, and stays
        groups = one.call("XINFO", "GROUPS", "kept")
        assert isinstance(groups, list)
        assert len(groups) == 1
        added = one.xadd("gone")
        mesh.sync()
        assert one.ids("gone") == two.ids("gone") == [added]
        before = one.call("AA", "DIGEST")
        one.restart()
        one.wait_until_writable()
        assert one.call("AA", "DIGEST") == before
        assert one.ids("gone") == [added]


def test_it_is_killed_before_the_files_were_written_anew(tmp_path: Path) -> None:
    with Mesh(2, *SMALL_LOG) as mesh:
        one, two = mesh[1], mesh[2]
        two.xadd("gone")
        one.xadd("gone")
        mesh.sync()
        one.stop()
        shutil.copytree(one.directory / "appendonlydir", tmp_path / "backup")
        one.start_again()
        one.wait_until_writable()
        two.call("DEL", "gone")
        mesh.sync()
        for region in (one, two):
            wait_until(lambda region=region: forgotten(region), region)
        one.stop()
        fill(two, "t")
        write_anew(two)
        put_back(one, tmp_path / "backup")
        slow = list(one.options)
        one.options = (*slow, "--rdb-key-save-delay", "5000000")
        one.start_again()
        wait_until(lambda: "rewriting started" in one.log(), one)
        assert refuses(one) == "AASYNCING"
        one.kill()
        one.options = tuple(slow)
        one.start_again()
        one.wait_until_writable()
        mesh.wait_until_level()
        assert one.call("EXISTS", "gone") == two.call("EXISTS", "gone") == 0
        assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
        assert one.call("XLEN", "t") == 60


def test_what_only_its_own_log_has_is_applied_to_the_copy(tmp_path: Path) -> None:
    """A copy replaces what is here, and does not know what the backup has of regions 1 and 3."""
    with Mesh(3, *SMALL_LOG, "--aa-start-wait-ms", "1000") as mesh:
        one, two, three = mesh[1], mesh[2], mesh[3]
        shared = [one.xadd("s") for _ in range(3)]
        one.call("XGROUP", "CREATE", "s", "g", "0")
        one.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
        mesh.sync()
        mesh.partition({2})
        mine = [one.xadd("s") for _ in range(2)]
        theirs = three.xadd("s")
        one.call("XDEL", "s", shared[0])
        one.call("XACK", "s", "g", shared[1])
        one.call("XGROUP", "CREATE", "s", "late", "0")
        with one.client() as client:
            client.call("MULTI")
            client.call("XADD", "t", "*", "f", "v")
            client.call("XTRIM", "s", "MAXLEN", "4")
            client.call("EXEC")
        one.call("PEXPIREAT", "t", "4000000000000")
        wait_until(lambda: len(one.ids("s")) == 4, one)
        left = one.ids("s")
        assert {*left} <= {*shared[1:], *mine, theirs}
        one.kill()
        three.kill()
        shutil.copytree(one.directory / "appendonlydir", tmp_path / "backup")
        fill(two, "t2")
        two.xadd("s")
        write_anew(two)
        put_back(one, tmp_path / "backup")
        one.start_again()
        assert refuses(one) == "AASTART"
        mesh.heal()
        wait_until(lambda: "its copy has replaced what was here" in one.log(), one)
        assert [entry for entry in one.ids("s") if entry in left] == left
        assert one.call("PEXPIRETIME", "t") == 4000000000000
        two_knows = two.ids("s")
        assert {*left} <= {*two_knows, *mine, theirs}
        three.start_again()
        for region in (one, three):
            region.wait_until_writable()
        mesh.wait_until_level()
        assert {*left} < {*one.ids("s")}
        assert shared[0] not in one.ids("s")
        digests = {region.call("AA", "DIGEST") for region in (one, two, three)}
        assert len(digests) == 1
        groups = two.call("XINFO", "GROUPS", "s")
        assert isinstance(groups, list)
        assert len(groups) == 2
        one.restart()
        one.wait_until_writable()
        assert one.call("AA", "DIGEST") in digests


def test_what_its_own_log_has_no_more_is_told(tmp_path: Path) -> None:
    with Mesh(2, *SMALL_LOG, "--aa-start-wait-ms", "1000") as mesh:
        one, two = mesh[1], mesh[2]
        kept = two.xadd("s")
        mesh.sync()
        mesh.partition({1})
        one.xadd("s")
        for _ in range(2):
            fill(one, "t")
            write_anew(one)
        wait_until(lambda: len(list((one.directory / "appendonlydir").glob("*.incr.aof"))) == 1)
        one.kill()
        shutil.copytree(one.directory / "appendonlydir", tmp_path / "backup")
        fill(two, "t2")
        write_anew(two)
        put_back(one, tmp_path / "backup")
        one.start_again()
        mesh.proxies[1, 2].heal()  # the other one takes no copy meanwhile
        wait_until(lambda: "its copy has replaced what was here" in one.log(), one)
        mesh.heal()
        assert "of 1.0 are lost, which only this region had" in one.log()
        one.wait_until_writable()
        mesh.wait_until_level()
        copies = two.info("activeactive")["aa_peer1"].partition("full_copies=")[2]
        assert copies.startswith("0,")  # there is nothing to be had
        added = one.xadd("s")
        mesh.sync()
        assert one.ids("s") == two.ids("s") == [kept, added]
        assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
