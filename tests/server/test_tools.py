"""``headrace check-aof``, ``check-snapshot``, ``export`` and ``import``, as a user calls them."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from conftest import Factory

from headrace.protocol.client import request
from headrace.server.tools import NAMES
from headrace.storage.stream.stream import Stream
from support import build
from support.process import Process
from support.snapshots import databases, odd_databases, snapshot
from support.terminal import Terminal
from support.tools import tool

FOLDER = "appendonlydir"
MANIFEST = "appendonly.aof.manifest"
AOF = ("--appendonly", "yes")
SETS = [request([b"SET", b"k%d" % number, b"v" * number]) for number in range(20)]


def make_folder(parent: Path, *files: bytes) -> Path:
    """An append-only folder of incr files."""
    folder = parent / FOLDER
    folder.mkdir(parents=True)
    lines = []
    for number, data in enumerate(files, 1):
        name = f"appendonly.aof.{number}.incr.aof"
        (folder / name).write_bytes(data)
        lines.append(f"file {name} seq {number} type i\n")
    (folder / MANIFEST).write_text("".join(lines))
    return folder


def state_of(path: Path) -> dict[str, str]:
    """Return what is in a folder, to see that nothing changes."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.rglob("*")
        if file.is_file()
    }


def keys(server: Process) -> int:
    count = server.call("DBSIZE")
    assert isinstance(count, int)
    return count


# Arguments


@pytest.mark.parametrize("name", [name for name in NAMES if name != "console"])
def test_help(name: str) -> None:
    done = tool(name, "--help")
    assert done.returncode == 0
    assert f"usage: headrace {name}".encode() in done.stdout
    assert b"Exit codes: 0 all is well; 1 something " in done.stdout
    assert tool(name, "--nonsense").returncode == 2
    assert tool(name).returncode == 2
    assert f"headrace {name}".encode() in tool("--help").stdout


def test_a_configuration_of_that_name_is_still_found(fresh_server: Factory, tmp_path: Path) -> None:
    (tmp_path / "import").write_text("databases 3\n")
    server = fresh_server(start=False, directory=tmp_path)
    server._has_config = True
    server.config_path = tmp_path / "import"
    assert server.start().call("CONFIG", "GET", "databases") == [b"databases", b"3"]


