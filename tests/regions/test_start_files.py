"""Regions as processes start on files of every kind: whole, copied, a single server's, none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.client import WireError
from support.mesh import Mesh, RegionProcess, wait_until
from support.process import ServerProcess, claim_port
from support.tools import tool

pytestmark = pytest.mark.once


def active(region: RegionProcess) -> dict[str, str]:
    return region.info("activeactive")


def refusal(region: RegionProcess) -> bytes:
    """The code with which an XADD is refused; empty where it is not."""
    with region.client() as client:
        reply = client.call_parsed("XADD", "refused", "*", "f", "v")
    return reply.args[0].split(b" ")[0] if isinstance(reply, WireError) else b""


@pytest.fixture
def port() -> Iterator[int]:
    """A port for other regions."""
    found, claim = claim_port()
    with claim:
        yield found


def test_an_epoch_goes_on_where_all_confirm(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    added = [one.xadd("s") for _ in range(3)]
    two_regions.sync()
    for crash in (False, True):
        one.kill() if crash else one.stop()
        one.start_again()
        one.wait_until_writable()
        assert (active(one)["aa_epoch"], active(one)["aa_generation"]) == ("0", "0")
        added.append(one.xadd("s"))
        two.sync()
        assert two.ids("s") == one.ids("s") == added
    assert two.call("AA", "TOKEN") == b"1.0=5"


def test_another_epoch_begins_where_nobody_can_confirm(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    added = [one.xadd("s") for _ in range(3)]
    two_regions.sync()
    one.stop()
    two.stop()
    one.start_again()
    assert active(one)["aa_writable"] == "1"
    epoch = int(active(one)["aa_epoch"])
    assert epoch > 0
    assert active(one)["aa_generation"] == "0"
    added.append(one.xadd("s"))
    two.start_again()
    two.wait_until_writable()
    two_regions.sync()
    assert two.ids("s") == added
    assert f"1.{epoch}=1" in active(two)["aa_numbers"]


def test_a_copied_folder_writes_nothing_before_the_others_have_answered(
    two_regions: Mesh, tmp_path: Path
) -> None:
    one, two = two_regions[1], two_regions[2]
    early = one.xadd("s")
    two_regions.sync()
    folder = one.directory / "appendonlydir"
    one.stop()
    shutil.copytree(folder, tmp_path / "backup")
    one.start_again()
    one.wait_until_writable()
    late = one.xadd("s")
    two.call("XDEL", "s", early)
    two_regions.sync()
    assert one.ids("s") == two.ids("s") == [late]
    one.stop()
    two.stop()
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    one.start_again()
    assert one.ids("s") == [early]
    assert refusal(one) == b"AASTART"
    assert active(one)["aa_generation"] == "1"
    one.kill()  # it is not forgotten by that
    one.start_again()
    assert refusal(one) == b"AASTART"
    two.start_again()
    one.wait_until_writable()
    assert one.ids("s") == [late]
    newest = one.xadd("s")
    two.wait_until_writable()
    two_regions.sync()
    assert one.ids("s") == two.ids("s") == [late, newest]
    one.stop()
    one.start_again()
    one.wait_until_writable()
    assert active(one)["aa_generation"] == "1"
    for region in (one, two):
        region.check_log()


def test_a_region_that_is_alone_forgets_the_others(port: int, tmp_path: Path) -> None:
    options = ("--aa-peers", "2 127.0.0.1 1", "--aa-start-wait-ms", "100")
    with RegionProcess(1, port, *options) as one:
        assert refusal(one) == b"AASYNCING"
        assert one.call("XLEN", "refused") == 0
        assert one.call("AA", "FORGET", 2) == b"OK"
        one.wait_until_writable()
        assert refusal(one) == b""
        one.stop()
        one.start_again()
        assert refusal(one) == b""


def test_a_lost_disk_is_another_generation(two_regions: Mesh) -> None:
    """What was written and never sent may have had any of the IDs that come."""
    one, two = two_regions[1], two_regions[2]
    added = [one.xadd("s") for _ in range(3)]
    two_regions.sync()
    for lives in (1, 2):
        one.kill()
        shutil.rmtree(one.directory / "appendonlydir")
        one.start_again()
        one.wait_until_writable()
        assert one.ids("s") == added
        assert active(one)["aa_generation"] == str(lives)
        assert int(active(one)["aa_epoch"]) > 0
        added.append(one.xadd("s"))
        assert int(added[-1].partition(b"-")[2]) >> 20 == lives
        one.restart()
        one.wait_until_writable()
        assert active(one)["aa_generation"] == str(lives)
        two_regions.sync()
    assert two.ids("s") == added


@pytest.fixture
def single(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server without regions, that has a stream with a group."""
    folder = tmp_path / "single"
    folder.mkdir()
    options = ("--appendonly", "yes", "--save", "")
    with ServerProcess(*options, directory=folder) as server:
        for number in range(1, 6):
            server.call("XADD", "s", f"{number}-1", "f", "v")
        server.call("XGROUP", "CREATE", "s", "g", "0")
        server.call("XREADGROUP", "GROUP", "g", "c", "COUNT", "3", "STREAMS", "s", ">")
        server.call("XACK", "s", "g", "1-1")
        server.call("XADD", "gone", "1-1", "f", "v")
        server.call("DEL", "gone")
        server.call("XADD", "mortal", "1-1", "f", "v")
        server.call("EXPIRE", "mortal", "1000")
        yield server


