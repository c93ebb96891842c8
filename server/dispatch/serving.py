"""Requests that have waited are run again when their keys have become ready."""

from __future__ import annotations

from typing import Final

from headrace.protocol.replies import Packed
from headrace.server.clients.session import BLOCKED, Session, session_of
from headrace.server.clock import monotonic_ms
from headrace.server.dispatch.invoke import finish, invoke
from headrace.server.dispatch.rows import READONLY
from headrace.server.state import Server
from headrace.server.waiting.waiters import (
    ExclusiveLine,
    Line,
    Parked,
    SharedLine,
    Waiter,
)


class _Answer:
    """A reply that has changed nothing and will be the same to who asks the same now.

    Args:
        waiter: whom it was given to.
        hits, misses: keys that were found and that were not.
    """

    def __init__(self, waiter: Waiter, reply: Packed, hits: int, misses: int) -> None:
        session = session_of(waiter)
        self._row: Final = session.last_row
        self._argv: Final = waiter.parked.argv
        self._resp3: Final = session.resp3
        self._special: Final = session.special
        self.reply: Final = reply
        self.hits: Final = hits
        self.misses: Final = misses

    def fits(self, waiter: Waiter) -> bool:
        """Whether ``waiter``, of the same database, asks the same in the same way."""
        session = session_of(waiter)
        return (
            session.last_row is self._row
            and waiter.parked.argv == self._argv
            and session.resp3 == self._resp3
            and session.special == self._special
        )


def park(server: Server, session: Session, parked: Parked) -> None:
    """Let a client wait for what its request asks for.

    The request says how long; that is not counted by the time of day, which may be set meanwhile.
    """
    if parked.deadline_ms:
        parked.deadline_ms += monotonic_ms() - server.call.now_ms
    waiter = server.blocking.park(session, session.db.index, parked)
    session.special |= BLOCKED
    if waiter.deadline_ms:
        server.host.wake_at(waiter.deadline_ms)
    _set_alarms(server, waiter.lines)


def serve_ready(server: Server) -> None:
    """Run the requests of clients whose keys have become ready, until nothing more changes."""
    ready = server.blocking.ready
    looked_at = 0
    try:
        while looked_at < len(ready):  # it grows on the way
            queue = ready[looked_at]
            looked_at += 1
            if server.slicing is not None and server.slicing.postpones(queue):
                continue
            queue.is_ready = False
            lines = list(queue.lines.values())
            for line in lines:
                if isinstance(line, SharedLine):
                    _serve_all(server, line)
                elif isinstance(line, ExclusiveLine):
                    _serve_in_turn(server, line)
            _set_alarms(server, lines)
    finally:  # one that cannot be served keeps nobody else waiting
        del ready[:looked_at]


def _value_at(server: Server, line: Line) -> object | None:
    """What the key holds at which a line stands."""
    queue = line.queue
    return server.dbs[queue.db_index].get(queue.key, server.clock_ns // 1_000_000)


def _serve_all(server: Server, line: SharedLine) -> None:
    """Serve all who can be; what one is given others may be given, too."""
    answer: _Answer | None = None
    for waiter in line.candidates(_value_at(server, line)):
        if waiter.active:
            if answer is not None and answer.fits(waiter):
                _serve_alike(server, waiter, answer)
            else:
                answer = _serve(server, waiter)


def _serve_in_turn(server: Server, line: ExclusiveLine) -> None:
    """Serve one after the other while there is something to give.

    Who has left is passed over: what one is given, nobody else is.
    """
    while not line.is_empty():
        value = _value_at(server, line)
        waiter = line.next(value, server.clock_ns // 1_000_000)
        if waiter is None:
            return
        session = session_of(waiter)
        if session.peer.has_left():
            server.blocking.unpark(session)
            continue
        _serve(server, waiter)
        if waiter.active:
            return


def _serve(server: Server, waiter: Waiter) -> _Answer | None:
    """Run the request of a client that waits; the answer, if others may be given it, too."""
    session = session_of(waiter)
    row = session.last_row
    assert row is not None
    call = server.call
    call.session = session
    call.db = server.dbs[waiter.db_index]
    call.now_ms = server.clock_ns // 1_000_000
    call.may_block = True
    hits = server.keyspace_hits
    misses = server.keyspace_misses
    reply = invoke(call, row, waiter.parked.argv)
    if isinstance(reply, Parked):
        server.blocking.park_again(waiter, reply)
        _set_alarms(server, waiter.lines)
        call.row = None  # it counts once, when it is served
        finish(server, call)
        return None
    answer: _Answer | None = None
    if row.flags & READONLY and isinstance(reply, Packed) and not server.changes.unfinished:
        hits = server.keyspace_hits - hits
        answer = _Answer(waiter, reply, hits, server.keyspace_misses - misses)
    finish(server, call)
    server.unpark(session, reply)
    return answer


def _serve_alike(server: Server, waiter: Waiter, answer: _Answer) -> None:
    """As ``_serve``, with the answer to the request before."""
    session = session_of(waiter)
    call = server.call
    call.session = session
    call.argv = waiter.parked.argv
    server.keyspace_hits += answer.hits
    server.keyspace_misses += answer.misses
    finish(server, call)
    server.unpark(session, answer.reply)


def _set_alarms(server: Server, lines: list[Line]) -> None:
    """See that lines are looked at when time alone has made something ready for them."""
    for line in lines:
        if line.ripens():
            now_ms = server.clock_ns // 1_000_000
            for alarm in line.new_alarms(_value_at(server, line), now_ms):
                server.blocking.set_alarm(alarm)
                server.host.wake_at(monotonic_ms() + alarm.moment_ms - now_ms)
