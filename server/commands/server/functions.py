"""FUNCTION: there are no functions here, so all that can be said of them is that there are none.

FLUSH is answered because clients and test suites that share a server between runs begin with it,
Redis's own suite among them; every subcommand that needs a function is unknown.
"""

from __future__ import annotations

from headrace.compat.errors import FUNCTION_FLUSH_MODE, CommandError, bad_subcommand
from headrace.protocol.replies import OK
from headrace.server.commands.help import show_help
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import (
    LOADING,
    NOSCRIPT,
    STALE,
    WRITE,
    command,
    container,
)

container("FUNCTION")


@command(
    "FUNCTION|FLUSH",
    arity=-2,
    flags=WRITE | NOSCRIPT,
    acl=("scripting",),
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def function_flush(call: Call) -> object:
    """Reply: OK; there was nothing to delete."""
    argv = call.argv
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"function", argv[1]))
    if len(argv) == 3 and argv[2].lower() not in (b"async", b"sync"):
        raise CommandError(FUNCTION_FLUSH_MODE)
    return OK


command("FUNCTION|HELP", arity=2, flags=LOADING | STALE, acl=("scripting",))(show_help)
