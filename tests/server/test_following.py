"""Ours as a replica of real servers, and of ours: it ends with the same data, whatever happens."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from conftest import Factory

from headrace.protocol.client import request as encode_words
from support.all_types import make, names, requests
from support.client import WireError, encode
from support.following import AT_ONCE, Copy, Load, assert_same, digest, have_all, is_up
from support.process import Process, RedisProcess
from support.proxy import Proxy
from support.random_commands import do_things
from support.random_scripts import LEARNED, recorded
from support.waiting import DEADLINE_S, wait_until

LIBRARY = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"


@pytest.fixture
def replica(fresh_server: Factory) -> Process:
    return fresh_server("--enable-debug-command", "yes", "--save", "", *AT_ONCE)


@pytest.fixture
def master(fresh_redis: Factory) -> RedisProcess:
    process = fresh_redis("--repl-diskless-sync-delay", "0")
    assert isinstance(process, RedisProcess)
    return process


def follow(replica: Process, port: int) -> None:
    assert replica.call("REPLICAOF", "127.0.0.1", port) == b"OK"
    wait_until(lambda: is_up(replica))


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_a_full_copy_holds_values_of_every_type(
    replica: Process, master: RedisProcess, diskless: str
) -> None:
    master.call("CONFIG", "SET", "repl-diskless-sync", diskless)
    replica.call("SET", "of before", 1)
    with master.client() as client:
        for name in names((master.version[0], master.version[1])):
            if master.version >= (7, 2) or "sorted set" not in name:  # 7.0 digests other digits
                make(client, requests(name), f"key {name}")
        client.call("SELECT", 3)
        client.call("SET", "mortal", "v", "PX", 10**8)
        client.call("FUNCTION", "LOAD", LIBRARY)
    follow(replica, master.port)
    assert_same(master, replica)
    assert replica.call("FUNCTION", "LIST") != []
    assert replica.call("EXISTS", "of before") == 0


def test_it_keeps_up_under_load(replica: Process, master: RedisProcess) -> None:
    with Load(master):
        follow(replica, master.port)
        start = int(replica.info("replication")["slave_repl_offset"])
        wait_until(
            lambda: int(replica.info("replication")["slave_repl_offset"]) > start + 50_000, 60
        )
    assert_same(master, replica)


def resumptions(replica: Process) -> int:
    """Return how often it has gone on where it stood."""
    return replica.log().count("The master goes on from offset")


def wait_for_resumptions(replica: Process, count: int) -> None:
    wait_until(lambda: resumptions(replica) == count)


def test_a_cut_link_goes_on_where_it_stood(replica: Process, master: RedisProcess) -> None:
    proxy = Proxy(master.port)
    with closing(proxy):
        follow(replica, proxy.port)
        with Load(master, 1):
            for cut in range(1, 4):
                proxy.cut_after(5000)
                wait_for_resumptions(replica, cut)
                wait_until(lambda: is_up(replica))
        assert_same(master, replica)
    assert replica.log().count("Full copy from the master") == 1
    assert resumptions(replica) == 3


def test_a_copy_that_is_cut_begins_anew(replica: Process, master: RedisProcess) -> None:
    with master.client() as client:
        for number in range(100):
            client.call("SET", number, b"%d" % number * 5000)
    proxy = Proxy(master.port)
    with closing(proxy):
        proxy.cut_after(100_000)
        follow(replica, proxy.port)
        assert_same(master, replica)
    assert not list(replica.directory.glob("temp-*"))


def test_clients_of_a_replica(replica: Process, master: RedisProcess) -> None:
    with replica.client() as blocked:
        blocked.send(encode("BLPOP", "list", 0))
        wait_until(lambda: replica.info("clients")["blocked_clients"] == "1")
        follow(replica, master.port)
        assert blocked.read().startswith(b"-UNBLOCKED force unblock")
    with replica.client() as reader:
        reader.send(encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$"))
        wait_until(lambda: replica.info("clients")["blocked_clients"] == "1")
        master.call("XADD", "s", "1-1", "f", "v")
        assert reader.read_parsed() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
        refused = b"-READONLY You can't write against a read only replica."
        assert reader.call("SET", "k", "v") == refused + b"\r\n"
        assert reader.call("EVAL", "return redis.call('SET', 'k', 1)", 0).startswith(refused)
        reader.call("MULTI")
        assert reader.call("SET", "k", "v") == refused + b"\r\n"
        assert reader.call("EXEC").startswith(b"-EXECABORT")
        assert reader.call("WAIT", 1, 1).startswith(b"-ERR WAIT cannot be used with replica")
        assert reader.call("WAITAOF", 0, 1, 1).startswith(b"-ERR WAITAOF cannot be used")
        role = reader.call_parsed("ROLE")
        assert isinstance(role, list)
        assert role[:4] == [b"slave", b"127.0.0.1", master.port, b"connected"]
        reader.call("SUBSCRIBE", "news")
        master.call("PUBLISH", "news", "good")
        assert reader.read_parsed() == [b"message", b"news", b"good"]
    assert master.info("replication")["connected_slaves"] == "1"
    with master.client() as client:
        client.call("SET", "k", "w")
        assert client.call_parsed("WAIT", 1, 20_000) == 1
    assert replica.call("GET", "k") == b"w"


def test_what_expires_is_the_masters_to_say(replica: Process, master: RedisProcess) -> None:
    follow(replica, master.port)
    master.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    master.call("SET", "k", "v", "PX", 50)
    wait_until(lambda: replica.call("DBSIZE") == 1)
    wait_until(lambda: replica.call("GET", "k") is None)
    assert replica.call("DBSIZE") == 1
    assert master.call("GET", "k") is None
    wait_until(lambda: replica.call("DBSIZE") == 0)


def test_promotion_loses_nothing(replica: Process, master: RedisProcess) -> None:
    follow(replica, master.port)
    with Load(master, 1):
        wait_until(lambda: int(replica.info("replication")["slave_repl_offset"]) > 20_000)
    assert_same(master, replica)
    expected = digest(master)
    old = replica.info("replication")
    assert replica.call("REPLICAOF", "NO", "ONE") == b"OK"
    assert digest(replica) == expected
    new = replica.info("replication")
    assert new["role"] == "master"
    assert new["master_replid2"] == old["master_replid"]
    assert int(new["second_repl_offset"]) == int(new["master_repl_offset"]) + 1
    assert replica.call("SET", "k", "v") == b"OK"
    # The old master follows now, and goes on where it was.
    master.call("REPLICAOF", "127.0.0.1", replica.port)
    wait_until(lambda: is_up(master))
    assert_same(replica, master)


def test_its_own_files_hold_what_it_has_got(fresh_server: Factory, master: RedisProcess) -> None:
    replica = fresh_server("--appendonly", "yes", "--enable-debug-command", "yes")
    replica.call("SET", "of before", 1)
    with master.client() as client:
        do_things(client, random.Random(3), 300)
        follow(replica, master.port)
        do_things(client, random.Random(4), 300)
    assert_same(master, replica)
    wait_until(lambda: replica.info("persistence")["aof_rewrite_in_progress"] == "0")
    expected = digest(master)
    replica.call("REPLICAOF", "NO", "ONE")
    replica.restart(crash=True)
    assert digest(replica) == expected


def test_a_replica_that_was_killed_follows_again(
    fresh_server: Factory, master: RedisProcess
) -> None:
    where = f"replicaof 127.0.0.1 {master.port}\n"
    replica = fresh_server("--enable-debug-command", "yes", config=where)
    with Load(master, 1):
        wait_until(lambda: is_up(replica))
        replica.restart(crash=True)
        wait_until(lambda: is_up(replica))
    assert_same(master, replica)


def test_a_master_that_was_killed_is_followed_again(replica: Process, master: RedisProcess) -> None:
    follow(replica, master.port)
    with master.client() as client:
        do_things(client, random.Random(1), 200)
    replica.call("CONFIG", "SET", "replica-serve-stale-data", "no")
    master.kill()
    wait_until(lambda: not is_up(replica))
    with pytest.raises(WireError, match="MASTERDOWN"):
        replica.call("GET", "k")
    replica.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
    replica.call("GET", "k")
    with pytest.raises(WireError, match="NOMASTERLINK"):
        replica.call("PSYNC", "?", -1)
    master.restart(crash=True)
    wait_until(lambda: is_up(replica))
    assert_same(master, replica)


def test_a_password_is_given(replica: Process, master: RedisProcess) -> None:
    with master.client() as client:
        client.call("ACL", "SETUSER", "client", "on", ">secret", "+psync", "+replconf", "+ping")
        client.call("SET", "k", "v")
        client.call("CONFIG", "SET", "requirepass", "other")
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    replica.wait_for_log("is down: ")
    replica.call("CONFIG", "SET", "masteruser", "client", "masterauth", "secret")
    wait_until(lambda: is_up(replica))
    assert replica.call("GET", "k") == b"v"


def test_a_replica_of_a_replica(
    fresh_server: Factory, replica: Process, master: RedisProcess
) -> None:
    last = fresh_server("--enable-debug-command", "yes", "--save", "")
    with Load(master, 1):
        follow(replica, master.port)
        follow(last, replica.port)
        start = int(last.info("replication")["slave_repl_offset"])
        wait_until(lambda: int(last.info("replication")["slave_repl_offset"]) > start + 20_000)
    assert_same(master, replica, last)
    # The one in the middle goes: the last one goes on at the first.
    replica.kill()
    follow(last, master.port)
    assert last.log().count("Full copy from the master") == 1
    assert_same(master, last)


def test_the_configuration_is_rewritten(fresh_server: Factory) -> None:
    replica = fresh_server(config="save ''\n")
    replica.call("REPLICAOF", "127.0.0.1", 1)
    assert replica.call("CONFIG", "GET", "replicaof") == [b"replicaof", b"127.0.0.1 1"]
    replica.call("CONFIG", "REWRITE")
    assert "replicaof 127.0.0.1 1" in replica.config_path.read_text()
    replica.call("REPLICAOF", "NO", "ONE")
    replica.call("CONFIG", "REWRITE")
    assert "replicaof" not in replica.config_path.read_text()


@pytest.mark.once
def test_a_pause_holds_what_the_master_sends(replica: Process, master: RedisProcess) -> None:
    follow(replica, master.port)
    replica.call("CLIENT", "PAUSE", 100_000, "WRITE")
    with master.client() as client:
        client.call("SET", "k", "v")
        client.call("MULTI")
        client.call("INCR", "n")
        client.call("INCR", "n")
        client.call("EXEC")
    end = master.info("replication")["master_repl_offset"]
    wait_until(lambda: replica.info("replication")["slave_read_repl_offset"] >= end)
    assert int(replica.info("replication")["slave_repl_offset"]) < int(end)
    assert b" flags=Mb " in bytes(replica.call("CLIENT", "LIST", "TYPE", "master"))  # type: ignore[call-overload]
    assert replica.call("MGET", "k", "n") == [None, None]
    with master.client() as client:
        client.call("SET", "later", "v")
        assert client.call_parsed("WAIT", 1, 50) == 0
    replica.call("CLIENT", "UNPAUSE")
    assert_same(master, replica)
    assert replica.call("MGET", "k", "n", "later") == [b"v", b"2", b"v"]
    began_s = time.monotonic()
    replica.call("CLIENT", "PAUSE", 500, "ALL")
    with master.client() as client:
        client.call("SET", "k", "w")
        assert client.call_parsed("WAIT", 1, 20_000) == 1
    assert time.monotonic() - began_s > 0.4
    assert_same(master, replica)


@pytest.mark.once
def test_keys_that_clients_of_a_replica_wrote_expire(
    replica: Process, master: RedisProcess
) -> None:
    replica.call("CONFIG", "SET", "appendonly", "yes", "replica-read-only", "no")
    follow(replica, master.port)
    master.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    with replica.client() as client:
        for number in range(50):
            client.call("SET", f"own {number}", "v", "PX", 1)
        client.call("SET", "stays", "v", "EX", 1000)
        client.call("HSET", "again", "f", "v")
        client.call("PEXPIRE", "again", 1)
        client.call("SELECT", 3)
        client.call("SET", "own", "v", "PX", 1)
        wait_until(lambda: client.call("DBSIZE") == b":0\r\n")
        client.call("SELECT", 0)
        wait_until(lambda: client.call("KEYS", "*") == b"*1\r\n$5\r\nstays\r\n")
        client.call("SET", "kept", "v", "PX", 1)
        client.call("PERSIST", "kept")
    master.call("SET", "of master", "v", "PX", 1)
    wait_until(lambda: have_all(master, replica))
    replica.call("SET", "last", "v", "PX", 1)
    wait_until(lambda: int(replica.info("stats")["expired_keys"]) >= 53)
    assert b"of master" in bytes(dump_of_keys(replica))


def dump_of_keys(replica: Process) -> bytes:
    """All keys, also those that are only hidden."""
    replica.call("BGREWRITEAOF")
    wait_until(lambda: replica.info("persistence")["aof_rewrite_in_progress"] == "0")
    [base] = (replica.directory / "appendonlydir").glob("*.base.*")
    return base.read_bytes()


def calls(process: Process) -> list[tuple[str, str]]:
    """Return how often commands of the master were called."""
    found = process.info("commandstats").items()
    names = ("set", "incr", "multi", "exec", "publish", "select", "expire", "lpush")
    return sorted(
        (name, fact.split(",")[0]) for name, fact in found if name.removeprefix("cmdstat_") in names
    )


@pytest.mark.since(8, 10)
def test_what_a_master_sends_is_told_of_as_by_redis(
    replica: Process, master: RedisProcess, fresh_redis: Factory
) -> None:
    """In MONITOR, SLOWLOG, commandstats and the counts of commands and errors."""
    real = fresh_redis("--save", "")
    both = (replica, real)
    for each in both:
        follow(each, master.port)
        each.call("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 1000)
    have_both(master, *both)
    for each in both:
        each.call("CONFIG", "RESETSTAT")
        each.call("SLOWLOG", "RESET")
    with replica.client() as ours, real.client() as theirs, master.client() as client:
        for watching in (ours, theirs):
            watching.call("MONITOR")
        client.call("SELECT", 2)
        client.call("SET", "k", "v", "EX", 1000)
        client.call("MULTI")
        client.call("INCR", "n")
        client.call("LPUSH", "l", "a", "b")
        client.call("EXEC")
        client.call("PUBLISH", "news", "x")
        client.call("EVAL", "redis.call('SET', 'a', 1) return redis.call('INCR', 'a')", 0)
        client.call("SET", "last", "v")
        told = []
        for watching in (ours, theirs):
            lines: list[bytes] = []
            while not lines or b'"last"' not in lines[-1]:
                line = watching.read()
                if b"[2 127.0.0.1:%d]" % master.port in line and b"PING" not in line:
                    lines.append(line.partition(b"]")[2])
            told.append(lines)
    assert told[0] == told[1]
    assert len(told[0]) == 12
    have_both(master, *both)
    assert calls(replica) == calls(real)
    assert len(calls(replica)) == 7
    slow = [[entry[3] for entry in each.call("SLOWLOG", "GET", 1000)] for each in both]  # type: ignore[attr-defined]
    ours_slow, real_slow = [
        [words for words in entries if words[0].lower() in SHOWN] for entries in slow
    ]
    assert ours_slow == real_slow
    assert len(ours_slow) == 10
    for each in both:
        assert int(each.info("stats")["total_commands_processed"]) >= 12


def figures(process: Process) -> dict[str, int]:
    found = process.info("memory").items()
    return {name: int(number) for name, number in found if number.isdigit()}


@pytest.mark.once
def test_what_waits_for_a_replica_is_memory_of_replicas(fresh_server: Factory) -> None:
    server = fresh_server("--save", "", "--repl-backlog-size", "1mb", *AT_ONCE)
    copy = Copy(server.port)
    copy.sync()
    before = figures(server)
    with server.client() as client:
        for _ in range(40):
            client.call("SET", "k", "v" * 1_000_000)
    after = figures(server)
    grown = after["mem_clients_slaves"] - before["mem_clients_slaves"]
    assert grown > 20_000_000
    assert after["mem_not_counted_for_evict"] - before["mem_not_counted_for_evict"] == grown
    for name in ("used_memory", "used_memory_overhead"):
        assert grown <= after[name] - before[name] < grown + 5_000_000
    assert after["mem_clients_normal"] < 1_000_000
    assert after["mem_clients_normal_unshared"] < 1_000_000
    stats = server.call("MEMORY", "STATS")
    assert isinstance(stats, list)
    told = dict(zip(stats[::2], stats[1::2], strict=True))
    assert int(told[b"clients.slaves"]) > 20_000_000
    line = bytes(server.call("CLIENT", "LIST", "TYPE", "replica"))  # type: ignore[call-overload]
    fields = dict(word.split(b"=", 1) for word in line.split())
    assert int(fields[b"omem"]) > 20_000_000
    assert int(fields[b"tot-mem"]) > int(fields[b"omem"])
    copy.client.close()


SHOWN = (b"select", b"set", b"multi", b"incr", b"lpush", b"publish", b"exec")


def have_both(master: Process, *replicas: Process) -> None:
    wait_until(lambda: have_all(master, *replicas))


# A master by hand


class FakeMaster:
    """Answers the handshake, and then sends what it is told to send, once."""

    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with link:
                self._talk(link)

    def _talk(self, link: socket.socket) -> None:
        link.settimeout(DEADLINE_S)
        try:
            while data := link.recv(1 << 16):
                if b"PSYNC" in data:
                    for answer in self._answers:
                        link.sendall(answer)
                elif b"ACK" not in data and data != b"\n":
                    link.sendall(b"+PONG\r\n" if b"PING" in data else b"+OK\r\n")
        except OSError:
            pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


FULL = b"+FULLRESYNC " + b"a" * 40 + b" 100\r\n"


@pytest.fixture
def fake() -> Iterator[Callable[..., FakeMaster]]:
    made: list[FakeMaster] = []

    def make_one(*answers: bytes) -> FakeMaster:
        made.append(FakeMaster(list(answers)))
        return made[-1]

    yield make_one
    for master in made:
        master.close()


def snapshot() -> bytes:
    """An empty one of Redis 7.0, without a checksum."""
    return b"REDIS0010" + b"\xff" + bytes(8)


@pytest.mark.parametrize(
    "answers",
    [
        [b"-ERR who are you\r\n"],
        [b"nonsense\r\n"],
        [b"x" * 100_000],
        [FULL, b"$nonsense\r\n"],
        [FULL, b"-ERR no\r\n"],
        [FULL, b"$10\r\nnonsense!!"],
        [FULL, b"$18\r\nREDIS0099" + bytes(9)],
        [FULL, b"$18\r\n" + snapshot(), b"*1\r\n!\r\n"],
        [FULL, b"$18\r\n" + snapshot(), b"*-5\r\n*x\r\n"],
        [b"+CONTINUE\r\n"],
    ],
    ids=range(10),
)
def test_garbage_of_a_master(
    replica: Process, fake: Callable[..., FakeMaster], answers: list[bytes]
) -> None:
    master = fake(*answers)
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: master.connections >= 2)
    assert replica.call("PING") == b"PONG"
    replica.call("REPLICAOF", "NO", "ONE")
    assert replica.call("SET", "k", "v") == b"OK"


def test_a_command_that_fails_here_is_logged(
    replica: Process, fake: Callable[..., FakeMaster]
) -> None:
    stream = [
        encode("SELECT", 0),
        encode("NONSENSE", 1),
        encode("LPUSH", "k"),
        encode("SET", "k", 1),
    ]
    master = fake(FULL, b"$18\r\n" + snapshot(), *stream, encode("LPUSH", "k", 1))
    follow(replica, master.port)
    wait_until(lambda: replica.call("GET", "k") == b"1")
    replica.wait_for_log("'lpush', failed here")
    assert replica.info("replication")["slave_repl_offset"] == str(
        100 + sum(map(len, stream)) + len(encode("LPUSH", "k", 1))
    )


def test_scripts_of_a_master_are_run(
    replica: Process, fake: Callable[..., FakeMaster], fresh_server: Factory
) -> None:
    """Before 7.0 masters sent scripts as they were called; the replica's file has what they did."""
    chance = random.Random(1)
    made = [*LEARNED, [b"MULTI"], [b"SET", b"plain", b"1"]]
    made += [[b"EVAL", b"return redis.call('set', 'own', '1')", b"0"], [b"EXEC"]]
    for number in range(100):
        made += recorded(chance, [b"RPUSH", b"list", b"%d" % number])
    stream = b"".join(map(encode_words, made))
    master = fake(FULL, b"$18\r\n" + snapshot(), stream)
    replica.call("CONFIG", "SET", "appendonly", "yes")
    follow(replica, master.port)
    offset = str(100 + len(stream))
    wait_until(lambda: replica.info("replication")["slave_repl_offset"] == offset)
    expected = [b"%d" % number for number in range(100)]
    assert replica.call("LRANGE", "list", 0, -1) == expected
    assert replica.call("MGET", "plain", "own") == [b"1", b"1"]
    wait_until(lambda: replica.info("persistence")["aof_rewrite_in_progress"] == "0")
    replica.call("REPLICAOF", "NO", "ONE")
    again = fresh_server("--appendonly", "yes", directory=replica.directory, start=False)
    replica.kill()
    again.start()
    assert again.call("LRANGE", "list", 0, -1) == expected


