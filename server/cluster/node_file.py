"""The file that keeps who the node is, ``cluster-config-file``: Redis's nodes.conf.

It has a line for each node, in the notation of CLUSTER NODES, and one of variables. A real Redis
starts from ours, and this server from the one of a Redis that was the only node of its cluster.
"""

from __future__ import annotations

import os
import re
from typing import Final

from headrace.persistence.files import replace_file
from headrace.server.cluster.node import EPOCH, ID_BYTES, ClusterNode
from headrace.server.config.config import Config

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
