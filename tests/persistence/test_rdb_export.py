"""What ``headrace export --to rdb`` writes is what real servers load, of every version that can."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Factory

from headrace.persistence.rdb.packings import Listpack, elements
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from support.client import Argument, RawClient
from support.interchange import fill_groups, pairs
from support.process import Process
from support.tools import tool
from support.writers import NAMES, Writer

from .test_interchange import everything
from .test_serving import fill

DEBUG = ("--enable-debug-command", "yes")
AOF = ("--appendonly", "yes")


def exported(server: Process, folder: Path, *options: str) -> str:
    """Stop a server and write what it has; what export tells."""
    server.stop()
    folder.mkdir(exist_ok=True)
    done = tool(
        *("export", "--to", "rdb", "--from", str(server.directory), *options),
        str(folder / "dump.rdb"),
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.decode()


@pytest.mark.once
@pytest.mark.parametrize("name", NAMES)
def test_real_servers_start_on_it(fresh_server: Factory, tmp_path: Path, name: str) -> None:
    server = fresh_server(*AOF, *DEBUG)
    with server.client() as client:
        fill(client)
        client.call("SELECT", 0)
        fill_groups(client)
        for text in ("0", "127", "-129", "70000", "2147483648", "-0", "", "x" * 70_000):
            client.call("SET", f"string of {text[:20]}", text)
        client.call("SET", 12345, "a key that is a number")
        client.call("SELECT", 9)
        client.call("SET", "k", "v", "PXAT", 4_000_000_000_001)
    before = everything(server)
    told = exported(server, tmp_path)
    assert "Redis 7.0 and later can read it (RDB version 10)." in told
    with Writer(name, directory=tmp_path) as real:
        assert everything(real) == before
        real.call("BGSAVE")
    checked = tool("check-aof", str(tmp_path / "dump.rdb"))
    assert checked.returncode == 0, checked.stdout


def fill_newest(client: RawClient) -> None:
    for number in range(250):
        words: list[Argument]
        words = ["n", number, "t", "x" * (number % 70)] if number % 9 else ["other", -number]
        client.call("XADD", "s", f"{number}-1", *words)
    client.call("XCFGSET", "s", "IDMP-DURATION", 500, "IDMP-MAXSIZE", 5000)
    for number in range(20):
        client.call("XADD", "s", "IDMP", f"p{number % 3}", f"i{number}", "*", "f", number)
    client.call("XADD", "s", "IDMP", "p1", "i1", "*", "met", "again")
    client.call("XDEL", "s", "0-1", "100-1", "249-1")
    client.call("XGROUP", "CREATE", "s", "g", 0)
    client.call("XREADGROUP", "GROUP", "g", "ada", "COUNT", 20, "STREAMS", "s", ">")
    client.call("XREADGROUP", "GROUP", "g", "bob", "COUNT", 20, "STREAMS", "s", ">")
    client.call("XNACK", "s", "g", "FAIL", "IDS", 2, "9-1", "30-1")
    client.call("XNACK", "s", "g", "SILENT", "IDS", 1, "5-1")
    client.call("XGROUP", "CREATECONSUMER", "s", "g", "idle")
    client.call("XGROUP", "CREATE", "s", "unknown", "7-0")


def full(server: Process) -> object:
    """All that is known of the stream, but for what depends on the server."""
    found = pairs(server.call("XINFO", "STREAM", "s", "FULL", "COUNT", 0))
    del found[b"radix-tree-nodes"]
    groups = found[b"groups"]
    assert isinstance(groups, list)
    found[b"groups"] = [
        [word for word in pairs(group).items() if word[0] != b"lag"] for group in groups
    ]
    return [found, server.call("DEBUG", "DIGEST")]


@pytest.mark.once
def test_what_only_the_newest_redis_holds(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        fill_newest(client)
        client.call("SAVE")
    before = full(server)
    told = exported(server, tmp_path)
    assert "Redis 8.8 and later can read it" in told
    with Writer("redis-8.10", directory=tmp_path) as real:
        assert full(real) == before
        length = real.call("XLEN", "s")
        real.call("XADD", "s", "IDMP", "p1", "i1", "*", "f", "v")
        assert real.call("XLEN", "s") == length
    refused = tool(
        *("export", "--to", "rdb", "--redis", "7.2", "--from", str(server.directory)),
        str(tmp_path / "other.rdb"),
    )
    assert refused.returncode == 1
    assert b"Redis 8.8 is the oldest that can, because of streams" in refused.stderr
    assert not (tmp_path / "other.rdb").exists()


@pytest.mark.once
@pytest.mark.parametrize("version", ["7.2", "8.6", "8.8", "8.10"])
def test_a_newer_form_keeps_when_consumers_were_active(
    fresh_server: Factory, tmp_path: Path, version: str
) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        client.call("XADD", "s", "1-1", "f", "v")
        client.call("XGROUP", "CREATE", "s", "g", 0)
        client.call("XREADGROUP", "GROUP", "g", "ada", "STREAMS", "s", ">")
        client.call("XGROUP", "CREATECONSUMER", "s", "g", "never")
        client.call("SAVE")
    before = full(server)
    told = exported(server, tmp_path, "--redis", version)
    assert f"Redis {version} and later can read it" in told
    with Writer("redis-8.10", directory=tmp_path) as real:
        assert full(real) == before


def test_listpacks_go_there_and_back() -> None:
    sizes = [0, 1, 63, 64, 4095, 4096, 16378, 16379, 70_000]
    numbers = [0, 127, 128, -1, 4095, -4096, 4096, 2**15 - 1, -(2**15), 2**15, 2**23, -(2**23) - 1,
               2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]  # fmt: skip
    packed = Listpack()
    for size in sizes:
        packed.text(b"x" * size)
    for number in numbers:
        packed.text(b"%d" % number)
    packed.text(b"%d" % 2**63)
    assert elements(packed.packed()) == [b"x" * size for size in sizes] + numbers + [b"%d" % 2**63]
    many = Listpack()
    for _ in range(70_000):
        many.integer(5)
    assert elements(many.packed()) == [5] * 70_000


def test_lengths_and_strings_go_there_and_back() -> None:
    numbers = [0, 63, 64, 2**14 - 1, 2**14, 2**32 - 1, 2**32, 2**64 - 1]
    texts = [b"", b"12", b"-128", b"128", b"-32769", b"2147483647", b"2147483648", b"01", b"x" * 70]
    output = RdbOutput(10)
    for number in numbers:
        output.length(number)
    for text in texts:
        output.string(text)
    output.little(-1, 8)
    output.double(-1.5)
    data = b"".join(output.take())
    source = RdbSource(b"made", data, len(data), 0)
    assert [source.length() for _ in numbers] == numbers
    assert [source.string() for _ in texts] == texts
    assert source.signed(8) == -1
    assert source.raw(8) == b"\0\0\0\0\0\0\xf8\xbf"
    assert source.left == 0
    assert output.take() == []
