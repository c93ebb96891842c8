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
