"""Connections: one to a server, or in a cluster one to each node that is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyspark_headrace.client import PASSING, Client
from pyspark_headrace.connection import Connection
from pyspark_headrace.errors import OptionError, ServerError
from pyspark_headrace.slots import Slots


class Nodes:
    """Makes connections when they are needed; the first one is asked which node has which slot.

    Attributes:
        slots: which master has which of them; None where there is no cluster.
        looked: whether a node has answered that.
    """

    def __init__(self, connection: Connection) -> None:
        self.slots: Slots | None = None
        self.looked = False
        self._connection: Final = connection
        self._clients: dict[tuple[Connection, bool], Client] = {}

    def client(self, slot: int) -> Client:
        """A connection to the master that has a slot.

        Raises:
            OSError: no node can be reached that would know.
            ServerError: it is not there now, or refuses the password.
        """
        if not self.looked or (self.slots is not None and not self._clients):
            self._find()
        return self._connected(self._master(slot))

    def importing(self, refused: ServerError, slot: int) -> Client:
        """A connection to the node that an error of ASK names: it has the key, not yet the slot."""
        host, _, port = str(refused).split()[2].rpartition(":")
        master = self._master(slot)
        target = replace(master, host=host or master.host, port=int(port))
        return self._connected(target, asking=True)

    def close(self) -> None:
        """End the connections, if there are any."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _master(self, slot: int) -> Connection:
        if self.slots is None:
            return self._connection
        master = self.slots.master_of(slot)
        if master is None:
            raise ServerError(f"CLUSTERDOWN no node has slot {slot}")
        return master

    def _connected(self, connection: Connection, asking: bool = False) -> Client:
        client = self._clients.get((connection, asking))
        if client is None:
            client = self._clients[connection, asking] = Client(connection, asking)
        return client

    def _find(self) -> None:
        """Ask for the nodes of the cluster: where the options lead to, or else whom we know of."""
        named = [
            replace(self._connection, host=host, port=port)
            for host, port in self._connection.cluster_nodes
        ]
        known = [] if self.slots is None else list(self.slots.masters())
        trouble: OSError | ServerError | None = None
        for each in dict.fromkeys((self._connection, *named, *known)):
            try:
                reply = self._connected(each).pipeline([("CLUSTER", "SLOTS")])[0]
            except OSError as away:
                trouble = trouble or away
                continue
            if isinstance(reply, ServerError) and reply.code in PASSING:
                trouble = trouble or reply
                continue
            self._learn(reply, each)
            self.looked = True
            return
        assert trouble is not None
        raise trouble

    def _learn(self, reply: object, asked: Connection) -> None:
        if isinstance(reply, ServerError):
            if self._connection.cluster_nodes:
                raise OptionError(f"option clusterNodes: {asked.where()} is no node of a cluster")
            return
        if self._connection.db:
            where = self._connection.source or "option db"
            raise OptionError(f"{where}: database {self._connection.db}: a cluster has 0 alone")
        self.slots = Slots(reply, asked)
