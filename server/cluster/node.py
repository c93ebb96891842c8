"""The only node of a cluster: who it is, and where it says that it can be reached."""

from __future__ import annotations

from typing import Final

from headrace.server.config.config import Config

EPOCH: Final = 1  # of the configuration, which nobody can change
ID_BYTES: Final = 20
_BUS_PORT_ABOVE: Final = 10_000


class ClusterNode:
    """This server, as its cluster knows it.

    Args:
        node_id: 40 hexadecimal digits, which stay the same for as long as its file is there.
        shard_id: as many, of the node and the replicas that it does not have.
    """

    def __init__(self, config: Config, node_id: bytes, shard_id: bytes) -> None:
        self._config: Final = config
        self.id: Final = node_id
        self.shard_id: Final = shard_id

    def ip(self, local_address: bytes = b"") -> bytes:
        """The address it announces, or else the one to which a client has come.

        A node of Redis does not know its own address before another one tells it. That is nobody
        here, and some clients do not take "unknown" for an answer.

        Args:
            local_address: this end of the client's connection, with the port; empty if it has none.
        """
        host = local_address.rpartition(b":")[0].strip(b"[]")
        return self._config.cluster_announce_ip or host

    @property
    def hostname(self) -> bytes:
        """The name it announces; empty where it has none."""
        return self._config.cluster_announce_hostname

    @property
    def port(self) -> int:
        """The TCP port for clients."""
        return self._config.cluster_announce_port or self._config.port

    @property
    def tls_port(self) -> int:
        """The port for clients that speak TLS; 0 where none is announced."""
        return self._config.cluster_announce_tls_port

    @property
    def bus_port(self) -> int:
        """The port at which nodes would speak to each other: nobody listens there."""
        config = self._config
        announced = config.cluster_announce_bus_port or config.cluster_port
        return announced or config.port + _BUS_PORT_ABOVE

    @property
    def endpoint_kind(self) -> bytes:
        """What clients are to use: ``ip``, ``hostname`` or ``unknown-endpoint``."""
        return self._config.cluster_preferred_endpoint_type

    def endpoint(self, ip: bytes) -> bytes | None:
        """Where clients are to go; None where they have to know that themselves."""
        kind = self.endpoint_kind
        if kind == b"hostname":
            return self.hostname or b"?"
        return ip if kind == b"ip" else None

    def line(self, address: bytes) -> bytes:
        """The node in the notation of CLUSTER NODES.

        Args:
            address: what stands behind its ID.
        """
        return b"%b %b myself,master - 0 0 %d connected 0-16383\n" % (self.id, address, EPOCH)

    def address(self, ip: bytes) -> bytes:
        """Address and ports, as CLUSTER NODES shows them."""
        shown = b"%b:%d@%d" % (ip, self.port, self.bus_port)
        return b"%b,%b" % (shown, self.hostname) if self.hostname else shown
