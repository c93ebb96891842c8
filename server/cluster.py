"""A cluster of one node: the slots of keys, who the node is, and the file that keeps that.

A key belongs to one of ``SLOTS`` by its name or by the tag in its name, which is what stands
between the first ``{`` and the next ``}``, if that is anything. The slot is the CRC-16 (XMODEM) of
the tag, or of the whole name, modulo 16384.

The file, ``cluster-config-file``, is Redis's nodes.conf: a line for each node, in the notation of
CLUSTER NODES, and one of variables. A real Redis starts from ours, and this server from the one of
a Redis that was the only node of its cluster.
"""

from __future__ import annotations

import binascii
import os
import re
from typing import Final

from headrace.persistence.files import replace_file
from headrace.server.config.config import Config

SLOTS: Final = 16384
_WILDCARD: Final = re.compile(rb"[*?\[]")


def slot_of(key: bytes) -> int:
    """The slot of a key."""
    begin, end = _hashed_part(key)
    return binascii.crc_hqx(key[begin:end], 0) % SLOTS


def pattern_slot(pattern: bytes) -> int:
    """The slot of all keys that a pattern can become; -1 where they may be of several."""
    begin, end = _hashed_part(pattern)
    if _WILDCARD.search(pattern, 0, end) is not None:
        return -1
    return binascii.crc_hqx(pattern[begin:end], 0) % SLOTS


def _hashed_part(key: bytes) -> tuple[int, int]:
    """Return where the part of a name begins and ends that decides on the slot."""
    begin = key.find(b"{") + 1
    if begin:
        end = key.find(b"}", begin)
        if end > begin:
            return begin, end
    return 0, len(key)


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
        """Return what clients are to use: ``ip``, ``hostname`` or ``unknown-endpoint``."""
        return self._config.cluster_preferred_endpoint_type

    def endpoint(self, ip: bytes) -> bytes | None:
        """Return where clients are to go; None where they have to know that themselves."""
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


_ID: Final = re.compile(rb"[0-9a-f]{40}")
_SHARD: Final = re.compile(rb",shard-id=([0-9a-f]{40})(?:,|$)")
_VARIABLES: Final = b"vars"


class NodeFileError(Exception):
    """The file cannot be read or written, or is not that of a single node."""


def open_node(config: Config) -> ClusterNode:
    """The node that the file names; where there is none, a new one, which the file then names.

    Raises: NodeFileError.
    """
    path = _path(config)
    shown = path.decode("utf-8", "replace")
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        text = b""
    except OSError as error:
        raise NodeFileError(f"Can't open {shown}: {error.strerror}") from None
    node = _read(config, text, shown) if text else ClusterNode(config, _new_id(), _new_id())
    try:
        write_node(config, node)
    except OSError as error:
        raise NodeFileError(f"Can't write {shown}: {error.strerror}") from None
    return node


def write_node(config: Config, node: ClusterNode) -> None:
    """Put the node into its file, which has either all of it or what it had. Raises: OSError."""
    extras = b"%b:%d@%d,%b,tls-port=%d,shard-id=%b" % (
        *(node.ip(), node.port, node.bus_port, node.hostname),
        *(node.tls_port, node.shard_id),
    )
    text = node.line(extras) + b"vars currentEpoch %d lastVoteEpoch 0\n" % EPOCH
    folder, name = os.path.split(_path(config))
    replace_file(folder, name, text)


def _path(config: Config) -> bytes:
    return os.path.join(config.dir, config.cluster_config_file)


def _new_id() -> bytes:
    return os.urandom(ID_BYTES).hex().encode()


def _read(config: Config, text: bytes, path: str) -> ClusterNode:
    """The node of a file's text. Raises: NodeFileError."""
    nodes = [line.split() for line in text.splitlines() if line.split()[:1] != [_VARIABLES]]
    nodes = [words for words in nodes if words]
    if any(len(words) < 8 or _ID.fullmatch(words[0]) is None for words in nodes):
        raise NodeFileError(f"Unrecoverable error: corrupted cluster config file {path}")
    if len(nodes) != 1 or b"myself" not in nodes[0][2].split(b","):
        raise NodeFileError(
            f"{path} names {len(nodes)} nodes: this server can only be the one node of a cluster"
        )
    shard = _SHARD.search(nodes[0][1])
    return ClusterNode(config, nodes[0][0], _new_id() if shard is None else shard[1])
