"""MULTI, EXEC, DISCARD, WATCH, UNWATCH.

Between MULTI and EXEC requests are checked and queued by ``server.dispatch.admission``; a request
that is refused there makes EXEC fail as a whole. A key that changes after WATCH makes it answer
nil. What fails while EXEC runs is an error in its own place of the reply, and the rest still runs.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.protocol.packing import PackedArray
from headrace.protocol.replies import NULL_ARRAY, OK, ErrorReply, Packed
from headrace.protocol.requests import request_bytes
from headrace.server.clients.session import IN_MULTI, TRACKED, Transaction
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.invoke import (
    alike_until,
    count_alike,
    count_call,
    invoke,
    measure,
    note_reads,
    run_alike,
    show_monitors,
)
from headrace.server.dispatch.permission import lost_line
from headrace.server.dispatch.rows import MAY_REPLICATE, NONE_ALIKE, WRITE, Command
from headrace.server.gate import KEYS_MEASURED, MONITORED
from headrace.server.statistics.statistics import CallCounters

# As in Redis, a queued request is charged the bytes of EXEC and of the answers so far.
_EXEC_BYTES: Final = request_bytes([b"EXEC"])


def multi(call: Call) -> object:
    """Queue what follows until EXEC. Reply: OK."""
    session = call.session
    if session.transaction is not None:
        raise CommandError(errors.NESTED_MULTI)
    session.transaction = Transaction()
    session.special |= IN_MULTI
    return OK


def exec_(call: Call) -> object:
    """Run what MULTI queued, with nothing in between. Source: multi.c, execCommand.

    Reply: list of the replies; the null array when a watched key has changed.
    Raises: EXECABORT when a request was refused while queueing, or all is too much for regions.
    """
    session = call.session
    transaction = session.transaction
    if transaction is None:
        raise CommandError(errors.EXEC_WITHOUT_MULTI)
    server = call.server
    broken = session.watch_broken or server.watches.has_expired(session, call.now_ms)
    server.watches.unwatch(session)
    if transaction.failed or broken:
        session.drop_transaction()
        if transaction.failed:
            raise CommandError(errors.EXEC_ABORTED)
        return NULL_ARRAY
    writes = server.data.region is not None and transaction.flags_of_any & (WRITE | MAY_REPLICATE)
    if writes and transaction.size_bytes > server.config.aa_transaction_max_bytes:
        session.drop_transaction()
        raise CommandError(errors.exec_refused(errors.TRANSACTION_TOO_LARGE))
    row = call.row
    argv = call.argv
    session.unit_ns = server.clock.now_ns
    reply = _run_queue(call, transaction.rows, transaction.requests)
    session.unit_ns = 0
    call.row = row
    call.argv = argv
    session.end_transaction()
    return reply


def _run_queue(call: Call, rows: list[CallCounters], requests: list[list[bytes]]) -> Packed:
    """Run the queue; listeners are notified after each command, and the record is one unit.

    Each reply is encoded at once: the next command may change its value, and HELLO the protocol.
    """
    size = len(rows)
    replies = PackedArray(size)
    at = 0
    while at < size:
        row = rows[at]
        assert isinstance(row, Command)
        end = at + 1
        while end < size and rows[end] is row:
            end += 1
        _run_same(call, row, requests[at:end], replies)
        at = end
    return replies.packed()


def _run_same(call: Call, row: Command, requests: list[list[bytes]], replies: PackedArray) -> None:
    server = call.server
    session = call.session
    one_by_one = server.gate.reasons & (MONITORED | KEYS_MEASURED) or session.user.limited
    handler = None if one_by_one else row.run_alike
    started_ns = server.clock.read_ns()
    at = 0
    until = 0
    while at < len(requests):
        call.db = session.db
        count = 0
        if handler is not None:
            if until <= at:
                until = alike_until(requests, at, len(requests), row.alike_of_any_key)
            if until > at + 1:
                count, those = run_alike(server, call, row, handler, requests, at, until)
                if count == NONE_ALIKE:
                    handler = None
        if count > 0:
            replies.add_all(those)
            ended_ns = server.clock.read_ns()
            spent_ns = max(0, ended_ns - started_ns)
            count_alike(server, call, row, requests, at, count, spent_ns)
            at += count
            started_ns = ended_ns
        elif session.user.limited and (line := lost_line(server, session, row, requests[at])):
            server.statistics.counters.count_error(line)
            replies.add(ErrorReply(line), session.resp3)  # nor does the command count
            at += 1
        else:
            replies.add(invoke(call, row, requests[at]), session.resp3)
            server.changes.notify_listeners()
            if session.special & TRACKED:
                note_reads(server, session, row, requests[at])
            ended_ns = server.clock.read_ns()
            spent_ns = max(0, ended_ns - started_ns)
            count_call(server, call, row, spent_ns)
            if server.gate.reasons & KEYS_MEASURED:
                measure(server, row, requests[at], spent_ns, _EXEC_BYTES + replies.wire_bytes())
            if server.gate.reasons & MONITORED:
                show_monitors(server, session, row, requests[at])
            at += 1
            started_ns = ended_ns


def discard(call: Call) -> object:
    """Drop what MULTI queued, and all watches. Reply: OK."""
    if call.session.transaction is None:
        raise CommandError(errors.DISCARD_WITHOUT_MULTI)
    call.session.drop_transaction()
    call.server.watches.unwatch(call.session)
    return OK


def watch(call: Call) -> object:
    """Let the next EXEC fail when one of the keys changes. Reply: OK."""
    session = call.session
    if session.transaction is not None:
        raise CommandError(errors.WATCH_IN_MULTI)
    if not session.watch_broken:  # else EXEC will fail whatever is watched
        for key in call.argv[1:]:
            call.server.watches.watch(session, call.db, key, call.now_ms)
    return OK


def unwatch(call: Call) -> object:
    """Drop all watches. Reply: OK."""
    call.server.watches.unwatch(call.session)
    return OK
