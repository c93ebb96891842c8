"""Documentation of the commands of cluster mode, which are refused."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "cluster"
_COST: Final = "O(1), because it is refused"
_REFUSED: Final = "Is refused: there is no cluster."
# Subcommand, the version it came with, its arguments.
_SUBCOMMANDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("addslots", "3.0.0", "slot:integer..."),
    ("addslotsrange", "7.0.0", "range(start-slot:integer end-slot:integer)..."),
    ("bumpepoch", "3.0.0", ""),
    ("count-failure-reports", "3.0.0", "node-id"),
    ("countkeysinslot", "3.0.0", "slot:integer"),
    ("delslots", "3.0.0", "slot:integer..."),
    ("delslotsrange", "7.0.0", "range(start-slot:integer end-slot:integer)..."),
    ("failover", "3.0.0", "[options(FORCE | TAKEOVER)]"),
    ("flushslots", "3.0.0", ""),
    ("forget", "3.0.0", "node-id"),
    ("getkeysinslot", "3.0.0", "slot:integer count:integer"),
    ("help", "5.0.0", ""),
    ("info", "3.0.0", ""),
    ("keyslot", "3.0.0", "key:string"),
    ("links", "7.0.0", ""),
    ("meet", "3.0.0", "ip port:integer [cluster-bus-port:integer@4.0.0]"),
    (
        "migration",
        "8.4.0",
        (
            "subcommand(IMPORT=import(start-slot:integer end-slot:integer)... | "
            "CANCEL=cancel(ID=task-id | ALL) | STATUS=status([ID=task-id] | [ALL]))"
        ),
    ),
    ("myid", "3.0.0", ""),
    ("myshardid", "7.2.0", ""),
    ("nodes", "3.0.0", ""),
    ("replicas", "5.0.0", "node-id"),
    ("replicate", "3.0.0", "node-id"),
    ("reset", "3.0.0", "[reset-type(HARD | SOFT)]"),
    ("saveconfig", "3.0.0", ""),
    ("set-config-epoch", "3.0.0", "config-epoch:integer"),
    (
        "setslot",
        "3.0.0",
        (
            "slot:integer subcommand(IMPORTING=importing<node-id> | "
            "MIGRATING=migrating<node-id> | NODE=node<node-id> | STABLE)"
        ),
    ),
    ("shards", "7.0.0", ""),
    (
        "slot-stats",
        "8.2.0",
        (
            "filter(SLOTSRANGE=slotsrange(start-slot:integer end-slot:integer) | "
            "ORDERBY=orderby(metric [LIMIT=limit:integer] [order(ASC | DESC)]))"
        ),
    ),
    (
        "syncslots",
        "8.4.0",
        (
            "subcommand(SYNC=sync(task-id slot-range(start-slot:integer "
            "end-slot:integer)...) | RDBCHANNEL=task-id | SNAPSHOT-EOF | STREAM-EOF | "
            "ACK=ack(state offset:integer) | FAIL=error | CONF=conf(option... value...))"
        ),
    ),
)

DOCS: Final[dict[str, Doc]] = {
    "asking": Doc(_GROUP, "3.0.0", _COST, _REFUSED),
    "cluster": Doc(_GROUP, "3.0.0", "Depends on subcommand.", "Holds what there is of clusters."),
    "cluster|slaves": Doc(
        _GROUP,
        "3.0.0",
        _COST,
        _REFUSED,
        "node-id",
        deprecated_since="5.0.0",
        replaced_by="`CLUSTER REPLICAS`",
    ),
    "cluster|slots": Doc(
        _GROUP,
        "3.0.0",
        _COST,
        _REFUSED,
        deprecated_since="7.0.0",
        replaced_by="`CLUSTER SHARDS`",
    ),
    "readonly": Doc(_GROUP, "3.0.0", _COST, _REFUSED),
    "readwrite": Doc(_GROUP, "3.0.0", _COST, _REFUSED),
    **{
        f"cluster|{name}": Doc(_GROUP, since, _COST, _REFUSED, syntax)
        for name, since, syntax in _SUBCOMMANDS
    },
}
