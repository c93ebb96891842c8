"""The periodic work, which no client asks for, and the correction of steps of the time of day.

A tick does a bounded amount of each kind of work, so that no request waits long for it. Keys are
expired for two milliseconds at most. Values are freed in slices. Of many clients only some are
looked at, so that each has its turn about once a second. If a tick has not got through its keys,
values and iids, the work goes on between ticks: a millisecond for each kind, half of one for keys
to be folded, then two for the clients.

Where a test moves the clock (``move_clock``), all that becomes due on the way is done at once, in
the order of time.

**Steps of the time of day.** The idle time of a client or of a pending entry is the difference of
two times of day. It is off by as much as the clock was set between them, so each tick compares the
time of day with a clock that is never set. Where it went forward or back by a second or more at
once, the times of clients are moved along. Where it went back, a delivery that a group has noted
for later than now is noted for now, as when a file is loaded. That is done in slices, one in a
tick. Deadlines of keys stay as they are, because clients asked for these moments.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from headrace.server import gate
from headrace.server.clients.session import (
    AT_WORK,
    BLOCKED,
    DELAYED,
    MONITORING,
    PAUSED,
    REPLICA,
    Session,
)
from headrace.server.clock import MS, STEP_MS, VirtualClock
from headrace.server.commands.hashes.deadlines import sweep_fields
from headrace.server.commands.streams.groups import (
    NO_WRITES,
    find_group,
    keys_of_streams,
    names_of_groups,
)
from headrace.server.commands.streams.shared import policies
from headrace.server.data import HELD_BY_MASTER
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import finish_own, stop_if_over
from headrace.server.dispatch.serving import serve_ready, time_out_waiters
from headrace.server.durability.durability import Durability
from headrace.server.info.command_stats import calls_of_all
from headrace.server.state import Server
from headrace.server.statistics.memory import SpareMemory
from headrace.storage.key_page import NEVER_MS

log: Final = logging.getLogger("headrace")

PAGE: Final = 100  # keys that are looked at together, and pending entries
SLICE: Final = 5000  # pending entries in one tick; a page of keys counts as ten


class ClockSteps:
    """Watches the time of day of one server."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        server = dispatcher.server
        self._dispatcher: Final = dispatcher
        self._server: Final = server
        self._seen_ms = server.clock.now_ns // MS
        self._round: Iterator[int] | None = None  # over groups, after the clock went back

    def look(self, now_ms: int) -> None:
        """Correct a step since the last look, and go on with the work that an earlier one left."""
        seen_ms = self._seen_ms
        ahead_ms = now_ms - self._server.clock.monotonic_ms()
        step_ms = ahead_ms - self._server.clock.ahead_ms
        self._seen_ms = now_ms
        self._server.clock.ahead_ms = ahead_ms
        if abs(step_ms) >= STEP_MS:
            self._heed(step_ms, seen_ms, now_ms)
        if self._round is not None and not self._server.gate.reasons & gate.LOADING_DATA:
            self._go_on(self._round)

    def _heed(self, step_ms: int, seen_ms: int, now_ms: int) -> None:
        """Correct times that depend on the time of day; ``seen_ms``: that of the last look."""
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
    """Return a time that was read before the clock was set, as it would be read now.

    Times after the step, and before it was noticed, were read from the new clock.
    """
    before = time_ms > now_ms if step_ms < 0 else time_ms <= seen_ms
    return time_ms + step_ms if before else time_ms