LOOP = "repeat until redis.call('EXISTS', 'end') == 1 return redis.call('SET', 'looped', 1)"


def test_a_script_of_a_master_is_not_killed(
    replica: Process, fake: Callable[..., FakeMaster]
) -> None:
    """The judge says the same; it has no end, because nobody can write meanwhile."""
    replica.call("CONFIG", "SET", "busy-reply-threshold", 50)
    master = fake(FULL, b"$18\r\n" + snapshot(), encode("EVAL", LOOP, 0))
    with replica.client() as client:
        client.call("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: client.call("GET", "k").startswith(b"-BUSY"))
        for name in ("SCRIPT", "FUNCTION"):
            assert client.call(name, "KILL").startswith(
                b"-UNKILLABLE The busy script was sent by a master instance in the context of "
            )
    replica.kill()


def test_a_script_that_a_master_has_sent_before_is_sent_anew(
    replica: Process, fake: Callable[..., FakeMaster]
) -> None:
    """It counts on a replica to know it still; one that was started since takes a full copy."""
    master = fake(FULL, b"$18\r\n" + snapshot(), encode("EVALSHA", "f" * 40, 0))
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: replica.log().count("Full copy from the master") >= 2)
    assert "it calls a script" in replica.log()


def test_what_a_master_sends_and_no_replica_runs_is_named(
    replica: Process, fake: Callable[..., FakeMaster]
) -> None:
    stream = [encode("CONFIG", "SET", "maxmemory", "1gb"), encode("PING"), encode("SHUTDOWN")]
    master = fake(FULL, b"$18\r\n" + snapshot(), *stream, encode("SET", "k", 1))
    follow(replica, master.port)
    wait_until(lambda: replica.call("GET", "k") == b"1")
    for name in ("config|set", "shutdown"):
        assert f"The master sends b'{name}', which acts on a server" in replica.log()
    assert "ping" not in replica.log()


