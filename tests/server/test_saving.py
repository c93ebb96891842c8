"""Snapshots: SAVE, BGSAVE, save points, what they hold, and what happens when they fail."""

from __future__ import annotations

import resource
import signal
import sys
import time
from pathlib import Path

import pytest
from conftest import Factory

from support.client import RawClient, WireError, encode
from support.clock import Clock
from support.file_limit import limit_files
from support.process import Pair, Process
from support.waiting import wait_until

SLOWLY = ("CONFIG", "SET", "rdb-key-save-delay", "10000000")  # ten seconds for each key
AT_ONCE = ("CONFIG", "SET", "rdb-key-save-delay", "0")


def figure(server: Process, name: str) -> str:
    return server.info("persistence")[name]


def wait_for(server: Process, name: str, value: str) -> None:
    wait_until(lambda: figure(server, name) == value)


def wait_for_the_end(server: Process) -> None:
    wait_for(server, "rdb_bgsave_in_progress", "0")
    wait_for(server, "aof_rewrite_in_progress", "0")


@pytest.fixture(params=["dump.hrs", "dump.rdb"])
def server(fresh_server: Factory, tmp_path: Path, request: pytest.FixtureRequest) -> Process:
    """One that saves in our form, or in Redis's."""
    options = ("--save", "", "--enable-debug-command", "yes", "--dbfilename", request.param)
    return fresh_server(*options, directory=tmp_path, check_log=False)


def dump(server: Process) -> Path:
    names = [word for word in server.options if word.endswith((".hrs", ".rdb"))]
    return server.directory / (names or ["dump.hrs"])[0]


# What it holds


def fill(client: RawClient) -> None:
    client.call("SET", "text", b"\0\xff")
    client.call("SET", "number", "41")
    client.call("APPEND", "written", "abc")
    client.call("APPEND", "written", "def")
    client.call("SET", "mortal", "x", "PX", "10000000")
    for number in range(1, 251):
        client.call("XADD", "log", f"{number}-{number % 3}", "field", f"v{number}", "b", "")
    client.call("XDEL", "log", "250-1", "7-1", "8-2")
    client.call("XGROUP", "CREATE", "log", "g", "0")
    client.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 150, "STREAMS", "log", ">")
    client.call("XACK", "log", "g", "3-0", "4-1")
    client.call("XCLAIM", "log", "g", "other", 0, "5-2", "6-0")
    client.call("XNACK", "log", "g", "FAIL", "IDS", 2, "9-0", "10-1")
    client.call("SELECT", 5)
    client.call("XADD", "log", "*", "other", "database")


def everything(client: RawClient) -> list[bytes]:
    """All that the commands show, byte for byte."""
    shown = []
    for db in (0, 5):
        client.call("SELECT", db)
        keys = client.call_parsed("KEYS", "*")
        assert isinstance(keys, list)
        for key in sorted(keys):
            shown.append(client.call("PEXPIRETIME", key))
            if client.call_parsed("TYPE", key) == b"string":
                shown.append(client.call("GET", key))
                continue
            shown.append(client.call("XINFO", "STREAM", key, "FULL", "COUNT", 0))
    return shown


def test_a_snapshot_is_loaded_at_start(server: Process) -> None:
    with server.client() as client:
        fill(client)
        for command in ("SAVE", "BGSAVE"):
            before = everything(client)
            assert len(before) > 10
            assert not client.call(command).startswith(b"-")
            wait_for_the_end(server)
            server.restart(crash=True)
            client.close()
            with server.client() as again:
                assert everything(again) == before
                assert figure(server, "rdb_changes_since_last_save") == "0"
                assert figure(server, "rdb_last_load_keys_loaded") == "6"
            client = server.client()
        client.close()


