"""Files that vanish or are replaced under a running server: memory still has what they held."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Factory

from support.process import Process
from support.waiting import wait_until

from .test_serving import FOLDER, MANIFEST

pytestmark = pytest.mark.once

BASE = "appendonly.aof.1.base.hrs"
OPTIONS = ("--appendonly", "yes", "--save", "", "--enable-debug-command", "yes")


def delete_folder(folder: Path) -> None:
    """In one go: the server makes it again at once."""
    gone = folder.with_name("gone")
    folder.rename(gone)
    shutil.rmtree(gone)


def move_folder(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def replace_folder(folder: Path) -> None:
    """By a copy: the same names, other files."""
    move_folder(folder)
    shutil.copytree(folder.with_name("moved"), folder)


def delete_incr(folder: Path) -> None:
    last_incr(folder).unlink()


def replace_incr(folder: Path) -> None:
    incr = last_incr(folder)
    data = incr.read_bytes()
    incr.unlink()
    incr.write_bytes(data)


def delete_base(folder: Path) -> None:
    (folder / BASE).unlink()


def delete_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def cut_incr(folder: Path) -> None:
    os.truncate(last_incr(folder), 7)


def add_to_incr(folder: Path) -> None:
    with last_incr(folder).open("ab") as file:
        file.write(b"*1\r\n$8\r\nFLUSHALL\r\n")


def cut_base(folder: Path) -> None:
    os.truncate(folder / BASE, 3)


def empty_manifest(folder: Path) -> None:
    os.truncate(folder / MANIFEST, 0)


def last_incr(folder: Path) -> Path:
    return max(folder.glob("*.incr.aof"))


def put_file(folder: Path) -> Path:
    """Have a file where the folder was, at once; where the folder is now."""
    file = folder.with_name("file")
    file.touch()
    away = folder.with_name("away")
    folder.rename(away)
    file.rename(folder)
    return away


WAYS = [
    *(delete_folder, move_folder, replace_folder, delete_incr, replace_incr, delete_base),
    *(delete_manifest, cut_incr, add_to_incr, cut_base, empty_manifest),
]
OURS_LEFT = (delete_base, delete_manifest, cut_incr, add_to_incr, cut_base, empty_manifest)


def filled(fresh_server: Factory, *options: str) -> Process:
    """A server with a base and an incr file."""
    server = fresh_server(*OPTIONS, *options)
    with server.client() as client:
        for number in range(1, 101):
            client.call("XADD", "s", f"{number}-0", "n", number)
        client.call("BGREWRITEAOF")
        wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0")
        client.call("SET", "k", "before")
    return server


def check(server: Process) -> None:
    assert server.restart(crash=True).call("MGET", "k", "after") == [b"before", b"1"]
    assert server.call("XLEN", "s") == 100


@pytest.mark.parametrize("way", WAYS)
def test_what_vanishes_is_written_anew(fresh_server: Factory, way: Callable[[Path], None]) -> None:
    server = filled(fresh_server, "--appendfsync", "always")
    folder = server.directory / FOLDER
    way(folder)
    server.wait_for_log("was removed, replaced or changed from outside")
    wait_until(lambda: server.info("persistence")["aof_last_write_status"] == "ok")
    info = server.info("persistence")
    assert info["aof_enabled"] == "1"
    assert info["aof_last_bgrewrite_status"] == "ok"
    assert server.call("SET", "after", "1") == b"OK"
    names = {path.name for path in folder.iterdir()}
    if way in OURS_LEFT:
        assert len(names) == 4, names
    elif way is replace_folder:  # what was put there stays
        assert {BASE, "appendonly.aof.2.incr.aof"} < names
        assert any(name.startswith(f"{MANIFEST}.found-") for name in names)
    check(server)
    server.call("BGREWRITEAOF")
    wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0")
    check(server)


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_writes_are_refused_while_it_cannot_be_written(fresh_server: Factory, policy: str) -> None:
    server = filled(fresh_server, "--appendfsync", policy)
    folder = server.directory / FOLDER
    put_file(folder)
    server.wait_for_log("The append-only folder cannot be made anew")
    with server.client() as client:
        assert client.call("SET", "k", "2").startswith(b"-MISCONF Errors writing to the AOF file")
        assert client.call("GET", "k") == b"$6\r\nbefore\r\n"
        assert client.call("DEBUG", "LOADAOF").startswith(b"-ERR")
        assert client.call("BGREWRITEAOF").startswith(b"-ERR")
        info = server.info("persistence")
        assert info["aof_enabled"] == "1"
        assert info["aof_last_write_status"] == "err"
        server.signal(signal.SIGTERM)
        server.wait_for_log("not ending now")
        folder.unlink()
        wait_until(lambda: server.info("persistence")["aof_last_write_status"] == "ok")
        assert client.call("SET", "after", "1") == b"+OK\r\n"
    check(server)
    server.stop()


def test_a_folder_that_comes_back(fresh_server: Factory) -> None:
    """As a disk that was away for a while: its files are the server's own, and are cleared away."""
    server = filled(fresh_server)
    folder = server.directory / FOLDER
    away = put_file(folder)
    server.wait_for_log("The append-only folder cannot be made anew")
    server.call("CONFIG", "SET", "hz", 1)
    folder.unlink()
    away.rename(folder)
    wait_until(lambda: server.info("persistence")["aof_last_write_status"] == "ok")
    assert len(list(folder.iterdir())) == 4
    server.call("SET", "after", "1")
    check(server)


