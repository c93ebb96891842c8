"""What the commands that run scripts and functions have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from headrace.compat import scripting_errors as errors
from headrace.compat.errors import NOT_AN_INTEGER, CommandError
from headrace.compat.numbers import parse_integer
from headrace.server.dispatch.call import Call
from headrace.server.gate import MONITORED

if TYPE_CHECKING:
    from headrace.server.scripting.engine import ScriptEngine


def scripting_of(call: Call) -> ScriptEngine:
    """What runs the scripts of a server. It is imported with the first of them."""
    server = call.server
    scripting = server.scripting
    return cast("ScriptEngine", server.ready_scripting() if scripting is None else scripting)


def show(call: Call) -> None:
    """Show the request to monitors now, because the commands of the script follow it."""
    server = call.server
    if server.gate.reasons & MONITORED:
        server.clients.feed_monitors(call.session, call.argv, server.clock.now_ns)


def key_count(call: Call) -> int:
    """How many of the words are keys. Raises: CommandError."""
    count = parse_integer(call.argv[2])
    if count is None:
        raise CommandError(NOT_AN_INTEGER)
    if count > len(call.argv) - 3:
        raise CommandError(errors.TOO_MANY_KEYS)
    if count < 0:
        raise CommandError(errors.NEGATIVE_KEYS)
    return count
