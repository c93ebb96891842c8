"""Texts of errors of CLUSTER, where the server is the one node of a cluster."""

from __future__ import annotations

from typing import Final

ONE_NODE: Final = b"ERR This server is a cluster of one node, which owns all slots"

BAD_SLOT: Final = b"ERR Invalid slot"
BAD_SLOT_OR_COUNT: Final = b"ERR Invalid slot or number of keys"
NO_SUCH_SLOT: Final = b"ERR Invalid or out of range slot"
WRONG_RANGE: Final = b"ERR start slot number %d is greater than end slot number %d"
SLOT_TWICE: Final = b"ERR Slot %d specified multiple times"
NO_RANGES: Final = b"ERR missing ranges argument"
BAD_RANGE_COUNT: Final = b"ERR invalid number of ranges"
SERVES_SLOT: Final = b"ERR the slot %d is served by this node"
SLOT_BUSY: Final = b"ERR Slot %d is already busy"
OWNS_SLOT: Final = b"ERR I'm already the owner of hash slot %d"
OWNS_RANGE: Final = b"ERR this node is already the owner of the slot range"
BAD_ACTION: Final = b"ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP"

UNKNOWN_NODE: Final = b"ERR Unknown node %b"
STRANGE_NODE: Final = b"ERR I don't know about node %b"
CANNOT_FORGET_MYSELF: Final = b"ERR I tried hard but I can't forget myself..."
CANNOT_REPLICATE_MYSELF: Final = b"ERR Can't replicate myself"
FOR_REPLICAS: Final = b"ERR You should send CLUSTER FAILOVER to a replica"
FOR_INTERNAL_CLIENTS: Final = (
    b"ERR CLUSTER SYNCSLOTS subcommands are only allowed for internal clients"
)
BAD_PORT: Final = b"ERR Invalid base port specified: %b"
BAD_BUS_PORT: Final = b"ERR Invalid bus port specified: %b"
BAD_ADDRESS: Final = b"ERR Invalid node address specified: %b:%b"

RESET_WITH_KEYS: Final = b"ERR CLUSTER RESET can't be called with master nodes containing keys"
FLUSH_WITH_KEYS: Final = b"ERR DB must be empty to perform CLUSTER FLUSHSLOTS."
EPOCH_IS_SET: Final = b"ERR Node config epoch is already non-zero"
BAD_EPOCH: Final = b"ERR Invalid config epoch specified: %d"
NOT_SAVED: Final = b"ERR error saving the cluster node config: %b"

UNKNOWN_ARGUMENT: Final = b"ERR unknown argument"
WRONG_WORDS: Final = (
    b"ERR unknown subcommand or wrong number of arguments for '%b'. Try CLUSTER HELP."
)

NO_METRIC: Final = b"ERR Unrecognized sort metric for ORDERBY."
FILTER_TWICE: Final = b"ERR Multiple filters of the same type are disallowed."
BAD_LIMIT: Final = b"ERR Limit has to lie in between 1 and 16384 (maximum number of slots)."
WRONG_STATISTICS_RANGE: Final = b"ERR Start slot number %d is greater than end slot number %d"
