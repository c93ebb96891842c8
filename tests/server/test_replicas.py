"""Real servers as replicas of ours: they end with the same data, whatever happens on the way."""

from __future__ import annotations

import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from conftest import Factory

from headrace.server.clients.session import Peer, ReplicaFacts, Session
from headrace.server.config.config import Config
from headrace.server.replication.replica import CHUNK_BYTES, Replica
from headrace.server.state import Server
from support.all_types import make, names, requests
from support.client import RawClient, WireError, encode
from support.following import AT_ONCE, Copy, Load, assert_same, full_copies, is_up
from support.judges import JUDGES, missing, present
from support.process import Process, RedisProcess
from support.proxy import Proxy
from support.random_commands import do_things
from support.waiting import wait_until

LIBRARY = "#!lua name=lib\nredis.register_function('f', function() end)"
FOLLOWS = ("--repl-timeout", "60")


def replica_of(fresh_redis: Factory, port: int, *options: str) -> Process:
    process = fresh_redis(*FOLLOWS, *options)
    process.call("REPLICAOF", "127.0.0.1", port)
    return process


def resumptions(master: Process) -> int:
    """Return how often a replica has gone on where it stood."""
    return int(master.info("stats")["sync_partial_ok"])


def wait_for_resumptions(master: Process, count: int) -> None:
    wait_until(lambda: resumptions(master) == count)


@pytest.fixture
def master(fresh_server: Factory) -> Process:
    return fresh_server("--enable-debug-command", "yes", "--save", "", *AT_ONCE)


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_a_full_copy_holds_values_of_every_type(
    master: Process, fresh_redis: Factory, diskless: str
) -> None:
    master.call("CONFIG", "SET", "repl-diskless-sync", diskless)
    replica = fresh_redis(*FOLLOWS)
    assert isinstance(replica, RedisProcess)
    with master.client() as client:
        for name in names((replica.version[0], replica.version[1])):
            if replica.version >= (7, 2) or "sorted set" not in name:  # 7.0 digests other digits
                make(client, requests(name), f"key {name}")
        client.call("SELECT", 3)
        client.call("SET", "mortal", "v", "PX", 10**8)
        client.call("FUNCTION", "LOAD", LIBRARY)
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: is_up(replica))
    assert_same(master, replica)
    assert replica.call("FUNCTION", "LIST") != []


def test_a_replica_keeps_up_under_load(master: Process, fresh_redis: Factory) -> None:
    with Load(master):
        replica = replica_of(fresh_redis, master.port)
        wait_until(lambda: is_up(replica))
        start = int(master.info("replication")["master_repl_offset"])
        wait_until(
            lambda: int(replica.info("replication")["slave_repl_offset"]) > start + 50_000, 60
        )
    assert_same(master, replica)


def test_a_cut_link_goes_on_where_it_stood(master: Process, fresh_redis: Factory) -> None:
    proxy = Proxy(master.port)
    with closing(proxy):
        replica = replica_of(fresh_redis, proxy.port)
        wait_until(lambda: is_up(replica))
        before = resumptions(master)
        with Load(master, 1):
            for time in range(1, 4):
                proxy.break_off()
                wait_for_resumptions(master, before + time)  # it may be back at once
                wait_until(lambda: is_up(replica))
        assert_same(master, replica)
        assert full_copies(replica) == 1
        assert master.info("stats")["sync_full"] == "1"
        assert master.info("replication")["connected_slaves"] == "1"


def test_one_that_was_away_for_long_begins_anew(master: Process, fresh_redis: Factory) -> None:
    master.call("CONFIG", "SET", "repl-backlog-size", 1000)
    proxy = Proxy(master.port)
    with closing(proxy):
        replica = replica_of(fresh_redis, proxy.port)
        wait_until(lambda: is_up(replica))
        proxy.cut()
        wait_until(lambda: not is_up(replica))
        with master.client() as client:
            for number in range(200):
                client.call("SET", number, "v" * 50)
        again = Proxy(master.port)
        with closing(again):
            replica.call("REPLICAOF", "127.0.0.1", again.port)
            wait_until(lambda: is_up(replica))
            assert_same(master, replica)
            assert full_copies(replica) == 2


def test_a_master_that_was_killed_is_followed_again(
    fresh_server: Factory, fresh_redis: Factory
) -> None:
    master = fresh_server("--appendonly", "yes", "--enable-debug-command", "yes", *AT_ONCE)
    replica = replica_of(fresh_redis, master.port)
    wait_until(lambda: is_up(replica))
    with master.client() as client:
        do_things(client, random.Random(1), 300)
    master.restart(crash=True)
    wait_until(lambda: is_up(replica))
    assert_same(master, replica)


