"""A cluster of three real servers on loopback, with replicas where a test wants them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from support.client import RawClient
from support.process import RedisProcess, claim_port
from support.waiting import wait_until

SLOTS = 16_384
START_TIMEOUT_S = 60


class RealCluster:
    """Three masters, that share the slots, and their replicas.

    Attributes:
        masters, replicas: the processes; replica i follows master i.
    """

    def __init__(self, program: str, ports: list[int], options: tuple[str, ...]) -> None:
        words = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1500", *options)
        nodes = [
            RedisProcess(*words, "--cluster-port", str(bus), program=program, port=port)
            for port, bus in zip(ports[0::2], ports[1::2], strict=True)
        ]
        self.nodes = nodes
        self._buses = ports[1::2]
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
        for node, bus in zip(self.nodes[1:], self._buses[1:], strict=True):
            self.masters[0].call("CLUSTER", "MEET", "127.0.0.1", str(node.port), str(bus))
        wait_until(lambda: all(self._knows(node) for node in self.nodes), START_TIMEOUT_S)
        for master, replica in zip(self.masters, self.replicas, strict=False):
            name = master.call("CLUSTER", "MYID")
            assert isinstance(name, bytes)
            replica.call("CLUSTER", "REPLICATE", name.decode())
        wait_until(
            lambda: all(
                replica.info("replication").get("master_link_status") == "up"
                for replica in self.replicas
            ),
            START_TIMEOUT_S,
        )

    def _knows(self, node: RedisProcess) -> bool:
        text = node.call("CLUSTER", "INFO")
        assert isinstance(text, bytes)
        lines = dict(line.split(":", 1) for line in text.decode().split() if ":" in line)
        known = int(lines["cluster_known_nodes"])
        return lines["cluster_state"] == "ok" and known == len(self.nodes)

    def owner(self, key: str) -> RedisProcess:
        """The master that a key lies on."""
        slot = self.masters[0].call("CLUSTER", "KEYSLOT", key)
        assert isinstance(slot, int)
        return self.masters[next(n for n in range(3) if slot < SLOTS * (n + 1) // 3)]

    def call(self, *words: object) -> object:
        """A command for the key that is its second word."""
        return self.owner(str(words[1])).call(*words)  # type: ignore[arg-type]

    def empty(self) -> None:
        """Remove everything."""
        for master in self.masters:
            master.call("FLUSHALL")

    def client(self, key: str) -> RawClient:
        """A connection to the owner of a key."""
        return self.owner(key).client()


@contextmanager
def real_cluster(
    program: str, replicas: bool = False, options: tuple[str, ...] = ()
) -> Iterator[RealCluster]:
    """A cluster that ends with the block."""
    with ExitStack() as claims:
        ports = []
        for _ in range(12 if replicas else 6):  # two for each node
            port, claim = claim_port()
            claims.enter_context(claim)
            ports.append(port)
        found = RealCluster(program, ports, options)
        try:
            found.start()
            yield found
        finally:
            for node in found.nodes:
                node.discard()
