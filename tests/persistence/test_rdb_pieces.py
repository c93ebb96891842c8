"""RDB files are read and written in pieces: what is held at once is one value, or some of it."""

from __future__ import annotations

import contextlib
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Factory

from headrace.persistence.forms.table import forms
from headrace.persistence.rdb.crc64 import crc64
from headrace.persistence.rdb.primitives import PIECE_BYTES, length
from headrace.persistence.rdb.reader import RdbReader
from headrace.persistence.snapshot.rdb import RdbEncoder
from headrace.persistence.taker import IntoDatabases
from headrace.storage.freezing import frozen_key
from support import build
from support.all_types import make, names, requests
from support.client import RawClient
from support.snapshots import databases
from support.tools import tool
from support.waiting import wait_until

MANY = 30_000
LOADING = 100_000 if build.use_tree() else 800_000  # fields, which take a while


def text(value: bytes) -> bytes:
    return length(len(value)) + value


def key(kind: int, name: bytes, value: bytes) -> bytes:
    return bytes([kind]) + text(name) + value


def file(*keys: bytes) -> bytes:
    body = b"REDIS0011" + b"".join(keys) + b"\xff"
    return body + crc64(body, 0).to_bytes(8, "little")


def large(kind: str, count: int = MANY) -> bytes:
    """A key of that name whose value has so many elements."""
    elements = [b"element:%d" % number for number in range(count)]
    head = length(count)
    if kind == "list":
        return key(1, b"list", head + b"".join([text(each) for each in elements]))
    if kind == "set":
        return key(2, b"set", head + b"".join([text(each) for each in elements]))
    if kind == "hash":
        return key(4, b"hash", head + b"".join([text(each) + b"\x01v" for each in elements]))
    if kind == "mortal hash":
        rows = [b"\x01" + text(each) + b"\x01v" for each in elements]
        return key(24, b"mortal hash", struct.pack("<q", 4_000_000_000_000) + head + b"".join(rows))
    assert kind == "sorted set"
    scored = [text(each) + struct.pack("<d", n) for n, each in enumerate(elements)]
    return key(5, b"sorted set", head + b"".join(scored))


def compressed(copies: int) -> bytes:
    """A string of ``a``, each copy 264 bytes of it, as LZF has it."""
    packed = b"\x00a" + b"\xe0\xff\x00" * copies
    return b"\xc3" + length(len(packed)) + length(1 + 264 * copies) + packed


@pytest.mark.parametrize("form", ["plain", "compressed"])
def test_a_long_string_is_read_in_many_steps(tmp_path: Path, form: str) -> None:
    """However long it is, nobody waits for more than some of it."""
    size = 1 + 264 * 12_000
    value = text(b"a" * size) if form == "plain" else compressed(12_000)
    path = tmp_path / "dump.rdb"
    path.write_bytes(file(key(0, b"k", value)))
    (db,) = databases(1)
    reader = RdbReader(os.fsencode(path), IntoDatabases([db]), forms(), {}, 1)
    steps = 0
    before = 0
    while reader.step():
        assert reader.loaded_bytes - before <= PIECE_BYTES + 100
        before = reader.loaded_bytes
        steps += 1
    reader.close()
    assert steps >= size // PIECE_BYTES
    assert db.get(b"k", 1) == b"a" * size


@pytest.mark.once
def test_a_large_value_leaves_time_after_each_part(tmp_path: Path) -> None:
    """Many small keys are read between two looks at the clock, but one part of a large one."""
    path = tmp_path / "dump.rdb"

    def count(*keys: bytes) -> tuple[int, int]:
        path.write_bytes(file(*keys))
        counts = []
        for advance in (RdbReader.step, RdbReader.steps):
            (db,) = databases(1)
            reader = RdbReader(os.fsencode(path), IntoDatabases([db]), forms(), {}, 1)
            counts.append(1)
            while advance(reader):
                counts[-1] += 1
            reader.close()
        return counts[0], counts[1]

    steps, looks = count(*[key(0, b"%d" % number, text(b"v")) for number in range(1000)])
    assert looks < steps // 10
    steps, looks = count(large("sorted set"))
    assert looks > steps - 20


def test_a_long_string_is_written_in_many_steps() -> None:
    (db,) = databases(1)
    value = os.urandom(3_000_000)
    db.put(b"k", value, 1)
    encoder = RdbEncoder(11, [])
    encoder.begin()
    made = b"".join(encoder.take())
    assert encoder.add(frozen_key(0, db[b"k"]))
    going_on = True
    while going_on:
        going_on = encoder.more()
        assert encoder.size_bytes <= 300_000
        made += b"".join(encoder.take())
    encoder.finish()
    made += b"".join(encoder.take())
    assert made == file(b"\xfe\x00", key(0, b"k", text(value)))


