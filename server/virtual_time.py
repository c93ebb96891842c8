"""Moves the clock of a server, and does all that becomes due on the way, in the order of time."""

from __future__ import annotations

from typing import Final

from headrace.server import gate
from headrace.server.clock import MS, VirtualClock
from headrace.server.cron import NO_EXPIRY_BY_ITSELF, Cron, expire_keys
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.serving import serve_ready, time_out_waiters
from headrace.storage.key_page import NEVER_MS

FAR_MS: Final = 1 << 53  # later than any time that can be asked for
_NO_LIMIT_NS: Final = 1 << 60  # for work while the clock stands, which spends nothing


def move(dispatcher: Dispatcher, cron: Cron, clock: VirtualClock, to_ns: int) -> None:
    """Go to a time of day that is not before the present one; do what becomes due until then."""
    server = dispatcher.server
    runs = not clock.frozen_ns
    clock.freeze()
    server.gate.finish_work()
    try:
        while True:
            due_ms = _do_due(dispatcher)
            if due_ms * MS > to_ns:
                break
            clock.go_to(due_ms * MS)
        clock.go_to(to_ns)
        _do_due(dispatcher)
        cron.catch_up()
    finally:
        if runs:
            clock.run()


def _do_due(dispatcher: Dispatcher) -> int:
    """Do what is due now; return the time of day, in ms, when something is due next."""
    server = dispatcher.server
    now_ms = server.clock.now_ns // MS
    found = [FAR_MS]
    next_ms = time_out_waiters(server)
    if server.blocking.ready:
        serve_ready(dispatcher)
    if next_ms:
        found.append(next_ms + now_ms - server.clock.monotonic_ms())
    data = server.data
    held_back = server.gate.reasons & NO_EXPIRY_BY_ITSELF & ~gate.LENGTHY_AT_WORK
    if data.active_expire and not data.expiry_held and not held_back:
        expire_keys(dispatcher, _NO_LIMIT_NS)
        for db in data.dbs:
            if db.table.due_ms != NEVER_MS:
                found.append(int(db.table.due_ms) + 1)
            if db.parts.count():
                found.append(int(db.parts.next_ms()) + 1)
    return min([each for each in found if each > now_ms])
