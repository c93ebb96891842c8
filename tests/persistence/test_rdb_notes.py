"""What a stream has that RDB has no place for stands in notes, which other servers pass over."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Factory

from headrace.persistence.rdb.crc64 import crc64
from headrace.persistence.rdb.primitives import RdbOutput
from support.client import RawClient
from support.process import Process
from support.tools import tool
from support.writers import Writer

from .test_rdb_export import exported

OK = b"+OK\r\n"
DEBUG = ("--enable-debug-command", "yes")
MANY = 4000  # iids, which take more than one note


def fill(client: RawClient) -> None:
    """Groups with a limit, and iids whose times are not those of their entries' IDs."""
    for group, limit in (("free", 0), ("narrow", 2), ("wide\n", 2**40)):
        client.call("XGROUP", "CREATE", "s", group, 0, "MKSTREAM")
        if limit:
            assert client.call("XGROUP", "SETMODE", "s", group, "MAX-PENDING", limit) == OK
    client.call("XCFGSET", "s", "IDMP-DURATION", 86400, "IDMP-MAXSIZE", 10_000)
    added = [("XADD", "s", f"1-{n + 1}", "f", "v") for n in range(MANY)]
    assert not any(reply.startswith(b"-") for reply in client.pipeline(*added))
    added = [("XIDMPRECORD", "s", "p", f"i{n}", f"1-{n + 1}") for n in range(MANY)]
    assert client.pipeline(*added) == [OK] * MANY
    client.call("XADD", "s", "IDMP", "now", "i", "*", "f", "v")
    client.call("XREADGROUP", "GROUP", "narrow", "c", "COUNT", 5, "STREAMS", "s", ">")


def kept(client: RawClient, key: str) -> list[bytes]:
    """Return what a stream has beside its entries, and what it does because of that."""
    found = [client.call("XIDMP", "PRODUCERS", key), client.call("XINFO", "GROUPS", key)]
    found.append(client.call("XREADGROUP", "GROUP", "narrow", "d", "STREAMS", key, ">"))
    for iid in ("i0", "i7", f"i{MANY - 1}"):
        found.append(client.call("XADD", key, "IDMP", "p", iid, "*", "f", "again"))
    return found


def dumped(client: RawClient, key: str) -> bytes:
    data = client.call_parsed("DUMP", key)
    assert isinstance(data, bytes)
    return data


def test_dump_and_restore_keep_all_of_a_stream(fresh_server: Factory) -> None:
    here = fresh_server()
    there = fresh_server()
    with here.client() as client, there.client() as other:
        fill(client)
        data = dumped(client, "s")
        assert other.call("RESTORE", "s", 0, data) == OK
        assert dumped(other, "s") == data
        assert kept(other, "s") == kept(client, "s")


def test_migrate_keeps_all_of_a_stream(fresh_server: Factory) -> None:
    here = fresh_server()
    there = fresh_server()
    with here.client() as client, there.client() as other:
        fill(client)
        assert client.call("COPY", "s", "twin") == b":1\r\n"
        assert client.call("MIGRATE", "127.0.0.1", there.port, "s", 0, 60_000) == OK
        assert client.call("EXISTS", "s") == b":0\r\n"
        assert kept(other, "s") == kept(client, "twin")


@pytest.mark.parametrize("form", ["folder", "snapshot"])
def test_export_and_import_keep_all_of_a_stream(
    fresh_server: Factory, tmp_path: Path, form: str
) -> None:
    options = ("--appendonly", "yes") if form == "folder" else ("--save", "3600 1")
    server = fresh_server(*DEBUG, *options)
    with server.client() as client:
        client.call("SET", "a", 1)
        fill(client)
        client.call("SET", "z", 1)
        client.call("SELECT", 3)
        fill(client)
    exported(server, tmp_path)
    new = tmp_path / "new"
    take_over(tmp_path / "dump.rdb", new)
    server.restart()
    ours = fresh_server("--appendonly", "yes", directory=new)
    for db in (0, 3):
        with server.client() as client, ours.client() as other:
            client.call("SELECT", db)
            other.call("SELECT", db)
            if form == "snapshot":  # records of commands have no times of iids
                assert dumped(other, "s") == dumped(client, "s")
            assert kept(other, "s") == kept(client, "s")


