"""Clusters of three real servers: streams on all of them, read and written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from pyspark_headrace.client import Client
from pyspark_headrace.errors import OptionError, UnsafeWriteError
from pyspark_headrace.given import READ
from pyspark_headrace.options import read_options
from pyspark_headrace.reader import BatchReader
from pyspark_headrace.resp import Link
from pyspark_headrace.server import Server
from pyspark_headrace.shape import default_schema
from pyspark_headrace.slots import slot_of
from pyspark_headrace.source import HeadraceSource
from pyspark_headrace.writer import Written
from support.cluster import RealCluster, real_cluster
from support.judges import program_of
from support.process import Process, free_port
from support.spark_query import Query
from support.spark_task import task
from support.waiting import wait_until

pytestmark = pytest.mark.once

KEYS = [f"t:{number}" for number in range(30)]
NAMES = ("redis-8.0", "valkey-9.1")


@pytest.fixture(scope="module", params=NAMES)
def _nodes(request: pytest.FixtureRequest) -> Iterator[RealCluster]:
    with real_cluster(program_of(request.param)) as found:
        yield found


@pytest.fixture
def cluster(_nodes: RealCluster) -> RealCluster:
    """Emptied before each test."""
    _nodes.empty()
    return _nodes


def add(cluster: RealCluster, keys: list[str], *values: str) -> None:
    for key in keys:
        for value in values:
            cluster.call("XADD", key, "*", "f", value)


def write(cluster: RealCluster, table: pa.Table, partition: int = 0, **options: Any) -> Written:
    given = {
        "port": cluster.port,
        "identity": "none",
        "fetchOffset.retryIntervalMs": 100,
        **options,
    }
    source = HeadraceSource({name: str(value) for name, value in given.items()})
    sink = source.streamWriter(from_arrow_schema(table.schema), False)
    with task(partition, 0):
        return sink.write(iter(table.to_batches(max_chunksize=20)))


def test_slots_of_keys(cluster: RealCluster) -> None:
    for key in ("a", "rides", "{rides}:x", "a{b}c", "a{}b", "a{b", "}{x}", "ü", "{{a}}", "a{b}{c}"):
        assert slot_of(key) == cluster.masters[0].call("CLUSTER", "KEYSLOT", key), key


def test_streams_of_all_nodes(cluster: RealCluster) -> None:
    add(cluster, KEYS, "1", "2")
    assert len({cluster.owner(key).port for key in KEYS}) == 3
    query = Query(
        cluster.masters[1], subscribe=None, subscribePattern="t:*", startingOffsets="earliest"
    )
    query.run(17)
    assert query.values == {key: ["1", "2"] for key in KEYS}
    add(cluster, KEYS[:4], "3")
    query.run()
    assert {key: values[2:] for key, values in query.values.items() if values[2:]} == {
        key: ["3"] for key in KEYS[:4]
    }
    query.close()


def test_a_batch_read(cluster: RealCluster) -> None:
    add(cluster, KEYS, "1", "2")
    options = read_options({"port": str(cluster.port), "subscribe": ",".join(KEYS)}, READ)
    reader = BatchReader(options, default_schema(options.frame))
    rows = [batch.num_rows for part in reader.partitions() for batch in reader.read(part)]
    assert sum(rows) == 60


def test_an_idle_query_waits(cluster: RealCluster) -> None:
    """For streams of several slots no command waits; the next look finds what has come."""
    add(cluster, KEYS[:5], "1")
    query = Query(
        cluster.masters[0],
        subscribe=",".join(KEYS[:5]),
        startingOffsets="earliest",
        pollTimeoutMs=100,
    )
    query.run()
    began_s = time.monotonic()
    assert not query.step()
    assert time.monotonic() - began_s >= 0.1
    add(cluster, KEYS[:5], "2")
    assert query.step()
    assert query.values == {key: ["1", "2"] for key in KEYS[:5]}
    query.close()


def test_one_database(cluster: RealCluster) -> None:
    link = Link(read_options({"port": str(cluster.port), "path": "s", "db": "1"}, READ).connection)
    with pytest.raises((OptionError, Exception), match=r"db|SELECT|DB index"):
        link.call("XLEN", "s")
    link.close()


def test_other_nodes_to_ask(cluster: RealCluster, server: Process) -> None:
    """Where the address leads nowhere; and not where there is no cluster."""
    other = f"127.0.0.1:{cluster.masters[1].port}"
    for given in ({"port": free_port()}, {"host": "localhost", "port": cluster.port}):
        options = read_options(
            {"path": "s", "clusterNodes": other, **{k: str(v) for k, v in given.items()}}, READ
        )
        link = Link(options.connection)
        assert link.call("XADD", KEYS[0], "1-1", "f", "v") == b"1-1"
        link.call("DEL", KEYS[0])
        link.close()
    options = read_options({"path": "s", "port": str(server.port), "clusterNodes": other}, READ)
    link = Link(options.connection)
    with pytest.raises(OptionError, match=rf"clusterNodes: \S+:{server.port} is no node"):
        link.call("PING")
    link.close()
    with pytest.raises(OptionError, match="clusterNodes: 'a/b' is not host or host:port"):
        read_options({"path": "s", "clusterNodes": "a/b"}, READ)


def test_rows_for_all_nodes(cluster: RealCluster) -> None:
    table = pa.table({"key": [KEYS[n % 30] for n in range(300)], "n": list(range(300))})
    assert write(cluster, table).rows == 300
    for number, key in enumerate(KEYS):
        entries = cluster.call("XRANGE", key, "-", "+")
        assert isinstance(entries, list)
        assert [int(row[1]) for _, row in entries] == list(range(number, 300, 30))


def test_markers_lie_beside_their_stream(cluster: RealCluster) -> None:
    table = pa.table({"n": list(range(100))})
    for _ in range(2):
        written = write(cluster, table, stream="out", identity="marker", pipelineDepth=10)
    assert written.known == 100
    assert cluster.call("XLEN", "out") == 100
    keys = cluster.owner("out").call("KEYS", "{out}:sink:*")
    assert isinstance(keys, list)
    assert len(keys) == 1
    write(cluster, table, stream="a{out}b", identity="marker")
    assert cluster.call("XLEN", "a{out}b") == 100
    with pytest.raises(UnsafeWriteError, match="in a cluster all rows go to one stream"):
        write(cluster, table.append_column("key", pa.array(["a"] * 100)), identity="marker")
    with pytest.raises(UnsafeWriteError, match="errorStream in its slot"):
        write(cluster, table, stream="out", errorStream="errors", identity="marker")


@pytest.mark.parametrize("name", NAMES)
def test_slots_that_move(name: str) -> None:
    """Between two batches, and between two windows of a sink."""
    with real_cluster(program_of(name)) as cluster:
        add(cluster, KEYS, "1")
        query = Query(
            cluster.masters[0],
            subscribe=None,
            subscribePattern="t:*",
            startingOffsets="earliest",
            **{"fetchOffset.retryIntervalMs": 50},
        )
        query.run()
        for key in KEYS[:6]:
            with cluster.moving(key):
                pass
        client = Link(query.options.connection)
        client.pipeline([("XADD", key, "*", "f", "2") for key in KEYS])
        query.run()
        assert query.values == {key: ["1", "2"] for key in KEYS}
        query.close()
        client.close()
        table = pa.table({"key": KEYS * 10, "n": list(range(300))})
        written = write(cluster, table, pipelineDepth=30)
        assert written.rows == 300


def test_a_stream_that_moves_while_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the node that is asked last to the one that was asked first."""
    with real_cluster(program_of("redis-8.0")) as cluster:
        add(cluster, KEYS, "1")
        key = next(key for key in KEYS if cluster.owner(key) is cluster.masters[2])
        link = Link(read_options({"port": str(cluster.port), "path": "s"}, READ).connection)
        second = link.masters()[1]
        run = link.run
        moved: list[str] = []

        def run_later(work: Callable[[Client], object], slot: int = 0) -> object:
            if slot == second and not moved:
                moved.append(key)
                with cluster.moving(key):
                    pass
            return run(work, slot)

        monkeypatch.setattr(link, "run", run_later)
        assert Server(link).matching("t:*") == sorted(KEYS)
        assert moved
        link.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_node_that_is_killed(name: str) -> None:
    """Its replica takes over; what the replica had is there, and reading and writing go on."""
    with real_cluster(program_of(name), replicas=True) as cluster:
        add(cluster, KEYS, "1")
        wait_until(
            lambda: all(
                replica.call("DBSIZE") == master.call("DBSIZE")
                for master, replica in zip(cluster.masters, cluster.replicas, strict=True)
            ),
            30,
        )
        others = {"clusterNodes": f"127.0.0.1:{cluster.masters[1].port}"}
        query = Query(
            cluster.masters[0],
            subscribe=None,
            subscribePattern="t:*",
            startingOffsets="earliest",
            **{**others, "fetchOffset.numRetries": 8},
        )
        query.run()
        cluster.masters[0].kill()
        writer = Link(query.options.connection)
        writer.pipeline([("XADD", key, "*", "f", "2") for key in KEYS])
        query.run()
        assert all(values[0] == "1" and "2" in values for values in query.values.values())
        assert set(query.values) == set(KEYS)
        table = pa.table({"key": KEYS * 10, "n": list(range(300))})
        assert write(cluster, table, 0, **others).rows == 300
        query.close()
        writer.close()
