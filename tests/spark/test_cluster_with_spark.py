"""A Spark session on clusters of real servers, while slots move and nodes die."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from support.certificates import Certificates
from support.cluster import RealCluster, offset_of, real_cluster
from support.judges import program_of
from support.sentinels import watched_pair
from support.spark_stage import Stage, until_end
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.once, pytest.mark.slow]

Where = dict[str, str]
KEYS = [f"t:{number}" for number in range(12)]
TIMEOUT_S = 90
# Redis 8.10 knows rows again by itself; on the others a marker counts them.
KINDS = [("redis-8.0", "marker"), ("valkey-9.1", "marker"), ("redis-8.10", "auto")]
MARKED = KINDS[:2]


def where_is(cluster: RealCluster) -> Where:
    """Options that lead to a cluster, whichever of its nodes is away."""
    return {
        "port": str(cluster.port),
        "clusterNodes": ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes[1:]),
        "fetchOffset.numRetries": "9",
        "fetchOffset.retryIntervalMs": "50",
        "requestTimeoutMs": "4000",
    }


class Staged(Stage):
    """On a cluster."""

    def __init__(self, cluster: RealCluster) -> None:
        super().__init__(where_is(cluster))
        self.cluster = cluster


@contextmanager
def staged(name: str, replicas: bool = False) -> Iterator[Staged]:
    with real_cluster(program_of(name), replicas) as cluster:
        stage = Staged(cluster)
        with closing(stage.link):
            yield stage


@pytest.mark.parametrize(("name", "identity"), KINDS)
def test_batches(spark: SparkSession, name: str, identity: str) -> None:
    with staged(name) as stage:
        rows = [(KEYS[n % len(KEYS)], n) for n in range(240)]
        frame = spark.createDataFrame(rows, "key string, n int").repartition(3, "key")
        kind = "none" if identity == "marker" else identity
        writer = frame.write.format("headrace").options(**stage.where, identity=kind)
        writer.mode("append").save()
        assert len({stage.cluster.owner(key).port for key in KEYS}) == 3
        found = spark.read.format("headrace").options(**stage.where, subscribePattern="t:*").load()
        read = {(row["key"], int(row["fields"]["n"])) for row in found.collect()}
        assert read == set(rows)
        assert found.count() == len(rows)
        groups = spark.read.format("headrace").options(**stage.where, resource="info")
        lengths = {row["key"]: row["length"] for row in groups.load(KEYS).collect()}
        assert lengths == dict.fromkeys(KEYS, 20)


@pytest.mark.parametrize(("name", "identity"), KINDS)
def test_slots_that_move_under_a_query(
    spark: SparkSession, checkpoint: str, name: str, identity: str
) -> None:
    """While a slot is half moved, its keys are where ASK says; reading and writing go on."""
    with staged(name) as stage:
        stage.add(KEYS, 3)
        with until_end(stage.copying(spark, checkpoint, identity)) as query:
            stage.wait_until_copied()
            for key in (*KEYS[:3], "out", KEYS[3]):
                with stage.cluster.moving(key):
                    stage.add([key] if key != "out" else KEYS, 2)
                    stage.wait_until_copied()
                stage.add(KEYS)
            stage.wait_until_copied()
            assert query.exception() is None


@pytest.mark.parametrize(("name", "identity"), KINDS)
def test_nodes_that_die_under_a_query(
    spark: SparkSession, checkpoint: str, name: str, identity: str
) -> None:
    """A master is killed while a window of rows is on its way to it; then one that is read."""
    with staged(name, replicas=True) as stage:
        cluster = stage.cluster
        written = cluster.owner("out")
        others = [key for key in KEYS if cluster.owner(key) is not written]
        stage.add(KEYS, 3)
        with until_end(stage.copying(spark, checkpoint, identity)) as query:
            stage.wait_until_copied()
            written.call("CLIENT", "PAUSE", "60000", "WRITE")
            stage.add(others, 5)
            wait_until(lambda: written.info("clients")["blocked_clients"] != "0", TIMEOUT_S)
            cluster.fail_over(written)
            stage.wait_until_copied()
            stage.add(KEYS, 3)
            stage.wait_until_copied()
            read = cluster.owner(others[0])
            stage.add(others, 5)
            cluster.fail_over(read)
            stage.add(KEYS, 3)
            stage.wait_until_copied()
            assert query.exception() is None


@pytest.mark.parametrize(("name", "identity"), MARKED)
def test_what_a_cluster_loses_is_noticed(
    spark: SparkSession, checkpoint: str, name: str, identity: str
) -> None:
    """A replica that was behind takes over: the query says so, and does not begin anew."""
    with staged(name, replicas=True) as stage:
        cluster = stage.cluster
        written = cluster.owner("out")
        key = next(key for key in KEYS if cluster.owner(key) is not written)
        read = cluster.owner(key)
        stage.add([key], 5)
        query = stage.copying(spark, checkpoint, identity)
        stage.wait_until_copied()
        with cluster.cut_off(cluster.replica_of(read)):
            stage.add([key], 3)
            stage.wait_until_copied()
            read.kill()
        wait_until(lambda: not query.isActive, TIMEOUT_S)
        error = query.exception()
        assert isinstance(error, StreamingQueryException)
        assert f"stream {key}: it was set back to an earlier state" in str(error)
        stage.add([key], 4)
        assert stage.link.call("XLEN", key) == 9
        with until_end(stage.copying(spark, checkpoint, identity, failOnDataLoss="false")):
            stage.wait_until_copied()


@pytest.mark.parametrize("name", ["redis-8.0"])
def test_certificates(
    spark: SparkSession, checkpoint: str, certificates: Certificates, name: str
) -> None:
    """Every node wants TLS and a certificate; CLUSTER SLOTS leads to the ports that speak it."""
    with real_cluster(program_of(name), tls=certificates.options()) as cluster:
        where = {
            "redis.url": f"rediss://localhost:{cluster.tls_ports[0]}",
            "clusterNodes": f"127.0.0.1:{cluster.tls_ports[1]}",
            "tlsCaFile": str(certificates.authority.file),
            "tlsCertFile": str(certificates.client.file),
            "tlsKeyFile": str(certificates.client.key),
        }
        stage = Stage(where)
        stage.add(KEYS, 3)
        with closing(stage.link), until_end(stage.copying(spark, checkpoint, "marker")) as query:
            stage.wait_until_copied()
            with cluster.moving(KEYS[0]):
                stage.add([KEYS[0]])
                stage.wait_until_copied()
            assert query.exception() is None
        for node in cluster.nodes:
            assert int(node.info("stats")["total_commands_processed"]) > 0
        bare = {name: value for name, value in where.items() if "Cert" not in name}
        del bare["tlsKeyFile"]
        with pytest.raises(PySparkException, match="tlsCertFile and tlsKeyFile name one"):
            spark.read.format("headrace").options(**bare).load("t:0").count()


def test_a_failover_of_sentinels(spark: SparkSession, checkpoint: str) -> None:
    """The master of a query is killed; the sentinel's new one has what WAIT saw there."""
    with watched_pair() as (master, replica, port):
        where = {
            "sentinels": f"127.0.0.1:{port}",
            "sentinelMaster": "mine",
            "fetchOffset.numRetries": "9",
            "fetchOffset.retryIntervalMs": "50",
        }
        stage = Stage(where)
        stage.add(KEYS, 3)
        with closing(stage.link), until_end(stage.copying(spark, checkpoint, "marker")) as query:
            stage.wait_until_copied()
            master.call("CLIENT", "PAUSE", "60000", "WRITE")
            wait_until(lambda: offset_of(replica) == offset_of(master), TIMEOUT_S)
            master.kill()
            wait_until(lambda: replica.info("replication")["role"] == "master", TIMEOUT_S)
            stage.add(KEYS, 3)
            stage.wait_until_copied()
            assert query.exception() is None
