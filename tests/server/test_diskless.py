"""Full copies that go straight to the replicas, while they are being made."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
from conftest import Factory

from support.client import encode
from support.following import AT_ONCE, Copy, assert_same, is_up
from support.process import Process
from support.waiting import wait_until

PSYNC = encode("PSYNC", "?", "-1")
TAKES_MARK = ("REPLCONF", "capa", "eof", "capa", "psync2")
STARTED = "Starting a snapshot for replicas: to "


@pytest.fixture
def master(fresh_server: Factory) -> Process:
    return fresh_server("--enable-debug-command", "yes", "--save", "", *AT_ONCE)


def states(master: Process) -> list[str]:
    """Those of the replicas, as INFO shows them."""
    lines = master.info("replication").items()
    return [value.split("state=")[1].split(",")[0] for name, value in lines if "ip=" in value]


def test_the_mark_ends_it_and_the_stream_follows_when_it_is_asked_for(master: Process) -> None:
    master.call("SET", "a", "v" * 1000)
    copy = Copy(master.port, TAKES_MARK)
    with closing(copy.client):
        assert b"v" * 1000 in copy.sync(PSYNC)
        assert states(master) == ["online"]
        master.call("SET", "b", 1)
        assert master.call("WAIT", 1, 100) == 0
        copy.client.send(encode("REPLCONF", "ACK", 0))
        assert [copy.record()[0] for _ in range(3)] == [b"SELECT", b"SET", b"REPLCONF"]
        assert not [name for name in master.directory.iterdir() if "rdb" in name.name]


@pytest.mark.parametrize(
    ("diskless", "ability", "start"),
    [("yes", "eof", b"$EOF:"), ("yes", "psync2", b"$1"), ("no", "eof", b"$1")],
)
def test_who_gets_it(master: Process, diskless: str, ability: str, start: bytes) -> None:
    master.call("CONFIG", "SET", "repl-diskless-sync", diskless)
    copy = Copy(master.port, ("REPLCONF", "capa", ability))
    with closing(copy.client):
        copy.client.send(PSYNC)
        assert copy.line().startswith(b"+FULLRESYNC")
        while not (line := copy.line()):
            pass
        assert line.startswith(start)


def test_the_first_waits_for_others(master: Process) -> None:
    master.call("CONFIG", "SET", "repl-diskless-sync-delay", 3600)
    master.call("CONFIG", "SET", "repl-diskless-sync-max-replicas", 3)
    copies = [Copy(master.port, TAKES_MARK) for _ in range(3)]
    for copy in copies[:2]:
        copy.client.send(PSYNC)
    wait_until(lambda: states(master) == ["wait_bgsave"] * 2)
    assert STARTED not in master.log()
    copies[2].client.send(PSYNC)
    for copy in copies:
        copy.sync(b"")
        copy.client.close()
    assert master.log().count(STARTED + "replicas sockets") == 1
    assert master.info("stats")["sync_full"] == "3"


def test_the_delay_ends(master: Process) -> None:
    master.call("CONFIG", "SET", "repl-diskless-sync-delay", 1)
    copy = Copy(master.port, TAKES_MARK)
    with closing(copy.client):
        copy.sync(PSYNC)


def test_a_value_that_needs_a_newer_form_is_sent_the_second_time(master: Process) -> None:
    """The head of the first copy has left before the value is seen."""
    master.call("HSET", "h", "f", "v")
    master.call("HEXPIRE", "h", 1000, "FIELDS", 1, "f")
    for number in range(30):  # the newest key comes first
        master.call("SET", f"key{number}", "v" * 100_000)
    for expected in (b"REDIS0010", b"REDIS0012", b"REDIS0012"):
        copy = Copy(master.port, TAKES_MARK)
        with closing(copy.client):
            copy.client.send(PSYNC)
            while not (line := copy.line()).startswith(b"$EOF:"):
                pass
            assert copy.take(9) == expected, line
            if expected == b"REDIS0010":
                assert copy.is_closed()
                continue
            copy.up_to(line[5:])
    master.call("DEL", "h")  # the lowest form will do again, after the next copy
    for expected in (b"REDIS0012", b"REDIS0010"):
        copy = Copy(master.port, TAKES_MARK)
        with closing(copy.client):
            assert copy.sync(PSYNC).startswith(expected)


def test_one_that_does_not_read_holds_up_the_copy_until_it_leaves(master: Process) -> None:
    with master.client() as client:
        for number in range(400):
            client.call("SET", number, b"%d" % number * 30_000)
    master.call("CONFIG", "SET", "repl-diskless-sync-delay", 3600)
    master.call("CONFIG", "SET", "repl-diskless-sync-max-replicas", 2)
    idle, eager = Copy(master.port, TAKES_MARK), Copy(master.port, TAKES_MARK)
    idle.client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    idle.client.send(PSYNC)
    eager.client.send(PSYNC)
    while not (line := eager.line()).startswith(b"$EOF:"):
        pass
    eager.take(1_000_000)
    assert states(master) == ["wait_bgsave"] * 2
    idle.client.close()
    eager.up_to(line[5:])
    eager.client.close()


def test_a_master_answers_while_a_copy_leaves(master: Process, fresh_redis: Factory) -> None:
    with master.client() as client:
        for number in range(2000):
            client.call("SET", number, b"v" * 10_000)
    replica = fresh_redis()
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    while not is_up(replica):
        assert master.call("INCR", "n")
    assert STARTED + "replicas sockets" in master.log()
    assert_same(master, replica)


def test_ours_follows_ours(master: Process, fresh_server: Factory) -> None:
    replica = fresh_server("--enable-debug-command", "yes", "--save", "")
    master.call("SET", "a", 1)
    replica.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: is_up(replica))
    assert STARTED + "replicas sockets" in master.log()
    assert_same(master, replica)
