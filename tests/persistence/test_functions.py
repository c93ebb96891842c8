"""Libraries of functions: there after a restart, a rewrite, an exchange; or refused clearly."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Factory

from support.client import WireError
from support.process import Process, incr
from support.tools import tool

from .test_serving import FOLDER, MANIFEST, wait_until

pytestmark = pytest.mark.once

AOF = ("--appendonly", "yes")
DEBUG = ("--enable-debug-command", "yes")

# What lies between the lines of a library counts too: a library is kept as it was sent.
ONE = b"""#!lua name=one
-- \xff\x01 and other bytes
local calls = 0
redis.register_function('put', function(keys, args) return redis.call('SET', keys[1], args[1]) end)
redis.register_function{
    function_name = 'look', description = 'reads', flags = {'no-writes'},
    callback = function(keys) return redis.call('GET', keys[1]) end,
}
redis.register_function('count', function() calls = calls + 1 return calls end)
"""
ANOTHER_ONE = b"#!lua name=one\nredis.register_function('look', function() return 'new' end)"
TWO = b"#!lua name=two\nredis.register_function('two', function() return 2 end)"
BROKEN = b"#!lua name=broken\nredis.register_function('f', function() return"


def libraries(server: Process) -> list[object]:
    """All that FUNCTION LIST tells, in an order of its own."""
    with server.client() as client:
        listed = client.call_parsed("FUNCTION", "LIST", "WITHCODE")
    assert isinstance(listed, list)
    found: list[object] = []
    for library in listed:
        facts = dict(zip(library[::2], library[1::2], strict=True))
        facts[b"functions"].sort()
        found.append(sorted(facts.items()))
    return sorted(found, key=repr)


def check(server: Process, before: list[object]) -> None:
    """The libraries are as they were, and can be called."""
    assert libraries(server) == before
    with server.client() as client:
        assert client.call("FCALL", "put", 1, "by a function", "v") == b"+OK\r\n"
        assert client.call("FCALL_RO", "look", 1, "by a function") == b"$1\r\nv\r\n"
        assert client.call("FCALL", "two", 0) == b":2\r\n"
        assert client.call("FCALL", "nosuch", 0) == b"-ERR Function not found\r\n"


def load(server: Process) -> list[object]:
    """Load two libraries, and others that go again or are replaced; what is there then."""
    with server.client() as client:
        for words in (
            ("LOAD", "#!lua name=gone\nredis.register_function('gone', function() end)"),
            ("FLUSH", "ASYNC"),
            ("LOAD", ANOTHER_ONE),
            ("LOAD", "REPLACE", ONE),
            ("LOAD", "#!lua name=three\nredis.register_function('three', function() end)"),
            ("LOAD", TWO),
            ("DELETE", "three"),
        ):
            assert not client.call("FUNCTION", *words).startswith(b"-"), words
        assert client.call("FUNCTION", "LOAD", TWO).startswith(b"-ERR Library 'two' already")
        assert client.call("FUNCTION", "LOAD", BROKEN).startswith(b"-ERR Error compiling")
        assert client.call("FUNCTION", "DELETE", "nosuch").startswith(b"-ERR Library not")
        client.call("SET", "k", "v")
        client.call("FLUSHALL")
    there = libraries(server)
    assert len(there) == 2
    return there


def rewrite(server: Process) -> None:
    server.call("BGREWRITEAOF")
    wait_until(server, "aof_rewrite_in_progress", "0")
    wait_until(server, "aof_last_bgrewrite_status", "ok")


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_libraries_are_there_after_a_restart(fresh_server: Factory, policy: str) -> None:
    server = fresh_server(*AOF, "--appendfsync", policy)
    there = load(server)
    check(server.restart(crash=True), there)
    check(server.restart(), there)


def test_what_changes_no_library_is_not_recorded(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    load(server)
    before = incr(server)
    with server.client() as client:
        for words in (
            ("LOAD", TWO), ("LOAD", BROKEN), ("DELETE", "nosuch"), ("LIST",), ("STATS",), ("DUMP",),
            ("RESTORE", "no payload"), ("FLUSH", "SOON"),
        ):  # fmt: skip
            client.call("FUNCTION", *words)
        client.call("FCALL", "two", 0)
        client.call("FCALL_RO", "look", 1, "k")
        assert incr(server) == before
        client.call("FCALL", "put", 1, "k", "v")
    assert incr(server)[len(before) :] == b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"


def test_no_library_after_a_flush(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    load(server)
    server.call("FUNCTION", "FLUSH")
    assert libraries(server.restart(crash=True)) == []
    rewrite(server)
    assert libraries(server.restart(crash=True)) == []


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_libraries_are_there_after_a_rewrite(fresh_server: Factory, preamble: str) -> None:
    server = fresh_server(*AOF, *DEBUG, "--aof-use-rdb-preamble", preamble)
    there = load(server)
    server.call("SET", "k", "v")
    rewrite(server)
    check(server.restart(crash=True), there)
    server.call("FUNCTION", "DELETE", "two")
    server.call("FUNCTION", "LOAD", "REPLACE", ANOTHER_ONE)
    there = libraries(server.restart(crash=True))
    assert len(there) == 1
    assert server.call("FCALL", "look", 0) == b"new"
    server.call("DEBUG", "LOADAOF")
    assert libraries(server) == there
    assert server.call("FCALL", "look", 0) == b"new"
    rewrite(server)
    assert libraries(server.restart()) == there
    server.stop()
    checked = tool("check-aof", str(server.directory))
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("command", ["SAVE", "BGSAVE"])
def test_libraries_are_in_a_snapshot(fresh_server: Factory, command: str) -> None:
    server = fresh_server(*DEBUG)
    there = load(server)
    server.call("SET", "k", "v")
    server.call(command)
    wait_until(server, "rdb_bgsave_in_progress", "0")
    server.call("FUNCTION", "LOAD", "#!lua name=z\nredis.register_function('z', function() end)")
    check(server.restart(crash=True), there)
    checked = tool("check-snapshot", str(server.directory / "dump.hrs"))
    assert checked.returncode == 0, checked.stdout
    with server.client() as client:
        client.call("FUNCTION", "DELETE", "two")
        assert client.call("DEBUG", "RELOAD", "NOSAVE") == b"+OK\r\n"
        assert libraries(server) == there
        client.call("FUNCTION", "DELETE", "two")
        assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
        assert len(libraries(server)) == 1
        assert client.call("FUNCTION", "LOAD", TWO) == b"$3\r\ntwo\r\n"
        assert client.call("DEBUG", "RELOAD", "MERGE") == b"+OK\r\n"
    check(server, there)


def test_a_base_is_of_the_moment_in_which_it_began(fresh_server: Factory) -> None:
    """What changes while a rewrite or a snapshot goes on belongs to what comes after it."""
    server = fresh_server(*AOF, "--rdb-key-save-delay", "3000")
    there = load(server)
    with server.client() as client:
        client.pipeline(*[("SET", f"k{number}", "v" * 50) for number in range(500)])
        client.call("BGREWRITEAOF")
        wait_until(server, "current_save_keys_total", "500")
        client.call("FUNCTION", "DELETE", "two")
        client.call("FUNCTION", "LOAD", "REPLACE", ANOTHER_ONE)
        client.call("CONFIG", "SET", "rdb-key-save-delay", 0)
    wait_until(server, "aof_rewrite_in_progress", "0")
    base = next((server.directory / FOLDER).glob("*.base.*")).read_bytes()
    assert TWO in base
    assert ONE in base
    assert ANOTHER_ONE not in base
    server.restart(crash=True)
    assert len(there) - 1 == len(libraries(server))
    assert server.call("FCALL", "look", 0) == b"new"


@pytest.mark.parametrize("policy", ["", "FLUSH", "APPEND", "REPLACE"])
def test_restored_libraries_are_recorded(fresh_server: Factory, policy: str) -> None:
    server = fresh_server(*AOF)
    there = load(server)
    payload = server.call("FUNCTION", "DUMP")
    assert isinstance(payload, bytes)
    if policy == "REPLACE":
        server.call("FUNCTION", "LOAD", "REPLACE", ANOTHER_ONE)
    else:
        server.call("FUNCTION", "FLUSH")
    if policy == "FLUSH":
        server.call("FUNCTION", "LOAD", ANOTHER_ONE)
    server.call("FUNCTION", "RESTORE", payload, *([policy] if policy else []))
    check(server, there)
    check(server.restart(crash=True), there)


def test_a_restore_takes_all_or_nothing(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    load(server)
    payload = server.call("FUNCTION", "DUMP")
    assert isinstance(payload, bytes)
    with server.client() as client:
        client.call("FUNCTION", "FLUSH")
        client.call(*("FUNCTION", "LOAD"), TWO.replace(b"name=two", b"name=other"))
        there = libraries(server)
        for policy in ("APPEND", "REPLACE"):
            refused = client.call_parsed("FUNCTION", "RESTORE", payload, policy)
            assert refused == WireError(b"ERR Function two already exists"), policy
        for damaged in (payload[:-1], payload + b"x", payload[:9] + b"x" + payload[10:]):
            refused = client.call_parsed("FUNCTION", "RESTORE", damaged, "FLUSH")
            assert isinstance(refused, WireError)
        assert libraries(server) == there
    assert libraries(server.restart(crash=True)) == there


# Files that cannot be trusted


@pytest.mark.parametrize("form", ["commands", "snapshot"])
def test_a_library_that_is_none_is_a_clear_error(
    fresh_server: Factory, tmp_path: Path, form: str
) -> None:
    """Files that hold a library which does not compile are refused, with a reason."""
    server = fresh_server(*AOF, "--aof-use-rdb-preamble", "no" if form == "commands" else "yes")
    server.call("FUNCTION", "LOAD", TWO)
    server.call("SET", "k", "v")
    rewrite(server)
    server.stop()
    base = next((server.directory / FOLDER).glob("*.base.*"))
    data = base.read_bytes()
    if form == "commands":
        base.write_bytes(data.replace(b"function() return 2 end", b"function() return 2 nde"))
    else:
        rdb = tmp_path / "out.rdb"
        done = tool("export", "--to", "rdb", "--from", str(server.directory / FOLDER), str(rdb))
        assert done.returncode == 0, done.stderr
        broken = rdb.read_bytes().replace(b"return 2 end", b"return 2 nde")
        base.unlink()
        base.with_suffix(".rdb").write_bytes(broken[:-8] + bytes(8))
        text = (server.directory / FOLDER / MANIFEST).read_text()
        (server.directory / FOLDER / MANIFEST).write_text(
            text.replace(base.name, base.with_suffix(".rdb").name)
        )
    server.spawn()
    assert server.wait() == 1
    assert "Error compiling function: user_function:2:" in server.log()
    new = tmp_path / "new"
    done = tool("import", str(server.directory), "--dir", str(new))
    assert done.returncode == 1, done
    told = b"1 x library of functions that cannot be loaded: Error compiling function: user_func"
    assert told in done.stderr
    assert not new.exists()
    done = tool("import", str(server.directory), "--dir", str(new), "--skip-unsupported")
    assert done.returncode == 0, done.stderr
    taken = fresh_server(*AOF, directory=new)
    assert libraries(taken) == []
    assert taken.call("GET", "k") == b"v"
    if form == "snapshot":
        checked = tool("check-aof", str(server.directory))
        assert checked.returncode == 1
        assert b"Error compiling function: user_function:2:" in checked.stderr


# Exchange with real servers


def is_newest(redis: Process) -> bool:
    """Return whether it is the server whose payloads we write."""
    facts = redis.info("server")
    return "valkey_version" not in facts and facts["redis_version"].startswith("8.10")


@pytest.mark.judge
def test_redis_and_we_restore_each_other(fresh_server: Factory, fresh_redis: Factory) -> None:
    ours, real = fresh_server(), fresh_redis()
    ways = [(real, ours)]
    if is_newest(real):
        ways.append((ours, real))  # older ones know no payload of this version
    for provider, taker in ways:
        provider.call("FUNCTION", "FLUSH")
        there = load(provider)
        payload = provider.call("FUNCTION", "DUMP")
        assert isinstance(payload, bytes)
        for policy in ("FLUSH", "REPLACE"):
            taker.call("FUNCTION", "RESTORE", payload, policy)
            check(taker, there)
        with taker.client() as client:
            refused = client.call("FUNCTION", "RESTORE", payload, "APPEND")
            assert refused.startswith(b"-ERR Library ")


@pytest.mark.judge
@pytest.mark.parametrize("form", ["aof", "commands", "dump", "base"])
def test_we_load_what_redis_wrote(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, form: str
) -> None:
    preamble = "no" if form == "commands" else "yes"
    options = () if form == "dump" else AOF
    policy = ("--appendfsync", "always", "--aof-use-rdb-preamble", preamble)
    redis = fresh_redis(*options, *policy)
    there = load(redis)
    redis.call("SET", "k", "v")
    if form == "dump":
        redis.call("SAVE")
    elif form != "aof":
        rewrite(redis)
    redis.kill()
    source = str(redis.directory / ("dump.rdb" if form == "dump" else FOLDER))
    new = tmp_path / "new"
    kind = "snapshot" if form == "dump" else "appendonly"
    done = tool("import", source, "--dir", str(new), "--as", kind)
    assert done.returncode == 0, done.stderr
    checked = tool("check-aof", source)
    assert checked.returncode == 0, checked.stderr
    check(fresh_server(*options, directory=new), there)
    name = ("--dbfilename", "dump.rdb") if form == "dump" else ()
    ours = fresh_server(*options, *name, directory=redis.directory)
    assert ours.call("GET", "k") == b"v"
    check(ours, there)
    check(ours.restart(), there)


@pytest.mark.judge
@pytest.mark.parametrize("form", ["redis-aof", "rdb", "resp"])
@pytest.mark.parametrize("source", [FOLDER, "dump.hrs"])
def test_redis_loads_what_we_export(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, form: str, source: str
) -> None:
    server = fresh_server(*(AOF if source == FOLDER else ()))
    there = load(server)
    server.call("SET", "k", "v")
    if source == FOLDER:
        rewrite(server)
        server.call("FUNCTION", "DELETE", "two")
        server.call("FUNCTION", "LOAD", TWO)
    else:
        server.call("SAVE")
    server.kill()
    out = tmp_path / "out"
    target = out / "dump.rdb" if form == "rdb" else out
    if form == "rdb":
        out.mkdir()
    path = str(server.directory / source)
    done = tool("export", "--to", form, "--from", path, str(target))
    assert done.returncode == 0, done.stderr
    if form == "resp":
        redis = fresh_redis()
        with redis.client() as client:
            client.send(target.read_bytes() + b"*1\r\n$4\r\nPING\r\n")
            while (reply := client.read()) != b"+PONG\r\n":
                assert not reply.startswith(b"-"), reply
    else:
        redis = fresh_redis(*(AOF if form == "redis-aof" else ()), directory=out)
    assert redis.call("GET", "k") == b"v"
    check(redis, there)


def test_older_servers_have_no_functions(fresh_server: Factory, tmp_path: Path) -> None:
    """An export for a server that does not know them says so."""
    server = fresh_server(*AOF)
    load(server)
    server.kill()
    done = tool(
        *("export", "--to", "rdb", "--from", str(server.directory / FOLDER), "--redis", "5.0"),
        str(tmp_path / "dump.rdb"),
    )
    assert done.returncode == 1
    assert b"functions" in done.stderr
    assert not (tmp_path / "dump.rdb").exists()
