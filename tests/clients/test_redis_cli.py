"""redis-cli and redis-benchmark against the server, as a person would use them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.process import ServerProcess
from support.programs import program
from support.terminal import Terminal
from support.waiting import wait_until

pytestmark = pytest.mark.once

Cli = Callable[..., str]


@pytest.fixture
def cli(server: ServerProcess) -> Cli:
    """Runs redis-cli to its end; what it prints."""

    def run(*words: str, given: str | bytes = "", code: int = 0) -> str:
        done = subprocess.run(
            [program("redis-cli"), "-p", str(server.port), *words],
            input=given.encode() if isinstance(given, str) else given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=30,
        )
        assert done.returncode == code, done.stdout
        return done.stdout.decode()

    return run


@pytest.fixture
def terminal(server: ServerProcess, tmp_path: Path) -> Callable[..., Terminal]:
    """Starts redis-cli on a terminal."""

    def start(*words: str) -> Terminal:
        return Terminal([program("redis-cli"), "-p", str(server.port), *words], tmp_path)

    return start


def test_one_command(cli: Cli) -> None:
    assert cli("PING") == "PONG\n"
    assert cli("SET", "k", "v") == "OK\n"
    assert cli("GET", "k") == "v\n"
    assert cli("--no-raw", "GET", "none") == "(nil)\n"
    assert cli("--no-raw", "INCR", "n") == "(integer) 1\n"
    assert cli("--no-raw", "XADD", "s", "1-1", "f", "v") == '"1-1"\n'
    assert cli("--no-raw", "XRANGE", "s", "-", "+") == ('1) 1) "1-1"\n   2) 1) "f"\n      2) "v"\n')
    assert cli("-n", "3", "DBSIZE") == "0\n"
    assert cli("-e", "NOPE", code=1).startswith("ERR unknown command 'NOPE'")
    assert cli("-r", "3", "INCR", "n") == "2\n3\n4\n"
    assert cli("--csv", "MGET", "k", "n", "none") == '"v","4",NULL\n'
    assert "Connect" not in cli(
        "-u", f"redis://127.0.0.1:{cli('CONFIG', 'GET', 'port').split()[1]}"
    )


def test_one_command_in_resp3(cli: Cli) -> None:
    cli("XADD", "s", "1-1", "f", "v")
    assert cli("-3", "--no-raw", "CONFIG", "GET", "databases") == ('1# "databases" => "16"\n')
    assert cli("-3", "--no-raw", "XREAD", "STREAMS", "s", "0").split() == (
        '1# "s" => 1) 1) "1-1" 2) 1) "f" 2) "v"'.split()
    )
    info = json.loads(cli("--json", "XINFO", "STREAM", "s"))
    assert info["length"] == 1
    assert info["last-entry"] == ["1-1", ["f", "v"]]


def test_commands_from_standard_input(cli: Cli) -> None:
    assert cli(given="SET a 1\nINCR a\nGET a\n") == "OK\n2\n2\n"
    assert cli("-x", "SET", "text", given="two\nlines") == "OK\n"
    assert cli("GET", "text") == "two\nlines\n"
    assert cli("-X", "VALUE", "XADD", "s", "1-1", "f", "VALUE", given="deep") == "1-1\n"
    assert cli("--csv", "XRANGE", "s", "-", "+") == '"1-1","f","deep"\n'


def test_mass_insertion(cli: Cli) -> None:
    lines = "".join(f"XADD s {n}-0 n {n}\r\n" for n in range(1, 20_001))
    shown = cli("--pipe", given=lines)
    assert "errors: 0, replies: 20000" in shown
    assert cli("XLEN", "s") == "20000\n"
    requests = b"".join(b"*3\r\n$3\r\nSET\r\n$6\r\nk%05d\r\n$1\r\n\0\r\n" % n for n in range(5000))
    assert "errors: 0, replies: 5000" in cli("--pipe", given=requests)
    assert cli("DBSIZE") == "5001\n"
    shown = cli("--pipe", given="SET a 1\r\nXADD s 1-0 f v\r\nSET b 2\r\n", code=1)
    assert "equal or smaller than the target stream top item" in shown
    assert "errors: 1, replies: 3" in shown


def test_scripts(cli: Cli, tmp_path: Path) -> None:
    """Sent in one go, from a file, and functions; an error among them is counted."""
    script = "return redis.call('INCR', KEYS[1]) + #ARGV"
    calls = "".join(f'EVAL "{script}" 1 k {n}\r\n' for n in range(5000))
    assert "errors: 0, replies: 5000" in cli("--pipe", given=calls)
    assert cli("GET", "k") == "5000\n"
    calls += 'EVAL "error(\'boom\')" 0\r\nFCALL nosuch 0\r\nEVAL "return 1" 0\r\n'
    shown = cli("--pipe", given=calls, code=1)
    assert "user_script:1: boom" in shown
    assert "errors: 2, replies: 5003" in shown
    file = tmp_path / "script.lua"
    file.write_text("return {KEYS[1], ARGV[1], {1, 2.9, true, false}}")
    assert cli("--eval", str(file), "key", ",", "word") == "key\nword\n1\n2\n1\n\n"
    library = "#!lua name=lib\nredis.register_function('f', function(keys, args) return args end)"
    assert cli("-x", "FUNCTION", "LOAD", given=library) == "lib\n"
    assert cli("FCALL", "f", "0", "a", "b") == "a\nb\n"
    cli("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    assert "Transfer finished with success" in cli("--functions-rdb", str(tmp_path / "f.rdb"))
    cli("FUNCTION", "FLUSH")


def test_scan(cli: Cli) -> None:
    cli("--pipe", given="".join(f"SET key:{n} {n}\r\n" for n in range(100)))
    cli("XADD", "stream", "*", "f", "v")
    assert len(cli("--scan").split()) == 101
    found = cli("--scan", "--pattern", "key:1?").split()
    assert sorted(found) == [f"key:{n}" for n in range(10, 20)]


def test_big_keys(cli: Cli) -> None:
    cli("SET", "small", "x")
    cli("SET", "large", "x" * 1000)
    cli("--pipe", given="".join(f"XADD s {n}-0 n {n}\r\n" for n in range(1, 301)))
    shown = cli("--bigkeys")
    assert "Sampled 3 keys in the keyspace!" in shown
    assert re.search(r'Biggest string found .*large"+\'? has 1000 bytes', shown)
    assert re.search(r'Biggest stream found .*s"+\'? has 300 entries', shown)
    assert "2 strings with 1001 bytes (66.67% of keys" in shown
    assert "1 streams with 300 entries (33.33% of keys" in shown


def test_memory_of_keys(cli: Cli) -> None:
    cli("SET", "small", "x")
    cli("SET", "large", "x" * 1000)
    cli("XADD", "s", "*", "f", "v")
    shown = cli("--memkeys")
    largest = re.search(r'Biggest string found .*large"+\'? has (\d+) bytes', shown)
    assert largest is not None
    assert int(largest[1]) > 1000
    assert re.search(r'Biggest stream found .*s"+\'? has \d+ bytes', shown)


def test_hot_keys_need_a_policy_that_counts(cli: Cli) -> None:
    cli("SET", "k", "v")
    shown = cli("--hotkeys", code=1)
    assert "ERR An LFU maxmemory policy is not selected, access frequency not tracked." in shown


def test_hot_keys(server: ServerProcess, cli: Cli) -> None:
    server.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu", "lfu-log-factor", 0)
    try:
        cli("MSET", "hot", "v", "cold", "v")
        cli("-r", "50", "GET", "hot")
        shown = cli("--hotkeys")
    finally:  # the server is there for other tests, too
        server.call("CONFIG", "SET", "maxmemory-policy", "noeviction", "lfu-log-factor", 10)
    found = re.search(r'hot key found with counter: (\d+)\tkeyname: "hot"', shown)
    assert found is not None, shown
    assert int(found[1]) >= 50


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_a_snapshot(server: ServerProcess, cli: Cli, tmp_path: Path, diskless: str) -> None:
    """redis-cli knows both ways in which a copy may come, and its file is a whole one."""
    server.call(*("CONFIG", "SET", "repl-diskless-sync", diskless, "repl-diskless-sync-delay", 0))
    cli("--pipe", given="".join(f"SET key:{n} {n}\r\n" for n in range(1000)))
    path = tmp_path / "taken.rdb"
    assert "Transfer finished with success" in cli("--rdb", str(path))
    with ServerProcess(directory=tmp_path, config=f"dbfilename {path.name}") as copy:
        assert copy.call("DBSIZE") == 1000


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_the_commands_of_a_replica(
    server: ServerProcess, cli: Cli, terminal: Callable[..., Terminal], diskless: str
) -> None:
    server.call(*("CONFIG", "SET", "repl-diskless-sync", diskless, "repl-diskless-sync-delay", 0))
    cli("SET", "before", "v")
    with terminal("--replica") as shown:
        shown.wait_for("(?i)logging commands from master")
        wait_until(lambda: "state=online" in server.info("replication").get("slave0", ""))
        cli("SET", "first", "v")  # redis-cli may take what comes first as a reply to its ACK
        cli("SET", "k", "v")
        shown.wait_for('"SET","k","v"\n')


def test_latency(cli: Cli, terminal: Callable[..., Terminal]) -> None:
    """Not on a terminal it measures for a second and ends: lowest, highest, average, samples."""
    lowest, highest, average, samples = cli("--latency").split()
    assert 0 <= int(lowest) <= float(average) <= int(highest)
    assert int(samples) > 20
    with terminal("--latency") as shown:
        shown.wait_for(r"min: \d+, max: \d+, avg: \d+\.\d+ \(\d+ samples\)")
    with terminal("--latency-history", "-i", "1") as shown:
        shown.wait_for(r"avg: .* -- 1\.\d+ seconds range")


def test_stat(server: ServerProcess, terminal: Callable[..., Terminal]) -> None:
    server.call("XADD", "s", "*", "f", "v")
    server.call("SET", "k", "v")
    with terminal("--stat", "-i", "0.05") as shown:
        shown.wait_for(r"keys +mem +clients +blocked +requests +connections")
        for _ in range(3):
            line = shown.wait_for(r"\n(\d+) +([\d.]+[KMG]) +(\d+) +(\d+) +(\d+) \(\+\d+\) +\d+")
            assert line[1] == "2"
            assert float(line[2][:-1]) > 0
            assert int(line[3]) >= 1
            assert line[4] == "0"


def test_monitor(server: ServerProcess, terminal: Callable[..., Terminal]) -> None:
    with terminal("MONITOR") as shown:
        shown.wait_for("OK\n")
        server.call("SET", "k", 'a "b"\n')
        shown.wait_for(r'\d+\.\d{6} \[0 127\.0\.0\.1:\d+\] "SET" "k" "a \\"b\\"\\n"\n')


@pytest.mark.parametrize("protocol", ["-2", "-3"])
def test_subscribe(protocol: str, server: ServerProcess, terminal: Callable[..., Terminal]) -> None:
    words = ["-3"] if protocol == "-3" else []
    with terminal(*words, "SUBSCRIBE", "news", "more") as shown:
        shown.wait_for(r'1\) "subscribe"\n2\) "news"\n3\) \(integer\) 1\n')
        shown.wait_for(r'1\) "subscribe"\n2\) "more"\n3\) \(integer\) 2\n')
        assert server.call("PUBLISH", "news", "hello") == 1
        shown.wait_for(r'1\) "message"\n2\) "news"\n3\) "hello"\n')


def test_a_session_at_the_prompt(server: ServerProcess, terminal: Callable[..., Terminal]) -> None:
    prompt = f"127.0.0.1:{server.port}"
    with terminal() as person, server.client() as other:

        def enter(line: str, state: str = "") -> None:
            person.wait_for(re.escape(f"{prompt}{state}> "))  # what is typed earlier gets lost
            person.type(f"{line}\r")

        enter("set k v")
        person.wait_for("OK\n")
        enter("select 3")
        enter("multi", "[3]")
        enter("xadd s 1-1 f v", "[3](TX)")
        person.wait_for("QUEUED\n")
        enter("exec", "[3](TX)")
        person.wait_for(r'1\) "1-1"\n')
        enter("hello 3", "[3]")
        person.wait_for(r'"proto" => \(integer\) 3')
        enter("xread block 5000 streams s $", "[3]")
        wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
        other.call("SELECT", 3)
        other.call("XADD", "s", "2-2", "f", "w")
        person.wait_for(r'1# "s" =>\s+1\) 1\) "2-2"')
        enter("nope", "[3]")
        person.wait_for(r"\(error\) ERR unknown command 'nope'")
        enter("quit", "[3]")
        assert person.wait() == 0


def test_hints_at_the_prompt(server: ServerProcess, terminal: Callable[..., Terminal]) -> None:
    """They come from COMMAND DOCS, which redis-cli asks for when it starts: KEEPREF is younger than
    the redis-cli of any distribution."""
    server.call("CONFIG", "RESETSTAT")
    with terminal() as person:
        person.wait_for(f"{server.port}> ")
        person.type("xadd ")
        person.wait_for(r"key \[NOMKSTREAM\] .*KEEPREF.*\*\|id field value \[field value \.\.\.\]")
        person.type("\x15config get ")
        person.wait_for(r"parameter \[parameter \.\.\.\]")
        person.type("\x15set k v ")
        person.wait_for(r"\[NX\|XX.*EX seconds\|PX milliseconds")
        person.type("\x15xdele\t")
        person.wait_for("(?i)xdelex")
        person.type("\x15help @stream\r")
        shown = person.wait_for(r"XADD key[\s\S]*XTRIM key")[0]
        assert "XRANGE" in shown
    assert server.info("commandstats")["cmdstat_command|docs"].startswith("calls=1,")


# redis-benchmark


def benchmark(server: ServerProcess, *words: str) -> str:
    done = subprocess.run(
        [program("redis-benchmark"), "-p", str(server.port), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    assert "rror" not in done.stdout
    assert "WARNING" not in done.stdout
    return done.stdout


@pytest.mark.parametrize("options", [[], ["-3"], ["-P", "16"], ["--threads", "2"]])
def test_benchmark(options: list[str], server: ServerProcess) -> None:
    shown = benchmark(server, "-t", "ping,set,get,incr,mset", "-n", "2000", "-q", *options)
    lines = re.findall(
        r"^(.*): ([\d.]+) requests per second", shown.replace("\r", "\n"), re.MULTILINE
    )
    finished = {name for name, rate in lines if float(rate) > 0}
    assert finished >= {"PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"}
    assert server.call("GET", "counter:__rand_int__") == b"2000"


def test_benchmark_of_a_stream(server: ServerProcess) -> None:
    shown = benchmark(server, "-P", "16", "-n", "5000", "-q", "XADD", "s", "*", "f", "__rand_int__")
    assert "requests per second" in shown
    length = server.call("XLEN", "s")
    assert isinstance(length, int)
    assert length >= 5000  # every client fills its last pipeline
    shown = benchmark(server, "-n", "500", "--csv", "XRANGE", "s", "-", "+", "COUNT", "10")
    assert '"XRANGE s - + COUNT 10"' in shown


def test_benchmark_with_random_keys(server: ServerProcess) -> None:
    benchmark(server, "-r", "1000", "-n", "3000", "-c", "20", "-q", "-t", "set,get")
    size = server.call("DBSIZE")
    assert isinstance(size, int)
    assert 800 < size <= 1000
