"""FAILOVER: a master and its replica change their roles, and nothing is lost by that."""

from __future__ import annotations

import signal
import threading

import pytest
from conftest import Factory

from support.client import RawClient, encode
from support.following import AT_ONCE, assert_same, digest, full_copies, have_all, is_up
from support.process import Pair, Process, RedisProcess
from support.proxy import Proxy
from support.waiting import wait_until

OPTIONS = ("--enable-debug-command", "yes", "--save", "", *AT_ONCE)
WAITS = "waiting-for-sync"


def state(process: Process) -> str:
    return process.info("replication")["master_failover_state"]


def role(process: Process) -> str:
    return process.info("replication")["role"]


def follow(replica: Process, master: Process) -> None:
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: is_up(replica))


@pytest.fixture
def master(fresh_server: Factory) -> Process:
    return fresh_server(*OPTIONS)


@pytest.fixture
def replica(fresh_server: Factory, master: Process) -> Process:
    replica = fresh_server(*OPTIONS)
    follow(replica, master)
    return replica


class Writer(threading.Thread):
    """Writes as fast as it can, and counts what was answered, until it hears of another master."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._client = process.client(timeout_s=60)
        self.written = 0
        self.end = b""
        self.start()

    def run(self) -> None:
        with self._client as client:
            while not self.end:
                reply = client.call("INCR", "written")
                if reply.startswith(b"-"):
                    self.end = reply
                else:
                    self.written = int(reply[1:])


def assert_changed(old: Process, new: Process, copies_before: int) -> None:
    """The roles change under load, without a full copy, and all that was answered is there."""
    writer = Writer(old)
    wait_until(lambda: writer.written > 50)
    assert old.call("FAILOVER", "TO", "127.0.0.1", new.port, "TIMEOUT", 60_000) == b"OK"
    wait_until(lambda: role(new) == "master")
    wait_until(lambda: is_up(old))
    writer.join()
    assert writer.end.startswith(b"-READONLY")
    assert state(old) == state(new) == "no-failover"
    assert new.call("GET", "written") == b"%d" % writer.written
    new.call("SET", "after", "v")
    assert_same(new, old)
    assert full_copies(old) == copies_before


def test_ours_and_ours(master: Process, replica: Process) -> None:
    assert_changed(master, replica, 0)
    assert_changed(replica, master, 0)
    assert "Failover succeeded" in master.log()


@pytest.mark.once
def test_ours_and_a_real_one_there_and_back(master: Process, fresh_redis: Factory) -> None:
    real = fresh_redis(*AT_ONCE)
    follow(real, master)
    assert_changed(master, real, 0)
    assert_changed(real, master, 1)


def test_any_replica_that_has_all(master: Process, replica: Process, fresh_server: Factory) -> None:
    stopped = fresh_server(*OPTIONS)
    follow(stopped, master)
    wait_until(lambda: have_all(master, stopped))
    stopped.signal(signal.SIGSTOP)
    master.call("SET", "k", "v")
    assert master.call("FAILOVER") == b"OK"
    wait_until(lambda: role(replica) == "master" and is_up(master))
    stopped.signal(signal.SIGCONT)
    assert replica.call("GET", "k") == b"v"


def test_writes_wait_until_it_is_called_off(master: Process, replica: Process) -> None:
    replica.signal(signal.SIGSTOP)
    master.call("SET", "k", 1)
    assert master.call("FAILOVER") == b"OK"
    assert state(master) == WAITS
    with master.client() as client, master.client() as other:
        client.send_command("INCR", "k")
        wait_until(lambda: " flags=b " in str(other.call("CLIENT", "LIST")))
        assert other.call("GET", "k") == b"$1\r\n1\r\n"
        assert other.call("FAILOVER") == b"-ERR FAILOVER already in progress.\r\n"
        assert other.call("REPLICAOF", "NO", "ONE").startswith(b"-ERR REPLICAOF not allowed while")
        other.call("CLIENT", "PAUSE", 100_000, "WRITE")
        other.call("CLIENT", "UNPAUSE")
        assert state(master) == WAITS
        assert other.call("FAILOVER", "ABORT") == b"+OK\r\n"
        assert client.read() == b":2\r\n"
    assert state(master) == "no-failover"
    replica.signal(signal.SIGCONT)
    assert_same(master, replica)


def test_it_ends_without_a_replica_that_has_all(master: Process, replica: Process) -> None:
    replica.signal(signal.SIGSTOP)
    master.call("SET", "k", 1)
    assert master.call("FAILOVER", "TIMEOUT", 100) == b"OK"
    wait_until(lambda: state(master) == "no-failover")
    assert role(master) == "master"
    assert "Replica never caught up before timeout" in master.log()
    replica.signal(signal.SIGCONT)
    assert_same(master, replica)


def test_by_force_it_goes_on_all_the_same(master: Process, replica: Process) -> None:
    """The other one is asked as long as it does not answer; that can be called off, too."""
    replica.signal(signal.SIGSTOP)
    master.call("SET", "k", 1)
    words = ("FAILOVER", "TO", "127.0.0.1", replica.port, "FORCE", "TIMEOUT", 100)
    assert master.call(*words) == b"OK"
    wait_until(lambda: state(master) == "failover-in-progress")
    assert role(master) == "slave"
    assert master.call("FAILOVER", "ABORT") == b"OK"
    assert role(master) == "master"
    assert master.call("INCR", "k") == 2
    replica.signal(signal.SIGCONT)
    wait_until(lambda: master.info("replication")["connected_slaves"] == "1" and is_up(replica))
    replica.signal(signal.SIGSTOP)
    master.call("SET", "k", 3)
    assert master.call(*words) == b"OK"
    wait_until(lambda: state(master) == "failover-in-progress")
    replica.signal(signal.SIGCONT)
    wait_until(lambda: role(replica) == "master" and is_up(master))
    assert_same(replica, master)


def test_one_that_refuses_leaves_the_master(master: Process, replica: Process) -> None:
    """It follows nobody any more, and says so."""
    replica.signal(signal.SIGSTOP)
    master.call("SET", "k", 1)
    master.call("FAILOVER", "TO", "127.0.0.1", replica.port, "FORCE", "TIMEOUT", 100)
    wait_until(lambda: state(master) == "failover-in-progress")
    replica.kill()  # it would be waited for, as it stands still
    replica.restart(crash=True)
    wait_until(lambda: state(master) == "no-failover")
    assert role(master) == "master"
    assert "Failover target rejected psync request" in master.log()
    assert master.call("INCR", "k") == 2


ALONE = """\
FAILOVER
FAILOVER ABORT
FAILOVER ABORT TIMEOUT 10
FAILOVER ABORT ABORT
FAILOVER FORCE
FAILOVER FORCE FORCE
FAILOVER TO h
FAILOVER TO h x
FAILOVER TO h -1
FAILOVER TO h 1
FAILOVER TO h 99999999999999999999
FAILOVER TO a 1 TO b 2
FAILOVER TO h 1 FORCE TIMEOUT 5
FAILOVER TIMEOUT
FAILOVER TIMEOUT 0
FAILOVER TIMEOUT x
FAILOVER TIMEOUT 1 TIMEOUT 2
FAILOVER nonsense
"""


@pytest.mark.since(8, 10)
def test_words(master: Process, fresh_redis: Factory, fresh_server: Factory) -> None:
    real = fresh_redis(*AT_ONCE)
    assert isinstance(real, RedisProcess)
    pair = Pair.of(master, real)
    for line in ALONE.splitlines():
        pair.both(*line.split())
    replicas = fresh_server(*OPTIONS), fresh_redis(*AT_ONCE)
    follow(replicas[0], master)
    follow(replicas[1], real)
    for line in ALONE.splitlines()[1:]:
        pair.both(*line.split())
    pair.close()
    pair = Pair.of(replicas[0], replicas[1])  # type: ignore[arg-type]
    for line in ALONE.splitlines():
        pair.both(*line.split())
    pair.both("PSYNC", "0" * 40, 1, "FAILOVER")
    pair.close()


def test_a_master_is_not_taken_over(master: Process) -> None:
    with RawClient(master.port) as client:
        reply = client.call("PSYNC", "0" * 40, 1, "FAILOVER")
        assert reply == b"-ERR PSYNC FAILOVER can't be sent to a master.\r\n"


# REPLICAOF NO ONE at a replica of ours, whose master is one of ours

BY_SENTINEL = (
    ("MULTI",),
    ("SLAVEOF", "NO", "ONE"),
    ("CONFIG", "REWRITE"),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("CLIENT", "KILL", "TYPE", "pubsub"),
    ("EXEC",),
)


def promote_as_a_sentinel_does(replica: Process) -> bytes:
    """Send what Redis's sentinels send (``sentinelSendSlaveOf``); return the reply of EXEC."""
    with replica.client() as client:
        assert client.call("CLIENT", "SETNAME", "sentinel-0123abcd-cmd") == b"+OK\r\n"
        client.send(b"".join(encode(*words) for words in BY_SENTINEL))
        return [client.read() for _ in BY_SENTINEL][-1]