def settle_times(server: Server) -> Iterator[int]:
    """Settle the times of all groups; yield the cost of each step.

    Anything may change between two steps, so each of them finds its group anew. Nothing is
    recorded, because every reader of the file does the same.
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
                        found = group.settle_times(server.clock.now_ns // MS, PAGE)
                        yield 1 + found
                    server.blocking.key_ready(db.index, key)  # its alarms are to be set anew
            yield PAGE // 10
            if not cursor:
                break


EXPIRE_BATCH: Final = 100  # keys dropped between two looks at the clock
EXPIRE_BUDGET_NS: Final = 2_000_000  # what one tick may spend on expiry
EXPIRE_MORE_NS: Final = 1_000_000  # and one go between two ticks, where that was not enough
FREED_AT_ONCE: Final = 128  # pieces of a value freed in one go
FREE_BUDGET_NS: Final = 1_000_000  # what one tick may spend on freeing
SIZES_BUDGET_NS: Final = 1_000_000  # likewise, on looking at sizes of keys
FREE_PAUSE_S: Final = 0.002  # between two goes while there is something to free
FOLD_BATCH: Final = 1000  # keys folded between two looks at the clock
FOLD_BUDGET_NS: Final = 500_000  # what one go may spend on folding
FORGET_BATCH: Final = 200  # iids forgotten between two looks at the clock
FORGET_BUDGET_NS: Final = 1_000_000  # what one go may spend on forgetting iids
LEAST_CLIENTS: Final = 5  # clients looked at in one tick
NO_EXPIRY_BY_ITSELF: Final = (
    gate.PAUSED_ALL | gate.PAUSED_WRITES | gate.LOADING_DATA | gate.LENGTHY_AT_WORK
)
RECENT_MS: Final = 8000  # for how long the largest buffers of clients are remembered


class Cron:
    """The periodic work of one server: it ticks ``hz`` times a second from ``start`` to ``stop``.

    Timers, not a coroutine: to cancel one that is compiled makes newer Pythons complain.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        server = dispatcher.server
        self._dispatcher: Final = dispatcher
        self._durability: Final = dispatcher.durability
        self._server: Final = server
        self._timer: asyncio.TimerHandle | None = None
        self._left_s = 0.0  # until the next tick
        self._round: list[int] = []  # IDs of the clients still to be looked at in this round
        self._recent_since_ms = 0
        self._iids_due = False  # there was more to forget than one go may
        self._keys_due = False  # likewise, to expire
        self._folds_due = False  # likewise, to fold
        self._clock_steps: Final = ClockSteps(dispatcher)
        self._spare_memory: Final = SpareMemory()

    def start(self) -> None:
        """Begin to tick."""
        self._left_s = 1 / self._server.config.hz
        self._sleep()

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sleep(self) -> None:
        if self._server.stopping:
            return
        pause_s = self._left_s
        if (
            self._server.data.unused
            or self._iids_due
            or self._keys_due
            or self._folds_due
            or self._server.statistics.key_sizes.is_under_way()
            or self._server.account.is_counting()
            or self._has_to_evict()
        ):
            pause_s = min(pause_s, FREE_PAUSE_S)
        self._left_s -= pause_s
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._wake)

    def _wake(self) -> None:
        due = self._left_s <= 0
        if due:
            self._left_s = 1 / self._server.config.hz
        try:
            if due:
                self.tick()
            else:
                self._server.clock.refresh()
                free_some(self._server)
                if self._server.data.unused:
                    self._spare_memory.look(calls_of_all, True)
                self._forget_iids()
                count_sizes(self._server)
                count_keys(self._server)
                if self._has_to_evict():
                    self._server.ready_evicting().make_room()
                if self._keys_due:
                    self._expire_keys(EXPIRE_MORE_NS)
                if self._folds_due:
                    self._fold_keys()
        finally:
            self._sleep()  # a failure is logged by the loop; it must not be the last tick

    def tick(self) -> None:
        """Do one tick: expiry, idle clients and consumers, memory to free, samples."""
        server = self._server
        day_ms = server.clock.refresh()
        if server.cron_paused:
            return
        self._clock_steps.look(day_ms)
        now_ms = server.clock.monotonic_ms()
        self._sample(now_ms)
        server.statistics.counters.ticks += 1
        self._durability.committer.serve_sync_waits()
        free_some(server)
        self._forget_iids()
        self._look_at_clients(now_ms, day_ms)
        if server.gate.reasons & gate.KEYS_MEASURED:
            stop_if_over(server)
        server.tracking.bound()
        self._expire_keys(EXPIRE_BUDGET_NS)
        self._fold_keys()
        count_sizes(server)
        count_keys(server)
        server.account.check_some()
        self._spare_memory.look(calls_of_all, bool(server.data.unused))
        if server.gate.reasons & (gate.MEMORY_LIMITED | gate.CLIENTS_LIMITED):
            server.clients.weigh_all()
            server.ready_evicting().make_room()
        if server.policies is not None:
            act_on_policies(self._dispatcher)
        if server.role.following is not None:
            server.role.following.tick(now_ms)
        if server.role.replicas is not None:
            server.role.replicas.tick(now_ms)
        if server.shutdown is not None:
            server.shutdown.tick(now_ms)
        files = self._durability.files
        if (files.aof is not None or files.status.lost) and not server.stopping:
            self._durability.rewriting.recovery.recover_if_needed()
        held_back = server.gate.work is not None or server.gate.reasons & gate.HALF_JOINED
        if files.job is None and not held_back and not server.stopping:
            begin_job(self._durability, now_ms // 1000)

    def catch_up(self) -> None:
        """Do at once what ticks do bit by bit: after the clock has been moved, all of it is due."""
        server = self._server
        day_ms = server.clock.refresh()
        while not forget_iids(server):
            pass
        for session in list(server.clients.sessions.values()):
            look_at_client(server, session, day_ms)

    def _has_to_evict(self) -> bool:
        evicting = self._server.evicting
        return evicting is not None and evicting.has_more

    def _expire_keys(self, budget_ns: int) -> None:
        server = self._server
        held_back = bool(server.gate.reasons & NO_EXPIRY_BY_ITSELF)
        held_back |= bool(server.data.expiry_held & ~HELD_BY_MASTER)
        if held_back or server.cron_paused or not server.data.active_expire:
            self._keys_due = False
        else:
            self._keys_due = not expire_keys(self._dispatcher, budget_ns)

    def _fold_keys(self) -> None:
        reasons = self._server.gate.reasons
        held_back = bool(reasons & (gate.LENGTHY_AT_WORK | gate.LOADING_DATA))
        self._folds_due = not held_back and not fold_keys(self._server)

    def _forget_iids(self) -> None:
        if not self._server.gate.reasons & gate.LOADING_DATA:
            self._iids_due = not forget_iids(self._server)

    def _sample(self, now_ms: int) -> None:
        server = self._server
        rates = server.statistics.rates
        if not rates.is_due(now_ms):
            return
        counted = server.statistics.counters
        rates.sample(calls_of_all(), counted, now_ms)

    def _look_at_clients(self, now_ms: int, day_ms: int) -> None:
        server = self._server
        if not self._round:
            self._round = list(server.clients.sessions)
        count = max(LEAST_CLIENTS, len(server.clients.sessions) // server.config.hz)
        if now_ms - self._recent_since_ms > RECENT_MS:
            self._recent_since_ms = now_ms
            server.clients.recent_max_input_bytes = 0
            server.clients.recent_max_output_bytes = 0
        chosen = self._round[-count:]
        del self._round[-count:]
        for session_id in chosen:
            session = server.clients.sessions.get(session_id)
            if session is not None:
                look_at_client(server, session, day_ms)


def act_on_policies(dispatcher: Dispatcher) -> int:
    """Do what is due by policies; return the time of day, in ms, when more is, or 0."""
    server = dispatcher.server
    if server.gate.reasons & (NO_WRITES | gate.FOLLOWS):
        return 0
    server.clock.refresh()
    next_ms = policies().tick(dispatcher.call)
    if server.changes.unfinished:
        finish_own(server)
    if server.blocking.ready:
        serve_ready(dispatcher)
    return next_ms


def begin_job(durability: Durability, now_s: int) -> None:
    """Begin the job that is due: the append-only file anew, or a snapshot."""
    if not durability.rewriting.tick(now_s) and durability.saving.is_due(now_s):
        durability.saving.begin()


_NEVER_IDLE: Final = BLOCKED | PAUSED | DELAYED | MONITORING | AT_WORK | REPLICA


def look_at_client(server: Server, session: Session, now_ms: int) -> None:
    """Close a client that is idle too long or does not read; note the size of its buffers."""
    timeout_s = server.config.timeout
    if (
        timeout_s
        and now_ms - session.active_ms > timeout_s * 1000
        and not session.special & _NEVER_IDLE
        and not session.channels
        and not session.patterns
        and not session.shard_channels
    ):
        session.peer.abort()
        server.session_closed(session)
        return
    output_bytes = session.peer.pending_output_bytes()
    if output_bytes:
        server.clients.recent_max_output_bytes = max(
            server.clients.recent_max_output_bytes, output_bytes
        )
        session.peer.bound_output()
    input_bytes = session.peer.pending_input_bytes() + session.peer.input_room_bytes()
    server.clients.recent_max_input_bytes = max(server.clients.recent_max_input_bytes, input_bytes)


def free_some(server: Server) -> None:
    """Free values that were deleted, as many as the budget of a tick allows."""
    waiting = server.data.unused
    started_ns = server.clock.now_ns
    while waiting:
        value = waiting.pop()
        if not value.free_some(FREED_AT_ONCE):
            waiting.append(value)
        else:
            server.data.freed += 1
        server.clock.refresh()
        if abs(server.clock.now_ns - started_ns) > FREE_BUDGET_NS:  # or the clock was set back
            break
    server.statistics.note_latency(b"free-cycle", server.clock.now_ns - started_ns)


def count_sizes(server: Server) -> None:
    """Look at the sizes of some keys, if a client has asked for them."""
    sizes = server.statistics.key_sizes
    started_ns = server.clock.now_ns
    while sizes.step():
        server.clock.refresh()
        if abs(server.clock.now_ns - started_ns) > SIZES_BUDGET_NS:  # or the clock was set back
            break


def count_keys(server: Server) -> None:
    """Count the memory of some keys, where that has begun."""
    account = server.account
    started_ns = server.clock.now_ns
    while account.is_counting() and account.count_some():
        server.clock.refresh()
        if abs(server.clock.now_ns - started_ns) > SIZES_BUDGET_NS:  # or the clock was set back
            break


def fold_keys(server: Server) -> bool:
    """Fold small keys that are not in use; False when the time was up before the end."""
    started_ns = server.clock.now_ns
    for db in server.data.dbs:
        while not db.table.fold_some(started_ns // MS, FOLD_BATCH):
            server.clock.refresh()
            if abs(server.clock.now_ns - started_ns) > FOLD_BUDGET_NS:  # or the clock was set back
                return False
    return True


def forget_iids(server: Server) -> bool:
    """Take iids that are too old out of the IDMP maps; False when the time was up before the end.

    Nothing is recorded, because every reader of the append-only file does the same by its own
    clock.
    """
    started_ns = server.clock.now_ns
    while server.data.expiring.expire(server.clock.now_ns // MS, FORGET_BATCH) >= FORGET_BATCH:
        server.clock.refresh()
        if abs(server.clock.now_ns - started_ns) > FORGET_BUDGET_NS:
            return False
    return True


def expire_keys(dispatcher: Dispatcher, budget_ns: int) -> bool:
    """Remove keys and fields whose time has come; False when the time was up before the end."""
    server = dispatcher.server
    started_ns = server.clock.now_ns
    expired_before = server.changes.expired_keys
    done = _expire_all(dispatcher, started_ns, budget_ns)
    server.statistics.counters.expired_actively += server.changes.expired_keys - expired_before
    server.clock.refresh()
    spent_ns = max(0, server.clock.now_ns - started_ns)
    server.statistics.counters.expiry_ns += spent_ns
    if not done:
        server.statistics.counters.expiry_capped += 1
    server.statistics.note_latency(b"expire-cycle", spent_ns)
    return done


def _expire_all(dispatcher: Dispatcher, started_ns: int, budget_ns: int) -> bool:
    """Expire keys; in a replica, those to which its own clients have given deadlines."""
    server = dispatcher.server
    now_ms = started_ns // MS
    follows = server.data.expiry_held != 0
    for db in server.data.dbs:
        while (
            db.expire_own(now_ms, EXPIRE_BATCH) if follows else db.expire_due(now_ms, EXPIRE_BATCH)
        ) >= EXPIRE_BATCH:
            flush_expired(dispatcher)
            server.clock.refresh()
            if abs(server.clock.now_ns - started_ns) > budget_ns:
                return False
    flush_expired(dispatcher)
    return follows or _expire_parts(dispatcher, started_ns, budget_ns)


def _expire_parts(dispatcher: Dispatcher, started_ns: int, budget_ns: int) -> bool:
    server = dispatcher.server
    now_ms = started_ns // MS
    before = server.changes.expired_parts
    done = True
    for db in server.data.dbs:
        while done and db.parts.count() and sweep_fields(dispatcher.call, db, now_ms, EXPIRE_BATCH):
            finish_own(server)
            if server.blocking.ready:
                serve_ready(dispatcher)
            server.clock.refresh()
            done = abs(server.clock.now_ns - started_ns) <= budget_ns
    server.statistics.counters.expired_parts_actively += server.changes.expired_parts - before
    return done


def flush_expired(dispatcher: Dispatcher) -> None:
    """Report the keys that were found expired outside of a command."""
    server = dispatcher.server
    if server.changes.expired:
        server.changes.report_expired()
        finish_own(server)
        if server.blocking.ready:
            serve_ready(dispatcher)


FAR_MS: Final = 1 << 53  # later than any time that can be asked for
_NO_LIMIT_NS: Final = 1 << 60  # for work while the clock stands, which spends nothing


def move_clock(dispatcher: Dispatcher, cron: Cron, clock: VirtualClock, to_ns: int) -> None:
    """Go to a time of day that is not before the present one; do what becomes due until then."""
    server = dispatcher.server
    runs = not clock.frozen_ns
    clock.freeze()
    server.gate.finish_work()
    try:
        if server.policies is not None:
            policies().foresee(dispatcher.call, to_ns // MS)
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
    if server.policies is not None:
        found.append(act_on_policies(dispatcher) or FAR_MS)
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