def test_a_silent_master_is_left(replica: Process, fake: Callable[..., FakeMaster]) -> None:
    replica.call("CONFIG", "SET", "repl-timeout", 1)
    master = fake(FULL)
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: master.connections >= 2)
    assert "silent for too long" in replica.log()


@pytest.mark.once
def test_the_master_among_the_clients(replica: Process, master: RedisProcess) -> None:
    follow(replica, master.port)
    master.call("SET", "k", "v")
    assert_same(master, replica)
    with replica.client() as client:
        line = client.call_parsed("CLIENT", "LIST", "TYPE", "master")
        assert isinstance(line, bytes)
        fields = dict(word.split(b"=", 1) for word in line.split())
        assert fields[b"addr"] == b"127.0.0.1:%d" % master.port
        assert fields[b"flags"] == b"M"
        assert fields[b"user"] == b"(superuser)"
        assert fields[b"cmd"] in (b"set", b"ping", b"replconf")
        begin = line[: line.index(b" age=")]
        assert begin in client.call("CLIENT", "LIST")
        assert (
            client.call("CLIENT", "LIST", "ID", fields[b"id"]).split(b"\r\n")[1].startswith(begin)
        )
        assert replica.info("clients")["connected_clients"] == "3"  # it, this one, and INFO's
        assert client.call_parsed("CLIENT", "KILL", "ID", fields[b"id"]) == 1
        assert client.call("CLIENT", "LIST", "TYPE", "master") == b"$0\r\n\r\n"
        wait_until(lambda: is_up(replica))
        assert client.call_parsed("CLIENT", "KILL", "TYPE", "master") == 1
        wait_until(lambda: is_up(replica))
    figures = replica.info("replication")
    assert figures["master_current_sync_attempts"] == "1"
    assert figures["master_total_sync_attempts"] == "3"
    assert resumptions(replica) == 2
    assert_same(master, replica)