def test_a_folder_that_vanishes_while_it_is_written_anew(fresh_server: Factory) -> None:
    server = filled(fresh_server)
    server.call("CONFIG", "SET", "rdb-key-save-delay", 300_000)
    server.call("BGREWRITEAOF")
    server.wait_for_log("Background append only file rewriting started")
    delete_folder(server.directory / FOLDER)
    server.wait_for_log("was removed, replaced or changed from outside")
    server.call("CONFIG", "SET", "rdb-key-save-delay", 0)
    wait_until(lambda: server.info("persistence")["aof_last_write_status"] == "ok")
    server.call("SET", "after", "1")
    check(server)


@pytest.mark.parametrize("command", ["BGREWRITEAOF", "DEBUG LOADAOF"])
def test_it_is_noticed_before_the_folder_is_used(fresh_server: Factory, command: str) -> None:
    server = filled(fresh_server, "--hz", "1")
    with server.client() as client:
        delete_folder(server.directory / FOLDER)
        reply = client.call(*command.split())
        assert reply.startswith(b"+Background" if command == "BGREWRITEAOF" else b"-ERR")
        assert client.call("XLEN", "s") == b":100\r\n"
        wait_until(lambda: server.info("persistence")["aof_last_write_status"] == "ok")
        assert client.call("SET", "after", "1") == b"+OK\r\n"
    check(server)


@pytest.mark.parametrize("way", [delete_folder, cut_incr])
def test_it_is_noticed_before_the_server_ends(
    fresh_server: Factory, way: Callable[[Path], None]
) -> None:
    """It ends when all is written anew."""
    server = filled(fresh_server, "--hz", "1")
    wait_until(lambda: server.info("persistence")["aof_last_write_status"] == "ok")
    server.call("SET", "after", "1")
    server.call("DEBUG", "SLEEP", "1.1")  # the cron looks right afterwards, and then in a second
    server.call("PING")
    way(server.directory / FOLDER)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "was removed, replaced or changed from outside" in server.log()
    assert server.start().call("MGET", "k", "after") == [b"before", b"1"]
    assert server.call("XLEN", "s") == 100


def test_waitaof_waits_for_the_new_base(fresh_server: Factory) -> None:
    server = filled(fresh_server, "--appendfsync", "no")
    with server.client() as client:
        client.call("SET", "after", "1")
        client.send_command("WAITAOF", 1, 0, 0)
        delete_folder(server.directory / FOLDER)
        assert client.read() == b"*2\r\n:1\r\n:0\r\n"
    check(server)


def test_turning_it_off_ends_it(fresh_server: Factory) -> None:
    server = filled(fresh_server)
    folder = server.directory / FOLDER
    put_file(folder)
    server.wait_for_log("The append-only folder cannot be made anew")
    with server.client() as client:
        assert client.call("CONFIG", "SET", "appendonly", "no") == b"+OK\r\n"
        assert client.call("SET", "k", "2") == b"+OK\r\n"
        assert server.info("persistence")["aof_enabled"] == "0"
        assert client.call("CONFIG", "SET", "appendonly", "yes").startswith(b"-ERR")
        folder.unlink()
        assert client.call("CONFIG", "SET", "appendonly", "yes") == b"+OK\r\n"
        wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0")
    assert server.restart(crash=True).call("GET", "k") == b"2"


def test_a_folder_of_snapshots_that_vanishes(fresh_server: Factory) -> None:
    """That fails, as in Redis; where the folder is back, so are the snapshots."""
    server = fresh_server("--save", "3600 1", start=False)
    inner = server.directory / "inner"
    inner.mkdir()
    server.options = ("--save", "3600 1", "--dir", str(inner))
    server.start()
    with server.client() as client:
        client.call("SET", "k", "v")
        shutil.rmtree(inner)
        assert client.call("SAVE").startswith(b"-ERR")
        assert client.call("BGSAVE").startswith(b"+")
        wait_until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err")
        assert client.call("SET", "k", "w").startswith(b"-MISCONF")
        server.signal(signal.SIGTERM)
        server.wait_for_log("The snapshot could not be saved: not ending now")
        inner.mkdir()
        assert client.call("SAVE") == b"+OK\r\n"
        assert client.call("SET", "k", "w") == b"+OK\r\n"
    server.stop()
    assert server.start().call("GET", "k") == b"w"
