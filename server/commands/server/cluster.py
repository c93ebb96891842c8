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

_ANSWERS: Final = "headrace.server.commands.server.cluster_answers"


def accept(call: Call) -> object:
    """Reply: OK, because no request is sent to another node.

    Raises: the error of a Redis whose cluster mode is off.
    """
    if call.server.cluster is None:
        raise CommandError(NO_CLUSTER_SUPPORT)
    return OK


def answer(call: Call) -> object:
    """Return what the node answers. Raises: as ``accept``."""
    node = call.server.cluster
    if node is None:
        raise CommandError(NO_CLUSTER_SUPPORT)
    answers = importlib.import_module(_ANSWERS)  # late, because most servers are of no cluster
    reply: object = answers.ANSWERS[call.name()](call, node)
    return reply


def trimslots(call: Call) -> object:
    """Remove the keys of slots that a file or a master has given away. Reply: OK.

    Raises: this node owns all slots, and what a client asks for is refused.
    """
    if call.server.cluster is None and not call.replaying:
        raise CommandError(NO_CLUSTER_SUPPORT)
    reply: object = importlib.import_module(_ANSWERS).trim_slots(call)
    return reply
