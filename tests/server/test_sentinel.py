"""Real sentinels manage servers of ours, and of ours and Redis's together.

``python -m support.sentinel_rounds`` plays the same by the dozen, and says how long each takes.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from conftest import Factory

from support import judges, standby_rounds
from support.certificates import Certificates
from support.following import AT_ONCE, is_up
from support.process import Process, free_port
from support.proxy import Proxy
from support.sentinels import Watched, Writer, lost, watched
from support.waiting import wait_until

OPTIONS = ("--save", "", "--appendonly", "yes", *AT_ONCE)
DEBIANS = "redis-7.0"
NEWEST = "redis-8.10"


def sentinel_of(name: str) -> str:
    """Return where the program lies; that of Debian is not fetched with the judges."""
    if name == DEBIANS and name not in [each.name for each in judges.present()]:
        pytest.skip("Debian's redis-server is not installed")
    return judges.program_of(name)


def either_sentinel() -> str:
    """Return Debian's, where it is installed, or the newest."""
    there = [each.name for each in judges.present()]
    return judges.program_of(DEBIANS if DEBIANS in there else NEWEST)


def follow(replica: Process, master: Process) -> None:
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: is_up(replica))


def servers_of(start: Callable[[], Process]) -> list[Process]:
    master, *replicas = servers = [start() for _ in range(3)]
    for replica in replicas:
        follow(replica, master)
    return servers


@contextmanager
def writers(those: Watched, *, waits: bool) -> Iterator[list[Writer]]:
    """Write all the time, and begin with the block when all have an answer."""
    at_work = [Writer(those, f"writer {number}", waits=waits) for number in range(3)]
    try:
        wait_until(lambda: all(writer.acknowledged for writer in at_work))
        yield at_work
    finally:
        for writer in at_work:
            writer.stop()


def have_moved(at_work: list[Writer]) -> None:
    """Wait until all writers are answered again."""
    before = [len(writer.acknowledged) for writer in at_work]
    wait_until(
        lambda: all(
            len(writer.acknowledged) > count for writer, count in zip(at_work, before, strict=True)
        )
    )


def assert_planned(those: Watched) -> None:
    """A planned failover loses nothing that was acknowledged, and needs no full copy."""
    old = those.agreed()
    assert old is not None
    with writers(those, waits=False) as at_work:
        those.fail_over()
        new = those.wait_for_other(old)
        have_moved(at_work)
        wait_until(those.follow_one)
    for writer in at_work:
        assert lost(writer.acknowledged, new) == []
    assert "is about to be a master" in old.log()
    assert "Full copy" not in old.log().partition("is about to be a master")[2]


@pytest.mark.parametrize("program", [NEWEST, DEBIANS])
def test_they_fail_over_as_planned_and_when_the_master_is_killed(
    fresh_server: Factory, program: str
) -> None:
    """What WAIT has counted survives a kill, and the old master comes back and says what goes."""
    servers = servers_of(lambda: fresh_server(*OPTIONS))
    with watched(servers, [sentinel_of(program)] * 3) as those:
        assert_planned(those)
        old = those.agreed()
        assert old is not None
        with writers(those, waits=True) as at_work:
            old.kill()
            new = those.wait_for_other(old)
            old.restart(crash=True)
            have_moved(at_work)
            wait_until(those.follow_one)
        for writer in at_work:
            assert writer.promised
            assert lost(writer.promised, new) == []
    assert old.info("replication")["role"] == "slave"
    assert "The 1 keys that are here go, with what the master lacks" in old.log()


@pytest.mark.parametrize("program", [NEWEST, DEBIANS])
def test_a_master_that_stands_still_comes_back_as_a_replica(
    fresh_server: Factory, program: str
) -> None:
    servers = servers_of(lambda: fresh_server(*OPTIONS))
    with (
        watched(servers, [sentinel_of(program)] * 3) as those,
        writers(those, waits=True) as at_work,
    ):
        servers[0].signal(signal.SIGSTOP)
        new = those.wait_for_other(servers[0])
        servers[0].signal(signal.SIGCONT)
        have_moved(at_work)
        wait_until(those.follow_one)
        for writer in at_work:
            writer.stop()
            assert lost(writer.promised, new) == []


# What the documents of Redis name as the least rights of a sentinel, and of a replica; it has to be
# allowed FAILOVER, too, as its master follows it.
USERS = """\
user default on nopass ~* &* +@all -slaveof -replicaof -psync
user sentinel on >secret &* -@all +multi +slaveof +ping +exec +subscribe +config|rewrite +role \
+publish +info +client|setname +client|kill +script|kill
user replica on >secret -@all +psync +replconf +ping +failover
masteruser replica
masterauth secret
bind 127.0.0.1 127.0.0.2
"""
ANNOUNCED = ("--replica-announce-ip", "127.0.0.2")


