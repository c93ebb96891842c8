"""Noticing that the time of day was set, and correcting the times that depend on it.

How long a client has been idle, or a pending entry, is the difference of two times of day. It is
off by as much as the clock was set between them, so each tick compares the time of day with a clock
that nobody sets. Where it went forward or back by a second or more at once, the times of clients
are moved along. Where it went back, a delivery that a group has noted for later than now is noted
for now, as when a file is loaded. That is done in slices, one in a tick.

Deadlines of keys stay what they are: they are moments that were asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from headrace.server.clock import STEP_MS
from headrace.server.commands.streams.groups import (
    find_group,
    keys_of_streams,
    names_of_groups,
)
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.serving import serve_ready
from headrace.server.gate import LOADING_DATA
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

PAGE: Final = 100  # keys that are looked at together, and pending entries
SLICE: Final = 5000  # pending entries in one tick; a page of keys counts as ten


class ClockSteps:
    """Watches the time of day of one server."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        server = dispatcher.server
        self._dispatcher: Final = dispatcher
        self._server: Final = server
        self._seen_ms = server.clock.now_ns // 1_000_000
        self._round: Iterator[int] | None = None  # over groups, after the clock went back

    def look(self, now_ms: int) -> None:
        """Heed a step since the last look, and go on with what an earlier one left to do."""
        seen_ms = self._seen_ms
        ahead_ms = now_ms - self._server.clock.monotonic_ms()
        step_ms = ahead_ms - self._server.clock.ahead_ms
        self._seen_ms = now_ms
        self._server.clock.ahead_ms = ahead_ms
        if abs(step_ms) >= STEP_MS:
            self._heed(step_ms, seen_ms, now_ms)
        if self._round is not None and not self._server.gate.reasons & LOADING_DATA:
            self._go_on(self._round)

    def _heed(self, step_ms: int, seen_ms: int, now_ms: int) -> None:
        """Correct the times that depend on the time of day.

        Args:
            seen_ms: the time of day at the last look, before the step.
        """
        server = self._server
        way = "back" if step_ms < 0 else "forward"
        log.warning("The time of day was set %s by %.1f seconds", way, abs(step_ms) / 1000)
        for session in server.clients.sessions.values():
            session.created_ms = _moved(session.created_ms, step_ms, seen_ms, now_ms)
            session.active_ms = _moved(session.active_ms, step_ms, seen_ms, now_ms)
        now_monotonic_ms = server.clock.monotonic_ms()
        server.host.wake_at(now_monotonic_ms)  # something may be claimed earlier than it could be
        if step_ms < 0:
            self._round = settle_times(server)

    def _go_on(self, steps: Iterator[int]) -> None:
        left = SLICE
        while left > 0:
            cost = next(steps, 0)
            if not cost:
                self._round = None
                break
            left -= cost
        if self._server.blocking.ready:
            serve_ready(self._dispatcher)


def _moved(time_ms: int, step_ms: int, seen_ms: int, now_ms: int) -> int:
    """A time that was read before the clock was set, as it would be read now.

    What came since the step, and until it was noticed, was read from the new clock.
    """
    before = time_ms > now_ms if step_ms < 0 else time_ms <= seen_ms
    return time_ms + step_ms if before else time_ms


def settle_times(server: Server) -> Iterator[int]:
    """Settle the times of all groups; after each step, what it cost.

    Anything may change between two steps, so each of them finds its group anew. Nothing is
    recorded: whoever loads the file does the same.
    """
    for db in server.data.dbs:
        cursor = 0
        while True:
            cursor, entries = db.scan(cursor, PAGE)
            for key in keys_of_streams(entries):
                for name in names_of_groups(db, key):
                    found = PAGE
                    while found >= PAGE:
                        group = find_group(db, key, name)
                        if group is None:
                            break
                        db.before_change(key)
                        found = group.settle_times(server.clock.now_ns // 1_000_000, PAGE)
                        yield 1 + found
                    server.blocking.key_ready(db.index, key)  # its alarms are to be set anew
            yield PAGE // 10
            if not cursor:
                break