def test_a_replica_that_was_killed_follows_again(master: Process, fresh_redis: Factory) -> None:
    replica = replica_of(fresh_redis, master.port)
    with Load(master, 1):
        wait_until(lambda: is_up(replica))
        replica.kill()
        wait_until(lambda: master.info("replication")["connected_slaves"] == "0")
        replica.start()
        replica.call("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: is_up(replica))
    assert_same(master, replica)


@pytest.mark.once
def test_several_at_once(master: Process) -> None:
    judges = present()
    if len(judges) < 2:
        missing("several real servers, which `make judges` brings")
    factories = [Factory(RedisProcess, program=judge.program()) for judge in judges]
    try:
        with Load(master, 1):
            replicas = [replica_of(factory, master.port) for factory in factories]
            for replica in replicas:
                wait_until(lambda each=replica: is_up(each))  # type: ignore[misc]
        with master.client() as client:
            client.call("SET", "last", "v")
            assert client.call_parsed("WAIT", len(replicas), 50_000) == len(replicas)
        assert_same(master, *replicas)
        assert len(master.info("replication")) > len(replicas)
    finally:
        for factory in factories:
            factory.finish()


def test_wait_counts_replicas(master: Process, fresh_redis: Factory) -> None:
    assert master.call("WAIT", 1, 10) == 0
    replica = replica_of(fresh_redis, master.port)
    wait_until(lambda: is_up(replica))
    with master.client() as client:
        client.call("SET", "k", "v")
        assert client.call_parsed("WAIT", 1, 50_000) == 1
        client.call("SET", "k", "w")
        assert client.call_parsed("WAIT", 1, 50_000) == 1
        assert client.call_parsed("WAIT", 2, 100) == 1
    if replica.version >= (7, 2):  # type: ignore[attr-defined]
        replica.call("CONFIG", "SET", "appendonly", "yes")
        with master.client() as client:
            client.call("SET", "k", "x")
            assert client.call_parsed("WAITAOF", 0, 1, 50_000) == [0, 1]
    replica.kill()
    wait_until(lambda: master.call("WAIT", 1, 10) == 0)


def test_writes_need_replicas_where_that_is_asked_for(
    master: Process, fresh_redis: Factory
) -> None:
    master.call("CONFIG", "SET", "min-replicas-to-write", 1)
    with pytest.raises(WireError, match="NOREPLICAS"):
        master.call("SET", "k", "v")
    replica = replica_of(fresh_redis, master.port)
    wait_until(lambda: is_up(replica))
    wait_until(lambda: master.info("replication")["min_slaves_good_slaves"] == "1")
    assert master.call("SET", "k", "v") == b"OK"
    replica.kill()
    wait_until(lambda: master.info("replication")["connected_slaves"] == "0")
    with pytest.raises(WireError, match="NOREPLICAS"):
        master.call("SET", "k", "v")


def test_messages_reach_those_who_listen_at_a_replica(
    master: Process, fresh_redis: Factory
) -> None:
    replica = replica_of(fresh_redis, master.port)
    wait_until(lambda: is_up(replica))
    with replica.client() as listener:
        listener.call("SUBSCRIBE", "news")
        master.call("PUBLISH", "news", "good")
        assert listener.read_parsed() == [b"message", b"news", b"good"]


# A replica by hand


@pytest.fixture
def copy(master: Process) -> Iterator[Copy]:
    copy = Copy(master.port)
    yield copy
    copy.client.close()


def test_the_stream_is_what_the_append_only_file_has(master: Process, copy: Copy) -> None:
    assert copy.sync().startswith(b"REDIS0010")
    with master.client() as client:
        client.pipeline(("SET", "a", 1), ("SELECT", 2), ("MULTI",), ("INCR", "b"), ("INCR", "b"))
        client.call("EXEC")
        client.call("PUBLISH", "c", "d")
    expected = [
        "SELECT 0",
        "SET a 1",
        "MULTI",
        "SELECT 2",
        "INCR b",
        "INCR b",
        "EXEC",
        "PUBLISH c d",
    ]
    assert [b" ".join(copy.record()).decode() for _ in expected] == expected


def test_a_file_is_as_new_as_its_values(master: Process, copy: Copy) -> None:
    master.call("HSET", "h", "f", "v")
    master.call("HEXPIRE", "h", 1000, "FIELDS", 1, "f")
    assert copy.sync().startswith(b"REDIS0012")


def test_what_redis_has_no_command_for_is_wrapped(master: Process, copy: Copy) -> None:
    copy.sync()
    with master.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        client.call("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 1)
        client.call("SET", "a", 1)
    records = [copy.record() for _ in range(4)]
    assert [record[0] for record in records] == [b"SELECT", b"XGROUP", b"REPLCONF", b"SET"]
    assert records[2][1] == b"CAPA"
    assert b"SETMODE" in records[2][2]


@pytest.mark.parametrize("wanted", [b"", b"functions"])
def test_a_snapshot_alone(master: Process, wanted: bytes) -> None:
    master.call("SET", "a-key", 1)
    master.call("FUNCTION", "LOAD", LIBRARY)
    only = ("REPLCONF", "rdb-filter-only", wanted)
    copy = Copy(master.port, ("REPLCONF", "rdb-only", 1), only)
    with closing(copy.client):
        data = copy.sync()
        assert b"a-key" not in data
        assert (b"register_function" in data) == bool(wanted)
        assert copy.is_closed()
    wait_until(lambda: master.info("replication")["connected_slaves"] == "0")


@pytest.mark.parametrize(
    "garbage",
    [
        encode("GET", "k"),
        encode("PING"),
        encode("NONSENSE"),
        encode("REPLCONF", "nonsense", "1"),
        encode("REPLCONF", "ACK"),
        b"*1\r\n!\r\n",
        b"*3\r\n$-4\r\n",
    ],
)
def test_a_replica_that_asks_for_something_is_disconnected(
    master: Process, copy: Copy, garbage: bytes
) -> None:
    copy.sync()
    copy.client.send(encode("REPLCONF", "ACK", "nonsense"))
    copy.client.send(garbage)
    assert copy.is_closed()
    assert master.call("PING") == b"PONG"
    wait_until(lambda: master.info("replication")["connected_slaves"] == "0")


def test_a_silent_replica_is_disconnected(master: Process, copy: Copy) -> None:
    master.call("CONFIG", "SET", "repl-timeout", 1)
    copy.sync(encode("PSYNC", "?", "-1"))
    assert copy.is_closed()
    assert "Disconnecting timedout replica" in master.log()


def test_one_that_does_not_read_is_disconnected(master: Process, copy: Copy) -> None:
    master.call("CONFIG", "SET", "client-output-buffer-limit", "replica 1mb 0 0")
    copy.client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    copy.sync()
    with master.client() as client:
        for number in range(200):
            client.call("SET", number, b"v" * 100_000)
    wait_until(lambda: master.info("replication")["connected_slaves"] == "0")


def test_partial_resynchronisation_byte_by_byte(master: Process, copy: Copy) -> None:
    copy.client.send(encode("PSYNC", "?", "-1"))
    word, data_id, offset = copy.line().split()
    assert word == b"+FULLRESYNC"
    master.call("SET", "a", 1)
    place = int(offset) + 1

    def ask(data_id: bytes, offset: int) -> bytes:
        other = Copy(master.port, ("REPLCONF", "capa", "psync2"))
        with closing(other.client):
            other.client.send(encode("PSYNC", data_id, offset))
            line = other.line()
            if line.startswith(b"+CONTINUE"):
                line += b" " + b" ".join(other.record())
            return line

    assert ask(data_id, place) == b"+CONTINUE " + data_id + b" SELECT 0"
    assert ask(data_id, place - 1).startswith(b"+FULLRESYNC")
    assert ask(data_id, place + 10**6).startswith(b"+FULLRESYNC")
    assert ask(data_id[::-1], place).startswith(b"+FULLRESYNC")


class Reader(Peer):
    """Reads when it is told to."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def when_drained(self, call: Callable[[], None]) -> None:
        self.calls.append(call)


def test_what_a_replica_lacks_is_sent_bit_by_bit() -> None:
    """However much that is: others are served between."""
    server = Server(Config())
    reader = Reader()
    session = Session(1, server.data.dbs[0], 0, reader)
    counters = server.statistics.counters
    replica = Replica(session, ReplicaFacts(), counters, True, lambda: None, 0)
    pieces = [b"%07d" % number for number in range(500_000)]
    replica.go_online(pieces.copy(), 0)
    replica.feed(b"behind")
    got = b""
    while session.out:
        assert len(b"".join(session.out)) <= CHUNK_BYTES + 7
        got += b"".join(session.out)
        assert int(session.waiting_bytes) == 7 * len(pieces) + 6 - len(got)
        session.out.clear()
        if reader.calls:
            reader.calls.pop()()
    assert got == b"".join(pieces) + b"behind"
    replica.feed(b"at once")
    assert session.out == [b"at once"]


def test_the_stream_ends_without_replicas(master: Process, copy: Copy) -> None:
    assert master.info("replication")["repl_backlog_active"] == "0"
    first = master.info("replication")["master_replid"]
    copy.sync()
    second = master.info("replication")["master_replid"]
    assert first != second
    assert master.info("replication")["repl_backlog_active"] == "1"
    master.call("CONFIG", "SET", "repl-backlog-ttl", 1)
    copy.client.close()
    wait_until(lambda: master.info("replication")["repl_backlog_active"] == "0")
    assert master.info("replication")["master_replid"] not in (first, second)


def test_questions_and_refusals(master: Process, copy: Copy) -> None:
    with master.client() as client:
        assert client.call("REPLCONF") == b"+OK\r\n"
        assert client.call("REPLCONF", "x") == b"-ERR syntax error\r\n"
        assert client.call("REPLCONF", "x", 1) == b"-ERR Unrecognized REPLCONF option: x\r\n"
        assert b"not an integer" in client.call("REPLCONF", "listening-port", "x")
        assert b"must between 0 and 1" in client.call("REPLCONF", "rdb-only", 2)
        assert b"Unsupported" in client.call("REPLCONF", "rdb-filter-only", "keys")
        assert b"not an integer" in client.call("PSYNC", "?", "x")
        assert client.call("FAILOVER").startswith(b"-ERR FAILOVER requires connected replicas")
        client.send(encode("REPLCONF", "ACK", 1) + encode("REPLCONF", "GETACK", "*"))
        assert client.call("PING") == b"+PONG\r\n"
        assert client.call_parsed("ROLE") == [b"master", 0, []]
    copy.sync(encode("REPLCONF", "listening-port", 77) + encode("SYNC"))
    with master.client() as client:
        assert client.call_parsed("ROLE") == [b"master", 0, [[b"127.0.0.1", b"77", b"0"]]]
        line = client.call_parsed("CLIENT", "LIST", "TYPE", "replica")
        assert isinstance(line, bytes)
        assert b" flags=S " in line
        assert client.call_parsed("CLIENT", "KILL", "TYPE", "replica") == 1
    assert copy.is_closed()


def test_only_its_standbys_copy_a_region(fresh_server: Factory) -> None:
    region = fresh_server("--appendonly", "yes", "--aa-region-id", "1")
    with pytest.raises(WireError, match="The master is region 1 of default and the replica none"):
        region.call("PSYNC", "?", -1)


def test_redis_cli_takes_a_snapshot(master: Process) -> None:
    master.call("SET", "some-key", "v")
    path = master.directory / "taken.rdb"
    subprocess.run(
        ["redis-cli", "-p", str(master.port), "--rdb", str(path)],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    data = path.read_bytes()
    assert data.startswith(b"REDIS00")
    assert b"some-key" in data


@pytest.mark.slow
def test_nobody_waits_for_a_large_copy(fresh_server: Factory) -> None:
    master = fresh_server("--save", "", debug=False)
    with master.client(timeout_s=120) as client:
        for start in range(0, 1_000_000, 10_000):
            words: list[object] = []
            for number in range(start, start + 10_000):
                words += [f"key:{number}", f"value:{number}"]
            client.call("MSET", *words)  # type: ignore[arg-type]
        program = JUDGES[0].program()
        if program is None:
            missing(f"no {JUDGES[0].name} that could be the replica")
        with RedisProcess(program=program) as replica:
            replica.call("REPLICAOF", "127.0.0.1", master.port)
            spent_s = spent_until(master, client, lambda: is_up(replica))
            assert replica.call("DBSIZE") == 1_000_000
    print(f"{max(spent_s):.2f} of {sum(spent_s):.2f} s for the longest of {len(spent_s)} waits")
    # The copy is most of it. We may be kept from the processor for a while, and it goes on.
    assert max(spent_s) < sum(spent_s) / 3


def spent_until(master: Process, client: RawClient, until: Callable[[], bool]) -> list[float]:
    """Processor time of the master, from each reply of many to the next one."""
    spent_s = []
    done = threading.Event()

    def look() -> None:
        wait_until(until, 300)
        done.set()

    looking = threading.Thread(target=look)
    looking.start()
    before_s = master.cpu_s()
    while not done.is_set():
        client.call("SET", "key:1", "v")
        after_s = master.cpu_s()
        spent_s.append(after_s - before_s)
        before_s = after_s
        time.sleep(0.001)
    looking.join()
    return spent_s