def test_an_operator_changes_two_masters_without_a_loss(master: Process, replica: Process) -> None:
    """Writes wait from REPLICAOF NO ONE at the one to REPLICAOF at the other."""
    writer = Writer(master)
    wait_until(lambda: writer.written > 50)
    assert replica.call("REPLICAOF", "NO", "ONE") == b"OK"
    assert role(replica) == "master"
    assert state(master) == "handing-over"
    assert master.call("REPLICAOF", "127.0.0.1", replica.port) == b"OK"
    writer.join()
    assert writer.end.startswith(b"-READONLY")
    assert replica.call("GET", "written") == b"%d" % writer.written
    wait_until(lambda: is_up(master))
    replica.call("SET", "after", "v")
    assert_same(replica, master)
    assert full_copies(master) == 0
    assert "Full copy" not in master.log()
    assert state(master) == state(replica) == "no-failover"


def test_two_masters_go_on_by_themselves(master: Process, replica: Process) -> None:
    """A replica that is split off takes writes at once, and its former master after a while."""
    with master.client() as client, replica.client() as other:
        client.call("SET", "k", 1)
        other.send(encode("REPLICAOF", "NO", "ONE") + encode("INCR", "k") + encode("ROLE"))
        assert other.read() == b"+OK\r\n"
        assert other.read() == b":2\r\n"
        assert other.read().startswith(b"*3\r\n$6\r\nmaster")
        assert client.call("GET", "k") == b"$1\r\n1\r\n"
        assert client.call("INCRBY", "k", 10) == b":11\r\n"
    assert role(master) == role(replica) == "master"
    assert state(master) == "no-failover"


