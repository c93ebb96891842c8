"""The tools on files from outside: an exit code and a sentence, whatever it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Factory
from xxhash import xxh3_64_intdigest

from headrace.persistence.forms.records import CHECKSUM
from headrace.persistence.snapshot.encoder import SnapshotEncoder
from headrace.persistence.snapshot.file import FRAME_HEAD, PREAMBLE
from headrace.protocol.client import request
from support import build
from support.interchange import module_value, rdb
from support.snapshots import databases, odd_databases, snapshot
from support.tools import tool

pytestmark = pytest.mark.once

FOLDER = "appendonlydir"
MANIFEST = "appendonly.aof.manifest"
AOF = ("--appendonly", "yes")
SET = request([b"SET", b"k", b"v"])
TOOLS = (
    ("check-aof", "{}"),
    ("check-aof", "--fix", "{}"),
    ("check-snapshot", "{}"),
    ("export", "--to", "resp", "--from", "{}", "{}.out"),
    ("import", "{}", "--dir", "{}.new"),
)


def refused(path: str, *words: str) -> str:
    """Return what a tool says that refuses a path."""
    done = tool(*[word.format(path) for word in words])
    told = done.stderr.decode()
    assert done.returncode == 1, (words, done)
    assert "Traceback" not in told
    assert told.strip() or done.stdout.strip()
    return told


@pytest.mark.parametrize("words", TOOLS, ids=[" ".join(words[:2]) for words in TOOLS])
def test_what_is_no_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A pipe that nobody writes to, a device without end, links to themselves, folders."""
    pipe, loop, device = tmp_path / "pipe", tmp_path / "loop", tmp_path / "device"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    device.symlink_to("/dev/zero")
    assert "is a pipe" in refused(str(pipe), *words)
    assert "levels of symbolic links" in refused(str(loop), *words)
    assert "is a device" in refused(str(device), *words)
    assert str(tmp_path) in refused(str(tmp_path), *words)
    assert refused("x" * 300, *words)
    parts = tmp_path / "old" / FOLDER
    parts.mkdir(parents=True)
    os.mkfifo(parts / "appendonly.aof.1.incr.aof")
    (parts / MANIFEST).write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    if words[0] != "check-snapshot":
        assert "is a pipe" in refused(str(parts.parent), *words)
        (parts / MANIFEST).unlink()
        os.mkfifo(parts / MANIFEST)
        assert "is a pipe" in refused(str(parts.parent), *words)


def test_a_server_waits_for_no_pipe(fresh_server: Factory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "dump.hrs")
    server = fresh_server(directory=tmp_path, start=False, check_log=False)
    server.spawn()
    assert server.wait() == 1
    assert "dump.hrs is a pipe" in server.log()


def test_a_manifest_that_is_too_long(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).touch()
    os.truncate(tmp_path / MANIFEST, 1 << 36)
    assert "is too long to be one" in refused(str(tmp_path), "import", "{}", "--dir", "{}/new")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.hrs"
    path.write_bytes(b"")
    path.chmod(0)
    for words in TOOLS:
        assert "Permission denied" in refused(str(path), *words)


def test_words_that_are_no_text(tmp_path: Path) -> None:
    """In a snapshot's header, in keys, in the name of the file."""
    encoder = SnapshotEncoder(b"\xff\x1b[2J", 2**64 - 1, False, 16)
    encoder.begin()
    encoder.finish()
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"\xff\n.hrs"))
    Path(path).write_bytes(b"".join(encoder.take()))
    done = tool("check-snapshot", path)
    assert done.returncode == 0, done.stderr
    assert rb"written by Headrace \xff\x1b[2J, state of 584556019-04-03 14:25:52 UTC" in done.stdout
    Path(path).write_bytes(rdb(9, module_value(b"\xff\x1b[2J")))
    done = tool("import", path, "--dir", str(tmp_path / "new"))
    assert done.returncode == 1
    assert rb"1 x value of the module AAAAAAAAA: \xff\x1b[2J" in done.stderr
    Path(path).write_bytes(b"*0\r\n")
    assert tool("check-aof", path).returncode == 1


@pytest.mark.parametrize(
    "words", [("check-aof", "{}"), ("export", "--to", "resp", "--from", "{}", "-")]
)
def test_output_that_nobody_takes(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "appendonly.aof").write_bytes(SET)
    command = [sys.executable, "-P", "-m", "headrace", *[word.format(tmp_path) for word in words]]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, check=False, env=build.environment()
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"The output cannot be written: No space left")


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(tmp_path: Path, streams: str) -> None:
    (tmp_path / "appendonly.aof").write_bytes(SET + b"*1\r\n")
    for words, code in (
        (("check-aof", str(tmp_path)), 1),
        (("import", str(tmp_path), "--dir", str(tmp_path / "new")), 0),
        (("check-aof", str(tmp_path / "new")), 0),
        (("export", "--to", "resp", "--from", str(tmp_path), "-"), int(" >&-" in " " + streams)),
    ):
        command = f'exec "$@" {streams}'
        done = subprocess.run(
            ["sh", "-c", command, "sh", sys.executable, "-P", "-m", "headrace", *words],
            capture_output=True,
            check=False,
            env=build.environment(),
        )
        assert done.returncode == code, (words, done)
        assert b"Error" not in done.stderr