@pytest.mark.once
def test_what_replication_moves_is_counted(replica: Process, master: RedisProcess) -> None:
    follow(replica, master.port)
    before = int(replica.info("stats")["total_net_repl_input_bytes"])
    master.call("SET", "k", "v" * 100_000)
    assert_same(master, replica)
    counted = replica.info("stats")
    assert int(counted["total_net_repl_input_bytes"]) - before >= 100_000
    assert int(counted["total_net_input_bytes"]) >= int(counted["total_net_repl_input_bytes"])


@pytest.mark.once
@pytest.mark.parametrize("ignores", ["yes", "no"])
def test_a_replica_evicts_by_itself_only_if_it_is_told_to(
    replica: Process, master: RedisProcess, ignores: str
) -> None:
    replica.call("CONFIG", "SET", "replica-ignore-maxmemory", ignores)
    replica.call("CONFIG", "SET", "maxmemory", "1500000", "maxmemory-policy", "allkeys-lru")
    follow(replica, master.port)
    for number in range(1000):
        master.call("SET", number, "v" * 2000)
    wait_until(lambda: have_all(master, replica))
    if ignores == "yes":
        assert replica.call("DBSIZE") == 1000
        assert replica.info("stats")["evicted_keys"] == "0"
        master.call("DEL", 1)
        assert_same(master, replica)
    else:
        wait_until(lambda: int(replica.info("stats")["evicted_keys"]) > 0)
    assert master.call("DBSIZE") == (999 if ignores == "yes" else 1000)