def take_over(path: Path, new: Path) -> None:
    done = tool("import", str(path), "--dir", str(new))
    assert done.returncode == 0, done.stderr


@pytest.mark.once
@pytest.mark.parametrize("name", ["redis-8.10", "redis-8.0", "valkey-9.1"])
def test_real_servers_pass_over_notes(fresh_server: Factory, tmp_path: Path, name: str) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        client.call("SET", "a", 1)
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        client.call("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 5)
        client.call("XADD", "s", "1-1", "f", "v")
        if name == "redis-8.10":
            assert client.call("XIDMPRECORD", "s", "p", "i", "1-1") == OK
        client.call("SET", "z", 1)
        data = dumped(client, "s")
        entries = client.call("XRANGE", "s", "-", "+")
        client.call("SAVE")
    exported(server, tmp_path)
    with Writer(name, "--sanitize-dump-payload", "yes", directory=tmp_path) as real:
        facts(real, "s", entries)
        if name == "redis-8.10":
            with real.client() as client:
                assert client.call("RESTORE", "t", 0, data) == OK
            facts(real, "t", entries)


def facts(real: Process, key: str, entries: bytes) -> None:
    with real.client() as client:
        assert client.call("MGET", "a", "z") == b"*2\r\n$1\r\n1\r\n$1\r\n1\r\n"
        assert client.call("XRANGE", key, "-", "+") == entries
        assert client.call("XPENDING", key, "g") == b"*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n"


def noted(data: bytes, name: bytes, text: bytes) -> bytes:
    """A payload with one more note."""
    output = RdbOutput(15)
    output.write_notes([name, text])
    body = data[:-10] + b"".join(output.take()) + data[-10:-8]
    return body + crc64(body, 0).to_bytes(8, "little")


def test_notes_that_say_what_cannot_be_are_refused(client: RawClient) -> None:
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XIDMPRECORD", "s", "p", "i", "1-1")
    client.call("XGROUP", "CREATE", "s", "g", 0)
    data = dumped(client, "s")
    refused = b"-ERR Bad data format\r\n"
    for name, text in (
        (b"headrace-max-pending", b"\x01g\x00"),
        (b"headrace-max-pending", b"\x04none\x05"),
        (b"headrace-max-pending", b"\x01g"),
        (b"headrace-max-pending", b"\x01g\x81" + b"\xff" * 8),
        (b"headrace-iid-times", b""),
        (b"headrace-iid-times", b"\x04none\x01i\x01\x01\x05"),
        (b"headrace-iid-times", b"\x01p\x04none\x01\x01\x05"),
        (b"headrace-iid-times", b"\x01p\x01i\x01\x02\x05"),
        (b"headrace-iid-times", b"\x01p\x01i\x01\x01"),
        (b"headrace-iid-times", b"\x01p\x00\x01\x01\x05"),
    ):
        assert client.call("RESTORE", "t", 0, noted(data, name, text)) == refused, (name, text)
        assert client.call("EXISTS", "t") == b":0\r\n"
    assert client.call("RESTORE", "t", 0, noted(data, b"of others", b"anything")) == OK
    assert client.call("RESTORE", "u", 0, noted(data, b"headrace-max-pending", b"\x01g\x05")) == OK
    assert b"max-pending" in client.call("XINFO", "GROUPS", "u")
    client.call("SET", "k", "v")
    text = noted(dumped(client, "k"), b"headrace-max-pending", b"\x01g\x05")
    assert client.call("RESTORE", "l", 0, text) == OK


@pytest.mark.parametrize("behind", [b"\xfa\xa9z", b"\xfavW", b"\xfa\x9f\xa5", b"\xfa", b"abc"])
def test_what_is_no_note_is_passed_over_as_in_redis(client: RawClient, behind: bytes) -> None:
    client.call("SET", "k", -3)
    dumped = client.call_parsed("DUMP", "k")
    assert isinstance(dumped, bytes)
    body = dumped[:-10] + behind + dumped[-10:-8]
    damaged = body + crc64(body, 0).to_bytes(8, "little")
    assert client.call("RESTORE", "k", 0, damaged, "REPLACE") == OK
    assert client.call_parsed("GET", "k") == b"-3"