@pytest.mark.parametrize("rewritten", [False, True])
def test_the_folder_of_a_single_server_becomes_a_regions(
    single: ServerProcess, port: int, rewritten: bool
) -> None:
    if rewritten:
        single.call("BGREWRITEAOF")
        wait_until(lambda: single.info("persistence")["aof_rewrite_in_progress"] == "0")
        wait_until(lambda: single.info("persistence")["aof_rewrites"] == "1")
    single.stop()
    with RegionProcess(1, port, directory=single.directory) as one:
        ids = [b"1-1", b"2-1", b"3-1", b"4-1", b"5-1"]
        assert one.ids("s") == ids
        assert one.call("AA", "TOKEN") == b"1.0=1"
        assert one.call("EXISTS", "gone") == 0
        assert one.call("TTL", "mortal") in range(900, 1001)
        pending = one.call("XPENDING", "s", "g", "-", "+", "9")
        assert isinstance(pending, list)
        assert [entry[0] for entry in pending] == [b"2-1", b"3-1"]
        read = one.call("XREADGROUP", "GROUP", "g", "d", "STREAMS", "s", ">")
        assert isinstance(read, list)
        assert [entry[0] for entry in read[0][1]] == [b"4-1", b"5-1"]
        added = one.xadd("s")
        for crash in (True, False):
            one.kill() if crash else one.stop()
            one.start_again()
            assert one.ids("s") == [*ids, added]
            assert one.call("AA", "TOKEN") == b"1.0=2"
            assert active(one)["aa_epoch"] == "0"
        one.check_log()


def test_other_keys_of_a_single_server_are_refused_or_stay(
    single: ServerProcess, port: int
) -> None:
    single.call("SET", "text", "v")
    single.stop()
    refused = RegionProcess(1, port, directory=single.directory).spawn()
    try:
        assert refused.wait() == 1
        assert "no streams, as text is" in refused.log()
    finally:
        refused.discard()
    options = ("--aa-other-keys", "local")
    with RegionProcess(1, port, *options, directory=single.directory) as one:
        assert one.call("GET", "text") == b"v"
        assert len(one.ids("s")) == 5
        one.stop()
        one.start_again()
        assert one.call("GET", "text") == b"v"
        assert len(one.ids("s")) == 5


def test_keys_that_a_region_has_let_in_do_not_hinder_its_start(port: int, tmp_path: Path) -> None:
    """Whether they stand in the base or behind it."""
    folder = tmp_path / "region"
    folder.mkdir()
    with RegionProcess(1, port, "--aa-other-keys", "local", directory=folder) as one:
        one.call("SET", "kept", "v")
        one.call("SET", "gone", "v")
        one.call("BGREWRITEAOF")
        wait_until(lambda: one.info("persistence")["aof_rewrites"] == "1", one)
        one.call("DEL", "gone")
        one.stop()
        with RegionProcess(1, port, directory=folder) as refusing:
            assert refusing.call("KEYS", "*") == [b"kept"]
            with refusing.client() as client:
                assert client.call("SET", "more", "v").startswith(b"-ERR a region holds streams")


@pytest.mark.parametrize("rewritten", [False, True])
def test_another_database_of_a_single_server_is_no_damage(
    single: ServerProcess, port: int, rewritten: bool
) -> None:
    with single.client() as client:
        client.call("SELECT", "1")
        client.call("XADD", "elsewhere", "1-1", "f", "v")
    if rewritten:
        single.call("BGREWRITEAOF")
        wait_until(lambda: single.info("persistence")["aof_rewrites"] == "1")
    single.stop()
    refused = RegionProcess(1, port, directory=single.directory).spawn()
    try:
        assert refused.wait() == 1
        assert "database 1, and a region has database 0 alone" in refused.log()
        assert "damaged" not in refused.log()
    finally:
        refused.discard()


def test_a_single_server_refuses_a_regions_folder(port: int, tmp_path: Path) -> None:
    folder = tmp_path / "region"
    folder.mkdir()
    with RegionProcess(1, port, directory=folder) as one:
        one.xadd("s")
        one.stop()
        server = ServerProcess("--appendonly", "yes", directory=folder).spawn()
        try:
            assert server.wait() == 1
            assert "belongs to region 1 of default" in server.log()
        finally:
            server.discard()
        one.start_again()
        one.call("BGREWRITEAOF")
        wait_until(lambda: one.info("persistence")["aof_rewrite_in_progress"] == "0")
        one.stop()
        other = RegionProcess(2, port, directory=folder).spawn()
        try:
            assert other.wait() == 1
            assert "region 1 of" in other.log()
        finally:
            other.discard()