def test_what_one_of_two_masters_wrote_is_dropped_with_a_word(
    master: Process, replica: Process
) -> None:
    master.call("SET", "k", 1)
    assert replica.call("REPLICAOF", "NO", "ONE") == b"OK"
    wait_until(lambda: state(master) == "no-failover")
    acked = int(master.info("replication")["master_repl_offset"])
    assert master.call("SET", "alone", "v") == b"OK"
    end = int(master.info("replication")["master_repl_offset"])
    replica.call("SET", "k", 2)
    master.call("REPLICAOF", "127.0.0.1", replica.port)
    wait_until(lambda: is_up(master))
    assert_same(replica, master)
    assert master.call("MGET", "k", "alone") == [b"2", None]
    assert f"ended at offset {end}, of which replicas had acknowledged {acked}" in master.log()
    assert f"gone on alone for {end - acked} bytes, which it has to drop" in replica.log()


def test_under_a_sentinel_the_old_master_follows_by_itself(fresh_server: Factory) -> None:
    """Its file says so, too, as a sentinel has every server write it."""
    master, replica = (fresh_server(*OPTIONS, config="maxclients 500\n") for _ in range(2))
    follow(replica, master)
    writer = Writer(master)
    wait_until(lambda: writer.written > 50)
    with master.client() as blocked:
        blocked.send_command("BLPOP", "nothing", 0)
        wait_until(lambda: master.info("clients")["blocked_clients"] == "1")
        assert promote_as_a_sentinel_does(replica).startswith(b"*4\r\n+OK\r\n+OK\r\n:")
        assert role(replica) == "master"
        assert blocked.read().startswith(b"-UNBLOCKED force unblock")
    writer.join()
    assert writer.end.startswith(b"-READONLY")
    assert replica.call("GET", "written") == b"%d" % writer.written
    wait_until(lambda: role(master) == "slave" and is_up(master))
    assert_same(replica, master)
    assert full_copies(master) == 0
    assert f"replicaof 127.0.0.1 {replica.port}\n" in master.config_path.read_text()
    assert "replicaof" not in replica.config_path.read_text()
    assert master.call("CONFIG", "GET", "replicaof") == [
        b"replicaof",
        b"127.0.0.1 %d" % replica.port,
    ]


def test_a_replica_that_is_far_behind_gets_all(master: Process, fresh_server: Factory) -> None:
    link = Proxy(master.port)
    replica = fresh_server(*OPTIONS)
    replica.call("REPLICAOF", "127.0.0.1", link.port)
    wait_until(lambda: is_up(replica))
    link.delay(0.3)
    writer = Writer(master)
    wait_until(lambda: writer.written > 50)
    assert promote_as_a_sentinel_does(replica).startswith(b"*4")
    assert role(replica) == "master"
    writer.join()
    assert replica.call("GET", "written") == b"%d" % writer.written
    link.close()


