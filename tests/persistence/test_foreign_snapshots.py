"""Snapshots of every server that writes RDB files: what is taken over, and what is named."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from headrace.persistence.rdb import kinds
from headrace.protocol.client import request
from support.client import Argument, RawClient, WireError
from support.contents import contents
from support.interchange import (
    delivery_times,
    fill_groups,
    group_facts,
    length,
    pairs,
    rdb,
    stream,
    string,
)
from support.process import Process
from support.rdb_forms import payload, sealed, ziplist, zipmap
from support.tools import tool
from support.writers import NAMES, Writer

from .test_serving import FOLDER, MANIFEST, fill, wait_until

pytestmark = pytest.mark.once

AOF = ("--appendonly", "yes")
LIBRARY = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"


@pytest.fixture(params=NAMES)
def writer(request: pytest.FixtureRequest) -> Iterator[Writer]:
    with Writer(request.param, *AOF) as server:
        yield server


@pytest.fixture
def newest() -> Iterator[Writer]:
    with Writer("redis-8.10", *AOF) as server:
        yield server


def shown_name(writer: Writer) -> str:
    """Return what messages call a server."""
    facts = writer.info("server")
    if "valkey_version" in facts:
        return "Valkey " + facts["valkey_version"]
    return "Redis " + facts["redis_version"]


def everything(server: Process) -> object:
    return [
        contents(server),
        [group_facts(server, key) for key in ("s", "empty", "mixed")],
        delivery_times(server, "s", "g"),
    ]


def call_all(client: RawClient, *requests: tuple[Argument, ...]) -> None:
    for words in requests:
        assert not client.call(*words).startswith(b"-"), words[:2]


def save(writer: Writer, form: str) -> Path:
    """Have a server write its snapshot, alone or as the base of its folder; what to import."""
    if form == "dump":
        writer.call("SAVE")
        return writer.directory / "dump.rdb"
    writer.call("BGREWRITEAOF")
    wait_until(writer, "aof_rewrite_in_progress", "0")
    wait_until(writer, "aof_last_bgrewrite_status", "ok")
    return writer.directory


@pytest.mark.parametrize("form", ["dump", "base"])
def test_what_each_server_saved_is_taken_over(
    writer: Writer, fresh_server: Factory, tmp_path: Path, form: str
) -> None:
    with writer.client() as client:
        fill(client)
        client.call("SELECT", 0)
        fill_groups(client)
    source = save(writer, form)
    before = everything(writer)
    writer.kill()
    done = tool("import", str(source), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    ours = fresh_server(*AOF, directory=tmp_path / "new")
    assert everything(ours) == before
    if form == "base":
        checked = tool("check-aof", str(source))
        assert checked.returncode == 0
        assert f"valid snapshot of {'Valkey' if 'valkey' in writer.name else 'Redis'}".encode() in (
            checked.stdout
        )


def test_what_stays_behind_is_named(writer: Writer, fresh_server: Factory, tmp_path: Path) -> None:
    """What a module left, between values and functions that are known here."""
    with writer.client() as client:
        call_all(
            client,
            ("SET", "kept", "1"),
            ("FUNCTION", "LOAD", LIBRARY),
            ("SET", "kept too", "1", "PXAT", 4_000_000_000_000),
        )
        has_vectors = "vadd" in _names(writer)
        if has_vectors:
            call_all(client, ("VADD", "v", "VALUES", 3, 1, 2, 3, "element"))
        call_all(client, ("SELECT", 9), ("SET", "kept as well", "1"))
    source = save(writer, "dump")
    new = tmp_path / "new"
    if has_vectors:
        done = tool("import", str(source), "--dir", str(new))
        assert done.returncode == 1
        told = done.stderr.decode()
        assert "  1 x value of the module vectorset: " in told
        assert "function library" not in told
        assert "--skip-unsupported leaves them out" in told
        assert not new.exists()
    done = tool("import", str(source), "--dir", str(new), "--skip-unsupported")
    assert done.returncode == 0, done.stderr
    ours = fresh_server(*AOF, directory=new)
    assert ours.call("DBSIZE") == 2
    assert ours.call("PEXPIRETIME", "kept too") == 4_000_000_000_000
    assert ours.info("keyspace")["db9"].startswith("keys=1,")
    assert ours.call("FCALL", "f", 0) == 1
    started = fresh_server(
        *("--dbfilename", "dump.rdb"), directory=writer.directory, start=False, check_log=False
    )
    started.spawn()
    if has_vectors:
        assert started.wait() == 1
        assert "holds what is not known here: 1 x value of the module vectorset" in started.log()
        assert "headrace import" in started.log()
    else:
        started.wait_until_ready()
        assert started.call("GET", "kept") == b"1"
        assert started.call("FCALL", "f", 0) == 1
    assert f"dump.rdb is a snapshot of {shown_name(writer)}" in started.log()


def _names(writer: Writer) -> list[str]:
    names = writer.call("COMMAND", "LIST")
    assert isinstance(names, list)
    return [name.decode() for name in names]


def test_idempotent_ids_and_released_entries(
    newest: Writer, fresh_server: Factory, tmp_path: Path
) -> None:
    with newest.client() as client:
        call_all(
            client,
            ("XADD", "s", "IDMP", "before", "i", "*", "f", "v"),
            ("XCFGSET", "s", "IDMP-DURATION", 86_400, "IDMP-MAXSIZE", 77),
            ("XADD", "s", "IDMP", "p", "one", "*", "f", "v"),
            ("XADD", "s", "IDMP", "p", "two " * 9, "*", "f", "v"),
            ("XADD", "s", "IDMP", "p", "one", "*", "f", "v"),
            ("XADD", "s", "IDMPAUTO", "q", "*", "f", "v"),
            *[("XADD", "t", f"1-{number}", "f", "v") for number in range(1, 9)],
            ("XGROUP", "CREATE", "t", "g", 0),
            ("XREADGROUP", "GROUP", "g", "ada", "STREAMS", "t", ">"),
            ("XNACK", "t", "g", "FAIL", "IDS", 2, "1-6", "1-3"),
            ("XNACK", "t", "g", "SILENT", "IDS", 1, "1-1"),
            ("XNACK", "t", "g", "FATAL", "IDS", 1, "1-8"),
            ("XNACK", "t", "g", "FAIL", "IDS", 1, "1-2"),
        )
    source = save(newest, "dump")
    done = tool("import", str(source), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    newest.call("DEBUG", "RELOAD", "NOSAVE")
    ours = fresh_server(*AOF, directory=tmp_path / "new")
    both = []
    for server in (ours, newest):
        info = pairs(server.call("XINFO", "STREAM", "s"))
        seen: list[object] = [info[name] for name in sorted(info) if name.startswith(b"i")]
        with server.client() as client:
            for words in (
                ("XPENDING", "t", "g"),
                ("XADD", "s", "IDMP", "p", "one", "*", "f", "v"),
                ("XADD", "s", "IDMP", "p", "two " * 9, "*", "f", "v"),
                ("XADD", "s", "IDMPAUTO", "q", "*", "f", "v"),
            ):
                seen.append(client.call_parsed(*words))
            for _ in range(6):  # released entries go first, in their order
                claimed = client.call_parsed(
                    *("XREADGROUP", "GROUP", "g", "bob", "COUNT", 1, "CLAIM", 10**9),
                    *("STREAMS", "t", ">"),
                )
                if isinstance(claimed, list):
                    claimed = [row[0] for row in claimed[0][1]]
                seen.append(claimed)
            pending = client.call_parsed("XPENDING", "t", "g", "-", "+", 10)
            assert isinstance(pending, list)
            seen.append([(row[0], row[1], row[3]) for row in pending])
        both.append(seen)
    assert both[0] == both[1]


# Files made by hand, with a real server to say what they mean


def holding(kind: int, key: bytes, body: bytes) -> bytes:
    return bytes([kind]) + string(key) + body


def test_forms_of_versions_between(newest: Writer, fresh_server: Factory, tmp_path: Path) -> None:
    """What no server at hand writes, but the newest reads."""
    never = length(0)
    early = length(2) + never + string(b"a") + string(b"1") + length(4_000_000_000_000)
    early += string(b"b") + string(b"2")
    idmp = length(60) + length(50) + length(1) + string(b"p") + length(1) + string(b"i")
    idmp += length(4_000_000_000_000) + length(0) + length(3) + length(1)
    file = rdb(13, holding(22, b"h", early), stream(26, b"s") + idmp, b"\0" + string(b"k") * 2)
    newest.kill()
    (newest.directory / "dump.rdb").write_bytes(file)
    newest.options = ()
    newest.start()
    assert newest.call("HMGET", "h", "a", "b") == [b"1", b"2"]
    done = tool("import", str(newest.directory / "dump.rdb"), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    ours = fresh_server(*AOF, directory=tmp_path / "new")
    assert ours.call("GET", "k") == b"k"
    for words in (("HGETALL", "h"), ("HPEXPIRETIME", "h", "FIELDS", 2, "a", "b")):
        assert ours.call(*words) == newest.call(*words), words
    assert ours.call("HGET", "h", "b") == b"2"
    assert group_facts(ours, "s") == group_facts(newest, "s")
    facts = [pairs(server.call("XINFO", "STREAM", "s")) for server in (ours, newest)]
    for name in (b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked", b"iids-added",
                 b"iids-duplicates", b"entries-added", b"length"):  # fmt: skip
        assert facts[0][name] == facts[1][name], name


NOTE = b"\xfa" + string(b"valkey-ver") + string(b"10.0.1")
END = b"\xff" + bytes(8)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"VALKEY081" + NOTE + END, "was written by Valkey 10.0.1 in version 81 of its format"),
        (b"VALKEY011" + END, "was written by Valkey in version 11 of its format"),
        (b"REDIS0016" + END, "was written by Redis in version 16 of its format"),
        (
            b"VALKEY080" + NOTE + b"\x1c" + string(b"some key") + END,
            "written by Valkey 10.0.1, holds the key some key of type 28",
        ),
        (b"REDIS0015\x63" + string(b"\xff key") + END, "holds the key \\xff key of type 99"),
        (b"REDIS0015\xf1" + END, "holds something of kind 241 at offset 9"),
        (b"VALKEY080\xf2" + END, "holds something of kind 242 at offset 9"),
        (b"VALKEYxyz" + END, "is damaged at offset 0"),
        (b"VALKEY", "is damaged at offset 0"),
    ],
)
def test_what_cannot_be_taken_over_names_its_writer(tmp_path: Path, data: bytes, told: str) -> None:
    source = tmp_path / "dump.rdb"
    source.write_bytes(data)
    done = tool("import", str(source), "--dir", str(tmp_path / "new"))
    assert done.returncode == 1
    assert told in done.stderr.decode(), done.stderr
    assert not (tmp_path / "new").exists()


NO_ELEMENTS = length(0)
FIRST_MS = struct.pack("<q", 4_102_444_800_000)
EMPTY_LISTPACK = string(struct.pack("<IH", 7, 0) + b"\xff")
EMPTY_ZIPLIST = string(ziplist([]))
EMPTY = {
    **dict.fromkeys((kinds.LIST, kinds.LIST_QUICKLIST, kinds.LIST_QUICKLIST_2), NO_ELEMENTS),
    **dict.fromkeys((kinds.SET, kinds.SORTED_SET_TEXT, kinds.SORTED_SET, kinds.HASH), NO_ELEMENTS),
    **dict.fromkeys((kinds.LIST_ZIPLIST, kinds.SORTED_SET_ZIPLIST), EMPTY_ZIPLIST),
    kinds.HASH_ZIPLIST: EMPTY_ZIPLIST,
    **dict.fromkeys((kinds.SET_LISTPACK, kinds.SORTED_SET_LISTPACK), EMPTY_LISTPACK),
    kinds.HASH_LISTPACK: EMPTY_LISTPACK,
    kinds.MORTAL_HASH: FIRST_MS + NO_ELEMENTS,
    kinds.MORTAL_HASH_EARLY: NO_ELEMENTS,
    kinds.MORTAL_HASH_PACKED: FIRST_MS + EMPTY_LISTPACK,
    kinds.MORTAL_HASH_PACKED_EARLY: EMPTY_LISTPACK,
}
EMPTY_NODES = {
    kinds.LIST_QUICKLIST: EMPTY_ZIPLIST,
    kinds.LIST_QUICKLIST_2: length(2) + EMPTY_LISTPACK,
}
FULL_NODES = {
    kinds.LIST_QUICKLIST: string(ziplist([b"a", b"b"])),
    kinds.LIST_QUICKLIST_2: length(1) + string(b"a") + length(1) + string(b"b"),
}


def test_keys_that_hold_nothing_are_skipped(fresh_server: Factory, tmp_path: Path) -> None:
    """Older servers have left such keys behind; Redis skips them, too, and empty nodes of lists."""
    deadline = b"\xfc" + struct.pack("<q", 4_000_000_000_000)
    data = b"REDIS0012\xfe\0" + holding(kinds.STRING, b"first", string(b"1"))
    for kind, body in EMPTY.items():
        data += deadline + holding(kind, b"empty %d" % kind, body)
    for kind, node in EMPTY_NODES.items():
        data += holding(kind, b"nodes %d" % kind, length(2) + node + node)
        full = FULL_NODES[kind]
        nodes = length(3 if kind == kinds.LIST_QUICKLIST else 4)
        data += holding(kind, b"list %d" % kind, nodes + node + full + node)
    data += holding(kinds.STRING, b"last", string(b"2"))
    (tmp_path / "dump.rdb").write_bytes(sealed(data + b"\xff"))
    skipped = len(EMPTY) + len(EMPTY_NODES)
    servers = [fresh_server(directory=tmp_path)]
    assert f"skipped {skipped} keys that hold nothing" in servers[0].log()
    checked = tool("check-aof", str(tmp_path / "dump.rdb"))
    assert f"loading skipped {skipped} keys that hold nothing" in checked.stdout.decode(), checked
    new = tmp_path / "new"
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(new))
    assert done.returncode == 0, done.stderr
    assert f"Skipped {skipped} keys that hold nothing." in done.stderr.decode()
    servers.append(fresh_server(*AOF, directory=new))
    for server in servers:
        keys = server.call("KEYS", "*")
        assert isinstance(keys, list)
        assert sorted(keys) == [b"first", b"last", b"list 14", b"list 18"]
        assert server.call("LRANGE", "list 14", 0, -1) == [b"a", b"b"]
        assert server.call("LRANGE", "list 18", 0, -1) == [b"a", b"b"]
        assert server.call("PTTL", "last") == -1
        with server.client() as client:
            for kind, body in EMPTY.items():
                refused = client.call_parsed("RESTORE", "k", 0, payload(kind, body, 12))
                assert refused == WireError(b"ERR Bad data format"), kind


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (kinds.SET_INTSET, string(struct.pack("<II", 2, 0))),
        (kinds.HASH_ZIPMAP, string(zipmap([]))),
        (kinds.ARRAY, NO_ELEMENTS * 2),
        (kinds.SHAPED_HASH_ALONE, length(1) + NO_ELEMENTS),
        (kinds.SHAPED_HASH_PACKED_ALONE, length(0) + EMPTY_LISTPACK * 2),
    ],
)
def test_what_no_server_left_empty_is_damage(tmp_path: Path, kind: int, body: bytes) -> None:
    data = b"REDIS%04d\xfe\0" % kinds.VERSION + holding(kind, b"k", body) + b"\xff"
    (tmp_path / "dump.rdb").write_bytes(sealed(data))
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(tmp_path / "new"))
    assert done.returncode == 1
    assert b"is damaged at offset" in done.stderr


def test_notes_that_carry_no_keys_are_passed(fresh_server: Factory, tmp_path: Path) -> None:
    slots = b"\xf3" + string(b"job") + length(2) + length(0) + length(5) + length(9) + length(9)
    info = b"\xf4" + length(1) + length(2) + length(3)
    key = b"\xfc" + struct.pack("<q", 4_000_000_000_000) + b"\xf8\x05\0" + string(b"k") * 2
    (tmp_path / "dump.rdb").write_bytes(b"VALKEY080" + NOTE + slots + b"\xfe\0" + info + key + END)
    new = tmp_path / "new"
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(new))
    assert done.returncode == 0, done.stderr
    assert fresh_server(*AOF, directory=new).call("PEXPIRETIME", "k") == 4_000_000_000_000
    notes = b"\xf3" + length(1) + b"CLAS" + length(2) + length(7) + length(0)
    (tmp_path / "dump.rdb").write_bytes(b"REDIS0013\xfe\0" + notes + key[9:] + END)
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(tmp_path / "other"))
    assert done.returncode == 1
    assert b"1 x note of a module on a key" in done.stderr


def test_a_server_that_begins_empty_tells_of_what_redis_left(
    fresh_server: Factory, tmp_path: Path
) -> None:
    (tmp_path / "dump.rdb").write_bytes(b"VALKEY080" + NOTE + END)
    server = fresh_server(*AOF, directory=tmp_path)
    assert f"Starting empty: {tmp_path}/dump.rdb is a snapshot of Valkey 10.0.1" in server.log()
    server.call("SET", "k", "v")
    server.call("SAVE")
    server.restart()
    assert server.log().count("Starting empty") == 1


def test_a_folder_of_valkey_tells_who_wrote_it(fresh_server: Factory, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "appendonly.aof.1.base.rdb").write_bytes(b"VALKEY080" + NOTE + END)
    (folder / MANIFEST).write_text("file appendonly.aof.1.base.rdb seq 1 type b\n")
    started = fresh_server(*AOF, directory=tmp_path)
    assert "appendonly.aof.1.base.rdb is a snapshot of Valkey 10.0.1" in started.log()
    assert started.call("DBSIZE") == 0


@pytest.mark.parametrize("size", [0, 3, 2**40, 2**64 - 1])
def test_a_compressed_string_of_another_length(tmp_path: Path, size: int) -> None:
    """Whatever length a file claims, no memory is taken for it before its bytes are there."""
    packed = b"\xc3" + length(3) + length(size) + b"\x00a\x00"
    (tmp_path / "dump.rdb").write_bytes(b"REDIS0011\xfe\0\0" + string(b"k") + packed + END)
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(tmp_path / "new"))
    assert done.returncode == 1
    assert b"is damaged at offset" in done.stderr


@pytest.mark.judge
@pytest.mark.parametrize("what", ["newline", "zeros", "commands"])
def test_what_stands_behind_the_end_is_no_part(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, what: str
) -> None:
    commands = request([b"SELECT", b"0"]) + request([b"DEL", b"kept"])
    tail = {"newline": b"\n", "zeros": bytes(512), "commands": commands}[what]
    data = rdb(9, holding(kinds.STRING, b"kept", string(b"yes"))) + tail
    redis = fresh_redis(start=False)
    for folder in (redis.directory, tmp_path):
        (folder / "dump.rdb").write_bytes(data)
    redis.start()
    checked = tool("check-aof", str(tmp_path / "dump.rdb"))
    assert (checked.returncode, checked.stderr) == (0, b"")
    new = tmp_path / "new"
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(new))
    assert done.returncode == 0, done.stderr
    server = fresh_server(directory=tmp_path)
    told = f"{len(tail)} bytes behind its end are no part of it"
    assert told in server.log()
    assert told in checked.stdout.decode()
    assert told in done.stderr.decode()
    for each in (redis, server, fresh_server(*AOF, directory=new)):
        assert each.call("KEYS", "*") == [b"kept"]


def test_what_modules_had_beside_their_keys_is_named(fresh_server: Factory, tmp_path: Path) -> None:
    """It is of no use without them, and an index of another module may be in it."""
    number = b"\x81" + bytes(8)  # of the module AAAAAAAAA
    note = b"\xf7" + number + length(2) + length(1) + length(5) + string(b"index") + length(0)
    (tmp_path / "dump.rdb").write_bytes(rdb(11, holding(kinds.STRING, b"k", string(b"v")), note))
    server = fresh_server(directory=tmp_path)
    assert server.call("GET", "k") == b"v"
    told = "left out what modules had besides their keys: AAAAAAAAA"
    assert told in server.log()
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0
    assert told[1:] in done.stderr.decode()
    assert told in tool("check-aof", str(tmp_path / "dump.rdb")).stdout.decode()
