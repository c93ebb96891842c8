"""Values of every type go to real servers and come from them, and are the same there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from support.all_types import make, names, requests
from support.client import RawClient
from support.judges import JUDGES
from support.process import Process, ServerProcess
from support.rdb_forms import sealed
from support.tools import tool
from support.waiting import wait_until
from support.writers import NAMES, Writer

from .test_rdb_export import exported

pytestmark = pytest.mark.once
OK = b"+OK\r\n"
FOLLOWS = {judge.name: judge.follows for judge in JUDGES}
SHAPED = {b"template-listpack": b"listpack", b"template-array": b"hashtable"}  # not kept here
DEBUG = ("--enable-debug-command", "yes")


@pytest.fixture(scope="module", params=NAMES)
def real(request: pytest.FixtureRequest) -> Iterator[Writer]:
    with Writer(request.param) as server:
        yield server


@pytest.fixture(scope="module")
def newest() -> Iterator[Writer]:
    with Writer("redis-8.10") as server:
        yield server


def known(name: str) -> tuple[int, int]:
    """Which values a server has; Valkey 9 has deadlines of fields, and left Redis before."""
    return (7, 4) if name == "valkey-9.1" else FOLLOWS[name]


def dumped(client: RawClient, key: str) -> bytes:
    data = client.call_parsed("DUMP", key)
    assert isinstance(data, bytes)
    return data


def digest(client: RawClient, key: str) -> object:
    return client.call_parsed("DEBUG", "DIGEST-VALUE", key)


def facts(client: RawClient, key: str) -> list[object]:
    """Return what a client sees of a value, and in which order where that is kept."""
    kind = client.call_parsed("TYPE", key)
    encoding = client.call_parsed("OBJECT", "ENCODING", key)
    assert isinstance(encoding, bytes)
    encoding = SHAPED.get(encoding, encoding)
    found: object = None
    if kind == b"list":
        found = client.call("LRANGE", key, 0, -1)
    elif kind == b"set":
        members = client.call_parsed("SMEMBERS", key)
        assert isinstance(members, list)
        found = sorted(members) if encoding == b"hashtable" else members
    elif kind == b"zset":
        found = client.call("ZRANGE", key, 0, -1, "WITHSCORES")
    elif kind == b"hash":
        fields = client.call_parsed("HGETALL", key)
        assert isinstance(fields, list)
        pairs = dict(zip(fields[::2], fields[1::2], strict=True))
        found = sorted(pairs.items())
        deadlines = client.call_parsed("HPEXPIRETIME", key, "FIELDS", len(pairs), *sorted(pairs))
        has_some = isinstance(deadlines, list) and max(deadlines) > 0
        found = [found, deadlines if has_some else None]
    elif kind == b"array":
        found = [client.call("ARCOUNT", key), client.call("ARLEN", key)]
    return [kind, encoding, found]


@pytest.mark.parametrize("name", names((8, 10)))
def test_what_a_server_dumped_is_restored(client: RawClient, real: Writer, name: str) -> None:
    if name not in names(known(real.name)):
        pytest.skip(f"{real.name} has no {name}")
    with real.client() as there:
        there.call("FLUSHALL")
        make(there, requests(name))
        assert client.call("RESTORE", "k", 0, dumped(there, "k")) == OK
        if real.name == "redis-8.10":
            assert facts(client, "k") == facts(there, "k")
            assert digest(client, "k") == digest(there, "k")
        make(client, requests(name), "here")
        assert facts(client, "k")[0] == facts(client, "here")[0]
        assert digest(client, "k") == digest(client, "here")


@pytest.mark.parametrize("name", names((8, 10)))
def test_what_we_dumped_is_restored_by_redis(client: RawClient, newest: Writer, name: str) -> None:
    with newest.client() as there:
        there.call("FLUSHALL")
        make(client, requests(name))
        assert there.call("RESTORE", "k", 0, dumped(client, "k")) == OK
        assert facts(there, "k") == facts(client, "k")
        assert digest(there, "k") == digest(client, "k")


def fill(server: Process, some: list[str]) -> None:
    with server.client() as client:
        for number, name in enumerate(some):
            client.call("SELECT", number % 3)
            make(client, requests(name), name)
            if number % 4 == 0:
                client.call("PEXPIREAT", name, 4_000_000_000_000 + number)


def contents(server: Process, some: list[str]) -> object:
    """All values, with deadlines, in words that servers of all versions have."""
    with server.client() as client:
        found: list[object] = []
        for number, name in enumerate(some):
            client.call("SELECT", number % 3)
            kind, _, value = facts(client, name)
            if kind == b"zset":  # servers spell scores differently
                scored = client.call_parsed("ZRANGE", name, 0, -1, "WITHSCORES")
                assert isinstance(scored, list)
                value = list(zip(scored[::2], map(float, scored[1::2]), strict=True))
            elif kind == b"set":
                members = client.call_parsed("SMEMBERS", name)
                assert isinstance(members, list)
                value = sorted(members)
            found.append([name, kind, client.call("PEXPIRETIME", name), value])
        return found


@pytest.mark.parametrize("name", NAMES)
def test_real_servers_load_what_is_exported(
    fresh_server: Factory, tmp_path: Path, name: str
) -> None:
    some = names(FOLLOWS[name])
    server = fresh_server(*DEBUG, "--appendonly", "yes")
    fill(server, some)
    before = contents(server, some)
    exported(server, tmp_path)
    with Writer(name, directory=tmp_path) as real:
        assert contents(real, some) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_goes_to_and_fro(fresh_server: Factory, tmp_path: Path, name: str) -> None:
    """``dump.rdb`` is written by either server, and either one goes on with it."""
    some = names(FOLLOWS[name])
    ours = fresh_server(*DEBUG, "--dbfilename", "dump.rdb", directory=tmp_path)
    fill(ours, some)
    before = contents(ours, some)
    ours.stop()
    with Writer(name, directory=tmp_path) as real:
        assert contents(real, some) == before
        real.call("SET", "written by", name)
        real.call("SAVE")
        real.kill()
    ours.start()
    assert contents(ours, some) == before
    assert ours.call("GET", "written by") == name.encode()
    assert sorted(path.name for path in tmp_path.glob("*dump*")) == ["dump.rdb"]


def test_a_snapshot_is_checked_whatever_its_version(fresh_server: Factory, tmp_path: Path) -> None:
    """The version is known last, and stands in the first bytes, which the checksum covers."""
    server = fresh_server("--dbfilename", "dump.rdb", directory=tmp_path, check_log=False)
    path = tmp_path / "dump.rdb"
    for request, version in (
        (("SET", "k", "v"), b"0010"),
        (("HSETEX", "h", "EX", 10**9, "FIELDS", 1, "f", "v"), b"0012"),
        (("ARSET", "a", 0, "v"), b"0014"),
    ):
        server.call(*request)
        server.call("SAVE")
        data = path.read_bytes()
        assert data[5:9] == version
        assert data == sealed(data[:-8])
    server.kill()
    path.write_bytes(data.replace(b"\x01k\x01v", b"\x01k\x01w"))
    server.spawn()
    assert server.wait() == 1
    assert "checksum" in server.log()


def test_valkey_loads_what_is_exported_for_it(fresh_server: Factory, tmp_path: Path) -> None:
    """Values of Redis 7.2, and hashes with deadlines, which it has in a type of its own."""
    some = names(known("valkey-9.1"))
    server = fresh_server(*DEBUG, "--appendonly", "yes")
    fill(server, some)
    before = contents(server, some)
    told = exported(server, tmp_path, "--redis", "valkey")
    assert "Valkey 9.0 and later can read it (RDB version 80)." in told
    with Writer("valkey-9.1", directory=tmp_path) as real:
        assert contents(real, some) == before
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    ours = fresh_server(*DEBUG, "--appendonly", "yes", directory=tmp_path / "new")
    assert contents(ours, some) == before


def test_what_valkey_cannot_hold_is_refused(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        client.call("XADD", "s", "IDMP", "p", "i", "*", "f", "v")
        client.call("SAVE")
    server.stop()
    done = tool(
        *("export", "--to", "rdb", "--redis", "valkey", "--from", str(server.directory)),
        str(tmp_path / "dump.rdb"),
    )
    assert done.returncode == 1
    assert b"Valkey cannot hold all of it, because of streams" in done.stderr
    assert not (tmp_path / "dump.rdb").exists()


@pytest.mark.parametrize("compressed", ["yes", "no"])
@pytest.mark.parametrize("name", NAMES)
def test_what_real_servers_saved_is_taken_over(
    fresh_server: Factory, tmp_path: Path, name: str, compressed: str
) -> None:
    some = names(known(name))
    with Writer(name, "--rdbcompression", compressed) as real:
        fill(real, some)
        before = contents(real, some)
        real.call("SAVE")
        done = tool("import", str(real.directory / "dump.rdb"), "--dir", str(tmp_path / "new"))
        assert done.returncode == 0, done.stderr
    ours = fresh_server(*DEBUG, "--appendonly", "yes", directory=tmp_path / "new")
    assert contents(ours, some) == before


SMALL = [name for name in names((8, 10)) if not name.startswith(("large", "long", "set of many"))]


@pytest.mark.parametrize("name", SMALL)
def test_damaged_payloads_do_no_harm(server: ServerProcess, newest: Writer, name: str) -> None:
    """Flipped bits and a lost end, under a right checksum: refused, or a value that works."""
    chance = random.Random(name)
    with server.client() as client, newest.client() as there:
        there.call("FLUSHALL")
        make(there, requests(name))
        payloads = [dumped(there, "k")]
        make(client, requests(name))
        payloads.append(dumped(client, "k"))
        refused = 0
        for good in payloads:
            body = good[:-8]
            for _ in range(300):
                data = bytearray(body[: chance.randrange(3, len(body))] + body[-2:])
                if chance.random() < 0.8:
                    data = bytearray(body)
                    for _ in range(chance.randrange(1, 4)):
                        data[chance.randrange(min(len(data) - 2, 400))] ^= 1 << chance.randrange(8)
                reply = client.call("RESTORE", "k", 0, sealed(bytes(data)), "REPLACE")
                if reply != OK:
                    assert reply == b"-ERR Bad data format\r\n", reply
                    refused += 1
                    continue
                facts(client, "k")
                again = dumped(client, "k")
                assert client.call("RESTORE", "again", 0, again, "REPLACE") == OK
                if "array" in name:  # to go through gaps takes long
                    assert dumped(client, "again") == again
                else:  # fields whose deadline has passed go from both, one after the other
                    wait_until(lambda: digest(client, "again") == digest(client, "k"))
        assert refused > 20
        assert client.call("PING") == b"+PONG\r\n"