# Back to a single server


@pytest.mark.parametrize("rewritten", [False, True])
@pytest.mark.parametrize("kind", ["resp", "redis-aof", "import"])
def test_a_regions_folder_becomes_a_single_servers(
    two_regions: Mesh, tmp_path: Path, kind: str, rewritten: bool
) -> None:
    one, two = two_regions[1], two_regions[2]
    added = []
    for number in range(1, 4):
        added.append(one.xadd("s", str(100 + number)))
        added.append(two.xadd("s", str(100 + number)))
    two_regions.sync()
    one.call("XGROUP", "CREATE", "s", "g", "0")
    one.call("XREADGROUP", "GROUP", "g", "c", "COUNT", "4", "STREAMS", "s", ">")
    one.call("XACK", "s", "g", added[0])
    one.xadd("gone")
    one.call("DEL", "gone")
    one.xadd("mortal")
    one.call("EXPIRE", "mortal", "1000")
    if rewritten:
        one.call("BGREWRITEAOF")
        wait_until(lambda: one.info("persistence")["aof_rewrite_in_progress"] == "0")
    late = one.xadd("s")
    one.stop()
    out = tmp_path / "out"
    if kind == "import":
        done = tool("import", str(one.directory), "--dir", str(out))
    else:
        done = tool("export", "--to", kind, "--from", str(one.directory), str(out))
    assert done.returncode == 0, done.stderr
    assert b"2 keys" in done.stderr
    folder = out
    if kind == "resp":
        folder = tmp_path / "single" / "appendonlydir"
        folder.mkdir(parents=True)
        shutil.copy(out, folder / "appendonly.aof.1.base.aof")
        manifest = "file appendonly.aof.1.base.aof seq 1 type b\n"
        (folder / "appendonly.aof.manifest").write_text(manifest)
        folder = tmp_path / "single"
    with ServerProcess("--appendonly", "yes", "--save", "", directory=folder) as server:
        found = server.call("XRANGE", "s", "-", "+")
        assert isinstance(found, list)
        assert [entry[0] for entry in found] == [*added, late]
        assert server.call("TTL", "mortal") in range(900, 1001)
        assert server.call("EXISTS", "gone") == 0
        pending = server.call("XPENDING", "s", "g", "-", "+", "9")
        assert isinstance(pending, list)
        assert [entry[0] for entry in pending] == added[1:4]
        read = server.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
        assert isinstance(read, list)
        assert [entry[0] for entry in read[0][1]] == [*added[4:], late]
        assert server.call("XADD", "s", "*", "f", "v")


def test_tools_say_whose_a_snapshot_is(port: int) -> None:
    with RegionProcess(1, port, "--enable-debug-command", "yes") as one:
        one.xadd("s")
        with one.client() as client:
            assert client.call("DEBUG", "RELOAD").startswith(b"-ERR")
        assert "a region loads its files when it starts" in one.log()
        assert one.call("XLEN", "s") == 1
        one.call("BGREWRITEAOF")
        wait_until(lambda: list(one.directory.glob("appendonlydir/*.base.hrs")))
        wait_until(lambda: one.info("persistence")["aof_rewrite_in_progress"] == "0")
        one.stop()
        (base,) = one.directory.glob("appendonlydir/*.base.hrs")
        done = tool("check-snapshot", str(base))
        assert done.returncode == 0
        assert b"of region 1 of default, which is 1.0\n  it knows 1.0=1\n" in done.stdout
        assert tool("check-aof", str(one.directory)).returncode == 0


def put_back(files: Path, backup: Path) -> None:
    """Put a backup in the place of files, under their inodes if these are given again."""
    inodes = {file.name: file.stat().st_ino for file in files.iterdir()}
    for file in files.iterdir():
        file.unlink()
    for copy in backup.iterdir():
        for number in range(50):
            tried = files / f"tried-{number}"
            tried.write_bytes(copy.read_bytes())
            if tried.stat().st_ino == inodes.get(copy.name):
                break
        tried.rename(files / copy.name)
        for other in files.glob("tried-*"):
            other.unlink()


def test_a_copy_that_gets_the_inode_of_what_it_replaces(two_regions: Mesh, tmp_path: Path) -> None:
    """Many file systems give it to the next file that is made."""
    one, two = two_regions[1], two_regions[2]
    files = one.directory / "appendonlydir"
    added = [one.xadd("s")]
    one.stop()
    shutil.copytree(files, tmp_path / "backup")
    one.start_again()
    one.wait_until_writable()
    added.append(one.xadd("s"))
    two_regions.sync()
    one.stop()
    two.stop()
    put_back(files, tmp_path / "backup")
    one.start_again()
    assert refusal(one) == b"AASTART"
    two.start_again()
    one.wait_until_writable()
    assert one.ids("s") == added
