"""Starting from snapshots: as the base of a folder, alone, with damage, and what is told of it."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

import pytest
from conftest import Factory

from headrace.persistence.snapshot.file import FRAME_HEAD, PREAMBLE
from headrace.protocol.client import request
from support.client import RawClient
from support.interchange import module_value, rdb
from support.process import Process
from support.snapshots import databases, make_stream, odd_databases, plain, snapshot
from support.waiting import wait_until

FOLDER = "appendonlydir"
AOF = ("--appendonly", "yes")
KEYS = len(plain(odd_databases()))
MANY = 200_000  # keys, which take a while


def make_folder(parent: Path, base: bytes, commands: bytes, suffix: str = "hrs") -> Path:
    """An append-only folder with a base and one file of commands."""
    folder = parent / FOLDER
    folder.mkdir(parents=True)
    name = f"appendonly.aof.1.base.{suffix}"
    (folder / name).write_bytes(base)
    (folder / "appendonly.aof.1.incr.aof").write_bytes(commands)
    (folder / "appendonly.aof.manifest").write_text(
        f"file {name} seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
    )
    return folder


def facts(client: RawClient) -> object:
    """Everything but the number of idempotent ids, which are forgotten with time."""
    keys = client.call_parsed("KEYS", "*")
    assert isinstance(keys, list)
    found = []
    for key in sorted(keys):
        kind = client.call_parsed("TYPE", key)
        words = ("GET", key) if kind == b"string" else ("XINFO", "STREAM", key, "FULL", "COUNT", 0)
        value = re.sub(rb"([pi]ids-tracked\r\n):\d+", rb"\1", client.call(*words))
        found.append([key, client.call("PEXPIRETIME", key), value])
    return found


def refused_start(server: Process) -> str:
    """The server does not start; what it logged."""
    server.spawn()
    assert server.wait() == 1
    assert "Traceback" not in server.log()
    return server.log()


def test_a_base_and_what_was_written_since(fresh_server: Factory, tmp_path: Path) -> None:
    commands = request([b"SET", b"after", b"1"]) + request([b"DEL", b"text"])
    commands += request([b"SELECT", b"9"]) + request([b"SET", b"nine", b"9"])
    make_folder(tmp_path, snapshot(odd_databases(), is_base=True), commands)
    server = fresh_server(*AOF, directory=tmp_path)
    with server.client() as client:
        before = facts(client)
        assert client.call("MGET", "after", "text") == b"*2\r\n$1\r\n1\r\n$-1\r\n"
        info = server.info("persistence")
        assert int(info["rdb_last_load_keys_loaded"]) == KEYS
        assert info["loading"] == "0"
        client.call("SELECT", 9)
        assert client.call("MGET", "nine", "text") == (
            b"*2\r\n$1\r\n9\r\n$19\r\nof another database\r\n"
        )
        # A key that was there when the base was made expires by a DEL in the commands, or now.
        assert client.call("GET", "old") == b"$-1\r\n"
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before


def test_a_snapshot_alone(fresh_server: Factory, tmp_path: Path) -> None:
    (tmp_path / "dump.hrs").write_bytes(snapshot(odd_databases()))
    server = fresh_server(directory=tmp_path)
    info = server.info("persistence")
    assert (info["rdb_last_load_keys_loaded"], info["rdb_last_load_keys_expired"]) == (
        str(KEYS - 1),
        "1",
    )
    assert info["rdb_changes_since_last_save"] == "0"
    assert server.call("GET", "raw") == b"appended"
    assert "Loaded" in server.log()
    assert not (tmp_path / FOLDER).exists()


def test_turning_the_file_on_keeps_what_was_saved(fresh_server: Factory, tmp_path: Path) -> None:
    """The snapshot becomes the base of the new folder; later it counts no more."""
    data = snapshot(odd_databases())
    (tmp_path / "dump.hrs").write_bytes(data)
    server = fresh_server(*AOF, directory=tmp_path)
    with server.client() as client:
        before = facts(client)
        assert client.call("GET", "raw") == b"$8\r\nappended\r\n"
    assert (tmp_path / FOLDER / "appendonly.aof.1.base.hrs").read_bytes() == data
    assert (tmp_path / "dump.hrs").read_bytes() == data
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before
        client.call("FLUSHALL")
    assert server.restart(crash=True).call("DBSIZE") == 0


@pytest.mark.parametrize("form", ["base", "alone"])
def test_damage_stops_the_start(fresh_server: Factory, tmp_path: Path, form: str) -> None:
    data = snapshot(odd_databases(), is_base=form == "base")
    if form == "base":
        path = make_folder(tmp_path, data, b"") / "appendonly.aof.1.base.hrs"
    else:
        path = tmp_path / "dump.hrs"
    server = fresh_server(*(AOF if form == "base" else ()), directory=tmp_path, start=False)
    place = PREAMBLE.size + FRAME_HEAD.size + 700
    for damaged, told in (
        (data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], "checksum is wrong"),
        (data[:-1], "offset 24: expected a frame of"),
        (b"", "offset 0: expected the rest of the preamble"),
        (data + b"x", f"offset {len(data)}: expected"),
        (request([b"SET", b"k", b"v"]), "does not start with HEADRACE"),
        (rdb(10, module_value(b"k")), "headrace import"),
    ):
        path.write_bytes(damaged)
        log = refused_start(server)
        assert str(path) in log
        assert told in log, (told, log)
        assert path.read_bytes() == damaged


def test_mixed_up_files_are_refused(fresh_server: Factory, tmp_path: Path) -> None:
    data, commands = snapshot(odd_databases(), is_base=True), request([b"SET", b"k", b"v"])
    for number, (base, incr, suffix, told) in enumerate(
        (
            (data, b"", "aof", "its name says that it holds commands"),
            (commands, b"", "hrs", "does not start with HEADRACE"),
            (data, data, "hrs", "its name says that it holds commands"),
            (data, commands + data, "hrs", "expected '*' before a command"),
        )
    ):
        parent = tmp_path / str(number)
        make_folder(parent, base, incr, suffix)
        log = refused_start(fresh_server(*AOF, directory=parent, start=False))
        assert told in log, log


def test_more_databases_than_configured(fresh_server: Factory, tmp_path: Path) -> None:
    (tmp_path / "dump.hrs").write_bytes(snapshot(odd_databases()))
    server = fresh_server("--databases", "4", directory=tmp_path, start=False)
    log = refused_start(server)
    assert "and there are only 4: raise `databases` to" in log


def take_while_loading(server: Process, *words: str) -> None:
    """Have a command run while data is being loaded, then wait until all is loaded.

    Where loading was over sooner, the server is killed and started again.
    """
    deadline = time.monotonic() + 60
    taken = False
    while not taken:
        assert time.monotonic() < deadline
        server.kill()
        server.spawn()
        asked = False
        while not asked and time.monotonic() < deadline:
            with contextlib.suppress(OSError), server.client() as client:
                asked = True
                if client.call("GET", "none").startswith(b"-LOADING"):
                    reply, after = client.pipeline(words, ("GET", "none"))
                    assert reply == b"+OK\r\n"
                    taken = after.startswith(b"-LOADING")
                    wait_until(lambda: client.call("GET", "none") == b"$-1\r\n")


def many_keys() -> bytes:
    dbs = databases()
    for number in range(MANY):
        dbs[0].put(b"key:%d" % number, b"value:%d" % number, 1)
    return snapshot(dbs)


def test_the_file_is_turned_on_with_all_that_is_being_loaded(
    fresh_server: Factory, tmp_path: Path
) -> None:
    (tmp_path / "dump.hrs").write_bytes(many_keys())
    server = fresh_server(directory=tmp_path, start=False, debug=False)
    take_while_loading(server, "CONFIG", "SET", "appendonly", "yes")
    wait_until(lambda: "The append-only file is turned on" in server.log())
    assert server.call("SET", "later", "v") == b"OK"
    (tmp_path / "dump.hrs").unlink()
    server.kill()
    again = fresh_server(*AOF, directory=tmp_path)
    assert again.call("DBSIZE") == MANY + 1


def test_the_file_is_turned_off_when_it_has_been_loaded(
    fresh_server: Factory, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path, many_keys(), b"")
    server = fresh_server(*AOF, directory=tmp_path, start=False, debug=False)
    take_while_loading(server, "CONFIG", "SET", "appendonly", "no")
    assert server.call("DBSIZE") == MANY
    assert server.call("SET", "later", "v") == b"OK"
    with server.client() as client:
        assert b"aof_enabled:0" in client.call("INFO", "persistence")
        assert (folder / "appendonly.aof.1.incr.aof").read_bytes() == b""
        # Others may have the folder now, and it may be turned on again.
        assert client.call("CONFIG", "SET", "appendonly", "yes") == b"+OK\r\n"
        assert b"aof_enabled:1" in client.call("INFO", "persistence")


@pytest.mark.once
def test_clients_are_answered_while_a_snapshot_is_loaded(
    fresh_server: Factory, tmp_path: Path
) -> None:
    dbs = databases()
    for number in range(300_000):
        dbs[0].put(b"key:%d" % number, b"value:%d" % number, 1)
    dbs[0].put(b"s", make_stream(((n, 0, [b"f", b"v"]) for n in range(1, 20_000)), 100), 1)
    (tmp_path / "dump.hrs").write_bytes(snapshot(dbs))
    server = fresh_server(directory=tmp_path, start=False, debug=False)
    seen: set[bytes] = set()
    fields: set[str] = set()

    def are_answered() -> bool:
        """Ask while it is loaded: a busy machine may have us come too late."""
        server.kill()
        server.spawn()
        seen.clear()
        while b"$-1" not in seen:
            with contextlib.suppress(OSError), server.client() as client:
                while b"$-1" not in seen:
                    replies = client.pipeline(("PING",), ("INFO", "persistence"), ("GET", "none"))
                    seen.update(reply[:8].strip() for reply in (replies[0], replies[2]))
                    if b"\r\nloading:1\r\n" in replies[1]:
                        lines = replies[1].decode().split("\r\n")
                        fields.update(line.partition(":")[0] for line in lines)
        assert seen <= {b"-LOADING", b"+PONG", b"$-1"}
        return b"-LOADING" in seen and bool(fields)

    wait_until(are_answered)
    for name in ("start_time", "total_bytes", "loaded_bytes", "loaded_perc", "eta_seconds"):
        assert f"loading_{name}" in fields
    assert server.call("DBSIZE") == 300_001
    assert server.call("XLEN", "s") == 19_999