KINDS = ["list", "set", "hash", "mortal hash", "sorted set"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_value_is_read_in_many_steps(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "dump.rdb"
    path.write_bytes(file(large(kind)))
    (db,) = databases(1)
    reader = RdbReader(os.fsencode(path), IntoDatabases([db]), forms(), {}, 1)
    before = reader.loaded_bytes
    steps = 0
    while reader.step():
        steps += 1
        assert before <= reader.loaded_bytes <= before + 20_000
        before = reader.loaded_bytes
    assert steps > MANY // 300
    assert reader.loaded_bytes == reader.end == reader.size_bytes
    reader.close()
    assert db.names() == [kind.encode()]


@pytest.mark.once
def test_progress_is_told_while_one_value_is_loaded(fresh_server: Factory, tmp_path: Path) -> None:
    (tmp_path / "dump.rdb").write_bytes(file(large("hash", LOADING)))
    server = fresh_server(directory=tmp_path, start=False)
    shares: set[float] = set()

    def are_told() -> bool:
        """Look while it is loaded: a busy machine may let us look too seldom."""
        server.kill()
        server.spawn()
        size = b""
        while not size.startswith(b":"):
            with contextlib.suppress(OSError), server.client() as client:
                while not size.startswith(b":"):
                    info, size = client.pipeline(("INFO", "persistence"), ("HLEN", "hash"))
                    share = re.search(rb"loading_loaded_perc:([\d.]+)", info)
                    if share is not None:
                        shares.add(float(share[1]))
        assert size == b":%d\r\n" % LOADING
        return len(shares) > 3

    wait_until(are_told)
    assert all(0 <= share <= 100 for share in shares)
    told = [line for line in server.log().splitlines() if "Loading the " in line]
    assert all(re.search(r"snapshot of Redis: (\d|\d\d|100)\.\d %", line) for line in told)


def peak_bytes(*words: str) -> int:
    """Return how much memory a subcommand took at most."""
    code = (
        "import runpy, sys\n"
        f"sys.argv = {['headrace', *words]!r}\n"
        "try:\n    runpy.run_module('headrace', run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print(open('/proc/self/status').read())\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        check=True,
        timeout=120,
        env=build.environment(),
    )
    found = re.search(rb"VmHWM:\s*(\d+) kB", done.stdout)
    assert found is not None, done.stderr
    return int(found[1]) << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak")
def test_memory_stays_flat_however_many_keys_there_are(tmp_path: Path) -> None:
    peaks: list[list[int]] = []
    for count in (1000, MANY):
        folder = tmp_path / f"{count}"
        folder.mkdir()
        keys = [key(0, b"key:%d" % number, text(b"%0500d" % number)) for number in range(count)]
        (folder / "dump.rdb").write_bytes(file(*keys))
        peaks.append(
            [
                peak_bytes("import", str(folder / "dump.rdb"), "--dir", str(folder / "new")),
                peak_bytes(
                    *("export", "--to", "rdb", "--from", str(folder / "new")),
                    str(folder / "out.rdb"),
                ),
                peak_bytes("check-aof", str(folder / "dump.rdb")),
            ]
        )
    for few, many in zip(*peaks, strict=True):
        assert many < few + (7 << 20)  # there are 15 MiB of values


@pytest.mark.parametrize("form", ["appendonly", "snapshot"])
def test_a_file_that_is_cut_or_broken_leaves_nothing(tmp_path: Path, form: str) -> None:
    whole = file(*[large(kind, 2000) for kind in KINDS])
    (tmp_path / "whole.rdb").write_bytes(whole)
    bad = tmp_path / "bad.rdb"
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    again = file(key(0, b"a", b"\x011"), key(0, b"b", b"\x012"), key(0, b"a", b"\x013"))
    cases = [whole[: len(whole) * part // 7] for part in range(1, 7)]
    offset = 0
    for data in [*cases, whole[:-1], bytes(damaged), again]:
        bad.write_bytes(data)
        before = sorted(os.listdir(tmp_path))
        done = tool("import", str(bad), "--dir", str(tmp_path / "new"), "--as", form)
        assert done.returncode == 1
        told = re.search(rb"bad.rdb is damaged at offset (\d+): expected ", done.stderr)
        assert told is not None, done.stderr
        offset = int(told[1])
        assert offset <= len(data)
        assert sorted(os.listdir(tmp_path)) == before
    assert offset == again.rindex(b"\x00\x01a")
    done = tool("import", str(tmp_path / "whole.rdb"), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr


@pytest.mark.once
def test_a_snapshot_that_is_broken_is_not_exported(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server()
    with server.client() as client:
        fill_all(client)
        client.call("SAVE")
    server.stop()
    whole = (server.directory / "dump.hrs").read_bytes()
    bad = tmp_path / "dump.hrs"
    for size in (20, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        bad.write_bytes(whole[:size])
        done = tool("export", "--to", "rdb", "--from", str(bad), str(tmp_path / "out.rdb"))
        assert done.returncode == 1
        assert b"dump.hrs is damaged at offset" in done.stderr
        assert os.listdir(tmp_path) == ["dump.hrs"]


def fill_all(client: RawClient) -> None:
    for name in names((8, 10)):
        make(client, requests(name), name)


@pytest.mark.once
def test_a_snapshot_is_exported_as_what_was_loaded_from_it(
    fresh_server: Factory, tmp_path: Path
) -> None:
    """Values of all types go from one file to another as they go through a server."""
    debug = ("--enable-debug-command", "yes")
    server = fresh_server(*debug)
    with server.client() as client:
        fill_all(client)
        client.call("PEXPIREAT", "string", 4_000_000_000_000)
        client.call("SELECT", 7)
        client.call("SET", "k", "v")
        client.call("SAVE")
        before = client.call("DEBUG", "DIGEST")
        count = client.call("DBSIZE")
    server.stop()
    for form in ("rdb", "resp"):
        out = tmp_path / f"out.{form}"
        source = str(server.directory / "dump.hrs")
        done = tool("export", "--to", form, "--from", source, str(out))
        assert done.returncode == 0, done.stderr
        if form == "rdb":
            done = tool("import", str(out), "--dir", str(tmp_path / "new"))
            assert done.returncode == 0, done.stderr
            ours = fresh_server(*debug, "--appendonly", "yes", directory=tmp_path / "new")
            with ours.client() as client:
                assert client.call("DEBUG", "DIGEST") == before
                client.call("SELECT", 7)
                assert client.call("DBSIZE") == count
