"""Requests that have waited are run again when their keys have become ready."""

from __future__ import annotations

from typing import Final

from headrace.protocol.replies import ErrorReply, Packed
from headrace.server.clients.session import BLOCKED, LIMITED, Session, session_of
from headrace.server.dispatch.dispatcher import Dispatcher, unpause
from headrace.server.dispatch.invoke import end_tracked, finish, invoke
from headrace.server.dispatch.permission import refused_line
from headrace.server.dispatch.rows import READONLY, Command
from headrace.server.gate import HALF_JOINED
from headrace.server.state import Server
from headrace.server.waiting import ExclusiveLine, Line, Parked, SharedLine, Waiter


class _Answer:
    """A reply without a change, which is the same for each client that asks the same now.

    ``hits`` and ``misses`` count the keys that were found and that were not.
    """

    def __init__(self, waiter: Waiter, reply: Packed, hits: int, misses: int) -> None:
        session = session_of(waiter)
        self._row: Final = session.last_row
        self._argv: Final = waiter.parked.argv
        self._resp3: Final = session.resp3
        self._special: Final = session.special
        self._user: Final = session.user
        self.reply: Final = reply
        self.hits: Final = hits
        self.misses: Final = misses

    def fits(self, waiter: Waiter) -> bool:
        """Return whether ``waiter``, of the same database, asks the same in the same way."""
        session = session_of(waiter)
        return (
            session.last_row is self._row
            and waiter.parked.argv == self._argv
            and session.resp3 == self._resp3
            and session.special == self._special
            and (session.user is self._user or not session.special & LIMITED)
        )


def park(server: Server, session: Session, parked: Parked, now_ms: int) -> None:
    """Let a client wait as long as its request says, not by the time of day, which may be set."""
    if parked.deadline_ms:
        parked.deadline_ms += server.clock.monotonic_ms() - now_ms
    waiter = server.blocking.park(session, session.db.index, parked)
    session.special |= BLOCKED
    if waiter.deadline_ms:
        server.host.wake_at(waiter.deadline_ms)
    _set_alarms(server, waiter.lines)


def serve_ready(dispatcher: Dispatcher) -> None:
    """Run the requests of clients whose keys have become ready, until nothing more changes."""
    server = dispatcher.server
    if server.gate.reasons & HALF_JOINED:  # they would see a part of it
        return
    ready = server.blocking.ready
    looked_at = 0
    try:
        while looked_at < len(ready):  # it grows on the way
            queue = ready[looked_at]
            looked_at += 1
            if dispatcher.slicing is not None and dispatcher.slicing.postpones(queue):
                continue
            queue.is_ready = False
            lines = list(queue.lines.values())
            for line in lines:
                if isinstance(line, SharedLine):
                    _serve_all(dispatcher, line)
                elif isinstance(line, ExclusiveLine):
                    _serve_in_turn(dispatcher, line)
            _set_alarms(server, lines)
    finally:  # one that cannot be served keeps no other one waiting
        del ready[:looked_at]


