"""A cluster of three real servers on loopback, with replicas where a test wants them."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from support.client import RawClient
from support.process import RedisProcess, claim_port
from support.waiting import wait_until

SLOTS = 16_384


class RealCluster:
    """Three masters, that share the slots, and their replicas.

    Attributes:
        masters, replicas: the processes; replica i follows master i.
        tls_ports: of all nodes, if there is TLS.

    Args:
        ports: for each node one for clients, one for other nodes, and one for TLS.
        tls: options that name the certificates; then nodes speak TLS with each other too.
    """

    def __init__(self, program: str, ports: list[int], tls: Sequence[str] = ()) -> None:
        words = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1500", *tls)
        if tls:
            words += ("--tls-cluster", "yes", "--tls-replication", "yes")
        nodes = []
        for port, bus, tls_port in zip(ports[0::3], ports[1::3], ports[2::3], strict=True):
            more = ["--cluster-port", str(bus), *(["--tls-port", str(tls_port)] if tls else [])]
            nodes.append(RedisProcess(*words, *more, program=program, port=port))
        self.nodes = nodes
        self.tls_ports = ports[2::3] if tls else []
        self._ports = self.tls_ports or ports[0::3]  # to be reached at by other nodes
        self._buses = ports[1::3]
        self.masters = nodes[:3]
        self.replicas = nodes[3:]

    @property
    def port(self) -> int:
        """Of one of the nodes."""
        return self.masters[0].port

    def start(self) -> None:
        """Start all nodes, make them meet, and wait until they answer for all slots."""
        for node in self.nodes:
            node.start()
        for number, master in enumerate(self.masters):
            first, last = (SLOTS * each // 3 for each in (number, number + 1))
            master.call("CLUSTER", "ADDSLOTSRANGE", str(first), str(last - 1))
            master.call("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        for port, bus in zip(self._ports[1:], self._buses[1:], strict=True):
            self.masters[0].call("CLUSTER", "MEET", "127.0.0.1", str(port), str(bus))
        wait_until(lambda: all(self._knows(node) for node in self.nodes))
        for master, replica in zip(self.masters, self.replicas, strict=False):
            replica.call("CLUSTER", "REPLICATE", _name(master))
        wait_until(
            lambda: all(
                replica.info("replication").get("master_link_status") == "up"
                for replica in self.replicas
            )
        )

    def _knows(self, node: RedisProcess) -> bool:
        return _is_ok(node) and int(_facts(node)["cluster_known_nodes"]) == len(self.nodes)

    def owner(self, key: str) -> RedisProcess:
        """The master that a key lies on, as a node that runs believes."""
        asked = next(node for node in self.nodes if node.running)
        slot = asked.call("CLUSTER", "KEYSLOT", key)
        rows = asked.call("CLUSTER", "SLOTS")
        assert isinstance(slot, int)
        assert isinstance(rows, list)
        port = next(row[2][1] for row in rows if row[0] <= slot <= row[1])
        return next(node for node in self.nodes if node.port == port)

    def replica_of(self, master: RedisProcess) -> RedisProcess:
        """The replica that the cluster was made with."""
        return self.replicas[self.masters.index(master)]

    def call(self, *words: object) -> object:
        """A command for the key that is its second word."""
        return self.owner(str(words[1])).call(*words)  # type: ignore[arg-type]

    @contextmanager
    def moving(self, key: str) -> Iterator[RedisProcess]:
        """Move a slot to another master; in the block the keys have moved, the slot has not."""
        source = self.owner(key)
        target = self.masters[(self.masters.index(source) + 1) % 3]
        names = {node.port: _name(node) for node in (source, target)}
        slot = source.call("CLUSTER", "KEYSLOT", key)
        assert isinstance(slot, int)
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source.port])
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target.port])
        keys = source.call("CLUSTER", "GETKEYSINSLOT", slot, 1000)
        assert isinstance(keys, list)
        port = self._ports[self.nodes.index(target)]
        done = source.call("MIGRATE", "127.0.0.1", port, "", 0, 60_000, "KEYS", *keys)
        assert done == b"OK", done
        yield target
        for node in (target, source, *self.masters):
            assert node.call("CLUSTER", "SETSLOT", slot, "NODE", names[target.port]) == b"OK"

    def fail_over(self, master: RedisProcess) -> RedisProcess:
        """Kill a master that its replica has caught up with; returns the replica, once it rules."""
        replica = self.replica_of(master)
        wait_until(lambda: offset_of(replica) == offset_of(master))
        master.kill()
        self.wait_for_master(replica)
        return replica

    def wait_for_master(self, replica: RedisProcess) -> None:
        """Wait until a replica has become a master, and all who run know it."""
        wait_until(lambda: replica.info("replication")["role"] == "master")
        running = [node for node in self.nodes if node.running]
        wait_until(lambda: all(_is_ok(node) for node in running))

    @contextmanager
    def cut_off(self, replica: RedisProcess) -> Iterator[None]:
        """In the block a replica hears nothing of its master."""
        replica.signal(signal.SIGSTOP)
        try:
            for node in self.masters:
                node.call("CLIENT", "KILL", "TYPE", "replica")
            yield
        finally:
            replica.signal(signal.SIGCONT)

    def empty(self) -> None:
        """Remove everything."""
        for master in self.masters:
            master.call("FLUSHALL")

    def client(self, key: str) -> RawClient:
        """A connection to the owner of a key."""
        return self.owner(key).client()


def _name(node: RedisProcess) -> str:
    name = node.call("CLUSTER", "MYID")
    assert isinstance(name, bytes)
    return name.decode()


def _facts(node: RedisProcess) -> dict[str, str]:
    text = node.call("CLUSTER", "INFO")
    assert isinstance(text, bytes)
    return dict(line.split(":", 1) for line in text.decode().split() if ":" in line)


def _is_ok(node: RedisProcess) -> bool:
    return _facts(node)["cluster_state"] == "ok"


def offset_of(node: RedisProcess) -> str:
    """Return how far a master has written its replication stream, or a replica has read it."""
    facts = node.info("replication")
    return facts["master_repl_offset" if facts["role"] == "master" else "slave_repl_offset"]


@contextmanager
def real_cluster(
    program: str, replicas: bool = False, tls: Sequence[str] = ()
) -> Iterator[RealCluster]:
    """A cluster that ends with the block."""
    with ExitStack() as claims:
        ports = []
        for _ in range(18 if replicas else 9):  # three for each node
            port, claim = claim_port()
            claims.enter_context(claim)
            ports.append(port)
        found = RealCluster(program, ports, tls)
        try:
            found.start()
            yield found
        finally:
            for node in found.nodes:
                node.discard()
