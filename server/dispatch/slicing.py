"""Runs lengthy requests in slices, between which other clients have their turns.

A request of a million keys takes half a second, and a command is one synchronous call: all clients
would wait for it. So such a request is run for two milliseconds at a time. It stays atomic: no
client can see that it is not done in one moment.

- While its keys are collected and its words checked, nothing is changed and all others go on.
- From its first change to its last, requests that name one of its keys wait. So do EXEC with such a
  request or watch, commands that see keys without naming them (SCAN, DBSIZE, FLUSHALL, SAVE ...),
  and clients blocked on one of its keys. All others go on: they have nothing to do with it, so it
  makes no difference whether they come before or after it. INFO may count some of the keys.
- Its record is one command, which goes to the append-only file when all is done. A crash before
  that leaves nothing of it, and no client had an answer to it.
- No key expires by itself meanwhile, no consumer is reclaimed, and no snapshot or rewrite takes the
  state of a moment within it.

There is one such request at a time; the next one waits. In MULTI, and while a file is loaded, a
request is run in one piece whatever its length.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from headrace.compat.errors import CommandError
from headrace.protocol.requests import request_bytes
from headrace.server.clients.session import AT_WORK, PAUSED, Session
from headrace.server.clock import MS
from headrace.server.dispatch.call import LENGTHY_WORDS, Lengthy
from headrace.server.dispatch.dispatcher import Dispatcher, Slicing
from headrace.server.dispatch.invoke import count_call, crashed, failed, lap, measure, show_monitors
from headrace.server.dispatch.key_specs import has_keys, key_positions
from headrace.server.dispatch.rows import PUBSUB, SCRIPT_RUNNER, Command
from headrace.server.dispatch.serving import serve_ready
from headrace.server.gate import KEYS_MEASURED, LENGTHY_AT_WORK, MONITORED
from headrace.server.waiting import Queue

log: Final = logging.getLogger("headrace")

SLICE_NS: Final = 2_000_000
SLICE_WORDS: Final = 512  # between two looks at the clock
_PREPARING: Final = 0
_CHANGING: Final = 1
_DONE: Final = 2
_HARMLESS: Final = frozenset(  # they take no keys, and see none
    b"command discard info lastsave latency lolwut multi role slowlog time unwatch".split()
)


def begin(dispatcher: Dispatcher, session: Session, row: Command, argv: list[bytes]) -> bool:
    """Begin to run an admitted request in slices; False when it is to be run in one piece."""
    if row.lengthy is None or dispatcher.slicing is not None:
        return False
    server = dispatcher.server
    call = dispatcher.call
    call.session = session
    call.db = session.db
    call.now_ms = server.clock.now_ns // MS
    call.row = row
    call.argv = argv
    try:
        lengthy = row.lengthy(call)
    except CommandError:  # which its own function will raise again
        return False
    if lengthy is None:
        return False
    run = _Run(dispatcher, session, row, lengthy)
    dispatcher.slicing = run
    server.gate.work = run
    server.gate.set(LENGTHY_AT_WORK, True)
    session.special |= AT_WORK
    run.go_on()
    return True


class _Run(Slicing):
    def __init__(
        self, dispatcher: Dispatcher, session: Session, row: Command, lengthy: Lengthy
    ) -> None:
        self._dispatcher: Final = dispatcher
        self._server: Final = dispatcher.server
        self._session: Final = session
        self._db: Final = session.db
        self._row: Final = row
        self._lengthy: Final = lengthy
        self._phase = _PREPARING
        self._at = lengthy.first
        self._spent_ns = 0
        self._held: Final[list[Session]] = []
        self._postponed: Final[list[Queue]] = []

    # Requests of others

    def holds_back(self, session: Session, row: Command, argv: list[bytes]) -> bool:
        if not self._bars(session, row, argv):
            return False
        session.special |= PAUSED
        self._held.append(session)
        return True

    def _bars(self, session: Session, row: Command, argv: list[bytes]) -> bool:
        if row.lengthy is not None and len(argv) >= LENGTHY_WORDS:
            return True
        if self._phase != _CHANGING:
            return False
        if row.name != b"exec":
            return self._concerns(row, argv)
        for _, key in session.watched:
            if self._lengthy.keys.holds(key):
                return True
        transaction = session.transaction
        if transaction is not None:
            for number, queued in enumerate(transaction.rows):
                assert isinstance(queued, Command)
                if self._concerns(queued, transaction.requests[number]):
                    return True
        return False

    def _concerns(self, row: Command, argv: list[bytes]) -> bool:
        """Return whether a request sees or changes a key of ours, in whichever database."""
        if row.flags & SCRIPT_RUNNER:
            return True  # it need not name what it touches
        if has_keys(row):
            keys = self._lengthy.keys
            for position in key_positions(row, argv):
                if keys.holds(argv[position]):
                    return True
            return False
        if row.of_connection:
            return row.name == b"client|pause"  # what it promises is not true yet
        return not (
            row.flags & PUBSUB
            or row.name == b"config|get"
            or row.name.partition(b"|")[0] in _HARMLESS
        )

    def postpones(self, queue: Queue) -> bool:
        if self._phase != _CHANGING:
            return False
        keys = self._lengthy.keys
        found = keys.holds(queue.key)
        if not found:
            for waiter in queue.waiters():
                for key in waiter.parked.keys:
                    if keys.holds(key):
                        found = True
        if found:
            self._postponed.append(queue)
        return found

    # Slices

    def go_on(self) -> None:
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        if self._phase == _DONE:
            self._tidy()
        elif not self._server.stopping:
            self._slice(SLICE_NS)

    def finish_now(self) -> None:
        while self._phase != _DONE:
            self._slice(SLICE_NS)

    def _slice(self, budget_ns: int) -> None:
        server = self._server
        call = self._dispatcher.call
        server.clock.refresh()
        call.session = self._session
        call.db = self._db
        call.now_ms = server.clock.now_ns // MS
        call.row = self._row
        call.argv = self._lengthy.argv
        call.may_block = False
        server.tracking.caller = self._session
        try:
            done = self._work(time.perf_counter_ns() + budget_ns)
            reply: object = self._lengthy.finish(call) if done else None
        except CommandError as error:
            done = True
            reply = failed(server, self._row, error.line)
        except Exception:
            log.exception("command %r failed with an internal error", self._row.name)
            done = True
            reply = crashed(server, self._row)
        if server.changes.expired:
            server.changes.report_expired()
        server.changes.end_command(self._session.written)
        server.tracking.caller = None
        self._spent_ns += lap(server)
        if done:
            self._end(reply)
        self.go_on()

    def _work(self, until_ns: int) -> bool:
        """Go through words until the time is up; True at the end of all."""
        call = self._dispatcher.call
        lengthy = self._lengthy
        size = len(lengthy.argv)
        many = SLICE_WORDS // lengthy.step * lengthy.step
        while self._at < size:
            high = min(size, self._at + many)
            if self._phase == _PREPARING:
                lengthy.prepare(call, self._at, high)
            else:
                lengthy.change(call, self._at, high)
            self._at = high
            if high >= size and self._phase == _PREPARING:
                lengthy.begin(call)
                self._phase = _CHANGING
                self._at = lengthy.first
            if time.perf_counter_ns() >= until_ns:
                break
        return self._at >= size

    def _end(self, reply: object) -> None:
        server = self._server
        session = self._session
        self._phase = _DONE
        self._dispatcher.slicing = None
        server.gate.work = None
        server.gate.set(LENGTHY_AT_WORK, False)
        call = self._dispatcher.call
        count_call(server, call, self._row, self._spent_ns)
        session.special &= ~AT_WORK
        if not session.closed:
            answered_bytes = session.answered_bytes
            session.answer(reply)
            if server.gate.reasons & KEYS_MEASURED:
                argv = self._lengthy.argv
                wire_bytes = request_bytes(argv) + session.answered_bytes - answered_bytes
                measure(server, self._row, argv, self._spent_ns, wire_bytes)
            if server.gate.reasons & MONITORED:
                show_monitors(server, session, self._row, self._lengthy.argv)
            server.tracking.tell_held(session)
            if session.out and not session.flush_pending:
                session.flush_pending = True
                session.peer.flush_soon()
            session.peer.resume_soon()
        server.blocking.ready.extend(self._postponed)
        self._postponed.clear()
        if server.blocking.ready:
            serve_ready(self._dispatcher)
        for held in self._held:
            held.special &= ~PAUSED
            held.peer.resume_soon()
        self._held.clear()

    def _tidy(self) -> None:
        parts = self._lengthy.keys.parts
        argv = self._lengthy.argv
        until_ns = time.perf_counter_ns() + SLICE_NS
        while parts or argv:
            if parts:
                parts.pop()
            else:
                del argv[-SLICE_WORDS:]
            if time.perf_counter_ns() >= until_ns:
                self.go_on()
                return
