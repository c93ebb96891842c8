"""A cluster of one node: the slots of keys, the node itself, and the file that keeps that.

A key belongs to one of ``SLOTS`` by its name or by the tag in its name, which is the text between
the first ``{`` and the next ``}``, if that is not empty. The slot is the CRC-16 (XMODEM) of the
tag, or of the whole name, modulo 16384.

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
    """Return the slot of a key."""
    begin, end = _hashed_part(key)
    return binascii.crc_hqx(key[begin:end], 0) % SLOTS


def pattern_slot(pattern: bytes) -> int:
    """Return the slot of all keys that match a pattern; -1 where they may be of several."""
    begin, end = _hashed_part(pattern)
    if _WILDCARD.search(pattern, 0, end) is not None:
        return -1
    return binascii.crc_hqx(pattern[begin:end], 0) % SLOTS


def _hashed_part(key: bytes) -> tuple[int, int]:
    begin = key.find(b"{") + 1
    if begin:
        end = key.find(b"}", begin)
        if end > begin:
            return begin, end
    return 0, len(key)


EPOCH: Final = 1  # of the configuration, which no command can change
ID_BYTES: Final = 20
_BUS_PORT_ABOVE: Final = 10_000


class ClusterNode:
    """This server, as its cluster knows it.

    Args:
        node_id: 40 hexadecimal digits, which stay the same for as long as its file is there.
        shard_id: as many, of the node and its replicas, of which there are none.
    """

    def __init__(self, config: Config, node_id: bytes, shard_id: bytes) -> None:
        self._config: Final = config
        self.id: Final = node_id
        self.shard_id: Final = shard_id

    def ip(self, local_address: bytes = b"") -> bytes:
        """Return the address it announces, or else the one to which a client has connected.

        A node of Redis does not know its own address before another node reports it. There is no
        other here, and some clients do not accept "unknown". ``local_address`` is this end of the
        client's connection, with the port; empty if it has none.
        """
        host = local_address.rpartition(b":")[0].strip(b"[]")
        return self._config.cluster_announce_ip or host

    @property
    def hostname(self) -> bytes:
        """Return the name it announces; empty where it has none."""
        return self._config.cluster_announce_hostname

    @property
    def port(self) -> int:
        """Return the TCP port for clients."""
        return self._config.cluster_announce_port or self._config.port

    @property
    def tls_port(self) -> int:
        """Return the port for clients that speak TLS; 0 where none is announced."""
        return self._config.cluster_announce_tls_port

    @property
    def bus_port(self) -> int:
        """Return the port at which nodes would speak to each other; no socket listens there."""
        config = self._config
        announced = config.cluster_announce_bus_port or config.cluster_port
        return announced or config.port + _BUS_PORT_ABOVE

    @property
    def endpoint_kind(self) -> bytes:
        """Return the kind of endpoint for clients: ``ip``, ``hostname`` or ``unknown-endpoint``."""
        return self._config.cluster_preferred_endpoint_type

    def endpoint(self, ip: bytes) -> bytes | None:
        """Return where clients are to go; None where they have to know that themselves."""
        kind = self.endpoint_kind
        if kind == b"hostname":
            return self.hostname or b"?"
        return ip if kind == b"ip" else None

    def line(self, address: bytes) -> bytes:
        """Return the node in the notation of CLUSTER NODES; ``address`` stands behind its ID."""
        return b"%b %b myself,master - 0 0 %d connected 0-16383\n" % (self.id, address, EPOCH)

    def address(self, ip: bytes) -> bytes:
        """Return address and ports, as CLUSTER NODES shows them."""
        shown = b"%b:%d@%d" % (ip, self.port, self.bus_port)
        return b"%b,%b" % (shown, self.hostname) if self.hostname else shown


_ID: Final = re.compile(rb"[0-9a-f]{40}")
_SHARD: Final = re.compile(rb",shard-id=([0-9a-f]{40})(?:,|$)")
_VARIABLES: Final = b"vars"


class NodeFileError(Exception):
    """The file cannot be read or written, or is not that of a single node."""


def open_node(config: Config) -> ClusterNode:
    """Return the node in the file, or a new one, which is then written. Raises: NodeFileError."""
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
    """Write the node's file, which has all of it or stays as it was. Raises: OSError."""
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
    """Return the node of a file's text. Raises: NodeFileError."""
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
