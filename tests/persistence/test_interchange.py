"""The same folder under real Redis and under us: equal data, both ways."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Factory

from headrace.protocol.client import request
from support.contents import contents
from support.interchange import delivery_times, fill_groups, group_facts, pairs, rdb, stream
from support.process import Process
from support.random_commands import key_command, string_command
from support.random_scripts import FAIL, LEARNED, recorded
from support.tools import tool

from .test_serving import FOLDER, MANIFEST, fill, wait_until

pytestmark = pytest.mark.once

AOF = ("--appendonly", "yes")
DEBUG = ("--enable-debug-command", "yes")


def check_aof(folder: Path) -> str:
    """Return what redis-check-aof says about a folder; fails when it is not content."""
    program = shutil.which("redis-check-aof")
    if program is None:
        pytest.skip("no redis-check-aof")
    result = subprocess.run(
        [program, str(folder / MANIFEST)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def copy_folder(source: Process, target: Path) -> None:
    shutil.copytree(source.directory / FOLDER, target / FOLDER)


def everything(server: Process) -> object:
    """Keys, entries, counters, groups and pending entries, with the times of delivery."""
    return [
        contents(server),
        server.call("DEBUG", "DIGEST"),
        [group_facts(server, key) for key in ("s", "empty", "mixed")],
        delivery_times(server, "s", "g"),
    ]


@pytest.mark.judge
@pytest.mark.parametrize("rewritten", [False, True])
@pytest.mark.parametrize("timestamps", ["no", "yes"])
def test_redis_starts_on_our_folder(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, rewritten: bool, timestamps: str
) -> None:
    server = fresh_server(
        *(*AOF, *DEBUG, "--aof-use-rdb-preamble", "no", "--aof-timestamp-enabled", timestamps)
    )
    with server.client() as client:
        fill(client)
        client.call("SELECT", 0)
        fill_groups(client)
        if rewritten:
            client.call("BGREWRITEAOF")
            wait_until(server, "aof_rewrites", "1")
            client.call("XADD", "log", "*", "after", "the rewrite")
            client.call("SET", "text", "after")
    before = everything(server)
    server.stop()
    assert "valid" in check_aof(server.directory / FOLDER)
    copy_folder(server, tmp_path)
    redis = fresh_redis(*AOF, directory=tmp_path)
    assert everything(redis) == before
    redis.call("XADD", "log", "*", "by", "redis")
    after = everything(redis)
    redis.kill()
    ours = fresh_server(*AOF, *DEBUG, directory=tmp_path)
    assert everything(ours) == after


def fill_redis(redis: Process, rewritten: bool) -> None:
    with redis.client() as client:
        fill(client)
        client.call("SELECT", 0)
        fill_groups(client)
        if rewritten:
            client.call("BGREWRITEAOF")
            wait_until(redis, "aof_rewrites", "1")
            wait_until(redis, "aof_rewrite_in_progress", "0")
            client.call("XADD", "log", "*", "after", "the rewrite")
            client.call("XREADGROUP", "GROUP", "g", "z", "COUNT", 3, "STREAMS", "s", ">")
    # What its files say it can only tell itself: commands lose how many entries a group has read.
    redis.restart(crash=True)


@pytest.mark.judge
@pytest.mark.parametrize("rewritten", [False, True])
def test_we_start_on_a_folder_of_redis(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, rewritten: bool
) -> None:
    redis = fresh_redis(*AOF, "--aof-use-rdb-preamble", "no", "--aof-timestamp-enabled", "yes")
    fill_redis(redis, rewritten)
    before = everything(redis)
    redis.kill()
    copy_folder(redis, tmp_path)
    server = fresh_server(*AOF, *DEBUG, directory=tmp_path)
    assert everything(server) == before


@pytest.mark.judge
def test_the_single_file_of_an_older_redis(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path
) -> None:
    redis = fresh_redis(*AOF, "--aof-use-rdb-preamble", "no")
    with redis.client() as client:
        fill(client)
    before = contents(redis)
    redis.kill()
    folder = redis.directory / FOLDER
    whole = b"".join(file.read_bytes() for file in sorted(folder.glob("*.aof")))
    (tmp_path / "appendonly.aof").write_bytes(whole)
    server = fresh_server(*AOF, directory=tmp_path)
    assert contents(server) == before
    assert contents(server.restart(crash=True)) == before


@pytest.mark.judge
@pytest.mark.since(8, 10)
@pytest.mark.parametrize("seed", range(3))
def test_scripts_in_files_are_run(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, seed: int
) -> None:
    """Before 7.0, Redis recorded a script as it was called, and not what it did."""
    chance = random.Random(seed)
    made = [[b"SELECT", b"0"], *LEARNED]
    for _ in range(400):
        command = chance.choice([string_command, key_command])(chance)
        words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
        made += recorded(chance, words, may_fail=False)
    data = b"".join(map(request, made))
    redis = fresh_redis(start=False)
    for folder in (redis.directory, tmp_path / "ours", tmp_path / "imported"):
        folder.mkdir(exist_ok=True)
        (folder / "appendonly.aof").write_bytes(data)
    redis.options = (*redis.options, *AOF)
    redis.start()
    expected = redis.call("DEBUG", "DIGEST")
    server = fresh_server(*AOF, *DEBUG, directory=tmp_path / "ours")
    assert server.call("DEBUG", "DIGEST") == expected
    server.call("BGREWRITEAOF")
    wait_until(server, "aof_rewrite_in_progress", "0")
    assert server.restart(crash=True).call("DEBUG", "DIGEST") == expected
    assert tool("check-aof", str(tmp_path / "imported")).returncode == 0
    done = tool("import", str(tmp_path / "imported"), "--dir", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    server = fresh_server(*AOF, *DEBUG, directory=tmp_path / "new")
    assert server.call("DEBUG", "DIGEST") == expected


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([b"EVALSHA", b"f" * 40, b"0"], "EVALSHA answered: NOSCRIPT No matching script"),
        ([b"FCALL", b"f", b"0"], "FCALL answered: ERR Function not found"),
        ([b"EVAL", b"(", b"0"], "EVAL answered: ERR Error compiling script"),
        ([b"EVAL", b"redis.call('no.such')", b"0"], "EVAL answered: ERR Unknown Redis command"),
    ],
)
def test_scripts_that_cannot_be_run_are_named(
    fresh_server: Factory, tmp_path: Path, words: list[bytes], reason: str
) -> None:
    (tmp_path / "appendonly.aof").write_bytes(request([b"SET", b"k", b"1"]) + request(words))
    server = fresh_server(*AOF, directory=tmp_path, start=False, check_log=False)
    server.spawn()
    assert server.wait() == 1
    assert reason in server.log()


def test_a_script_that_failed_has_done_what_it_did(fresh_server: Factory, tmp_path: Path) -> None:
    words = [b"EVAL", FAIL, b"0", b"SET", b"k", b"1"]
    (tmp_path / "appendonly.aof").write_bytes(request(words))
    server = fresh_server(*AOF, directory=tmp_path)
    assert server.call("GET", "k") == b"1"
    assert "A recorded script ended with an error, after what it had done: NO reason" in (
        server.log()
    )


def test_the_scripts_of_a_file_stay_known(fresh_server: Factory, tmp_path: Path) -> None:
    """However many it names: it may call the first one by its digest at the end."""
    first = b"return redis.call('incr', 'calls')"
    made = [[b"EVAL", first, b"0"]]
    made += [[b"EVAL", b"return %d" % number, b"0"] for number in range(600)]
    made.append([b"EVALSHA", hashlib.sha1(first).hexdigest().encode(), b"0"])
    (tmp_path / "appendonly.aof").write_bytes(b"".join(map(request, made)))
    assert fresh_server(*AOF, directory=tmp_path).call("GET", "calls") == b"2"


@pytest.mark.judge
def test_redis_reads_what_restore_did(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path
) -> None:
    server = fresh_server(*AOF, *DEBUG, "--aof-use-rdb-preamble", "no")
    with server.client() as client:
        fill(client)
        client.call("SELECT", 0)
        fill_groups(client)
        for key, other in (("s", "mixed"), ("mixed", "s"), ("integer", "text"), ("empty", "empty")):
            data = client.call_parsed("DUMP", key)
            assert isinstance(data, bytes)
            assert client.call("RESTORE", f"new:{key}", 10**9, data) == b"+OK\r\n"
            assert client.call("RESTORE", other, 0, data, "REPLACE") == b"+OK\r\n"
    before = [everything_of(server), group_facts(server, "new:s")]
    server.kill()
    copy_folder(server, tmp_path)
    redis = fresh_redis(*AOF, directory=tmp_path)
    assert [everything_of(redis), group_facts(redis, "new:s")] == before


def everything_of(server: Process) -> object:
    return [contents(server), server.call("DEBUG", "DIGEST"), delivery_times(server, "mixed", "g")]


# headrace import and export


@pytest.mark.judge
@pytest.mark.parametrize("form", ["commands", "rdb base", "dump", "plain dump", "one file"])
def test_what_redis_wrote_is_imported(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, form: str
) -> None:
    preamble = "no" if form == "commands" else "yes"
    plain = ("--rdbcompression", "no", "--rdbchecksum", "no") if form == "plain dump" else ()
    redis = fresh_redis(*AOF, "--aof-use-rdb-preamble", preamble, *plain)
    fill_redis(redis, True)
    before = everything(redis)
    source = redis.directory
    if "dump" in form:
        redis.call("SAVE")
        source = source / "dump.rdb"
    redis.kill()
    if form == "one file":  # as servers before Redis 7 wrote it
        parts = [next((source / FOLDER).glob(f"*.{kind}.*")) for kind in ("base", "incr")]
        source = tmp_path / "appendonly.aof"
        source.write_bytes(b"".join(part.read_bytes() for part in parts))
    kind = "snapshot" if form == "dump" else "appendonly"
    new = tmp_path / "new"
    done = tool("import", str(source), "--dir", str(new), "--as", kind)
    assert done.returncode == 0, done.stderr
    options = () if form == "dump" else AOF
    ours = fresh_server(*options, *DEBUG, directory=new)
    assert everything(ours) == before
    assert tool("import", str(source), "--dir", str(new)).returncode == 1  # not empty


@pytest.mark.judge
@pytest.mark.parametrize("source", ["appendonlydir", "dump.hrs"])
def test_redis_starts_on_what_was_exported(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, source: str
) -> None:
    server = fresh_server(*(AOF if source == FOLDER else ()), *DEBUG)
    with server.client() as client:
        fill(client)
        client.call("SELECT", 0)
        fill_groups(client)
        if source == FOLDER:
            client.call("BGREWRITEAOF")
            wait_until(server, "aof_rewrites", "1")
            wait_until(server, "aof_rewrite_in_progress", "0")
            client.call("XADD", "log", "*", "after", "the rewrite")
        else:
            client.call("SAVE")
    before = everything(server)
    server.kill()
    path = str(server.directory / source)
    done = tool("export", "--to", "redis-aof", "--from", path, str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "valid" in check_aof(tmp_path / "out" / FOLDER)
    redis = fresh_redis(*AOF, directory=tmp_path / "out")
    assert everything(redis) == before

    out = tmp_path / "commands.resp"
    assert tool("export", "--to", "resp", "--from", path, str(out)).returncode == 0
    piped = tool("export", "--to", "resp", "--from", path, "-")
    assert piped.stdout == out.read_bytes()
    other = fresh_redis()
    with other.client() as client:
        client.send(out.read_bytes() + b"*1\r\n$4\r\nPING\r\n")
        while client.read() != b"+PONG\r\n":
            pass
    assert everything(other) == before


BASES = ("rdb", "commands")


def rewrite(redis: Process, form: str) -> None:
    """Have a server that has done all before it in ``BASES`` begin a base in this form."""
    redis.call("CONFIG", "SET", "aof-use-rdb-preamble", "yes" if form == "rdb" else "no")
    redis.call("BGREWRITEAOF")
    wait_until(redis, "aof_rewrites", str(BASES.index(form) + 1))
    wait_until(redis, "aof_rewrite_in_progress", "0")


@pytest.mark.judge
def test_functions_come_over(fresh_server: Factory, fresh_redis: Factory, tmp_path: Path) -> None:
    """From a base in either form, and from what follows it."""
    library = "#!lua name={0}\nredis.register_function('{0}', function() return 1 end)"
    redis = fresh_redis(*AOF)
    with redis.client() as client:
        client.call("SET", "kept", "1")
        client.call("FUNCTION", "LOAD", library.format("in_the_base"))
        for form in BASES:
            rewrite(redis, form)
            client.call("FUNCTION", "LOAD", "REPLACE", library.format("behind_the_base"))
            new = tmp_path / form
            done = tool("import", str(redis.directory), "--dir", str(new))
            assert done.returncode == 0, done.stderr
            with fresh_server(*AOF, directory=new).client() as ours:
                assert ours.call("GET", "kept") == b"$1\r\n1\r\n"
                assert ours.call("FCALL", "in_the_base", 0) == b":1\r\n"
                assert ours.call("FCALL", "behind_the_base", 0) == b":1\r\n"


@pytest.mark.judge
def test_what_is_not_known_here_is_refused_by_name(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path
) -> None:
    """A library that Redis takes and that is none: as a file may have come from a later one."""
    redis = fresh_redis(*AOF)
    library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
    with redis.client() as client:
        client.call("SET", "kept", "1")
        client.call("FUNCTION", "LOAD", library)
        client.call("SET", "kept too", "1", "EX", 1000)
        for form in BASES:
            rewrite(redis, form)
            source = tmp_path / f"{form} of Redis"
            shutil.copytree(redis.directory, source)
            base = next((source / FOLDER).glob("*.base.*"))
            data = base.read_bytes().replace(b"redis.register_function", b"redis.register_fiction!")
            base.write_bytes(data[:-8] + bytes(8) if form == "rdb" else data)
            new = tmp_path / form
            done = tool("import", str(source), "--dir", str(new))
            assert done.returncode == 1
            assert b"  1 x library of functions that cannot be loaded: Error " in done.stderr
            assert not new.exists()
            done = tool("import", str(source), "--dir", str(new), "--skip-unsupported")
            assert done.returncode == 0
            with fresh_server(*AOF, directory=new).client() as ours:
                assert ours.call("DBSIZE") == b":2\r\n"
                assert ours.call("FUNCTION", "LIST") == b"*0\r\n"
                assert ours.call("MGET", "kept", "kept too") == client.call(
                    "MGET", "kept", "kept too"
                )


@pytest.mark.judge
@pytest.mark.parametrize("kind", [15, 19])
def test_streams_of_older_servers(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, kind: int
) -> None:
    """A file made by hand; the real Redis says what it means."""
    (tmp_path / "dump.rdb").write_bytes(rdb(9, stream(kind, b"s")))
    new = tmp_path / "new"
    done = tool("import", str(tmp_path / "dump.rdb"), "--dir", str(new))
    assert done.returncode == 0, done.stderr
    ours, real = fresh_server(*AOF, directory=new), fresh_redis(directory=tmp_path)
    assert group_facts(ours, "s") == group_facts(real, "s")
    assert delivery_times(ours, "s", "g") == delivery_times(real, "s", "g")
    assert ours.call("XRANGE", "s", "-", "+") == real.call("XRANGE", "s", "-", "+")
    both = [pairs(server.call("XINFO", "STREAM", "s")) for server in (ours, real)]
    for name in both[1].keys() - {b"radix-tree-nodes"}:
        assert both[0][name] == both[1][name], name


def test_streams_of_newer_servers(fresh_server: Factory, tmp_path: Path) -> None:
    source = tmp_path / "dump.rdb"
    source.write_bytes(rdb(11, stream(21, b"s")))
    new = tmp_path / "new"
    assert tool("import", str(source), "--dir", str(new)).returncode == 0
    full = pairs(fresh_server(*AOF, directory=new).call("XINFO", "STREAM", "s", "FULL"))
    groups = full[b"groups"]
    assert isinstance(groups, list)
    members = pairs(groups[0])[b"consumers"]
    assert isinstance(members, list)
    ada = pairs(members[0])
    assert (ada[b"seen-time"], ada[b"active-time"]) == (1_700_000_000_500, 1_700_000_000_400)
    source.write_bytes(rdb(13, stream(26, b"s")))
    done = tool("import", str(source), "--dir", str(tmp_path / "other"))
    assert done.returncode == 1
    assert b"is damaged" in done.stderr  # its IDMP map is not there


@pytest.mark.judge
def test_a_damaged_rdb_file_is_refused(fresh_redis: Factory, tmp_path: Path) -> None:
    redis = fresh_redis()
    with redis.client() as client:
        fill_groups(client)
        client.call("SAVE")
    data = (redis.directory / "dump.rdb").read_bytes()
    source = tmp_path / "dump.rdb"
    for damaged in (
        data[:-9], data[:-1], data[: len(data) // 2],
        data[:1000] + bytes([data[1000] ^ 1]) + data[1001:],
        b"REDIS9999" + data[9:], b"REDISx", data[:20],
    ):  # fmt: skip
        source.write_bytes(damaged)
        done = tool("import", str(source), "--dir", str(tmp_path / "new"))
        assert done.returncode == 1
        assert str(source).encode() in done.stderr
        assert b"Traceback" not in done.stderr
        assert not (tmp_path / "new").exists()


@pytest.mark.judge
def test_a_server_starts_on_what_redis_saved(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path
) -> None:
    """It saves under a name of its own, or as Redis where a name is said that Redis would use."""
    redis = fresh_redis()
    with redis.client() as client:
        fill(client)
        client.call("SELECT", 0)
        fill_groups(client)
        client.call("SAVE")
    before = everything(redis)
    redis.kill()
    saved = (redis.directory / "dump.rdb").read_bytes()
    for number, options in enumerate(((), ("--dbfilename", "other.rdb"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / (options[1] if options else "dump.rdb")
        path.write_bytes(saved)
        server = fresh_server(*DEBUG, *options, directory=folder)
        assert everything(server) == before
        assert "is a snapshot of" in server.log()
        server.call("SET", "more", "1")
        server.call("SAVE")
        server.restart()
        assert server.call("GET", "more") == b"1"
        assert (path.read_bytes() == saved) != bool(options)
        assert path.with_suffix(".hrs").exists() != bool(options)


@pytest.mark.judge
def test_a_server_starts_on_a_folder_of_redis(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path
) -> None:
    """A base in Redis's form, commands behind it, and a file in which both stand."""
    redis = fresh_redis(*AOF)
    fill_redis(redis, True)
    before = everything(redis)
    redis.kill()
    copy_folder(redis, tmp_path)
    server = fresh_server(*AOF, *DEBUG, directory=tmp_path)
    assert everything(server) == before
    server.call("SET", "more", "1")
    server.call("BGREWRITEAOF")
    wait_until(server, "aof_rewrites", "1")
    wait_until(server, "aof_rewrite_in_progress", "0")
    after = everything(server)
    assert everything(server.restart(crash=True)) == after
    folder = redis.directory / FOLDER
    parts = [next(folder.glob(f"*.{kind}.*")).read_bytes() for kind in ("base", "incr")]
    single = tmp_path / "single"
    single.mkdir()
    (single / "appendonly.aof").write_bytes(b"".join(parts))
    assert everything(fresh_server(*AOF, *DEBUG, directory=single)) == before
