"""One request from start to end: it is admitted, run and answered.

Synchronous on purpose. With no ``await`` between the first read and the last effect, the event
loop itself is the lock and no other client can come between.

A request takes one of five ways. What decides are two numbers: the bits of its session
(``Session.special``) and the reasons of the gate (``Gate.reasons``), which are zero for nearly all.

==================================  ====================  =====================================
session; gate                       way                   what it does
==================================  ====================  =====================================
no bit; no reason                   ``run``               runs it, with those alike behind it
``IN_MULTI`` alone; nothing looks   ``queue_same``        queues it, with those alike behind it
``TRACKED`` alone; no reason        ``_run_tracked``      ``run``, and notes what is read
any other; ``KEYS_MEASURED``        ``_run_measured``     ``admit``, and its cost by key
any other                           ``_run_admitted``     ``admit``, slices, ``run``, monitors
==================================  ====================  =====================================

``admit`` asks in this order, as Redis does, and the first that has something against it answers:
the connection ends, is a replica's or a region's; the user (NOAUTH, NOPERM); MULTI; memory is made
free; a script at work (BUSY); slots; memory, disk, replicas, role (OOM, MISCONF, NOREPLICAS,
READONLY); what subscribers and monitors may call; no data (MASTERDOWN, LOADING); CLIENT PAUSE,
which holds it back; a fault. What is left inside MULTI is queued.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat.errors import CommandError
from headrace.protocol.replies import NO_REPLY, write_reply
from headrace.protocol.requests import request_bytes
from headrace.server.clients.session import (
    BLOCKED,
    CACHING,
    CLOSING,
    HOLD,
    IN_MULTI,
    LONG,
    LOST,
    REPLICA,
    TRACKED,
    Session,
)
from headrace.server.dispatch.admission import (
    HELD,
    admit,
    cut_off,
    drop_replica,
    find_row,
    is_of_http,
    is_queued_unseen,
    queue_same,
    refuse,
)
from headrace.server.dispatch.call import LENGTHY_WORDS, Call
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import (
    alike_until,
    count_alike,
    count_call,
    end_tracked,
    finish,
    invoke,
    lap,
    measure,
    run_alike,
    show_monitors,
)
from headrace.server.dispatch.key_specs import key_positions
from headrace.server.dispatch.rows import DENYOOM, NONE_ALIKE, AlikeHandler, Command, row_of
from headrace.server.dispatch.serving import park, serve_ready
from headrace.server.dispatch.slicing import begin
from headrace.server.gate import KEYS_MEASURED, MEMORY_LIMITED, MONITORED
from headrace.server.state import Server
from headrace.server.waiting import Parked
from headrace.storage.key_table import MOST_AHEAD

OUTPUT_PAUSE_BYTES: Final = 1024 * 1024  # of answers in hand at which running requests pauses
_KEYS_AHEAD: Final = 8  # of a request, that are looked ahead at


def execute(
    dispatcher: Dispatcher, session: Session, requests: list[list[bytes]], at: i64, size: i64
) -> i64:
    """Run ``requests[at:size]`` in order, answer them in ``session.out``; return where it ended.

    The rest has to be offered again. It was not run because a request was held back or made the
    session wait, or because the answers have come to more than ``OUTPUT_PAUSE_BYTES``.

    At the beginning the clock has the time of the first command, and at the end the time at which
    the last one ended.
    """
    server = dispatcher.server
    session.answered_bytes = 0
    while at < size and not (session.special & HOLD or session.answered_bytes > OUTPUT_PAUSE_BYTES):
        argv = requests[at]
        name = argv[0]
        row = dispatcher.last_row
        last_name = dispatcher.last_name
        if row is None or (name is not last_name and name != last_name):
            row = dispatcher.turn_to(name)
        end = size
        if row is not None and row.subcommands:
            if len(argv) > 1:
                end = alike_until(requests, at, size)  # the next one may be of another subcommand
                row = row.spelled.get(argv[1])
            else:
                row = None
        if row is None or row.run is None or not row.arity_fits(len(argv)):
            end = at + 1
            row = _looked_up(dispatcher, session, argv)
            if row is None:
                if session.special & CLOSING:
                    break
                at = end
                continue
        session.last_row = row
        if not session.special and not server.gate.reasons:
            at = run(dispatcher, session, row, requests, at, end)
        elif session.special == IN_MULTI and is_queued_unseen(server, row):
            at = queue_same(server, session, row, requests, at, end)
        elif session.special == TRACKED and not server.gate.reasons:
            at = _run_tracked(dispatcher, session, row, requests, at, end)
        else:
            verdict = admit(dispatcher, session, row, argv)
            if verdict is HELD:
                break
            following = at + 1
            if verdict is not None:
                session.answer(verdict)
            elif server.gate.reasons & KEYS_MEASURED:
                _run_measured(dispatcher, session, row, requests, at)
            else:
                following = _run_admitted(dispatcher, session, row, requests, at, end)
            if session.special & CACHING:
                _end_caching(session, row)
            at = following
    return at


def _looked_up(dispatcher: Dispatcher, session: Session, argv: list[bytes]) -> Command | None:
    """Return the row of a request that was not found at once; None if refused or cut off."""
    server = dispatcher.server
    try:
        return find_row(dispatcher.rows, argv)
    except CommandError as error:
        if is_of_http(argv[0]):
            cut_off(server, session)
        elif session.special & REPLICA:
            drop_replica(session, argv[0])
        else:
            session.answer(refuse(server, session, None, argv, error.line))
            if session.special & CACHING:
                _end_caching(session, row_of(argv))
        return None


def _end_caching(session: Session, row: Command | None) -> None:
    """Drop what CLIENT CACHING said after the next request or transaction."""
    of_client = row is not None and row.name.startswith(b"client|")
    if not of_client and not session.special & (IN_MULTI | BLOCKED):
        session.special &= ~CACHING


def _run_admitted(
    dispatcher: Dispatcher,
    session: Session,
    row: Command,
    requests: list[list[bytes]],
    at: i64,
    end: i64,
) -> i64:
    """Run an admitted request, in slices where it is long, and show it to monitors.

    Those alike up to ``end`` may run with it if surely admitted, too. Returns: where it stopped.
    """
    server = dispatcher.server
    argv = requests[at]
    is_long = session.special & (LONG | LOST) == LONG and len(argv) >= LENGTHY_WORDS
    if is_long and begin(dispatcher, session, row, argv):
        return at + 1
    until = _admitted_until(server, session, row, requests, at, end)
    if session.special & (TRACKED | IN_MULTI):
        at = _run_tracked(dispatcher, session, row, requests, at, until)
    else:
        at = run(dispatcher, session, row, requests, at, until)
    if server.gate.reasons & MONITORED:
        pieces = len(session.out)
        show_monitors(server, session, row, argv)
        for line in session.out[pieces:]:
            session.answered_bytes += len(line)
    return at


def _admitted_until(
    server: Server, session: Session, row: Command, requests: list[list[bytes]], at: i64, end: i64
) -> i64:
    """Return the end of the requests that are surely admitted because the one at ``at`` is.

    A limit of memory is far from those that read, and from those that surely fit below it.
    """
    alone = server.gate.reasons != MEMORY_LIMITED or session.special & ~TRACKED
    if alone or row.run_alike is None:
        return at + 1
    if not row.flags & DENYOOM:
        return end
    return server.ready_evicting().fits_until(requests, at, end)


def _run_measured(
    dispatcher: Dispatcher, session: Session, row: Command, requests: list[list[bytes]], at: i64
) -> None:
    """Run one request as ``_run_admitted``, and count its cost for its keys, unless it waits."""
    calls = row.calls
    spent_ns = row.nsec
    answered_bytes = session.answered_bytes
    _run_admitted(dispatcher, session, row, requests, at, at + 1)
    server = dispatcher.server
    if row.calls != calls and server.gate.reasons & KEYS_MEASURED:
        argv = requests[at]
        wire_bytes = request_bytes(argv) + session.answered_bytes - answered_bytes
        measure(server, row, argv, row.nsec - spent_ns, wire_bytes)


def _run_tracked(
    dispatcher: Dispatcher,
    session: Session,
    row: Command,
    requests: list[list[bytes]],
    at: i64,
    end: i64,
) -> i64:
    """Run as ``run``, for a client that tracks keys, or may do so at the end of EXEC."""
    tracking = dispatcher.server.tracking
    tracking.caller = session
    at = run(dispatcher, session, row, requests, at, end)
    tracking.caller = None
    tracking.tell_held(session)  # of EXEC, where it has turned that off
    tracking.bound()
    return at


def run(
    dispatcher: Dispatcher,
    session: Session,
    row: Command,
    requests: list[list[bytes]],
    at: i64,
    end: i64,
) -> i64:
    """Run and answer an admitted request and those alike up to ``end``; return where that stopped.

    After each command, its changes are made known, and waiting clients are served. The next request
    is run here if it is the same command with as many words and need not be admitted.
    """
    server = dispatcher.server
    call = _begin_call(server, dispatcher.call, session)
    handler = row.run_alike
    until = at
    ahead = at  # the keys of the requests up to here were looked at ahead
    looks_ahead = row.has_keys and end - at > 1 and call.db.table.is_scattered()
    out = session.out
    ready = server.blocking.ready
    while True:
        if handler is not None and at + 1 < end:
            if until <= at:
                until = alike_until(requests, at, end, row.alike_of_any_key)
            if until > at + 1:
                count = _answer_alike(server, call, row, handler, requests, at, until)
                if count > 0:
                    return at + count
                if count == NONE_ALIKE:
                    handler = None
        if looks_ahead and at >= ahead:
            ahead = _look_ahead(call, row, requests, at, end)
        argv = requests[at]
        pieces = len(out)
        reply = invoke(call, row, argv)
        at += 1
        if isinstance(reply, Parked):
            reply = _parked(server, call, reply)
        else:
            if server.changes.unfinished:
                server.changes.end_command(session.written)
            count_call(server, call, row, lap(server))
        if session.special:
            end_tracked(server, session, row, argv)
        if ready:
            serve_ready(dispatcher)
            end = at
        if len(out) == pieces and not session.special:
            session.answered_bytes += write_reply(out, reply, session.resp3)
        else:
            session.answer(reply, pieces)
        if at >= end or session.special or server.gate.reasons:
            return at
        following = requests[at]
        if len(following) != len(argv) or following[0] != argv[0]:
            return at
        if session.answered_bytes > OUTPUT_PAUSE_BYTES:
            return at
        call.now_ms = server.clock.now_ns // 1_000_000


def _begin_call(server: Server, call: Call, session: Session) -> Call:
    call.session = session
    call.db = session.db
    call.now_ms = server.clock.now_ns // 1_000_000
    call.may_block = not session.special & IN_MULTI
    return call


def _look_ahead(call: Call, row: Command, requests: list[list[bytes]], at: i64, end: i64) -> i64:
    """Look ahead at the keys of requests of one command; return where these end."""
    until = alike_until(requests, at, min(end, at + MOST_AHEAD), True)
    if until > at + 1:
        # Mostly they stand in the same places in all of them.
        for place in [1] if row.has_one_key else key_positions(row, requests[at])[:_KEYS_AHEAD]:
            call.db.table.look_ahead(requests, at, until, place)
    return until


def _answer_alike(
    server: Server,
    call: Call,
    row: Command,
    handler: AlikeHandler,
    requests: list[list[bytes]],
    at: i64,
    end: i64,
) -> i64:
    """Run some of ``requests[at:end]`` at once and answer them; return as ``run_alike``."""
    count, replies = run_alike(server, call, row, handler, requests, int(at), int(end))
    if count > 0:
        session = call.session
        if server.changes.unfinished:  # what they did besides goes before what comes next
            server.changes.end_command(session.written)
        count_alike(server, call, row, requests, int(at), count, lap(server))
        session.out.append(replies.wire)
        session.answered_bytes += len(replies.wire)
    return count


def _parked(server: Server, call: Call, parked: Parked) -> object:
    """Let a client wait; it has no reply yet, and its command counts when it is served."""
    park(server, call.session, parked, call.now_ms)
    finish(server, call, None)
    return NO_REPLY
