"""ACL LOG: what was refused."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import CommandError, bad_subcommand
from headrace.protocol.replies import OK, Map
from headrace.server.acl.log import Entry
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call

_USUAL_COUNT: Final = 10


def acl_log(call: Call) -> object:
    """Show or forget what was refused. Reply: list of maps, the last one first; OK to RESET."""
    argv = call.argv
    entries = call.server.denials.entries
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"acl", argv[1]))
    count = _USUAL_COUNT
    if len(argv) == 3:
        if argv[2].lower() == b"reset":
            entries.clear()
            return OK
        count = max(0, Args(argv, 2).integer())
    return [_described(entry, call.now_ms) for entry in entries[:count]]


def _described(entry: Entry, now_ms: int) -> Map:
    return Map(
        [
            (b"count", entry.count),
            (b"reason", entry.reason),
            (b"context", entry.context),
            (b"object", entry.what),
            (b"username", entry.user),
            (b"age-seconds", (now_ms - entry.updated_ms) / 1000),
            (b"client-info", entry.client),
            (b"entry-id", entry.number),
            (b"timestamp-created", entry.created_ms),
            (b"timestamp-last-updated", entry.updated_ms),
        ]
    )