def test_an_unsound_snapshot_is_not_taken_over(tmp_path: Path) -> None:
    """Its checksums are right: whoever made it made those, too."""
    dbs = odd_databases()
    stream = dbs[15].at(0).value
    stream.max_deleted_ms = 2  # type: ignore[attr-defined]  # above the last ID
    path = tmp_path / "dump.hrs"
    path.write_bytes(snapshot(dbs))
    for words in (TOOLS[0], *TOOLS[2:]):
        assert "not a deleted entry above the last ID" in refused(str(path), *words)


@pytest.mark.parametrize("deadline_ms", [2**63, -2])
def test_a_deadline_that_nobody_could_set(tmp_path: Path, deadline_ms: int) -> None:
    dbs = databases()
    dbs[0].put(b"key", b"v", 1)
    dbs[0].expire_at(b"key", 2_000_000_000_000)
    data = snapshot(dbs)
    packed = b"\xcf" + (2_000_000_000_000).to_bytes(8, "big")
    assert data.count(packed) == 1
    other = b"\xcf" if deadline_ms > 0 else b"\xd3"
    payload = data[PREAMBLE.size + FRAME_HEAD.size : -CHECKSUM.size]
    payload = payload.replace(packed, other + (deadline_ms % 2**64).to_bytes(8, "big"))
    frame = FRAME_HEAD.pack(len(payload), 0) + payload
    path = tmp_path / "dump.hrs"
    path.write_bytes(data[: PREAMBLE.size] + frame + CHECKSUM.pack(xxh3_64_intdigest(frame)))
    for words in (TOOLS[0], *TOOLS[2:]):
        assert f"not {deadline_ms}" in refused(str(path), *words)


def test_a_command_that_runs_out_of_memory(tmp_path: Path) -> None:
    """It is refused, in words, also where other commands were left out before."""
    value = request([b"SETRANGE", b"k", b"%d" % (2**29 - 10), b"x"])
    (tmp_path / "appendonly.aof").write_bytes(request([b"LPUSH", b"l", b"x"]) + value)
    words = ["import", str(tmp_path), "--dir", str(tmp_path / "new"), "--skip-unsupported"]
    limited = ["sh", "-c", 'ulimit -v 500000 && exec "$@"', "sh"]
    done = subprocess.run(
        [*limited, sys.executable, "-P", "-m", "headrace", *words],
        capture_output=True,
        check=False,
        env=build.environment(),
    )
    assert done.returncode == 1
    assert b"out of memory" in done.stderr
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()


def test_commands_that_change_nothing_are_passed(fresh_server: Factory, tmp_path: Path) -> None:
    """A real server runs them while it loads; none of them has a part in what the data is."""
    names = ["SAVE", "BGSAVE", "BGREWRITEAOF", "SHUTDOWN", "PING", "RESET", "QUIT", "MONITOR"]
    words = [
        *("CONFIG SET maxmemory 1", "DEBUG SLEEP 100", "DEBUG SEGFAULT", "CLIENT PAUSE 100000"),
        *("SUBSCRIBE c", "GET k", "XREAD BLOCK 0 STREAMS s $", "WAITAOF 1 0 0", "CLIENT KILL ID 1"),
        *("PUBLISH c m", "AUTH x", "WATCH k", "REPLICAOF h 1", "SCAN 0", "HELLO 9"),
    ]
    parts = tmp_path / FOLDER
    parts.mkdir()
    made = [SET, *[request(line.encode().split()) for line in (*names, *words)]]
    made.append(request([b"XADD", b"s", b"1-1", b"f", b"v"]))
    (parts / "appendonly.aof.1.incr.aof").write_bytes(b"".join(made))
    (parts / MANIFEST).write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    done = tool("import", str(tmp_path), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    assert b"not run, because they act on the server and not on its data: 1 x AUTH" in done.stderr
    for name in (b"1 x SAVE", b"1 x CONFIG|SET", b"2 x DEBUG", b"1 x SUBSCRIBE", b"1 x SHUTDOWN"):
        assert name in done.stderr
    assert b"x GET" not in done.stderr
    for folder in (tmp_path, tmp_path / "new"):
        server = fresh_server(*AOF, directory=folder)
        assert (server.call("GET", "k"), server.call("XLEN", "s")) == (b"v", 1)
        assert server.call("CONFIG", "GET", "maxmemory") == [b"maxmemory", b"0"]


@pytest.mark.slow
def test_broken_files_by_chance() -> None:
    """Under every tool; ``file_fuzz.py`` has a long form, and says how to try one again."""
    script = Path(__file__).resolve().parents[1] / "support" / "file_fuzz.py"
    done = subprocess.run(
        [sys.executable, "-P", str(script), "2026", "400"],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env=build.environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "400 rounds, 0 faults\n"
