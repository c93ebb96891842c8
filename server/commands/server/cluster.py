"""The commands of clusters. The server is the one node of its own, or of none.

Without ``cluster-enabled`` each says, as Redis does, that there is no cluster. Clients and proxies
ask to find out what they talk to; "unknown command" would say less.
"""

from __future__ import annotations

import importlib
from typing import Final

from headrace.compat.errors import NO_CLUSTER_SUPPORT, CommandError
from headrace.protocol.replies import OK
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import (
    ADMIN,
    FAST,
    LOADING,
    NO_ASYNC_LOADING,
    NOSCRIPT,
    STALE,
    WRITE,
    command,
    container,
)

_ASKS: Final = LOADING | STALE
_FOR_ADMINS: Final = ADMIN | LOADING | STALE
_CHANGES: Final = ADMIN | NO_ASYNC_LOADING | STALE
_UNSURE: Final = ("nondeterministic_output",)
_OF_ALL: Final = ("nondeterministic_output", "request_policy:all_shards")
_ANSWERS: Final = "headrace.server.commands.server.cluster_answers"


def accept(call: Call) -> object:
    """Reply: OK, because no request is sent to another node.

    Raises: the error of a Redis whose cluster mode is off.
    """
    if call.server.cluster is None:
        raise CommandError(NO_CLUSTER_SUPPORT)
    return OK


def answer(call: Call) -> object:
    """What the node answers. Raises: as ``accept``."""
    node = call.server.cluster
    if node is None:
        raise CommandError(NO_CLUSTER_SUPPORT)
    answers = importlib.import_module(_ANSWERS)  # late, because most servers are of no cluster
    reply: object = answers.ANSWERS[call.name()](call, node)
    return reply


@command("TRIMSLOTS", arity=-5, flags=WRITE, acl=("keyspace", "dangerous"))
def trim_slots(call: Call) -> object:
    """Remove the keys of slots that a file or a master has given away. Reply: OK.

    Raises: this node owns all slots, and what a client asks for is refused.
    """
    if call.server.cluster is None and not call.replaying:
        raise CommandError(NO_CLUSTER_SUPPORT)
    reply: object = importlib.import_module(_ANSWERS).trim_slots(call)
    return reply


command("ASKING", arity=1, flags=FAST, acl=("connection",))(accept)
command("READONLY", arity=1, flags=FAST | _ASKS, acl=("connection",))(accept)
command("READWRITE", arity=1, flags=FAST | _ASKS, acl=("connection",))(accept)

container("CLUSTER")
# Subcommand, arity, flags, tips.
_SUBCOMMANDS: Final[tuple[tuple[str, int, int, tuple[str, ...]], ...]] = (
    ("ADDSLOTS", -3, _CHANGES, ()),
    ("ADDSLOTSRANGE", -4, _CHANGES, ()),
    ("BUMPEPOCH", 2, _CHANGES, _UNSURE),
    ("COUNT-FAILURE-REPORTS", 3, _FOR_ADMINS, _UNSURE),
    ("COUNTKEYSINSLOT", 3, STALE, ()),
    ("DELSLOTS", -3, _CHANGES, ()),
    ("DELSLOTSRANGE", -4, _CHANGES, ()),
    ("FAILOVER", -2, _CHANGES, ()),
    ("FLUSHSLOTS", 2, _CHANGES, ()),
    ("FORGET", 3, _CHANGES, ()),
    ("GETKEYSINSLOT", 4, STALE, _UNSURE),
    ("HELP", 2, _ASKS, ()),
    ("INFO", 2, _ASKS, _UNSURE),
    ("KEYSLOT", 3, _ASKS, ()),
    ("LINKS", 2, _ASKS, _UNSURE),
    ("MEET", -4, _CHANGES, ()),
    ("MIGRATION", -4, _CHANGES, ()),
    ("MYID", 2, _ASKS, ()),
    ("MYSHARDID", 2, _ASKS, _UNSURE),
    ("NODES", 2, _ASKS, _UNSURE),
    ("REPLICAS", 3, _FOR_ADMINS, _UNSURE),
    ("REPLICATE", 3, _CHANGES, ()),
    ("RESET", -2, ADMIN | NOSCRIPT | STALE, ()),
    ("SAVECONFIG", 2, _CHANGES, ()),
    ("SET-CONFIG-EPOCH", 3, _CHANGES, ()),
    ("SETSLOT", -4, _CHANGES, ()),
    ("SHARDS", 2, _ASKS, _UNSURE),
    ("SLAVES", 3, _FOR_ADMINS, _UNSURE),
    ("SLOT-STATS", -4, _ASKS, _OF_ALL),
    ("SLOTS", 2, _ASKS, _UNSURE),
    ("SYNCSLOTS", -3, _CHANGES, _UNSURE),
)
for _name, _arity, _flags, _tips in _SUBCOMMANDS:
    command(f"CLUSTER|{_name}", arity=_arity, flags=_flags, tips=_tips)(answer)
