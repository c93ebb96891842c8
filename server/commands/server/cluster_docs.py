"""Documentation of the commands of clusters, of which this server can be the one node."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "cluster"
_COST: Final = "O(1)"
_OF_KEYS: Final = "O(N) for N keys in the database"
_OF_SLOTS: Final = "O(N) for N slots"
# Subcommand, the version it came with, what it costs, what it does, its arguments.
_SUBCOMMANDS: Final[tuple[tuple[str, str, str, str, str], ...]] = (
    (
        "addslots",
        "3.0.0",
        _OF_SLOTS,
        "Takes slots; refused, because the node has all of them.",
        "slot:integer...",
    ),
    (
        "addslotsrange",
        "7.0.0",
        _OF_SLOTS,
        "Takes ranges of slots; refused, because the node has all of them.",
        "range(start-slot:integer end-slot:integer)...",
    ),
    ("bumpepoch", "3.0.0", _COST, "Says which epoch the configuration has: it stays.", ""),
    (
        "count-failure-reports",
        "3.0.0",
        _COST,
        "Answers how many nodes report that one has failed: none.",
        "node-id",
    ),
    ("countkeysinslot", "3.0.0", _OF_KEYS, "Counts the keys of a slot.", "slot:integer"),
    (
        "delslots",
        "3.0.0",
        _OF_SLOTS,
        "Gives slots away; refused, because there is no other node.",
        "slot:integer...",
    ),
    (
        "delslotsrange",
        "7.0.0",
        _OF_SLOTS,
        "Gives ranges of slots away; refused, because there is no other node.",
        "range(start-slot:integer end-slot:integer)...",
    ),
    (
        "failover",
        "3.0.0",
        _COST,
        "Makes a replica take over; refused, because the node is none.",
        "[options(FORCE | TAKEOVER)]",
    ),
    (
        "flushslots",
        "3.0.0",
        _COST,
        "Gives all slots away; refused, because there is no other node.",
        "",
    ),
    (
        "forget",
        "3.0.0",
        _COST,
        "Removes a node; refused, because there is no other one.",
        "node-id",
    ),
    ("getkeysinslot", "3.0.0", _OF_KEYS, "Lists keys of a slot.", "slot:integer count:integer"),
    ("help", "5.0.0", _COST, "Lists the CLUSTER subcommands.", ""),
    ("info", "3.0.0", _COST, "Tells the state of the cluster.", ""),
    ("keyslot", "3.0.0", "O(N) for N bytes of the key", "Answers the slot of a key.", "key:string"),
    ("links", "7.0.0", _COST, "Lists the connections to other nodes: none.", ""),
    (
        "meet",
        "3.0.0",
        _COST,
        "Makes two nodes know each other; refused, because the cluster has one.",
        "ip port:integer [cluster-bus-port:integer@4.0.0]",
    ),
    (
        "migration",
        "8.4.0",
        _OF_SLOTS,
        "Moves slots; there is nobody to move them from.",
        (
            "subcommand(IMPORT=import(start-slot:integer end-slot:integer)... | "
            "CANCEL=cancel(ID=task-id | ALL) | STATUS=status([ID=task-id] | [ALL]))"
        ),
    ),
    ("myid", "3.0.0", _COST, "Answers the ID of the node.", ""),
    ("myshardid", "7.2.0", _COST, "Answers the ID of the node's shard.", ""),
    ("nodes", "3.0.0", _COST, "Describes the node.", ""),
    ("replicas", "5.0.0", _COST, "Lists the replicas of a node: none.", "node-id"),
    (
        "replicate",
        "3.0.0",
        _COST,
        "Makes the node a replica; refused, because there is no other node.",
        "node-id",
    ),
    (
        "reset",
        "3.0.0",
        _COST,
        "Makes a node forget its cluster; refused, because it would have no slots.",
        "[reset-type(HARD | SOFT)]",
    ),
    ("saveconfig", "3.0.0", _COST, "Writes the file that keeps the ID of the node.", ""),
    (
        "set-config-epoch",
        "3.0.0",
        _COST,
        "Sets the epoch of the configuration; refused, because it has one.",
        "config-epoch:integer",
    ),
    (
        "setslot",
        "3.0.0",
        _COST,
        "Binds a slot to a node: it stays with this one.",
        (
            "slot:integer subcommand(IMPORTING=importing<node-id> | "
            "MIGRATING=migrating<node-id> | NODE=node<node-id> | STABLE)"
        ),
    ),
    ("shards", "7.0.0", _COST, "Describes the shards: the one that there is.", ""),
    (
        "slot-stats",
        "8.2.0",
        _OF_KEYS,
        "Tells how many keys slots have.",
        (
            "filter(SLOTSRANGE=slotsrange(start-slot:integer end-slot:integer) | "
            "ORDERBY=orderby(metric [LIMIT=limit:integer] [order(ASC | DESC)]))"
        ),
    ),
    (
        "syncslots",
        "8.4.0",
        _COST,
        "Is for nodes that move slots, and refused.",
        (
            "subcommand(SYNC=sync(task-id slot-range(start-slot:integer "
            "end-slot:integer)...) | RDBCHANNEL=task-id | SNAPSHOT-EOF | STREAM-EOF "
            "| ACK=ack(state offset:integer) | FAIL=error | CONF=conf(option... "
            "value...))"
        ),
    ),
)

DOCS: Final[dict[str, Doc]] = {
    "asking": Doc(
        _GROUP, "3.0.0", _COST, "Lets a client ask for keys of a slot that is being moved."
    ),
    "cluster": Doc(_GROUP, "3.0.0", "Depends on subcommand.", "Holds what there is of clusters."),
    "cluster|slaves": Doc(
        _GROUP,
        "3.0.0",
        _COST,
        "Lists the replicas of a node: none.",
        "node-id",
        deprecated_since="5.0.0",
        replaced_by="`CLUSTER REPLICAS`",
    ),
    "cluster|slots": Doc(
        _GROUP,
        "3.0.0",
        _COST,
        "Tells which node has which slots.",
        deprecated_since="7.0.0",
        replaced_by="`CLUSTER SHARDS`",
    ),
    "readonly": Doc(_GROUP, "3.0.0", _COST, "Lets a client read from replicas of a cluster."),
    "readwrite": Doc(_GROUP, "3.0.0", _COST, "Takes READONLY back."),
    "trimslots": Doc(
        "server",
        "8.4.0",
        "O(N) for N keys in the database",
        "Removes the keys of slots that a node has given away, in its files and at its replicas.",
        "RANGES=ranges(numranges:integer slots(startslot:integer endslot:integer)...)",
    ),
    **{
        f"cluster|{name}": Doc(_GROUP, since, cost, summary, syntax)
        for name, since, cost, summary, syntax in _SUBCOMMANDS
    },
}