def test_passwords_priorities_and_announced_addresses(fresh_server: Factory) -> None:
    """The one with priority 0 has all the data, and is not chosen."""
    master = fresh_server(*OPTIONS, config=USERS)
    to_master = ("--replicaof", f"127.0.0.1 {master.port}")
    never = fresh_server(*OPTIONS, *to_master, "--replica-priority", "0", config=USERS)
    chosen = fresh_server(*OPTIONS, *to_master, *ANNOUNCED, config=USERS)
    wait_until(lambda: is_up(never) and is_up(chosen))
    settings = ("auth-user sentinel", "auth-pass secret")
    servers = [master, never, chosen]
    with watched(servers, [judges.program_of(NEWEST)] * 3, *settings) as those:
        rows = {row[b"port"]: row for row in those.sentinels[0].seen("REPLICAS")}
        assert rows[b"%d" % chosen.port][b"ip"] == b"127.0.0.2"
        assert rows[b"%d" % never.port][b"slave-priority"] == b"0"
        assert rows[b"%d" % never.port][b"replica-announced"] == b"1"
        assert_planned(those)
        assert those.agreed() is chosen
        assert never.info("replication")["master_host"] == "127.0.0.2"
        assert "\nreplicaof" not in chosen.config_path.read_text()
        assert f"\nreplicaof 127.0.0.2 {chosen.port}\n" in master.config_path.read_text()


def test_a_replica_behind_another_port(fresh_server: Factory) -> None:
    """A container's port is another one outside; ``replica-announced no`` is not listed."""
    with closing(Proxy(0)) as link:
        master, replica, hidden = (fresh_server(*OPTIONS) for _ in range(3))
        link.target = replica.port
        replica.call("CONFIG", "SET", "replica-announce-port", link.port)
        hidden.call("CONFIG", "SET", "replica-announced", "no", "replica-priority", 0)
        follow(replica, master)
        follow(hidden, master)
        ports = {master.port: master, link.port: replica}
        with watched([], [either_sentinel()] * 3, ports=ports) as those:
            assert_planned(those)
            assert those.agreed() is replica


def test_over_tls(fresh_server: Factory, certificates: Certificates) -> None:
    """A replica tells the port at which it takes TLS, which is where the sentinels look for it."""
    encrypts = ("--tls-replication", "yes", *certificates.options())
    ports: dict[int, Process] = {}
    for _ in range(2):
        port = free_port()
        ports[port] = fresh_server(*OPTIONS, "--tls-port", str(port), *encrypts)
    (master_port, master), (replica_port, replica) = ports.items()
    replica.call("REPLICAOF", "127.0.0.1", master_port)
    wait_until(lambda: is_up(replica))
    words = " ".join(encrypts).split("--")[1:]

    def settings() -> list[str]:
        return [f"tls-port {free_port()}", *words]

    with watched([], [sentinel_of(DEBIANS)] * 3, ports=ports, more=settings) as those:
        master.call("SET", "k", 1)
        those.fail_over()
        assert those.wait_for_other(master) is replica
        wait_until(those.follow_one)
        assert master.info("replication")["master_port"] == str(replica_port)
        assert replica.call("INCR", "k") == 2
    assert "is about to be a master" in master.log()


@pytest.mark.parametrize("first", ["ours", "real"])
def test_pairs_of_ours_and_a_real_server(
    fresh_server: Factory, fresh_redis: Factory, first: str
) -> None:
    """Both ways; what the old master writes up to its end is lost, as between two of Redis."""
    pair = [fresh_server(*OPTIONS), fresh_redis(*OPTIONS)]
    if first == "real":
        pair.reverse()
    follow(pair[1], pair[0])
    with watched(pair, [judges.program_of(NEWEST)] * 3) as those:
        pair[0].call("XADD", "s", "1-1", "n", "v")
        pair[0].call("WAIT", 1, 0)
        those.fail_over()
        new = those.wait_for_other(pair[0])
        assert new.call("XADD", "s", "2-1", "n", "w") == b"2-1"
        wait_until(those.follow_one)
        assert lost([b"v", b"w"], new) == []
        wait_until(lambda: pair[0].call("XLEN", "s") == 2)


def test_a_second_master_is_made_a_replica_again(fresh_server: Factory) -> None:
    """Somebody has told a replica to be a master, and it has taken a write."""
    servers = servers_of(lambda: fresh_server(*OPTIONS))
    with watched(servers, [judges.program_of(NEWEST)] * 3) as those:
        assert servers[1].call("REPLICAOF", "NO", "ONE") == b"OK"
        assert servers[1].call("SET", "astray", 1) == b"OK"
        assert servers[0].call("SET", "k", 1) == b"OK"
        wait_until(those.follow_one)
        assert those.agreed() is servers[0]
        wait_until(lambda: servers[1].call("MGET", "k", "astray") == [b"1", None])
    assert "What was written here as a master" in servers[1].log()


def test_they_fail_a_region_over_to_its_standbys() -> None:
    """What WAIT has counted, or another region has, survives; the group skips nothing."""
    rounds = standby_rounds.campaign(3, ["plan", "kill", "behind"], either_sentinel())
    assert [str(each) for each in rounds if not each.is_good()] == []
    assert all(each.promised for each in rounds)