def test_keys_that_expired_since_are_not_loaded(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    server = fresh_server(environment=settable_clock.environment)
    server.call("SET", "other", "x")
    with server.client() as client:
        client.pipeline(("SET", "mortal", "x", "PX", 60_000), ("SAVE",))
    server.kill()
    settable_clock.advance(60_001)
    server.start()
    assert server.call("DBSIZE") == 1
    assert figure(server, "rdb_last_load_keys_expired") == "1"


def test_it_is_the_state_of_its_start(server: Process) -> None:
    """Whatever is written meanwhile, the file holds what was there."""
    with server.client() as client:
        for number in range(300):
            client.call("SET", f"key:{number}", number)
            client.call("XADD", f"log:{number}", "1-1", "f", "v")
            client.call("XGROUP", "CREATE", f"log:{number}", "g", 0)
        client.call("CONFIG", "SET", "rdb-key-save-delay", "1000000")
        digest = client.call("DEBUG", "DIGEST")
        client.call("BGSAVE")
        for number in range(300):
            client.call("SET", f"new:{number}", "x")
            client.call("XADD", f"log:{number}", "2-1", "f", "v")
            client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", f"log:{number}", ">")
            client.call("SET", f"key:{number}", "changed", "PX", 1 + number % 3 * 1000)
            if number == 100:
                client.call("SWAPDB", 0, 1)
                client.call("SWAPDB", 1, 0)
            if number % 3 == 0:
                client.call("RENAME", f"log:{number}", f"renamed:{number}")
            elif number % 3 == 1:
                client.call("MOVE", f"log:{number}", 2)
        assert figure(server, "rdb_bgsave_in_progress") == "1", "it was over before the changes"
        client.call("FLUSHDB")
        client.call(*AT_ONCE)
        wait_for_the_end(server)
        assert figure(server, "rdb_last_bgsave_status") == "ok"
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("DEBUG", "DIGEST") == digest


def test_pipelines_change_nothing_of_what_is_saved(server: Process) -> None:
    """Requests that are alike run at once, also while a snapshot is written."""
    ways = {
        "SET string{} x": "SET string{} changed",
        "SET bits{} abc": "SETBIT bits{} 3 1",
        "HSET hash{} f 1": "HINCRBY hash{} f 1",
        "RPUSH list{} a b": "LPOP list{}",
        "RPUSH row{} a b": "RPUSH row{} c",
        "SADD set{} a b": "SREM set{} a",
        "SADD heap{} a b": "SADD heap{} c",
        "ZADD sorted{} 1 a": "ZINCRBY sorted{} 1 a",
        "PFADD sketch{} a": "PFADD sketch{} b c d",
        "XADD log{} 1-1 f v": "XADD log{} * f w",
    }
    with server.client() as client:
        for number in range(100):
            for way in ways:
                client.call(*way.format(number).split())
            client.call("SETBIT", f"bits{number}", 1, 1)
        client.call("CONFIG", "SET", "rdb-key-save-delay", "5000")
        digest = client.call("DEBUG", "DIGEST")
        client.call("BGSAVE")
        for way in ways.values():
            requests = [encode(*way.format(number // 2).split()) for number in range(200)]
            client.send(b"".join(requests))
            assert not [reply for _ in range(200) if (reply := client.read())[:1] == b"-"]
        assert figure(server, "rdb_bgsave_in_progress") == "1", "it was over before the changes"
        client.call(*AT_ONCE)
        wait_for_the_end(server)
        assert client.call("DEBUG", "DIGEST") != digest
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("DEBUG", "DIGEST") == digest


# Commands, as in Redis


@pytest.mark.judge
@pytest.mark.since(8, 10)
@pytest.mark.parametrize("points", ["3600 1", ""])
def test_changes_are_counted_as_in_redis(
    fresh_server: Factory, fresh_redis: Factory, points: str
) -> None:
    servers = fresh_server("--save", points), fresh_redis("--save", points)
    counted = []
    with servers[0].client() as ours, servers[1].client() as real:
        pair = Pair(ours, real)
        for line in (
            "FLUSHALL", "MSET a 1 b 2", "FLUSHALL", "SET a 1", "FLUSHDB", "FLUSHDB", "SET a 1",
            "FLUSHALL ASYNC", "MULTI", "SET a 1", "FLUSHALL", "SET b 1", "EXEC", "XADD s 1-1 f v",
            "DEL a b s", "FLUSHALL SYNC",
        ):  # fmt: skip
            pair.both(*line.split())
            changes = [one.info("persistence")["rdb_changes_since_last_save"] for one in servers]
            assert changes[0] == changes[1], line
            counted.append(int(changes[0]))
    assert counted[2] == (0 if points else 4)


@pytest.mark.since(8, 0)  # Valkey says otherwise what MULTI refuses
def test_replies_as_in_redis(fresh_server: Factory, fresh_redis: Factory) -> None:
    options = ("--save", "", "--enable-debug-command", "yes")
    ours, real = fresh_server(*options), fresh_redis(*options)
    pair = Pair(ours.client(), real.client())
    pair.both("SET", "a", 1)
    pair.both("SET", "b", 2)
    pair.both(*SLOWLY)
    pair.both("BGSAVE", "NOW")
    pair.both("BGSAVE", "SCHEDULE", "SCHEDULE")
    pair.both("SAVE", "x")
    pair.both("BGSAVE")
    pair.both("BGSAVE")
    pair.both("BGSAVE", "schedule")
    pair.both("SAVE")
    pair.both("BGREWRITEAOF")
    pair.both("BGREWRITEAOF")
    for server in (ours, real):
        facts = server.info("persistence")
        assert facts["rdb_bgsave_in_progress"] == "1"
        assert facts["aof_rewrite_scheduled"] == "1"
        assert facts["rdb_saves"] == "1"
        assert facts["rdb_changes_since_last_save"] == "2"
        assert facts["current_save_keys_total"] == "2"
    pair.both("FLUSHALL")  # ends the snapshot
    pair.both(*AT_ONCE)
    for server in (ours, real):
        wait_for_the_end(server)
        wait_for(server, "aof_rewrites", "1")
        wait_for_the_end(server)
    pair.both("SET", "a", 1)
    pair.both(*SLOWLY)
    pair.both("BGREWRITEAOF")
    pair.both("BGREWRITEAOF")
    pair.both("BGSAVE")
    pair.both("BGSAVE", "SCHEDULE")
    for server in (ours, real):
        assert figure(server, "aof_rewrite_in_progress") == "1"
    pair.both("MULTI")
    pair.both("BGSAVE")
    pair.both("BGREWRITEAOF")
    pair.both("EXEC")
    pair.both("MULTI")
    pair.both("SAVE")
    pair.both("EXEC")
    pair.close()


def test_a_scheduled_snapshot_follows_the_rewrite(server: Process) -> None:
    with server.client() as client:
        client.call("SET", "a", 1)
        client.call("CONFIG", "SET", "rdb-key-save-delay", "2000000")  # two seconds for the key
        client.call("BGREWRITEAOF")
        assert client.call("BGSAVE", "SCHEDULE") == b"+Background saving scheduled\r\n"
        assert client.call("SAVE") == b"+OK\r\n", "nothing stands in its way"
        dump(server).unlink()
        client.call(*AT_ONCE)
        wait_until(dump(server).exists)
        wait_for_the_end(server)
        assert client.call("MULTI") == b"+OK\r\n"
        client.call("BGSAVE")
        assert client.call("EXEC") == b"*1\r\n+Background saving scheduled\r\n"
        wait_for(server, "rdb_saves", "3")


def test_progress_is_told(server: Process) -> None:
    with server.client() as client:
        for number in range(200):
            client.call("SET", f"key:{number}", "x" * 100)
        client.call("CONFIG", "SET", "rdb-key-save-delay", "1000000")
        client.call("BGSAVE")
        seen = set()
        client.pipeline(*[("SET", f"key:{number}", "y") for number in range(200)])
        client.call("CONFIG", "SET", "rdb-key-save-delay", "8000")
        copied = 0
        while figure(server, "rdb_bgsave_in_progress") == "1":
            facts = server.info("persistence")
            seen.add(int(facts["current_save_keys_processed"]))
            copied = max(copied, int(facts["current_cow_size"]))
            assert facts["current_save_keys_total"] in ("200", "0")
            assert 0 <= float(facts["current_fork_perc"]) <= 100
            assert int(facts["rdb_current_bgsave_time_sec"]) < 60
        assert len(seen) > 3
        assert copied > 50 * 100, "what was overwritten is kept until it has been written"
        facts = server.info("persistence")
        assert facts["current_save_keys_processed"] == "0"
        assert int(facts["rdb_last_cow_size"]) >= copied
        assert 0 <= int(facts["rdb_last_bgsave_time_sec"]) < 60
        assert facts["rdb_changes_since_last_save"] == "200"
    server.wait_for_log("of 200 keys")


# Save points and the end of the server


def test_a_save_point(fresh_server: Factory) -> None:
    server = fresh_server("--save", "1", "3")
    before = server.call("LASTSAVE")
    server.call("MSET", "a", 1, "b", 2)
    time.sleep(2.2)
    assert not dump(server).exists(), "two changes are too few"
    server.call("SET", "c", 3)
    wait_until(dump(server).exists)
    wait_for_the_end(server)
    after = server.call("LASTSAVE")
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert before < after <= time.time()
    assert "3 changes in 1 seconds. Saving..." in server.log()
    server.restart(crash=True)
    assert server.call("DBSIZE") == 3


@pytest.mark.parametrize(
    ("options", "command", "saves"),
    [
        (("--save", "100 1"), ("SHUTDOWN", "NOSAVE"), False),
        (("--save", ""), ("SHUTDOWN", "SAVE"), True),
        (("--save", "100 1"), (), True),
        (("--save", ""), (), False),
        (("--save", "100 1", "--shutdown-on-sigterm", "nosave"), (), False),
    ],
)
def test_what_the_end_saves(
    fresh_server: Factory, options: tuple[str, ...], command: tuple[str, ...], saves: bool
) -> None:
    server = fresh_server(*options)
    server.call("SET", "a", 1)
    if command:
        with server.client() as client:
            client.send_command(*command)
            assert client.rest_until_close() == b""
        assert server.wait() == 0
    else:
        server.stop()
    assert dump(server).exists() == saves
    server.start()
    assert server.call("DBSIZE") == int(saves)


def test_no_end_without_the_snapshot(fresh_server: Factory) -> None:
    """Where saving fails the server stays, unless it is forced."""
    server = fresh_server("--save", "100 1", check_log=False)
    server.call("SET", "big", "x" * 300_000)
    limit_files(server, 200_000)
    with server.client() as client:
        refused = client.call_parsed("SHUTDOWN")
        assert refused == WireError(b"ERR Errors trying to SHUTDOWN. Check logs.")
        server.signal(signal.SIGTERM)
        server.wait_for_log("Not shut down")
        assert client.call("PING") == b"+PONG\r\n"
        client.send_command("SHUTDOWN", "SAVE", "FORCE")
        assert client.rest_until_close() == b""
    assert server.wait() == 0
    assert list(server.directory.glob("*.hrs")) == []


# Failures


@pytest.mark.since(8, 0)  # Valkey says otherwise why it refuses
def test_writes_are_refused_after_a_failure_as_in_redis(
    fresh_server: Factory, fresh_redis: Factory
) -> None:
    ours = fresh_server("--save", "100000 1", check_log=False)
    real = fresh_redis("--rdbcompression", "no")
    pair = Pair(ours.client(), real.client())
    pair.both("CONFIG", "SET", "save", "100000 1")
    pair.both("SET", "big", "x" * 300_000)
    for server in (ours, real):
        limit_files(server, 200_000)
    pair.both("BGSAVE")
    for server in (ours, real):
        wait_for(server, "rdb_last_bgsave_status", "err")
        wait_for_the_end(server)
        assert figure(server, "rdb_changes_since_last_save") == "1"
    pair.both("SET", "a", 1)
    pair.both("PING")
    pair.both("GET", "a")
    pair.both("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
    pair.both("SET", "a", 2)
    pair.both("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
    pair.both("SET", "a", 3)
    pair.both("CONFIG", "SET", "save", "")
    pair.both("SET", "a", 4)
    pair.both("CONFIG", "SET", "save", "100000 1")
    pair.both("SET", "a", 5)
    for server in (ours, real):
        limit_files(server, resource.RLIM_INFINITY)
    pair.both("BGSAVE")
    for server in (ours, real):
        wait_for(server, "rdb_last_bgsave_status", "ok")
    pair.both("SET", "a", 6)
    pair.close()
    assert sorted(path.name for path in ours.directory.glob("*.hrs")) == ["dump.hrs"]


def test_a_failure_leaves_the_file_that_is_there(server: Process) -> None:
    server.call("SET", "a", 1)
    server.call("SAVE")
    before = dump(server).read_bytes()
    server.call("SET", "big", "x" * 300_000)
    limit_files(server, 200_000)
    with server.client() as client:
        assert client.call("SAVE") == b"-ERR\r\n"
    server.call("BGSAVE")
    wait_for(server, "rdb_last_bgsave_status", "err")
    assert dump(server).read_bytes() == before
    # What was written of the new one is removed beside the next commands.
    wait_until(lambda: not list(server.directory.glob("temp-*")))


@pytest.mark.parametrize("server", ["dump.hrs"], indirect=True)
def test_a_snapshot_of_redis_is_not_overwritten(server: Process) -> None:
    dump(server).write_bytes(b"REDIS0010 what only Redis can read")
    with server.client() as client:
        assert client.call("SAVE") == b"-ERR\r\n"
    server.call("BGSAVE")
    wait_for(server, "rdb_last_bgsave_status", "err")
    assert dump(server).read_bytes() == b"REDIS0010 what only Redis can read"
    assert "is a snapshot of Redis" in server.log()


def test_flushall_ends_a_snapshot_and_empties_the_one_on_the_disk(fresh_server: Factory) -> None:
    server = fresh_server("--save", "100000 1")
    with server.client() as client:
        client.call("SET", "a", 1)
        client.call("SAVE")
        client.call(*SLOWLY)
        client.call("BGSAVE")
        client.call("FLUSHALL")
        facts = server.info("persistence")
        assert facts["rdb_bgsave_in_progress"] == "0"
        assert facts["rdb_last_bgsave_status"] == "ok"
        assert facts["rdb_changes_since_last_save"] == "0"
    server.restart(crash=True)
    assert server.call("DBSIZE") == 0


def test_debug_reload_with_options(server: Process) -> None:
    with server.client() as client:
        client.call("SET", "a", "saved")
        client.call("SAVE")
        client.call("SET", "a", "changed")
        client.call("SET", "b", "new")
        failed = b"-ERR Error trying to load the RDB dump, check server logs.\r\n"
        assert client.call("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH") == failed
        assert client.call("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE") == b"+OK\r\n"
        assert client.call("MGET", "a", "b") == b"*2\r\n$5\r\nsaved\r\n$3\r\nnew\r\n"
        assert client.call("DEBUG", "RELOAD", "NOSAVE") == b"+OK\r\n"
        assert client.call("EXISTS", "a", "b") == b":1\r\n"
        assert client.call("SET", "b", "newer") == b"+OK\r\n"
        assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
        assert client.call("EXISTS", "a", "b") == b":2\r\n"


# Its name


def test_the_name_says_the_form(fresh_server: Factory, tmp_path: Path) -> None:
    """What was saved before in the other form is there as long as nothing newer is."""
    server = fresh_server(directory=tmp_path, check_log=False)
    own, redis = tmp_path / "dump.hrs", tmp_path / "dump.rdb"

    def started(*options: str) -> object:
        server.kill()
        server.options = options
        server.start()
        return server.call("GET", "k")

    server.call("SET", "k", "in ours")
    server.call("SAVE")
    assert started("--dbfilename", "dump.rdb") == b"in ours"
    assert f"Loading {own}; SAVE will write {redis}" in server.log()
    server.call("SET", "k", "in Redis's")
    server.call("SAVE")
    assert own.read_bytes().startswith(b"HEADRACE")
    assert redis.read_bytes().startswith(b"REDIS")
    assert started("--dbfilename", "dump.rdb") == b"in Redis's"
    assert "is not: move one away" not in server.log()
    assert started() == b"in ours"
    assert f"{own} is loaded, and {redis} is not: move one away" in server.log()
    server.call("SAVE")
    assert started("--dbfilename", "dump.rdb") == b"in ours"
    assert f"{own} is loaded, and {redis} is not: move one away" in server.log()
    own.unlink()
    assert started("--dbfilename", "dump.rdb") == b"in Redis's"
    redis.unlink()
    assert started("--dbfilename", "dump.rdb") is None


def test_who_starts_redis_server_finds_its_file(fresh_server: Factory, tmp_path: Path) -> None:
    """A program of that name stands in for Redis, and whoever removes dump.rdb wants it empty."""
    program = tmp_path / "redis-server"
    program.write_text("import sys\nfrom headrace.server.cli import main\nsys.exit(main())\n")
    server = fresh_server(directory=tmp_path, start=False)
    server.command = lambda: [sys.executable, "-P", str(program)]  # type: ignore[method-assign]
    server.start()
    assert server.call("CONFIG", "GET", "dbfilename") == [b"dbfilename", b"dump.rdb"]
    server.call("SET", "k", "v")
    assert server.restart().call("GET", "k") == b"v"  # the end has saved it
    server.kill()
    (tmp_path / "dump.rdb").unlink()
    assert server.start().call("DBSIZE") == 0


@pytest.mark.parametrize("name", ["dump.hrs", "dump.rdb"])
def test_a_snapshot_begins_the_append_only_file(fresh_server: Factory, name: str) -> None:
    server = fresh_server("--dbfilename", name)
    server.call("SET", "k", "v")
    server.call("SAVE")
    server.options = (*server.options, "--appendonly", "yes")
    assert server.restart().call("GET", "k") == b"v"
    server.call("SET", "k", "w")
    assert server.restart(crash=True).call("GET", "k") == b"w"


def test_a_region_saves_in_our_form(fresh_server: Factory, tmp_path: Path) -> None:
    """Redis's has no places for what it has to keep."""
    options = ("--appendonly", "yes", "--aa-region-id", "1", "--aa-port", "0")
    server = fresh_server(*options, "--dbfilename", "dump.rdb", directory=tmp_path)
    server.call("XADD", "s", "*", "f", "v")
    server.call("SAVE")
    assert [path.name for path in tmp_path.glob("dump.*")] == ["dump.hrs"]