def test_a_master_that_stands_still_is_not_waited_for(master: Process, replica: Process) -> None:
    """It has written nothing that the replica lacks, and so follows it when it goes on."""
    master.signal(signal.SIGSTOP)
    assert promote_as_a_sentinel_does(replica).startswith(b"*4")
    assert role(replica) == "master"
    assert "does not answer to a replica that is to be a master" in replica.log()
    replica.call("SET", "k", 1)
    master.signal(signal.SIGCONT)
    wait_until(lambda: role(master) == "slave" and is_up(master))
    assert_same(replica, master)


def test_a_master_that_is_gone_is_not_waited_for(master: Process, replica: Process) -> None:
    """It may also go while the replica waits: then that is a master at once."""
    with replica.client() as client, replica.client() as other:
        master.signal(signal.SIGSTOP)
        assert client.call("REPLICAOF", "NO", "ONE") == b"+OK\r\n"
        other.send_command("SET", "k", 1)
        master.kill()
        assert other.read() == b"+OK\r\n"
    assert "does not answer to a replica" not in replica.log()
    assert role(replica) == "master"


def test_a_hand_over_is_called_off(master: Process, replica: Process) -> None:
    with master.client() as client:
        replica.call("REPLICAOF", "NO", "ONE")
        assert client.call("FAILOVER").startswith(b"-ERR FAILOVER already in progress")
        assert client.call("FAILOVER", "ABORT") == b"+OK\r\n"
        assert state(master) == "no-failover"
        assert client.call("SET", "k", 1) == b"+OK\r\n"


def test_of_two_commands_in_a_row_the_last_one_counts(master: Process, replica: Process) -> None:
    """The promotion does not come later, and holds nobody's requests any more."""
    with replica.client() as client:
        for words in (("MULTI",), ("REPLICAOF", "NO", "ONE")):
            client.call(*words)
        client.call("REPLICAOF", "localhost", master.port)
        assert client.call("EXEC") == b"*2\r\n+OK\r\n+OK\r\n"
        assert client.call("ROLE").startswith(b"*5\r\n$5\r\nslave")
    wait_until(lambda: is_up(replica))
    wait_until(lambda: state(master) == "no-failover")
    master.call("SET", "k", 1)
    assert_same(master, replica)
    assert role(replica) == "slave"


def test_a_replica_of_a_replica_is_let_go_at_once(
    master: Process, replica: Process, fresh_server: Factory
) -> None:
    last = fresh_server(*OPTIONS)
    follow(last, replica)
    master.call("SET", "k", 1)
    assert_same(master, replica, last)
    assert promote_as_a_sentinel_does(last).startswith(b"*4")
    assert role(last) == "master"
    assert role(replica) == "slave"
    assert is_up(replica)
    assert state(master) == state(replica) == "no-failover"
    assert last.call("INCR", "k") == 2


def test_a_real_master_hears_nothing_of_it(fresh_redis: Factory, fresh_server: Factory) -> None:
    """It would disconnect a replica that sends it what it does not know."""
    real = fresh_redis(*AT_ONCE)
    replica = fresh_server(*OPTIONS)
    follow(replica, real)
    assert promote_as_a_sentinel_does(replica).startswith(b"*4")
    assert role(replica) == "master"
    assert real.call("INCR", "k") == 1
    assert role(real) == "master"
    assert "generated a reply" not in real.log()


def test_one_that_may_not_ask_for_a_failover_moves_nobody(
    master: Process, fresh_server: Factory
) -> None:
    """Whoever may only copy data could otherwise have a master follow whatever server he likes."""
    master.call("ACL", "SETUSER", "copies", "on", ">secret", "+psync", "+replconf", "+ping")
    replica = fresh_server(*OPTIONS, "--masteruser", "copies", "--masterauth", "secret")
    follow(replica, master)
    assert promote_as_a_sentinel_does(replica).startswith(b"*4")
    assert role(replica) == "master"
    assert "does not answer" not in replica.log()
    assert master.call("INCR", "k") == 1
    assert role(master) == "master"
    assert state(master) == "no-failover"
    rows = master.call("ACL", "LOG")
    assert isinstance(rows, list)
    assert [row[row.index(b"object") + 1] for row in rows] == [b"failover"]


def test_a_client_does_not_pass_for_a_replica(master: Process) -> None:
    with master.client() as client:
        client.send(encode("REPLCONF", "ACK", 0, "PROMOTED", 1) + encode("PING"))
        assert client.read() == b"+PONG\r\n"
    assert role(master) == "master"
    assert state(master) == "no-failover"
    assert digest(master) == b"0" * 40
