"""Clients that wait for a key: they are parked, and served when it has become ready."""

from __future__ import annotations

from typing import Final

from headrace.protocol.replies import Encoded
from headrace.server.clients.session import BLOCKED, Session
from headrace.server.clock import monotonic_ms
from headrace.server.dispatch.call import Parked
from headrace.server.dispatch.invoke import finish, invoke
from headrace.server.dispatch.rows import READONLY, Command
from headrace.server.state import Server
from headrace.server.waiting.waiters import GroupQueue, Queue, Waiter
from headrace.storage.stream.delivery import claimable_since, has_new
from headrace.storage.stream.groups import NEVER
from headrace.storage.stream.stream import Stream


class _Answer:
    """A reply that has changed nothing and will be the same to who asks the same now.

    Args:
        waiter: whom it was given to.
        hits, misses: keys that were found and that were not.
    """

    def __init__(self, waiter: Waiter, reply: Encoded, hits: int, misses: int) -> None:
        self._row: Final = waiter.row
        self._argv: Final = waiter.parked.argv
        self._resp3: Final = waiter.session.resp3
        self._special: Final = waiter.session.special
        self.reply: Final = reply
        self.hits: Final = hits
        self.misses: Final = misses

    def fits(self, waiter: Waiter) -> bool:
        """Whether ``waiter``, of the same database, asks the same in the same way."""
        session = waiter.session
        return (
            waiter.row is self._row
            and waiter.parked.argv == self._argv
            and session.resp3 == self._resp3
            and session.special == self._special
        )


def park(server: Server, session: Session, row: Command, parked: Parked) -> None:
    """Let a client wait for what its request asks for.

    The request says how long; that is not counted by the time of day, which may be set meanwhile.
    """
    if parked.deadline_ms:
        parked.deadline_ms += monotonic_ms() - server.call.now_ms
    waiter = server.blocking.park(session, row, parked)
    session.special |= BLOCKED
    if waiter.deadline_ms:
        server.host.wake_at(waiter.deadline_ms)
    if parked.group is not None and parked.claim_ms >= 0:
        for key in parked.keys:
            _set_alarms(server, waiter.db_index, key, parked.group)


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
            if not queue.is_for_groups():
                _serve_each(server, queue)
            for group in list(queue.groups):
                _serve_group(server, queue, group)
    finally:  # one that cannot be served keeps nobody else waiting
        del ready[:looked_at]


def _serve_each(server: Server, queue: Queue) -> None:
    """Serve those who do not read for a group, and what one is given others may be given, too."""
    value = server.dbs[queue.db_index].get(queue.key, server.clock_ns // 1_000_000)
    last_id = (value.last_ms, value.last_seq) if isinstance(value, Stream) else None
    answer: _Answer | None = None
    for waiter in queue.candidates(last_id):
        if waiter.active:
            if answer is not None and answer.fits(waiter):
                _serve_alike(server, waiter, answer)
            else:
                answer = _serve(server, waiter)


def _serve(server: Server, waiter: Waiter) -> _Answer | None:
    """Run the request of a client that waits; the answer, if others may be given it, too."""
    call = server.call
    call.session = waiter.session
    call.db = server.dbs[waiter.db_index]
    call.now_ms = server.clock_ns // 1_000_000
    call.may_block = True
    hits = server.keyspace_hits
    misses = server.keyspace_misses
    reply = invoke(call, waiter.row, waiter.parked.argv)
    if isinstance(reply, Parked):
        server.blocking.park_again(waiter, reply)
        call.row = None  # it counts once, when it is served
        finish(server, call)
        return None
    answer: _Answer | None = None
    if isinstance(reply, Encoded) and waiter.row.flags & READONLY and not call.effects:
        hits = server.keyspace_hits - hits
        answer = _Answer(waiter, reply, hits, server.keyspace_misses - misses)
    finish(server, call)
    server.unpark(waiter.session, reply)
    return answer


def _serve_alike(server: Server, waiter: Waiter, answer: _Answer) -> None:
    """As ``_serve``, with the answer to the request before."""
    call = server.call
    call.session = waiter.session
    call.argv = waiter.parked.argv
    server.keyspace_hits += answer.hits
    server.keyspace_misses += answer.misses
    finish(server, call)
    server.unpark(waiter.session, answer.reply)


def _serve_group(server: Server, queue: Queue, name: bytes) -> None:
    """Serve those who read for a group at a key, one by one, while there is something to give.

    Who has left is passed over: what one is given, nobody else is.
    """
    while True:
        line = queue.groups.get(name)
        if line is None:
            return
        waiter = _next_of_group(server, queue, name, line)
        if waiter is None:
            break
        if waiter.session.peer.has_left():
            server.blocking.unpark(waiter.session)
            continue
        _serve(server, waiter)
        if waiter.active:
            break
    _set_alarms(server, queue.db_index, queue.key, name)


def _next_of_group(server: Server, queue: Queue, name: bytes, line: GroupQueue) -> Waiter | None:
    """Who is to be served next at a key for a group; None when nobody can be."""
    now_ms = server.clock_ns // 1_000_000
    stream = server.dbs[queue.db_index].get(queue.key, now_ms)
    group = stream.groups.get(name) if isinstance(stream, Stream) else None
    if not isinstance(stream, Stream) or group is None:
        return line.first()  # to be told so
    if has_new(stream, group):
        return line.first()
    if not line.claimers:
        return None
    since_ms = claimable_since(stream, group)
    return None if since_ms == NEVER else line.first_claimer(now_ms - since_ms)


def _set_alarms(server: Server, db: int, key: bytes, name: bytes) -> None:
    """See that a group's claiming readers are looked at when something gets old enough for them.

    What is delivered from now on is younger than what is pending, but XCLAIM can make it older.
    With nothing pending there is nothing to look at: what becomes pending while somebody waits
    makes the key ready.
    """
    blocking = server.blocking
    queue = blocking.group_queue(db, key, name)
    if queue is None or not queue.claimers:
        return
    now_ms = server.clock_ns // 1_000_000
    stream = server.dbs[db].get(key, now_ms)
    group = stream.groups.get(name) if isinstance(stream, Stream) else None
    since_ms = NEVER
    if isinstance(stream, Stream) and group is not None:
        since_ms = claimable_since(stream, group)
    if since_ms == NEVER:
        return
    earlier = since_ms < queue.alarmed_ms
    if not earlier and len(queue.alarms) == len(queue.claimers):
        return
    queue.alarmed_ms = since_ms
    for claim_ms in queue.claimers:
        if earlier or claim_ms not in queue.alarms:
            moment_ms = max(since_ms + claim_ms, now_ms + 1)
            blocking.set_alarm(db, key, name, claim_ms, moment_ms)
            server.host.wake_at(monotonic_ms() + moment_ms - now_ms)
