"""The server and its append-only folder: what is there after a restart, and what is refused."""

from __future__ import annotations

import contextlib
import errno
import re
import resource
import time
from pathlib import Path

import pytest
from conftest import Factory

from headrace.protocol.client import request
from support import waiting
from support.client import RawClient, WireError
from support.contents import contents
from support.faults import Rule, faulty_server
from support.file_limit import limit_files
from support.process import Process

FOLDER = "appendonlydir"
INCR = "appendonly.aof.1.incr.aof"
MANIFEST = "appendonly.aof.manifest"


def incr(server: Process) -> Path:
    return server.directory / FOLDER / INCR


def wait_until(server: Process, name: str, value: str) -> None:
    waiting.wait_until(lambda: server.info("persistence").get(name) == value)


def fill(client: RawClient) -> None:
    """Streams and strings in two databases, with gaps, counters and deadlines of all kinds."""
    client.call("SET", "text", b"\0\r\n*1\r\n\xff")
    client.call("SET", "number", "41")
    client.call("INCR", "number")
    client.call("SET", "mortal", "x", "PX", "10000000")
    for number in range(1, 251):
        client.call("XADD", "log", f"{number}-{number % 3}", "field", f"v{number}", "b", "")
    client.call("XDEL", "log", "250-1", "7-1", "8-2")
    client.call("XTRIM", "log", "MAXLEN", "~", "120")
    client.call("XADD", "empty", "5-5", "a", "b")
    client.call("XDEL", "empty", "5-5")
    client.call("SELECT", 3)
    client.call("XADD", "log", "MAXLEN", "2", "*", "other", "database")
    client.call("MULTI")
    client.call("SET", "a", "1")
    client.call("SELECT", 0)
    client.call("SET", "b", "2")
    client.call("EXEC")


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_everything_is_there_after_a_restart(fresh_server: Factory, policy: str) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", policy)
    with server.client() as client:
        fill(client)
    before = contents(server)
    assert len(before) > 20
    assert contents(server.restart(crash=True)) == before
    assert contents(server.restart()) == before
    assert server.info("persistence")["aof_enabled"] == "1"


def test_off_means_no_files(fresh_server: Factory) -> None:
    server = fresh_server()
    server.call("SET", "a", "1")
    server.stop()
    assert not (server.directory / FOLDER).exists()


@pytest.mark.once
def test_a_torn_end_is_dropped_at_every_byte(fresh_server: Factory) -> None:
    """The last command is cut at every byte: each time the rest is there, and writing goes on."""
    server = fresh_server("--appendonly", "yes", debug=False)
    server.call("SET", "whole", "1")
    size = incr(server).stat().st_size
    server.call("SET", "torn", "2")
    data = incr(server).read_bytes()
    server.kill()
    for cut in range(size + 1, len(data)):
        incr(server).write_bytes(data[:cut])
        server.start()
        assert server.call("KEYS", "*") == [b"whole"], cut
        assert incr(server).stat().st_size == size
        server.kill()
    assert f"truncated at offset {size}" in server.log()
    server.start()
    server.call("SET", "after", "3")
    server.restart(crash=True)
    assert server.call("DBSIZE") == 2


