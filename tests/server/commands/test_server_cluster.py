"""The server as the one node of a cluster: what it keeps, what it announces, what it allows."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from conftest import Factory

from headrace.protocol.client import request
from support.client import RawClient
from support.process import Process

CLUSTER = ("--cluster-enabled", "yes")
CROSS_SLOT = b"-CROSSSLOT Keys in request don't hash to the same slot\r\n"


def cluster(server: Process, what: str) -> bytes:
    told = server.call("CLUSTER", what)
    assert isinstance(told, bytes)
    return told


def test_the_node_stays_who_it_is(fresh_server: Factory) -> None:
    server = fresh_server(*CLUSTER)
    told = [cluster(server, what) for what in ("MYID", "MYSHARDID")]
    assert len(set(told)) == 2
    server.restart(crash=True)
    assert [cluster(server, what) for what in ("MYID", "MYSHARDID")] == told
    other = fresh_server(*CLUSTER)
    assert cluster(other, "MYID") != told[0]


def test_the_file_has_another_name(fresh_server: Factory) -> None:
    server = fresh_server(*CLUSTER, "--cluster-config-file", "me.conf")
    node_id = cluster(server, "MYID")
    path = server.directory / "me.conf"
    assert path.read_bytes().startswith(node_id + b" :")
    path.unlink()
    assert server.call("CLUSTER", "SAVECONFIG") == b"OK"
    assert path.read_bytes().startswith(node_id + b" :")


def test_a_file_that_cannot_be_saved(fresh_server: Factory) -> None:
    server = fresh_server(*CLUSTER, "--cluster-config-file", "sub/me.conf", start=False)
    folder: Path = server.directory / "sub"
    folder.mkdir()
    server.start()
    (folder / "me.conf").unlink()
    folder.rmdir()
    with server.client() as client:
        refused = client.call("CLUSTER", "SAVECONFIG")
        assert refused.startswith(b"-ERR error saving the cluster node config: No such file")
        assert client.call("PING") == b"+PONG\r\n"


NODE = b"%b :7000@17000,,tls-port=0,shard-id=%b %b - 0 0 1 connected 0-16383\n"
VARIABLES = b"vars currentEpoch 1 lastVoteEpoch 0\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"junk\n", "corrupted cluster config file"),
        (b"\xff\x00\n\n", "corrupted cluster config file"),
        (
            NODE % (b"a" * 40, b"c" * 40, b"myself,master")
            + NODE % (b"b" * 40, b"c" * 40, b"master")
            + VARIABLES,
            "names 2 nodes",
        ),
        (NODE % (b"a" * 40, b"c" * 40, b"master") + VARIABLES, "the one node of a cluster"),
        (VARIABLES, "names 0 nodes"),
    ],
)
def test_a_strange_file_is_refused(fresh_server: Factory, text: bytes, reason: str) -> None:
    server = fresh_server(*CLUSTER, start=False)
    path = server.directory / "nodes.conf"
    path.write_bytes(text)
    server.spawn()
    assert server.wait() == 1
    assert reason in server.log()
    assert path.read_bytes() == text


def test_a_file_of_an_older_redis_has_no_shard(fresh_server: Factory) -> None:
    server = fresh_server(*CLUSTER, start=False)
    line = b"%b 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-16383\n" % (b"a" * 40)
    (server.directory / "nodes.conf").write_bytes(line + VARIABLES)
    server.start()
    assert cluster(server, "MYID") == b"a" * 40
    assert len(cluster(server, "MYSHARDID")) == 40


def test_all_keys_are_here_and_any_go_together(fresh_server: Factory) -> None:
    with fresh_server(*CLUSTER).client() as client:
        assert client.call("MSET", "a", 1, "b", 2) == b"+OK\r\n"
        assert client.call("MGET", "a", "b") == b"*2\r\n$1\r\n1\r\n$1\r\n2\r\n"
        assert client.call("EVAL", "return redis.call('MGET', 'a', 'b')", 2, "a", "b") != CROSS_SLOT
        assert client.call("SSUBSCRIBE", "a", "b") != CROSS_SLOT


def test_slots_are_looked_at_from_now_on(fresh_server: Factory) -> None:
    with fresh_server(*CLUSTER).client() as client:
        client.call("CONFIG", "SET", "cluster-strict-slots", "yes")
        assert client.call("MSET", "a", 1, "b", 2) == CROSS_SLOT
        assert client.call("EXISTS", "a") == b":0\r\n"
        client.call("CONFIG", "SET", "cluster-strict-slots", "no")
        assert client.call("MSET", "a", 1, "b", 2) == b"+OK\r\n"


def test_there_are_no_slots_without_a_cluster(client: RawClient) -> None:
    assert client.call("CONFIG", "SET", "cluster-strict-slots", "yes") == b"+OK\r\n"
    try:
        assert client.call("MSET", "a", 1, "b", 2) == b"+OK\r\n"
    finally:
        client.call("CONFIG", "SET", "cluster-strict-slots", "no")


def test_slots_of_many_keys(fresh_server: Factory) -> None:
    server = fresh_server(*CLUSTER)
    with server.client() as client:
        client.call("MSET", *[word for number in range(1000) for word in (f"k{number}", 1)])
        counts = client.call_parsed("CLUSTER", "SLOT-STATS", "ORDERBY", "key-count")
        assert isinstance(counts, list)
        assert sum(metrics[1] for _, metrics in counts) == 1000
        slot, (_, count) = counts[0]
        keys = client.call_parsed("CLUSTER", "GETKEYSINSLOT", slot, 100)
        assert isinstance(keys, list)
        assert len(keys) == count == client.call_parsed("CLUSTER", "COUNTKEYSINSLOT", slot)
        assert {client.call_parsed("CLUSTER", "KEYSLOT", key) for key in keys} == {slot}


def test_clients_are_told_the_address_that_they_came_to(fresh_server: Factory) -> None:
    server = fresh_server(*CLUSTER, "--unixsocket", "socket")
    slots = b"*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$%d\r\n%b\r\n:%d\r\n"
    with server.client() as client:
        told = client.call("CLUSTER", "SLOTS")
        assert told.startswith(slots % (9, b"127.0.0.1", server.port))
        assert b" 127.0.0.1:%d@" % server.port in client.call("CLUSTER", "NODES")
        client.call("CONFIG", "SET", "cluster-announce-ip", "10.0.0.1")
        assert client.call("CLUSTER", "SLOTS").startswith(slots % (8, b"10.0.0.1", server.port))
        client.call("CONFIG", "SET", "cluster-announce-ip", "")
        told = client.call("EVAL", "return redis.call('CLUSTER', 'SLOTS')", 0)
        assert told.startswith(slots % (0, b"", server.port))
    with socket.socket(socket.AF_UNIX) as local:
        local.connect(str(server.directory / "socket"))
        local.sendall(b"CLUSTER SLOTS\r\n")
        assert local.recv(4096).startswith(slots % (0, b"", server.port))


def test_a_region_is_a_node(fresh_server: Factory) -> None:
    server = fresh_server(*CLUSTER, "--aa-region-id", "1", "--appendonly", "yes")
    assert b"connected 0-16383" in cluster(server, "NODES")
    server.restart()
    assert b"connected 0-16383" in cluster(server, "NODES")


def test_a_file_of_a_node_that_took_and_gave_slots(fresh_server: Factory, tmp_path: Path) -> None:
    """RESTORE-ASKING made keys there, and TRIMSLOTS removed those of slots that were given away."""
    with fresh_server().client() as client:
        client.call("SET", "k", "v")
        dump = client.call_parsed("DUMP", "k")
        assert isinstance(dump, bytes)
    made = [[b"SET", b"foo", b"1"], [b"SET", b"bar", b"1"], [b"SET", b"hello", b"1"]]
    made.append([b"RESTORE-ASKING", b"given", b"0", dump])
    made.append([b"TRIMSLOTS", b"RANGES", b"2", b"12182", b"12182", b"800", b"900"])  # foo, hello
    (tmp_path / "appendonly.aof").write_bytes(b"".join(map(request, made)))
    for options in (CLUSTER, ()):
        server = fresh_server("--appendonly", "yes", *options, directory=tmp_path)
        assert sorted(server.call("KEYS", "*")) == [b"bar", b"given"]  # type: ignore[call-overload]
        assert server.call("GET", "given") == b"v"
        server.stop()


def test_a_file_that_swaps_no_databases_is_read_again(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--databases", "1")
    server.call("SET", "k", "v")
    server.call("SWAPDB", 0, 0)
    server.stop()
    server.options = (*server.options, *CLUSTER)
    server.start()
    assert server.call("GET", "k") == b"v"
