"""INFO, TIME, MONITOR, SHUTDOWN: the server as a whole."""

from __future__ import annotations

from headrace.compat.errors import (
    MONITOR_IN_MULTI,
    NO_SHUTDOWN,
    SHUTDOWN_FAILED,
    SYNTAX,
    CommandError,
)
from headrace.protocol.replies import NO_REPLY, OK, Verbatim
from headrace.server.clients.session import CLOSING, IN_MULTI, MONITORING
from headrace.server.dispatch.call import Call
from headrace.server.gate import MONITORED, SCRIPT_AT_WORK
from headrace.server.info.sections import info_text
from headrace.server.state import STAYS, WAITS, Wishes
from headrace.server.waiting.waiters import Parked


def info(call: Call) -> object:
    """Reply: text, a line ``# Title`` and then lines ``name:value`` for each section."""
    return Verbatim(info_text(call, call.argv[1:]))


def time_(call: Call) -> object:
    """Reply: list of seconds since 1970 and the microseconds beyond them.

    In a transaction or a script time stands still.
    """
    usec = (call.session.unit_ns or call.server.clock.now_ns) // 1000
    return [b"%d" % (usec // 1_000_000), b"%d" % (usec % 1_000_000)]


def monitor(call: Call) -> object:
    """Show this client every request that is run from now on. Reply: OK."""
    session = call.session
    if session.special & IN_MULTI:
        raise CommandError(MONITOR_IN_MULTI)
    if not session.special & MONITORING:
        session.special |= MONITORING
        call.server.clients.monitors[session] = None
        call.server.gate.set(MONITORED, True)
    return OK


def shutdown(call: Call) -> object:
    """An open append-only file is written and synced in any case.

    A snapshot is saved with SAVE, and where there are save points unless NOSAVE says otherwise.
    Where one of them fails the server stays, unless it is forced. Replicas that lack something are
    waited for, up to ``shutdown-timeout`` and not with NOW; that can be called off with ABORT.

    Reply: none, the connection closes.
    Raises: where the server stays, and ABORT where no shutdown waits.
    """
    words = {word.lower() for word in call.argv[1:]}
    if words - {b"nosave", b"save", b"now", b"force", b"abort"}:
        raise CommandError(SYNTAX)
    if (b"abort" in words and len(words) > 1) or {b"save", b"nosave"} <= words:
        raise CommandError(SYNTAX)
    server = call.server
    ending = server.ending
    assert ending is not None
    if b"abort" in words:
        if not ending.call_off():
            raise CommandError(NO_SHUTDOWN)
        return OK
    if server.gate.reasons & SCRIPT_AT_WORK:  # it may be in the middle of what it writes
        if b"nosave" not in words:
            raise CommandError(server.gate.busy)
        server.host.leave()
    outcome = ending.begin(Wishes(words))
    if outcome == STAYS:
        raise CommandError(SHUTDOWN_FAILED)
    if outcome == WAITS:
        ending.await_with(call.session)
        return Parked([], 0, call.argv, None, None)
    call.session.special |= CLOSING
    return NO_REPLY