# Restarts


@pytest.mark.once
@pytest.mark.parametrize("form", ["dump.hrs", "dump.rdb"])
@pytest.mark.parametrize("crash", [False, True])
def test_a_replica_that_was_restarted_goes_on_where_its_snapshot_is(
    fresh_server: Factory, master: RedisProcess, crash: bool, form: str
) -> None:
    options = ("--enable-debug-command", "yes", "--replicaof", f"127.0.0.1 {master.port}")
    replica = fresh_server(*options, "--save", "" if crash else "3600 1", "--dbfilename", form)
    wait_until(lambda: is_up(replica))
    with master.client() as client:
        client.call("SELECT", 5)
        client.call("SET", "a", "v")
        client.call("SET", "brief", "v", "PX", 1)
        wait_until(lambda: have_all(master, replica))
        if crash:
            replica.call("SAVE")
        client.call("SET", "b", "v")
        replica.restart(crash=crash)
        client.call("SET", "c", "v")
    wait_until(lambda: is_up(replica))
    assert_same(master, replica)
    assert "Full copy" not in replica.log().rpartition("Ready to accept")[2]
    assert resumptions(replica) == 1


@pytest.mark.once
@pytest.mark.parametrize("form", ["dump.hrs", "dump.rdb"])
def test_replicas_of_a_master_that_was_restarted_go_on(
    fresh_server: Factory, fresh_redis: Factory, form: str
) -> None:
    """Its data has another ID, and the one before is its second: as in Redis."""
    options = ("--enable-debug-command", "yes", "--save", "3600 1", "--dbfilename", form)
    master = fresh_server(*options, *AT_ONCE)
    replica = fresh_redis()
    follow(replica, master.port)
    with master.client() as client:
        client.call("SELECT", 3)
        client.call("SET", "a", "v")
        client.call("SET", "brief", "v", "PX", 300)
    before = master.info("replication")
    master.restart()
    wait_until(lambda: is_up(replica))
    after = master.info("replication")
    assert after["master_replid"] != before["master_replid"]
    assert after["master_replid2"] == before["master_replid"]
    assert int(after["second_repl_offset"]) > int(before["master_repl_offset"])
    assert master.info("stats")["sync_partial_ok"] == "1"
    assert master.info("stats")["sync_full"] == "0"
    with master.client() as client:
        client.call("SET", "b", "v")
        client.call("SELECT", 3)
        wait_until(lambda: client.call("EXISTS", "brief") == b":0\r\n")
    wait_until(lambda: master.call("DBSIZE") == 1)
    assert_same(master, replica)


@pytest.mark.once
def test_a_master_that_has_lost_something_does_not_go_on(
    fresh_server: Factory, fresh_redis: Factory
) -> None:
    master = fresh_server("--enable-debug-command", "yes", "--save", "", *AT_ONCE)
    replica = fresh_redis()
    follow(replica, master.port)
    master.call("SET", "a", "v")
    master.call("SAVE")
    master.call("SET", "lost", "v")
    wait_until(lambda: have_all(master, replica))
    master.restart(crash=True)
    wait_until(lambda: is_up(replica) and master.info("stats")["sync_full"] == "1")
    assert replica.call("EXISTS", "lost") == 0
    assert_same(master, replica)
