"""DEBUG CLOCK: tests freeze and move the time by which a server lives.

When a move returns, all that became due has happened, in the order of time: expiries are published,
blocked clients are answered, idle consumers are reclaimed, and that stands in the append-only file.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import Map
from headrace.server.clients.session import IN_MULTI
from headrace.server.clock import MS, VirtualClock, is_moved
from headrace.server.dispatch.call import Call
from headrace.server.gate import FOLLOWS, LOADING_DATA

log: Final = logging.getLogger("headrace")

CLOCKS: Final = "FREEZE [ms] | SHIFT ms | MOVE-TO ms | RESUME | RESET | GET"
LATEST_MS: Final = 1 << 47  # some 4,400 years: streams, deadlines and clients all know that far


def clock_tool(call: Call) -> object:
    """Freeze, move, resume or show the clock. Reply: the time in ms; of GET, a map."""
    server = call.server
    clock = server.clock
    argv = call.argv
    word = argv[2].lower()
    widths = _WIDTHS.get(word)
    if widths is None or len(argv) not in widths:
        raise CommandError(errors.BAD_CLOCK % CLOCKS.encode())
    if not isinstance(clock, VirtualClock):
        raise CommandError(errors.CLOCK_NOT_MOVABLE)
    if word == b"get":
        return _shown(clock)
    _refuse(call)
    was_moved = is_moved(clock)
    mine = (call.session, call.db, call.row, call.argv)  # others use the call meanwhile
    if word == b"resume":
        clock.run()
    elif word == b"reset":
        clock.reset()
    elif len(argv) == 3:
        clock.freeze()
    else:
        to_ns = _target_ns(clock, word, argv[3])
        if word == b"freeze":
            clock.freeze()
        call.session.active_ms = to_ns // MS  # it is not idle
        server.host.move_clock(to_ns)
    server.host.clock_changed()
    call.session, call.db, call.row, call.argv = mine
    level = logging.DEBUG if was_moved and is_moved(clock) else logging.WARNING
    log.log(level, "DEBUG CLOCK: the time is %s, %+.3f seconds ahead", *_shown_briefly(clock))
    return server.clock.refresh()


_WIDTHS: Final = {
    b"freeze": (3, 4),
    b"shift": (4,),
    b"move-to": (4,),
    b"resume": (3,),
    b"reset": (3,),
    b"get": (3,),
}


def _shown(clock: VirtualClock) -> Map:
    ahead_ms = clock.ahead_ms_of_system()
    return Map([(b"ms", clock.refresh()), (b"state", clock.state()), (b"ahead_ms", ahead_ms)])


def _shown_briefly(clock: VirtualClock) -> tuple[str, float]:
    return clock.state().decode(), clock.ahead_ms_of_system() / 1000


def _refuse(call: Call) -> None:
    """Raise CommandError where others live by this clock, or nothing may happen meanwhile."""
    server = call.server
    replicas = server.role.replicas
    if server.data.region is not None or server.gate.reasons & FOLLOWS:
        raise CommandError(errors.CLOCK_IS_SHARED)
    if replicas is not None and replicas.count():
        raise CommandError(errors.CLOCK_IS_SHARED)
    if call.session.special & IN_MULTI or server.gate.reasons & LOADING_DATA:
        raise CommandError(errors.CLOCK_MUST_WAIT)


def _target_ns(clock: VirtualClock, word: bytes, text: bytes) -> int:
    """Return the time of day that a request names; never before the present."""
    ms = parse_integer(text)
    if ms is None:
        raise CommandError(errors.NOT_AN_INTEGER)
    clock.refresh()
    if word == b"shift":
        if ms < 0:
            raise CommandError(errors.CLOCK_NOT_BACK)
        to_ns = clock.now_ns + ms * MS
    else:
        to_ns = ms * MS
        if to_ns < clock.now_ns:
            if ms != clock.now_ns // MS:
                raise CommandError(errors.CLOCK_NOT_BACK)
            to_ns = clock.now_ns
    if to_ns > LATEST_MS * MS:
        raise CommandError(errors.CLOCK_TOO_FAR)
    return to_ns