def test_an_unfinished_transaction_is_dropped(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes")
    server.call("SET", "whole", "1")
    size = incr(server).stat().st_size
    server.kill()
    with incr(server).open("ab") as file:
        file.write(request([b"MULTI"]) + request([b"SET", b"half", b"1"]))
    server.start()
    assert server.call("KEYS", "*") == [b"whole"]
    assert incr(server).stat().st_size == size


def test_a_torn_end_is_refused_where_it_shall_be(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--aof-load-truncated", "no")
    server.call("SET", "whole", "1")
    server.kill()
    with incr(server).open("ab") as file:
        file.write(b"*1\r\n$4\r\nPI")
    data = incr(server).read_bytes()
    server.spawn()
    assert server.wait() == 1
    assert "aof-load-truncated" in server.log()
    assert incr(server).read_bytes() == data


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b"*1\r\n$4\r\nPANG\r\n", "unknown command 'PANG'"),
        (b"garbage\r\n", "expected '*' before a command"),
        (request([b"XADD", b"log", b"1-1", b"a", b"b"]), "XADD answered: ERR"),
        (request([b"SET", b"a"]), "wrong number of arguments"),
        (request([b"EXEC"]), "EXEC without MULTI"),
        (request([b"MULTI"]) * 2, "EXEC before another MULTI"),
    ],
)
def test_damage_is_refused_with_file_and_offset(
    fresh_server: Factory, damage: bytes, reason: str
) -> None:
    server = fresh_server("--appendonly", "yes")
    server.call("XADD", "log", "1-1", "a", "b")
    server.kill()
    good = incr(server).read_bytes()
    data = good + damage + request([b"SET", b"b", b"2"])
    incr(server).write_bytes(data)
    server.spawn()
    assert server.wait() == 1
    log = server.log()
    at = len(good) + (len(damage) // 2 if damage.count(b"MULTI") == 2 else 0)
    assert f"{incr(server)} is damaged at offset {at}" in log
    assert reason in log
    assert incr(server).read_bytes() == data


def test_a_database_that_is_not_there_is_named(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes")
    server.call("XADD", "log", "1-1", "a", "b")
    server.kill()
    good = incr(server).read_bytes()
    data = good + request([b"SELECT", b"99"]) + request([b"SET", b"b", b"2"])
    incr(server).write_bytes(data)
    server.spawn()
    assert server.wait() == 1
    where = f"from offset {len(good)} on it is about database 99, and there are only 16"
    assert f"{incr(server)} cannot be loaded: {where}" in server.log()
    assert incr(server).read_bytes() == data


def test_two_servers_on_one_folder(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes")
    second = fresh_server("--appendonly", "yes", directory=server.directory, start=False)
    second.spawn()
    assert second.wait() == 1
    assert f"Another server (pid {server.pid})" in second.log()
    server.call("SET", "still", "served")


@pytest.mark.parametrize("kind", ["base.rdb", "base.hrs"])
def test_a_snapshot_base_is_refused(fresh_server: Factory, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / f"appendonly.aof.1.{kind}").write_bytes(b"REDIS0011")
    (folder / MANIFEST).write_text(f"file appendonly.aof.1.{kind} seq 1 type b\n")
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    server.spawn()
    assert server.wait() == 1
    assert "is a snapshot" in server.log()


def test_a_torn_file_that_is_not_the_last_is_refused(fresh_server: Factory, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    torn = request([b"SET", b"a", b"1"])[:-1]
    (folder / "one").write_bytes(torn)
    (folder / "two").write_bytes(request([b"SET", b"b", b"1"]))
    (folder / MANIFEST).write_text("file one seq 1 type i\nfile two seq 2 type i\n")
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False)
    server.spawn()
    assert server.wait() == 1
    assert "this is not the last file" in server.log()
    assert (folder / "one").read_bytes() == torn


def test_a_torn_file_that_only_empty_ones_follow(fresh_server: Factory, tmp_path: Path) -> None:
    """It is the last one that holds anything: the torn command is dropped, and writing goes on."""
    server = fresh_server("--appendonly", "yes", directory=tmp_path)
    server.call("SET", "a", "1")
    server.kill()
    folder = tmp_path / FOLDER
    good = incr(server).read_bytes()
    incr(server).write_bytes(good + request([b"SET", b"b", b"1" * 200_000])[:-2])
    lines = []
    for number in (2, 3):
        name = f"appendonly.aof.{number}.incr.aof"
        (folder / name).touch()
        lines.append(f"file {name} seq {number} type i\n")
    with (folder / MANIFEST).open("a") as manifest:
        manifest.write("".join(lines))
    server.options = ("--appendonly", "yes", "--aof-load-truncated", "no")
    server.spawn()
    assert server.wait() == 1
    assert "ends in the middle of a command: 200" in server.log()
    server.options = ("--appendonly", "yes")
    server.start()
    assert incr(server).read_bytes() == good
    assert server.call("KEYS", "*") == [b"a"]
    server.call("SET", "c", "1")
    server.restart(crash=True)
    assert server.call("DBSIZE") == 2


def test_turning_it_on_keeps_what_is_in_memory(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        fill(client)
        assert client.call("CONFIG", "SET", "appendonly", "yes") == b"+OK\r\n"
        client.call("SET", "later", "1")
        wait_until(server, "aof_rewrite_in_progress", "0")
        before = contents(server)
        server.kill()
        server.options = ("--appendonly", "yes")
        assert contents(server.start()) == before


def test_turning_it_off_keeps_the_files(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes")
    server.call("SET", "before", "1")
    server.call("CONFIG", "SET", "appendonly", "no")
    server.call("SET", "between", "1")
    size = incr(server).stat().st_size
    assert size == len(incr(server).read_bytes())
    server.call("DEL", "before")
    server.call("CONFIG", "SET", "appendonly", "yes")
    server.call("SET", "after", "1")
    wait_until(server, "aof_rewrite_in_progress", "0")
    server.restart(crash=True)
    keys = server.call("KEYS", "*")
    assert isinstance(keys, list)
    assert sorted(keys) == [b"after", b"between"]


def test_turning_it_on_inside_a_transaction_records_nothing_twice(fresh_server: Factory) -> None:
    server = fresh_server()
    with server.client() as client:
        client.call("MULTI")
        client.call("XADD", "log", "1-1", "a", "b")
        client.call("CONFIG", "SET", "appendonly", "yes")
        client.call("XADD", "log", "2-1", "a", "b")
        client.call("EXEC")
        client.call("XADD", "log", "3-1", "a", "b")
    wait_until(server, "aof_enabled", "1")
    wait_until(server, "aof_rewrite_in_progress", "0")
    server.options = ("--appendonly", "yes")
    server.restart(crash=True)
    assert server.call("XLEN", "log") == 3


def test_it_cannot_be_turned_on(fresh_server: Factory) -> None:
    server = fresh_server(check_log=False)
    (server.directory / FOLDER).write_text("in the way")
    with pytest.raises(WireError, match="CONFIG SET failed"):
        server.call("CONFIG", "SET", "appendonly", "yes")
    assert server.call("CONFIG", "GET", "appendonly") == [b"appendonly", b"no"]


def test_what_expires_is_recorded(fresh_server: Factory) -> None:
    """Keys removed by the clock, not by a client, are in the file as removed."""
    server = fresh_server("--appendonly", "yes")
    server.call("SET", "other", "x")
    server.call("SET", "mortal", "x", "PX", "30")
    record = request([b"DEL", b"mortal"])
    waiting.wait_until(lambda: incr(server).read_bytes().endswith(record))


def test_a_full_disk_refuses_writes_until_there_is_room(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "everysec", check_log=False)
    server.call("SET", "big", "x" * 20_000)
    good = incr(server).stat().st_size
    limit_files(server, good + 100)
    server.call("SET", "kept", "y" * 1000)  # executed and answered; its write fails
    with server.client() as client:
        waiting.wait_until(lambda: client.call("SET", "more", "1").startswith(b"-MISCONF"))
        assert client.call("PING").startswith(b"-MISCONF")
        assert client.call("GET", "kept").startswith(b"$1000")
    assert incr(server).stat().st_size == good
    assert server.info("persistence")["aof_last_write_status"] == "err"
    limit_files(server, resource.RLIM_INFINITY)
    wait_until(server, "aof_last_write_status", "ok")
    server.call("SET", "again", "1")
    server.restart(crash=True)
    assert server.call("EXISTS", "kept", "again") == 2


@pytest.mark.parametrize("failing", ["write", "sync"])
def test_always_stops_before_a_reply_leaves(failing: str) -> None:
    """Nothing that was not synced is acknowledged, nor shown to others."""
    with faulty_server("always", check_log=False) as server:
        if failing == "write":
            server.call("SET", "big", "x" * 20_000)
            limit_files(server, incr(server).stat().st_size + 10)
        else:
            server.disk(Rule("fdatasync", INCR, error=errno.EIO))
        stops_before_a_reply_leaves(server, failing)


def stops_before_a_reply_leaves(server: Process, failing: str) -> None:
    with server.client() as reader, server.client() as writer:
        assert reader.call("GET", "k") == b"$-1\r\n"
        writer.send_command("SET", "k", "1")
        reader.send_command("GET", "k")
        for client in (reader, writer):
            seen = b""
            with contextlib.suppress(ConnectionError):
                seen = client.rest_until_close()
            assert seen in (b"", b"$-1\r\n")
    assert server.wait() == 1
    assert f"cannot {failing} the append-only file under appendfsync always" in server.log()


def test_a_sync_that_fails_refuses_writes_under_everysec() -> None:
    rule = Rule("fdatasync", INCR, error=errno.EIO)
    with faulty_server("everysec", rule, check_log=False) as server, server.client() as client:
        waiting.wait_until(lambda: client.call("SET", "k", "1").startswith(b"-MISCONF"))


@pytest.mark.once
def test_clients_are_answered_while_data_is_loaded(fresh_server: Factory, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / MANIFEST).write_text(f"file {INCR} seq 1 type i\n")
    with (folder / INCR).open("wb") as file:
        for number in range(600_000):
            file.write(request([b"XADD", b"log", b"%d-1" % (number + 1), b"f", b"v"]))
    server = fresh_server("--appendonly", "yes", directory=tmp_path, start=False, debug=False)
    server.spawn()
    seen: set[bytes] = set()
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), server.client() as client:
            reply = client.call("GET", "k")
            seen.add(reply[:8])
            info = client.call_parsed("INFO", "persistence")
            assert isinstance(info, bytes)
            if b"loading:1" in info:
                assert b"loading_total_bytes:" in info
                client.send(b"POST /\r\nPING\r\n")  # a browser is no client, loading or not
                assert client.rest_until_close() == b""
            if reply == b"$-1\r\n":
                break
    assert b"-LOADING" in seen
    assert server.call("XLEN", "log") == 600_000
    spent = re.search(r"Loaded 1 keys from 600000 commands .* ([0-9.]+) seconds", server.log())
    assert spent is not None
    if float(spent[1]) > 1.2:  # a line every second
        assert "Loading the append-only file:" in server.log()


def test_debug_reloads(fresh_server: Factory) -> None:
    """The data survives its way through commands, and through the files."""
    server = fresh_server("--appendonly", "yes", "--enable-debug-command", "yes")
    with server.client() as client:
        fill(client)
        before = contents(server)
        for way in ("RELOAD", "LOADAOF"):
            assert client.call("DEBUG", way) == b"+OK\r\n"
            assert contents(server) == before
        client.call("SET", "after", "1")
    assert server.restart(crash=True).call("EXISTS", "after", "text") == 2


def test_a_base_is_loaded_with_the_file_off(fresh_server: Factory) -> None:
    """DEBUG LOADAOF takes what a rewrite has left, and refuses where there is nothing."""
    server = fresh_server("--enable-debug-command", "yes", "--aof-use-rdb-preamble", "no")
    with server.client() as client:
        client.call("SET", "k", "v")
        assert client.call("DEBUG", "LOADAOF").startswith(b"-ERR Error trying to load the AOF")
        assert client.call("GET", "k") == b"$1\r\nv\r\n"
        for _ in range(2):
            client.call("SET", "k", "v")
            client.call("BGREWRITEAOF")
            wait_until(server, "aof_rewrite_in_progress", "0")
            client.call("SET", "k", "changed")
            assert client.call("DEBUG", "LOADAOF") == b"+OK\r\n"
            assert client.call("GET", "k") == b"$1\r\nv\r\n"


def test_a_base_of_commands_begins_with_the_time(fresh_server: Factory) -> None:
    server = fresh_server("--aof-use-rdb-preamble", "no", "--aof-timestamp-enabled", "yes")
    server.call("SET", "k", "v")
    before_s = int(time.time())
    server.call("BGREWRITEAOF")
    wait_until(server, "aof_rewrite_in_progress", "0")
    base = (server.directory / FOLDER / "appendonly.aof.1.base.aof").read_bytes()
    stamp, _, rest = base.partition(b"\r\n")
    assert before_s <= int(stamp.removeprefix(b"#TS:")) <= time.time()
    assert rest == request([b"SELECT", b"0"]) + request([b"SET", b"k", b"v"])
    server.options = ("--appendonly", "yes")
    assert server.restart().call("GET", "k") == b"v"
    server.call("FLUSHALL")
    server.call("CONFIG", "SET", "aof-timestamp-enabled", "no", "aof-use-rdb-preamble", "no")
    server.call("BGREWRITEAOF")
    wait_until(server, "aof_rewrite_in_progress", "0")
    assert (server.directory / FOLDER / "appendonly.aof.2.base.aof").read_bytes() == b""


def test_a_base_is_written_with_the_file_off(fresh_server: Factory) -> None:
    server = fresh_server()
    server.call("SET", "k", "v")
    server.call("BGREWRITEAOF")
    wait_until(server, "aof_rewrite_in_progress", "0")
    manifest = (server.directory / FOLDER / MANIFEST).read_text()
    assert manifest == "file appendonly.aof.1.base.hrs seq 1 type b\n"
    server.options = ("--appendonly", "yes")
    assert server.restart().call("GET", "k") == b"v"
