"""Disks and folders that are not as they should be: what a server says, and what it keeps."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from headrace.protocol.client import request
from support.client import RawClient
from support.faults import Rule, faulty_server
from support.process import Process
from support.small_disk import SmallDisk, small_disk
from support.waiting import wait_until

from .test_serving import FOLDER, INCR, MANIFEST, incr

pytestmark = pytest.mark.once

NOBODY = 65534
VALUE = "v" * 20_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


def refused(server: Process) -> str:
    """Return what a server says that must not start."""
    server.spawn()
    assert server.wait() == 1
    return server.log()


def folder_with(tmp_path: Path, manifest: str, **files: bytes) -> Path:
    """An append-only folder as a test needs it."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    if manifest:
        (folder / MANIFEST).write_text(manifest)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


class Writer:
    """Sets numbered keys and remembers which of them were acknowledged."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.number = 0
        self.acknowledged: set[bytes] = set()
        self.refused: set[bytes] = set()

    def write(self) -> bytes:
        """One more key; the reply."""
        self.number += 1
        key = b"key:%d" % self.number
        reply = self.client.call("SET", key, VALUE)
        if reply == b"+OK\r\n":
            self.acknowledged.add(key)
        else:
            self.refused.add(key)
        return reply

    def write_until(self, start: bytes) -> bytes:
        """Go on until a reply begins like that."""
        while self.number < 2000:
            reply = self.write()
            if reply.startswith(start):
                return reply
        raise AssertionError(f"no reply began with {start!r}")


def keys_of(server: Process) -> set[bytes]:
    keys = server.call("KEYS", "key:*")
    assert isinstance(keys, list)
    return set(keys)


def recorded_keys(server: Process) -> list[bytes]:
    """The keys that the file sets, in order, doubles included."""
    words = incr(server).read_bytes().split(b"\r\n")
    return [word for word in words if word.startswith(b"key:")]


def wait_until_written(server: Process) -> None:
    """A write that meets a sync may come some time after its reply."""
    wait_until(lambda: server.info("persistence")["aof_buffer_length"] == "0")


def test_a_full_disk_under_everysec(fresh_server: Factory, disk: SmallDisk) -> None:
    """Writes are refused until there is room; then all that was acknowledged is there, once."""
    server = fresh_server("--appendonly", "yes", directory=disk.path, check_log=False)
    with server.client() as client:
        writer = Writer(client)
        writer.write()
        disk.fill(leave_bytes=200_000)
        assert b"No space left on device" in writer.write_until(b"-MISCONF")
        assert client.call("XADD", "log", "*", "f", "v").startswith(b"-MISCONF")
        assert client.call("GET", "key:1").startswith(b"$20000")
        assert server.info("persistence")["aof_last_write_status"] == "err"
        disk.make_room()
        wait_until(lambda: writer.write() == b"+OK\r\n")
        wait_until_written(server)
    assert server.info("persistence")["aof_last_write_status"] == "ok"
    assert f"{incr(server)}, from offset" in server.log()
    assert "Make room on the disk." in server.log()
    server.restart(crash=True)
    assert keys_of(server) == writer.acknowledged
    assert sorted(recorded_keys(server)) == sorted(writer.acknowledged)
    assert not writer.acknowledged & writer.refused


def test_no_end_in_order_while_what_was_acknowledged_is_not_written(
    fresh_server: Factory, disk: SmallDisk
) -> None:
    options = ("--appendonly", "yes", "--save", "")
    server = fresh_server(*options, directory=disk.path, check_log=False)
    with server.client() as client:
        writer = Writer(client)
        disk.fill(leave_bytes=200_000)
        writer.write_until(b"-MISCONF")
        assert client.call("SHUTDOWN") == b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
        server.signal(signal.SIGTERM)
        server.wait_for_log("Not shut down")
        assert "Not all that was answered is in the append-only file" in server.log()
        assert client.call("GET", "key:1").startswith(b"$20000")
        disk.make_room()
        client.send_command("SHUTDOWN")
        assert client.rest_until_close() == b""
    assert server.wait() == 0
    server.start()
    assert keys_of(server) == writer.acknowledged


def test_an_end_that_is_forced_comes_whatever_is_written(
    fresh_server: Factory, disk: SmallDisk
) -> None:
    options = ("--appendonly", "yes", "--save", "")
    server = fresh_server(*options, directory=disk.path, check_log=False)
    with server.client() as client:
        writer = Writer(client)
        disk.fill(leave_bytes=200_000)
        writer.write_until(b"-MISCONF")
        client.send_command("SHUTDOWN", "FORCE")
        assert client.rest_until_close() == b""
    assert server.wait() == 1


def test_a_full_disk_under_always(fresh_server: Factory, disk: SmallDisk) -> None:
    """The server stops before it acknowledges what is not on the disk, and starts when it can."""
    options = ("--appendonly", "yes", "--appendfsync", "always")
    server = fresh_server(*options, directory=disk.path, check_log=False)
    with server.client() as client:
        writer = Writer(client)
        writer.write()
        disk.fill(leave_bytes=200_000)
        with pytest.raises(ConnectionError):
            writer.write_until(b"-")
    assert server.wait() == 1
    assert "Make room on the disk." in server.log()
    server.start()  # what is there can be loaded from a full disk
    assert keys_of(server) == writer.acknowledged
    disk.make_room()
    server.call("SET", "after", "1")
    server.restart(crash=True)
    assert keys_of(server) == writer.acknowledged
    assert server.call("GET", "after") == b"1"


def test_a_disk_that_is_full_at_start(fresh_server: Factory, disk: SmallDisk) -> None:
    disk.fill(leave_bytes=0)
    server = fresh_server("--appendonly", "yes", directory=disk.path, start=False)
    server.log_path = disk.path.parent / "server.log"
    assert "No space left on device. Make room on the disk." in refused(server)


def test_a_part_of_a_write_is_cut_off_again() -> None:
    """What a disk took of a write that failed is no part of the file; all of it comes later."""
    rules = (
        Rule("write", "incr", skip=3, times=1, part=9000),
        Rule("write", "incr", skip=3, error=errno.ENOSPC),
    )
    with faulty_server("everysec", *rules, check_log=False) as server, server.client() as client:
        writer = Writer(client)
        writer.write_until(b"-MISCONF")
        server.disk()
        wait_until(lambda: writer.write() == b"+OK\r\n")
        wait_until_written(server)
        server.kill()
        assert sorted(recorded_keys(server)) == sorted(writer.acknowledged)
        server.start()
        assert keys_of(server) == writer.acknowledged


def test_a_part_of_a_write_that_cannot_be_cut_off() -> None:
    """The rest follows behind it, so that the file is whole all the same.

    It is an odd disk besides: it fails a write and does not say that it took a part of it.
    """
    rules = (
        Rule("write", "incr", skip=3, times=2, part=9000, error=errno.ENOSPC),
        Rule("ftruncate", "incr", error=errno.EIO),
    )
    # Without syncs: a write that meets one may be tried again before anybody has been refused.
    with faulty_server("no", *rules, check_log=False) as server, server.client() as client:
        writer = Writer(client)
        writer.write_until(b"-MISCONF")
        wait_until(lambda: writer.write() == b"+OK\r\n")
        wait_until_written(server)
        server.kill()
        server.disk()
        server.start()
        assert keys_of(server) == writer.acknowledged


def test_a_disk_error_during_a_sync_under_everysec() -> None:
    """Writes are refused, and when the disk is back the files are written anew: nobody knows what
    the sync that failed left on the disk."""
    rule = Rule("fdatasync", "incr", times=3, error=errno.EIO)
    with faulty_server("everysec", rule, check_log=False) as server, server.client() as client:
        writer = Writer(client)
        writer.write()
        wait_until(lambda: writer.write().startswith(b"-MISCONF"))
        wait_until(lambda: writer.write() == b"+OK\r\n")
        wait_until(lambda: server.info("persistence")["aof_rewrites"] == "1")
        wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0")
        assert "Input/output error" in server.log()
        assert not incr(server).exists()
        server.kill()
        server.disk()
        server.start()
        assert keys_of(server) == writer.acknowledged


@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_a_disk_error_under_always(call: str) -> None:
    """The process ends before a reply leaves, and says which file it could not write."""
    rule = Rule(call, "incr", skip=5, error=errno.EIO)
    with faulty_server("always", rule, check_log=False) as server, server.client() as client:
        writer = Writer(client)
        with pytest.raises(ConnectionError):
            writer.write_until(b"-")
        assert server.wait() == 1
        assert f"{incr(server)}, from offset" in server.log()
        assert "Input/output error. The disk reports an error" in server.log()
        server.cut_power()
        server.disk()
        server.start()
        assert writer.acknowledged <= keys_of(server)
        assert len(keys_of(server)) <= writer.number


def test_a_disk_error_while_loading() -> None:
    with faulty_server("everysec") as server:
        server.call("SET", "k", VALUE)
        server.kill()
        server.disk(Rule("read", INCR, error=errno.EIO))
        log = refused(server)
        assert f"{incr(server)} cannot be read behind offset 0: Input/output error" in log


@pytest.mark.parametrize("what", ["new", "old"])
def test_a_read_only_disk(fresh_server: Factory, disk: SmallDisk, what: str) -> None:
    server = fresh_server("--appendonly", "yes", directory=disk.path, start=False)
    server.log_path = disk.path.parent / "server.log"
    if what == "old":
        server.start().call("SET", "k", "1")
        server.kill()
    disk.remount("ro")
    log = refused(server)
    assert f"{disk.path / FOLDER}" in log
    assert "Read-only file system. Its file system is mounted read-only." in log
    disk.remount("rw")
    assert server.start().call("DBSIZE") == (1 if what == "old" else 0)


def test_a_folder_of_another_user(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", start=False)
    folder = folder_with(server.directory, f"file {INCR} seq 1 type i\n", **{INCR: b""})
    server.directory.chmod(0o755)
    user = os.geteuid()
    if user == 0:
        program = shutil.which("setpriv")
        if program is None:
            pytest.skip("no setpriv to become another user with")
        as_nobody = [program, f"--reuid={NOBODY}", "--clear-groups"]
        probe = [*as_nobody, sys.executable, "-P", "-c", "import server"]
        if subprocess.run(probe, env=server.variables(), check=False).returncode:
            pytest.skip("another user cannot run this Python")
        command = [*as_nobody, *server.command()]
        server.command = lambda: list(command)  # type: ignore[method-assign]
        user = NOBODY
    folder.chmod(0o700 if os.geteuid() == 0 else 0)
    log = refused(server)
    folder.chmod(0o700)
    assert f"{folder} cannot be used: Permission denied. Check who owns it" in log
    assert f"this process is user {user}." in log


def test_a_file_where_the_folder_should_be(fresh_server: Factory, tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file")
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    assert f"{tmp_path / FOLDER} cannot be used: Not a directory. Something else has its" in (
        refused(server)
    )


def test_a_folder_where_a_file_should_be(fresh_server: Factory, tmp_path: Path) -> None:
    folder = folder_with(tmp_path, f"file {INCR} seq 1 type i\n")
    (folder / INCR).mkdir()
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    assert f"{folder / INCR} is a folder, where a file has to be" in refused(server)


def test_a_folder_where_the_manifest_should_be(fresh_server: Factory, tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "")
    (folder / MANIFEST).mkdir()
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    assert f"{folder / MANIFEST} is a folder, where a file has to be" in refused(server)


def test_a_missing_manifest(fresh_server: Factory, tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "", **{INCR: request([b"SET", b"k", b"v"])})
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    log = refused(server)
    assert f"{folder} holds {INCR} and no {MANIFEST}. Put the manifest back, or move" in log
    assert sorted(os.listdir(folder)) == [INCR, "appendonly.aof.lock"]


def test_a_missing_file(fresh_server: Factory, tmp_path: Path) -> None:
    manifest = f"file {INCR} seq 1 type i\nfile lost.2.incr.aof seq 2 type i\n"
    folder = folder_with(tmp_path, manifest, **{INCR: request([b"SET", b"k", b"v"])})
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    log = refused(server)
    assert f"{folder / 'lost.2.incr.aof'}, which the manifest names, cannot be read" in log
    assert "No such file or directory. Put it back" in log
    assert not (folder / "lost.2.incr.aof").exists()


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("", "is empty"),
        ("file a seq 1 type x\n", "type must be b, i, h or k"),
        ("file ../a seq 1 type i\n", "a plain file name"),
        ("file a seq 1 type i", "has no end"),
        ("garbage\n", "pairs of words"),
    ],
)
def test_a_manifest_that_is_none(
    fresh_server: Factory, tmp_path: Path, manifest: str, reason: str
) -> None:
    folder = folder_with(tmp_path, "", a=b"")
    (folder / MANIFEST).write_text(manifest)
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    log = refused(server)
    assert str(folder / MANIFEST) in log
    assert reason in log
    assert (folder / MANIFEST).read_text() == manifest


def test_a_file_from_the_future(fresh_server: Factory, tmp_path: Path) -> None:
    """A command that this version does not know is named, and where it stands."""
    good = request([b"SET", b"k", b"v"])
    data = good + request([b"XTELEPORT", b"k", b"mars"]) + good
    folder = folder_with(tmp_path, f"file {INCR} seq 1 type i\n", **{INCR: data})
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    log = refused(server)
    assert f"{folder / INCR} is damaged at offset {len(good)}" in log
    assert "unknown command 'XTELEPORT'" in log
    assert (folder / INCR).read_bytes() == data


@pytest.mark.parametrize("name", ["temp-appendonly.aof.manifest", "appendonly.aof.2.incr.aof"])
def test_a_pipe_where_a_file_is_to_be_written(fresh_server: Factory, name: str) -> None:
    """That is an error; nobody hangs."""
    server = fresh_server("--appendonly", "yes")
    os.mkfifo(server.directory / FOLDER / name)
    server.call("SET", "k", "v")
    assert server.call("SAVE") == b"OK"
    for command in ("BGSAVE", "BGREWRITEAOF"):
        server.call(command)
        wait_until(
            lambda: (
                server.info("persistence")["rdb_bgsave_in_progress"]
                == server.info("persistence")["aof_rewrite_in_progress"]
                == "0"
            )
        )
    info = server.info("persistence")
    assert info["rdb_last_bgsave_status"] == "ok"
    assert info["aof_last_bgrewrite_status"] == "err"
    assert f"{name} is a pipe, where a file is to be written" in server.log()
    assert server.restart(crash=True).call("GET", "k") == b"v"


def test_symbolic_links_are_followed(fresh_server: Factory, tmp_path: Path) -> None:
    """A folder may lie on another disk, and a file of it on a third."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "files").mkdir(parents=True)
    (elsewhere / INCR).write_bytes(request([b"SET", b"k", b"v"]))
    (elsewhere / "files" / INCR).symlink_to(elsewhere / INCR)
    (elsewhere / "files" / MANIFEST).write_text(f"file {INCR} seq 1 type i\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / FOLDER).symlink_to(elsewhere / "files")
    server = fresh_server("--appendonly", "yes", directory=home)
    server.call("SET", "after", "1")
    assert server.restart(crash=True).call("EXISTS", "k", "after") == 2
    assert (elsewhere / INCR).read_bytes().endswith(request([b"SET", b"after", b"1"]))
    second = fresh_server("--appendonly", "yes", directory=elsewhere, start=False)
    second.options = (*second.options, "--appenddirname", "files")
    assert f"Another server (pid {server.pid})" in refused(second)


@pytest.mark.parametrize("target", ["nowhere", FOLDER])
def test_a_symbolic_link_that_leads_nowhere(
    fresh_server: Factory, tmp_path: Path, target: str
) -> None:
    (tmp_path / FOLDER).symlink_to(tmp_path / target)
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    log = refused(server)
    assert f"{tmp_path / FOLDER} cannot be used: " in log
    assert ("symbolic link" if target == FOLDER else "No such file or directory") in log