@pytest.mark.parametrize(
    "words",
    [
        ("check-aof", "{0}/none"),
        ("check-aof", "{0}/empty"),
        ("check-snapshot", "{0}/none"),
        ("check-snapshot", "{0}/empty"),
        ("export", "--to", "resp", "--from", "{0}/none", "{0}/out"),
        ("export", "--to", "redis-aof", "--from", "{0}/empty", "{0}/out"),
        ("import", "{0}/none", "--dir", "{0}/out"),
        ("import", "{0}/empty", "--dir", "{0}/out"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    done = tool(*[word.format(tmp_path) for word in words])
    assert done.returncode == 1
    assert str(tmp_path).encode() in done.stderr
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


# check-aof


@pytest.mark.parametrize("target", ["", FOLDER, f"{FOLDER}/{MANIFEST}"])
def test_a_valid_folder(tmp_path: Path, target: str) -> None:
    make_folder(tmp_path, b"".join(SETS[:5]), b"#TS:1\r\n" + b"".join(SETS[5:]))
    before = state_of(tmp_path)
    done = tool("check-aof", str(tmp_path / target))
    assert done.returncode == 0, done.stderr
    assert b"valid, 2 files" in done.stdout
    assert b"5 commands" in done.stdout
    assert b"15 commands" in done.stdout
    assert state_of(tmp_path) == before


@pytest.mark.parametrize("fix", [False, True])
@pytest.mark.parametrize(
    ("tail", "problem"),
    [
        (SETS[9][:-3], b"in the middle of a command"),
        (request([b"MULTI"]) + SETS[9], b"in the middle of a transaction"),
        (b"*1\r\n$4\r\nPI", b"in the middle of a command"),
        (b"\0" * 64 + SETS[9], b"expected '*' before a command"),
        (request([b"MULTI"]) * 2, b"EXEC before another MULTI"),
    ],
)
def test_a_damaged_end(
    fresh_server: Factory, tmp_path: Path, tail: bytes, problem: bytes, fix: bool
) -> None:
    good = b"".join(SETS[:9])
    folder = make_folder(tmp_path, b"".join(SETS[10:]), good + tail)
    before = state_of(tmp_path)
    done = tool("check-aof", *(["--fix"] if fix else []), str(tmp_path))
    assert b"damaged at offset %d" % len(good) in done.stdout
    assert problem in done.stdout
    last = folder / "appendonly.aof.2.incr.aof"
    if not fix:
        assert done.returncode == 1
        assert state_of(tmp_path) == before
        return
    assert done.returncode == 0, done.stderr
    assert last.read_bytes() == good
    assert Path(f"{last}.cut-{len(good)}").read_bytes() == tail
    assert tool("check-aof", str(tmp_path)).returncode == 0
    assert keys(fresh_server(*AOF, directory=tmp_path)) == 19


def test_damage_that_no_cut_repairs(tmp_path: Path) -> None:
    make_folder(tmp_path, b"".join(SETS[:3]) + SETS[3][:-1], b"".join(SETS[4:]))
    before = state_of(tmp_path)
    for words in ((), ("--fix",)):
        done = tool("check-aof", *words, str(tmp_path))
        assert done.returncode == 1
        assert b"is not the last file" in done.stderr
        assert state_of(tmp_path) == before


def test_empty_files_may_follow_a_torn_one(fresh_server: Factory, tmp_path: Path) -> None:
    """As a crash leaves them that comes within a write while a rewrite begins."""
    whole = b"".join(SETS[:5])
    folder = make_folder(tmp_path, whole, whole + SETS[9][:-3], b"", b"")
    done = tool("check-aof", str(tmp_path))
    assert done.returncode == 1
    assert b"in the middle of a command" in done.stdout
    assert b"--fix cuts those bytes off" in done.stdout
    (folder / "appendonly.aof.3.incr.aof").unlink()
    assert b"cannot be read: No such file" in tool("check-aof", "--fix", str(tmp_path)).stderr
    (folder / "appendonly.aof.3.incr.aof").touch()
    done = tool("check-aof", "--fix", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (folder / "appendonly.aof.2.incr.aof").read_bytes() == whole
    assert keys(fresh_server(*AOF, directory=tmp_path)) == 5


def test_a_bad_manifest_and_a_missing_file(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, SETS[0])
    (folder / "appendonly.aof.1.incr.aof").unlink()
    done = tool("check-aof", str(tmp_path))
    assert done.returncode == 1
    assert b"appendonly.aof.1.incr.aof cannot be read: No such file" in done.stderr
    (folder / MANIFEST).write_text("file x seq 1\n")
    done = tool("check-aof", str(tmp_path))
    assert done.returncode == 1
    assert b"line 1" in done.stderr


def test_a_single_file(tmp_path: Path) -> None:
    path = tmp_path / "some.aof"
    path.write_bytes(b"".join(SETS) + b"*3\r\n")
    assert tool("check-aof", str(path)).returncode == 1
    assert tool("check-aof", "--fix", str(path)).returncode == 0
    assert path.read_bytes() == b"".join(SETS)


def test_a_folder_in_use_is_left_alone(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server(*AOF)
    server.call("SET", "k", "v")
    path, out = str(server.directory), str(tmp_path / "out")
    for words in (
        ("check-aof", "--fix", path),
        ("export", "--to", "resp", "--from", path, out),
        ("import", path, "--dir", out),
    ):
        done = tool(*words)
        assert done.returncode == 1
        assert f"A server (pid {server.pid}) uses".encode() in done.stderr
    server.stop()
    assert tool("check-aof", path).returncode == 0


# check-snapshot


def test_a_valid_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "dump.hrs"
    path.write_bytes(snapshot(odd_databases()))
    done = tool("check-snapshot", str(path))
    assert done.returncode == 0, done.stderr
    dbs = odd_databases()
    values = [entry.value for db in dbs for entry in db.every()]
    streams = [value for value in values if isinstance(value, Stream)]
    mortal = sum(db.volatile for db in dbs)
    for told in (
        b"valid",
        b"Headrace 0.1.0, state of 2025-11-21 02:40:00 UTC",
        b"%d keys: %d strings, %d streams"
        % (len(values), len(values) - len(streams), len(streams)),
        b"%d keys with a deadline" % mortal,
        b"%d entries, 3 groups, 24 pending entries" % sum(stream.length for stream in streams),
    ):
        assert told in done.stdout, done.stdout
    assert tool("check-aof", str(path)).returncode == 0


def test_a_damaged_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "dump.hrs"
    data = snapshot(odd_databases())
    for damaged in (data[:-1], data[:500] + bytes([data[500] ^ 4]) + data[501:], b"", b"x"):
        path.write_bytes(damaged)
        done = tool("check-snapshot", str(path))
        assert done.returncode == 1
        assert str(path).encode() in done.stderr
        assert b"Traceback" not in done.stderr


# export and import


def test_nothing_is_overwritten_and_the_source_stays(tmp_path: Path) -> None:
    source = tmp_path / "source"
    make_folder(source, b"".join(SETS) + b"*3\r\n$3")
    before = state_of(source)
    out = tmp_path / "out"
    out.write_text("mine")
    for words in (
        ("export", "--to", "resp", "--from", str(source), str(out)),
        ("export", "--to", "redis-aof", "--from", str(source), str(out)),
        ("export", "--to", "redis-aof", "--from", str(source), str(source)),
        ("import", str(source), "--dir", str(source)),
        ("import", str(source), "--dir", str(out)),
    ):
        assert tool(*words).returncode == 1, words
    assert out.read_text() == "mine"
    done = tool("import", str(source), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    assert b"6 bytes from offset" in done.stderr  # the torn end is told of, and stays
    assert state_of(source) == before


def test_a_bar_on_a_terminal(tmp_path: Path) -> None:
    make_folder(tmp_path / "source", b"".join(SETS))
    changed = [f"{name}={value}" for name, value in build.environment().items()]
    words = ["env", *changed, sys.executable, "-P", "-m", "headrace", "import"]
    words += [str(tmp_path / "source"), "--dir", str(tmp_path / "new")]
    with Terminal(words, tmp_path) as terminal:
        terminal.wait_for("loading: +0%")
        terminal.wait_for("writing: +0%")
        terminal.wait_for("20 keys, 0 entries")
        assert terminal.wait() == 0


def test_a_command_that_fails_is_refused(tmp_path: Path) -> None:
    made = request([b"SET", b"k", b"v"])
    make_folder(tmp_path, made + request([b"XADD", b"k", b"*", b"f", b"v"]))
    done = tool("import", str(tmp_path), "--dir", str(tmp_path / "new"))
    assert done.returncode == 1
    assert b"WRONGTYPE" in done.stderr
    assert b"offset %d" % len(made) in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_full_disk_leaves_nothing_half_done(tmp_path: Path) -> None:
    dbs = databases()
    dbs[0].put(b"k", b"v", 1)
    (tmp_path / "dump.hrs").write_bytes(snapshot(dbs))
    done = tool("export", "--to", "resp", "--from", str(tmp_path), "/dev/full/out")
    assert done.returncode == 1
    assert b"cannot be written" in done.stderr


def test_what_redis_cannot_read_is_told(fresh_server: Factory, tmp_path: Path) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        client.call("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 5)
        client.call("XADD", "s", "1-1", "f", "v")
        client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
        client.call("XNACK", "s", "g", "FAIL", "IDS", 1, "1-1")
    server.stop()
    out = str(tmp_path / "out")
    done = tool("export", "--to", "resp", "--from", str(server.directory), out)
    assert done.returncode == 0
    assert b"XNACK needs Redis 8.8" in done.stderr
    assert b"MAX-PENDING, which Redis does not know" in done.stderr