def _value_at(server: Server, line: Line) -> object | None:
    queue = line.queue
    return server.data.dbs[queue.db_index].get(queue.key, server.clock.now_ns // 1_000_000)


def _serve_all(dispatcher: Dispatcher, line: SharedLine) -> None:
    """Serve all that can be served; they may all be given the same."""
    server = dispatcher.server
    answer: _Answer | None = None
    for waiter in line.candidates(_value_at(server, line)):
        if waiter.active:
            if answer is not None and answer.fits(waiter):
                _serve_alike(dispatcher, waiter, answer)
            else:
                answer = _serve(dispatcher, waiter)


def _serve_in_turn(dispatcher: Dispatcher, line: ExclusiveLine) -> None:
    """Serve one after the other while there is something to give.

    A waiter that has left is passed over, because it would keep others from what it took.
    """
    server = dispatcher.server
    while not line.is_empty():
        value = _value_at(server, line)
        waiter = line.next(value, server.clock.now_ns // 1_000_000)
        if waiter is None:
            return
        session = session_of(waiter)
        if session.peer.has_left():
            server.blocking.unpark(session)
            continue
        _serve(dispatcher, waiter)
        if waiter.active:
            return


def _serve(dispatcher: Dispatcher, waiter: Waiter) -> _Answer | None:
    """Run a waiting client's request; return the answer, if others may be given it, too."""
    server = dispatcher.server
    session = session_of(waiter)
    row = session.last_row
    assert isinstance(row, Command)
    if session.special & LIMITED:
        line = refused_line(server, session, row, waiter.parked.argv)
        if line:
            row.rejected_calls += 1
            server.statistics.counters.count_error(line)
            server.clients.unpark(session, ErrorReply(line))
            return None
    call = dispatcher.call
    call.session = session
    call.db = server.data.dbs[waiter.db_index]
    call.now_ms = server.clock.now_ns // 1_000_000
    call.may_block = True
    hits = server.statistics.keyspace_hits
    misses = server.statistics.keyspace_misses
    pieces = len(session.out)
    server.tracking.caller = session
    reply = invoke(call, row, waiter.parked.argv)
    if isinstance(reply, Parked):
        server.blocking.park_again(waiter, reply)
        _set_alarms(server, waiter.lines)
        finish(server, call, None)  # it counts once, when it is served
        end_tracked(server, session, row, waiter.parked.argv)
        return None
    answer: _Answer | None = None
    if row.flags & READONLY and isinstance(reply, Packed) and not server.changes.unfinished:
        hits = server.statistics.keyspace_hits - hits
        answer = _Answer(waiter, reply, hits, server.statistics.keyspace_misses - misses)
    finish(server, call, row)
    end_tracked(server, session, row, waiter.parked.argv)
    messages = session.out[pieces:]
    del session.out[pieces:]
    server.clients.unpark(session, reply)
    session.out += messages
    return answer


def _serve_alike(dispatcher: Dispatcher, waiter: Waiter, answer: _Answer) -> None:
    """Serve as ``_serve``, with the answer to the request before."""
    server = dispatcher.server
    session = session_of(waiter)
    row = session.last_row
    assert isinstance(row, Command)
    call = dispatcher.call
    call.session = session
    call.argv = waiter.parked.argv
    server.statistics.keyspace_hits += answer.hits
    server.statistics.keyspace_misses += answer.misses
    finish(server, call, row)
    end_tracked(server, session, row, waiter.parked.argv)
    server.clients.unpark(session, answer.reply)


def _set_alarms(server: Server, lines: list[Line]) -> None:
    """Set alarms for lines for which time alone makes something ready."""
    for line in lines:
        if line.ripens():
            now_ms = server.clock.now_ns // 1_000_000
            for alarm in line.new_alarms(_value_at(server, line), now_ms):
                server.blocking.set_alarm(alarm)
                server.host.wake_at(server.clock.monotonic_ms() + alarm.moment_ms - now_ms)


def time_out_waiters(server: Server) -> int:
    """Do what is due for clients that wait or are held back; return when to look next, or 0."""
    next_ms = _time_out(server)
    delayed_ms = server.faults.resume(server.clock.monotonic_ms())
    return min(next_ms, delayed_ms) if next_ms and delayed_ms else next_ms or delayed_ms


def _time_out(server: Server) -> int:
    """Answer those that waited long enough, end a pause; return when to look next, or 0.

    All moments are of ``monotonic_ms``, except those at which something may be claimed: how long it
    has been idle depends on the time of day. Readers that may claim something by now are noted, to
    be served by the caller; during a pause they are not, because they would write.
    """
    blocking = server.blocking
    now_ms = server.clock.monotonic_ms()
    for waiter in blocking.due(now_ms):
        server.end_wait(session_of(waiter), waiter.parked.timeout_reply)
    next_ms = blocking.next_deadline_ms()
    pause_end_ms = server.clients.pause_end_ms
    if pause_end_ms:
        if pause_end_ms <= now_ms:
            unpause(server)
        elif not next_ms or pause_end_ms < next_ms:
            return pause_end_ms
        else:
            return next_ms
    day_ms = server.clock.refresh()
    blocking.ring(day_ms)
    alarm_ms = blocking.next_alarm_ms()
    if alarm_ms:
        alarm_ms += now_ms - day_ms
        if not next_ms or alarm_ms < next_ms:
            return alarm_ms
    return next_ms
