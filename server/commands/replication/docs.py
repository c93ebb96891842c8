"""Documentation of the commands of replication."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "server"
_MASTER: Final = "args(host-port(host port:integer) | no-one(NO ONE))"
_INTERNAL: Final = "Is sent by replicas, to be given the data and what changes."

DOCS: Final[dict[str, Doc]] = {
    "failover": Doc(
        _GROUP,
        "6.2.0",
        "O(1)",
        "Makes a replica the master, when it has all there is, and this server its replica.",
        "[TO=target(host port:integer [FORCE])] [ABORT] [TIMEOUT=milliseconds:integer]",
    ),
    "psync": Doc(_GROUP, "2.8.0", "", _INTERNAL, "replicationid offset:integer"),
    "replconf": Doc(
        _GROUP,
        "3.0.0",
        "O(1)",
        "Is sent by replicas, to say who and where they are.",
        internal=True,
    ),
    "replicaof": Doc(
        _GROUP, "5.0.0", "O(1)", "Follows another server, or stops following.", _MASTER
    ),
    "role": Doc(_GROUP, "2.8.12", "O(1)", "Tells the server's part in replication."),
    "slaveof": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Follows another server, or stops following.",
        _MASTER,
        deprecated_since="5.0.0",
        replaced_by="`REPLICAOF`",
    ),
    "sync": Doc(_GROUP, "1.0.0", "", _INTERNAL),
}
