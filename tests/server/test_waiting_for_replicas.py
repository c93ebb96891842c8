"""WAIT and WAITAOF with real replicas: ours of a Redis, a Redis of ours, and ours of ours."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest
from conftest import Factory

from support.client import RawClient, encode
from support.following import AT_ONCE, Copy, is_up
from support.process import Process
from support.stopping import stopped
from support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.since(8, 10)]

LONG_MS = 50_000
GETACK = [b"REPLCONF", b"GETACK", b"*"]


@pytest.fixture(params=["ours of real", "real of ours", "ours of ours"])
def followed(
    request: pytest.FixtureRequest, fresh_server: Factory, fresh_redis: Factory
) -> tuple[Process, Process]:
    """A master and its replica, which have append-only files."""
    replica_kind, master_kind = request.param.split(" of ")
    factories = {"ours": fresh_server, "real": fresh_redis}
    options = ("--appendonly", "yes", "--enable-debug-command", "yes", *AT_ONCE)
    master = factories[master_kind](*options)
    replica = factories[replica_kind](*options, "--replicaof", f"127.0.0.1 {master.port}")
    wait_until(lambda: is_up(replica))
    return master, replica


def blocked(master: Process) -> int:
    return int(master.info("clients")["blocked_clients"])


def test_both_count(followed: tuple[Process, Process]) -> None:
    master, _ = followed
    with master.client() as client:
        for number in range(5):
            client.call("SET", "k", number)
            assert client.call_parsed("WAIT", 1, LONG_MS) == 1
            client.call("SET", "k", number)
            assert client.call_parsed("WAITAOF", 1, 1, LONG_MS) == [1, 1]
        client.call("SET", "k", "v")
        assert client.call_parsed("WAITAOF", 0, 2, 50) in ([1, 1], [0, 1], [0, 0], [1, 0])
        assert client.call_parsed("WAIT", 0, 0) in (0, 1)
        assert client.call_parsed("WAIT", 1, LONG_MS) == 1
        assert client.call_parsed("WAIT", 2, 300) == 1


def test_a_replica_without_a_file_counts_for_wait_alone(followed: tuple[Process, Process]) -> None:
    master, replica = followed
    replica.call("CONFIG", "SET", "appendonly", "no")
    with master.client() as client:
        client.call("SET", "k", "v")
        assert client.call_parsed("WAIT", 1, LONG_MS) == 1
        assert client.call_parsed("WAITAOF", 1, 0, LONG_MS) == [1, 0]
        assert client.call_parsed("WAITAOF", 1, 1, 50) == [1, 0]
        replica.call("CONFIG", "SET", "appendonly", "yes")
        client.call("SET", "k", "w")
        assert client.call_parsed("WAITAOF", 1, 1, LONG_MS) == [1, 1]


@pytest.mark.parametrize("words", [("WAIT", 1), ("WAITAOF", 0, 1)])
def test_one_waits_until_the_replica_is_back(
    followed: tuple[Process, Process], words: tuple[str | int, ...]
) -> None:
    """The master asks the replica: it would wait for up to a second else."""
    master, replica = followed
    with master.client() as client, master.client() as other:
        with stopped(replica):
            client.call("SET", "k", "v")
            client.send_command(*words, 0)
            wait_until(lambda: blocked(master) == 1)
            other.call("SET", "k", "w")
            assert other.call_parsed(*words, 50) in (0, [0, 0], [1, 0])
            assert blocked(master) == 1
        reply = client.read_parsed()
        assert reply == 1 if words[0] == "WAIT" else reply[-1] == 1  # type: ignore[index]


def test_a_replica_that_is_killed_counts_no_more(followed: tuple[Process, Process]) -> None:
    master, replica = followed
    with master.client() as client:
        with stopped(replica):
            client.call("SET", "k", "v")
            client.send_command("WAIT", 1, 3_000)
            wait_until(lambda: blocked(master) == 1)
            replica.signal(signal.SIGKILL)
        assert client.read() == b":0\r\n"
        wait_until(lambda: master.info("replication")["connected_slaves"] == "0")
        replica.start()
        wait_until(lambda: is_up(replica))
        client.call("SET", "k", "w")
        assert client.call_parsed("WAIT", 1, LONG_MS) == 1


def test_transactions_do_not_wait(followed: tuple[Process, Process]) -> None:
    master, replica = followed
    with master.client() as client, stopped(replica):
        client.call("SET", "k", "v")
        replies = client.pipeline(("MULTI",), ("SET", "k", "v"), ("WAIT", 1, 0), ("EXEC",))
        assert replies[-1] == b"*2\r\n+OK\r\n:0\r\n"


def test_one_waits_for_its_own_writes_alone(followed: tuple[Process, Process]) -> None:
    """Whoever has not written since the replica stopped is answered at once."""
    master, replica = followed
    with master.client() as early, master.client() as late, master.client() as reader:
        early.call("SET", "early", "v")
        assert early.call_parsed("WAITAOF", 1, 1, LONG_MS) == [1, 1]
        with stopped(replica):
            late.call("SET", "late", "v")
            assert late.call_parsed("WAIT", 1, 50) == 0
            assert late.call_parsed("WAITAOF", 1, 0, LONG_MS) == [1, 0]
            assert late.call_parsed("WAITAOF", 1, 1, 50) == [1, 0]
            reader.call("GET", "late")
            for other in (early, reader):
                assert other.call_parsed("WAIT", 1, LONG_MS) == 1
                assert other.call_parsed("WAITAOF", 1, 1, LONG_MS) == [1, 1]
            assert late.call_parsed("WAIT", 1, 50) == 0


_UNWRITTEN: list[list[str | int]] = [
    ["GET", "string"],
    ["GET", "nothing"],
    ["SELECT", 3],
    ["DEL", "nothing"],
    ["SET", "string", "v", "NX"],
    ["INCR", "list"],
    ["EVAL", "return redis.call('GET', 'string')", 0],
    ["SCRIPT", "LOAD", "return 1"],
    ["CONFIG", "SET", "hz", 20],
]
_WRITTEN: list[list[str | int]] = [
    ["SET", "string", "w"],
    ["XADD", "stream", "*", "f", "v"],
    ["EVAL", "redis.call('SET', 'string', 'v'); return redis.call('GET', 'string')", 0],
    ["EVAL", "redis.call('SET', 'string', 'v'); return redis.call('INCR', 'list')", 0],
    ["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('f', function() end)"],
    ["PUBLISH", "channel", "message"],
    ["FLUSHALL"],
    ["DEL", *[f"key {number}" for number in range(10_000)], "string"],  # runs in slices
    ["GETEX", "string", "PXAT", 1],
    ["GET", "expired"],  # and recorded so
]


def test_only_who_has_written_waits(followed: tuple[Process, Process]) -> None:
    master, replica = followed
    with master.client() as setting, stopped(replica):
        assert setting.call("DEBUG", "SET-ACTIVE-EXPIRE", 0) == b"+OK\r\n"
        for number, words in enumerate([*_UNWRITTEN, *_WRITTEN]):
            setting.call("SET", "string", "v")
            setting.call("RPUSH", "list", "element")
            setting.call("SET", "expired", "v", "PX", 1)
            setting.call("SET", "key 7", "v")
            setting.call("DEBUG", "SLEEP", 0.002)
            with master.client() as client:
                client.call(*words)
                waits = number >= len(_UNWRITTEN)
                assert client.call_parsed("WAIT", 1, 30) == (0 if waits else 1), words


@pytest.mark.parametrize(
    "words", [("XADD", "s", "*", "f", "v"), ("SET", "k", "v"), ("HSET", "h", "f", "v")]
)
def test_pipelines(followed: tuple[Process, Process], words: tuple[str, ...]) -> None:
    """Requests that are alike are run at once."""
    master, replica = followed
    with master.client() as writer, master.client() as reader, stopped(replica):
        assert writer.pipeline(*[words] * 20, ("WAIT", 1, 30))[-1] == b":0\r\n"
        reads = [("GET", "x")] * 20 + [("XRANGE", "x", "-", "+")] * 20
        assert reader.pipeline(*reads, ("WAIT", 1, LONG_MS))[-1] == b":1\r\n"


def test_transactions_and_scripts_count_what_came_before(
    followed: tuple[Process, Process],
) -> None:
    """Within them nothing that they write themselves has been sent yet."""
    master, replica = followed
    waits = "return {redis.call('WAIT', 1, 0), redis.call('WAITAOF', 1, 1, 0)}"
    script = f"redis.call('SET', 'k', 'v'); {waits}"
    with stopped(replica):
        with master.client() as client:
            replies = client.pipeline(
                ("MULTI",), ("SET", "k", "v"), ("WAIT", 1, 0), ("WAITAOF", 1, 1, 0), ("EXEC",)
            )
            assert replies[-1] == b"*3\r\n+OK\r\n:1\r\n*2\r\n:1\r\n:1\r\n"
            assert client.call_parsed("WAIT", 1, 30) == 0
            replies = client.pipeline(("MULTI",), ("WAIT", 1, 0), ("WAITAOF", 0, 1, 0), ("EXEC",))
            assert replies[-1].startswith(b"*2\r\n:0\r\n*2\r\n")
            assert replies[-1].endswith(b":0\r\n")
        with master.client() as client:
            assert client.call_parsed("EVAL", script, 0) == [1, [1, 1]]
            assert client.call_parsed("WAIT", 1, 30) == 0
            assert client.call_parsed("EVAL", script, 0) == [1, [1, 1]]  # whoever calls it


def test_what_was_waited_for_is_a_write(fresh_server: Factory, fresh_redis: Factory) -> None:
    """Redis 8.10 forgets that: the client has been given what the replica still has."""
    master = fresh_server(*AT_ONCE)
    replica = fresh_redis(*AT_ONCE, "--replicaof", f"127.0.0.1 {master.port}")
    wait_until(lambda: is_up(replica))
    with master.client() as popper, master.client() as pusher, stopped(replica):
        popper.send_command("BLPOP", "list", 0)
        wait_until(lambda: blocked(master) == 1)
        pusher.call("RPUSH", "list", "element")
        assert popper.read_parsed() == [b"list", b"element"]
        assert popper.call_parsed("WAIT", 1, 30) == 0
        assert pusher.call_parsed("WAIT", 1, 30) == 0


@pytest.mark.parametrize("kind", ["ours", "real"])
def test_the_disk_is_waited_for_by_those_who_wrote(
    kind: str, fresh_server: Factory, fresh_redis: Factory
) -> None:
    factory = {"ours": fresh_server, "real": fresh_redis}[kind]
    server = factory("--appendonly", "yes", "--appendfsync", "no")  # so nothing is ever synced
    with server.client() as writer, server.client() as reader:
        writer.call("SET", "k", "v")
        reader.call("GET", "k")
        assert reader.call_parsed("WAITAOF", 1, 0, LONG_MS) == [1, 0]
        assert writer.call_parsed("WAITAOF", 1, 0, 50) == [0, 0]
        # A file that was turned off and on has all that went before.
        writer.call("SET", "k", "v" * 10_000)
        writer.call("CONFIG", "SET", "appendonly", "no")
        writer.call("CONFIG", "SET", "appendonly", "yes")
        assert writer.call_parsed("WAITAOF", 1, 0, LONG_MS) == [1, 0]
        reader.call("SET", "k", "v")
        assert reader.call_parsed("WAITAOF", 1, 0, 50) == [0, 0]
        assert writer.call_parsed("WAITAOF", 1, 0, LONG_MS) == [1, 0]


@pytest.mark.parametrize("words", [("WAIT", 1), ("WAITAOF", 0, 1)])
def test_a_master_that_becomes_a_replica_answers(
    followed: tuple[Process, Process], words: tuple[str | int, ...]
) -> None:
    master, replica = followed
    with master.client() as client, stopped(replica):
        client.call("SET", "k", "v")
        client.send_command(*words, 0)
        wait_until(lambda: blocked(master) == 1)
        master.call("REPLICAOF", "127.0.0.1", replica.port)
        assert client.read() == (
            b"-UNBLOCKED force unblock from blocking operation, instance state changed "
            b"(master -> replica?)\r\n"
        )
        master.call("REPLICAOF", "NO", "ONE")


@pytest.mark.parametrize("kind", ["ours", "real"])
def test_the_master_asks_and_hears(kind: str, fresh_server: Factory, fresh_redis: Factory) -> None:
    """By hand: what WAIT sends to a replica, and what its answer does."""
    factory = {"ours": fresh_server, "real": fresh_redis}[kind]
    master = factory("--appendonly", "yes", *AT_ONCE)
    copy = Copy(master.port, ("REPLCONF", "capa", "eof", "capa", "psync2"))
    copy.sync(encode("PSYNC", "?", -1))
    wait_until(lambda: "state=online" in master.info("replication").get("slave0", ""))
    copy.client.send_command("REPLCONF", "ACK", 0)  # from here on it is sent the stream
    with closing(copy.client), master.client() as client:
        client.call("SET", "k", "v")
        client.send_command("WAIT", 1, 0)
        asked = _until_asked(copy)
        assert [words for words in asked if words[0] == b"SET"] == [[b"SET", b"k", b"v"]]
        assert blocked(master) == 1
        end = int(master.info("replication")["master_repl_offset"])
        copy.client.send_command("REPLCONF", "ACK", 1)
        assert blocked(master) == 1
        copy.client.send_command("REPLCONF", "ACK", end)
        assert client.read() == b":1\r\n"
        client.send_command("WAITAOF", 0, 1, 0)
        _until_asked(copy)
        assert blocked(master) == 1
        copy.client.send_command("REPLCONF", "ACK", end + 100, "FACK", end)
        assert _parsed(client)[1] == 1
        line = client.call_parsed("INFO", "replication")
        assert isinstance(line, bytes)
        assert b"offset=%d" % (end + 100) in line


def _parsed(client: RawClient) -> list[object]:
    reply = client.read_parsed()
    assert isinstance(reply, list)
    return reply


def _until_asked(copy: Copy) -> list[list[bytes]]:
    """Return what comes up to the question."""
    found: list[list[bytes]] = []
    while not found or found[-1] != GETACK:
        found.append(copy.record())
    return found
