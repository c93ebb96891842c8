"""One request from start to end: the only place where effects leave a command.

Synchronous on purpose. With no ``await`` between the first read and the last effect, the event
loop itself is the lock and no other client can come between.
"""

from __future__ import annotations

import logging
from typing import Final

from compat import errors
from compat.errors import MONITOR_TOUCHES_KEYS, CommandError
from compat.storage_errors import storage_error_line
from protocol.replies import NO_REPLY, QUEUED, ErrorReply, write_reply
from server.blocking import Place, Waiter
from server.call import Call, Parked
from server.clock import read_ns
from server.keyspecs import key_positions
from server.redaction import redacted
from server.registry import (
    ADMIN,
    DENYOOM,
    FAST,
    LOADING,
    NO_AUTH,
    NO_MULTI,
    NONE_ALIKE,
    READONLY,
    SKIP_MONITOR,
    SKIP_SLOWLOG,
    TABLE,
    WRITE,
    AlikeHandler,
    Command,
)
from server.session import (
    BLOCKED,
    CLOSING,
    HOLD,
    IN_MULTI,
    MONITORING,
    NEEDS_AUTH,
    PAUSED,
    SUBSCRIBED,
    Session,
)
from server.state import (
    LOADING_DATA,
    MEMORY_LIMITED,
    MONITORED,
    PAUSED_ALL,
    PAUSED_WRITES,
    SAVE_FAILED,
    WRITES_REFUSED,
    Server,
)
from storage.errors import StorageError
from storage.stream.delivery import claimable_since, has_new
from storage.stream.groups import NEVER
from storage.stream.stream import Stream

log: Final = logging.getLogger("headrace")

OUTPUT_PAUSE_BYTES: Final = 1024 * 1024  # of answers in hand at which running requests pauses
MOST_ALIKE: Final = 128  # requests that are run at once
QUICK_NS: Final = 2000  # calls that take less are not told apart
MOST_NAMES: Final = 4096  # spellings of command names that are remembered
_UNQUEUED: Final = frozenset((b"exec", b"discard", b"multi", b"watch", b"quit", b"reset"))
_FOR_SUBSCRIBERS: Final = (
    b"ping",
    b"subscribe",
    b"ssubscribe",
    b"psubscribe",
    b"unsubscribe",
    b"sunsubscribe",
    b"punsubscribe",
    b"quit",
    b"reset",
)
_QUEUED_LINE: Final = b"+QUEUED\r\n"
_REPLICATED_READS: Final = (b"publish", b"spublish")


class Held:
    """Says that the request was not run and is to be offered again; see ``HELD``."""


HELD: Final = Held()


def execute(server: Server, session: Session, requests: list[list[bytes]]) -> int:
    """Run requests in order and answer them in ``session.out``; how many are done with.

    The others are to be offered again: one was held back or made the session wait, or the answers
    have come to more than ``OUTPUT_PAUSE_BYTES``.

    ``server.clock_ns`` is the time of the first command, and afterwards that when the last ended.
    """
    session.answered_bytes = 0
    size = len(requests)
    at = 0
    while at < size and not (session.special & HOLD or session.answered_bytes > OUTPUT_PAUSE_BYTES):
        argv = requests[at]
        name = argv[0]
        row = server.last_row
        if row is None or name != server.last_name:
            row = server.rows.get(name)
            server.last_name = name
            server.last_row = row
        end = size
        if row is not None and row.subcommands:
            end = at + 1  # the next one may be of another subcommand
            row = row.spelled.get(argv[1]) if len(argv) > 1 else None
        if row is None or row.run is None or not row.arity_fits(len(argv)):
            end = at + 1
            try:
                row = find_row(server, argv)
            except CommandError as error:
                session.answer(refuse(server, session, None, argv, error.line))
                at = end
                continue
        session.last_row = row
        if not session.special and not server.special:
            at = run(server, session, row, requests, at, end)
        elif session.special == IN_MULTI and not server.special and _is_queued(row):
            at = _queue_same(server, session, row, requests, at, end)
        else:
            verdict = _admit(server, session, row, argv)
            if verdict is HELD:
                break
            if verdict is None:
                run(server, session, row, requests, at, at + 1)
                if server.special & MONITORED:
                    pieces = len(session.out)
                    show_monitors(server, session, row, argv)
                    for line in session.out[pieces:]:
                        session.answered_bytes += len(line)
            else:
                session.answer(verdict)
            at += 1
    return at


def find_row(server: Server, argv: list[bytes]) -> Command:
    """The row of a request, subcommand and arity checked.

    Raises:
        CommandError: for an unknown command or subcommand, or a wrong number of words.
    """
    name = argv[0].lower()
    row = TABLE.get(name)
    if row is None:
        raise CommandError(errors.unknown_command(argv))
    if len(server.rows) < MOST_NAMES:
        server.rows[argv[0]] = row
    if row.subcommands and len(argv) > 1:
        child = row.subcommands.get(argv[1].lower())
        if child is None:
            raise CommandError(errors.unknown_subcommand(name, argv[1]))
        if len(row.spelled) < MOST_NAMES:
            row.spelled[argv[1]] = child
        row = child
    if row.run is None or not row.arity_fits(len(argv)):
        row.rejected_calls += 1
        raise CommandError(errors.wrong_arity(row.name))
    return row


def show_monitors(server: Server, session: Session, row: Command, argv: list[bytes]) -> None:
    """Show a request that has been run to the clients that called MONITOR."""
    if not row.flags & (SKIP_MONITOR | ADMIN):
        server.feed_monitors(session, redacted(argv))


def refuse(
    server: Server, session: Session, row: Command | None, argv: list[bytes], line: bytes
) -> ErrorReply:
    """The reply to a request that is not run.

    Inside MULTI it fails the transaction; EXEC itself, refused, ends it and says so.
    """
    if row is not None:
        row.rejected_calls += 1
    transaction = session.transaction
    if transaction is not None:
        transaction.failed = True
    if argv[0].lower() == b"exec":
        session.end_transaction()
        server.unwatch(session)
        line = errors.exec_refused(line)
    server.stats.count_error(line)
    return ErrorReply(line)


def _admit(server: Server, session: Session, row: Command, argv: list[bytes]) -> object | None:
    """What stands in the way of a request: a reply or ``HELD``; None lets it run."""
    special = session.special
    if special & CLOSING:
        return NO_REPLY
    if special & NEEDS_AUTH and not row.flags & NO_AUTH:
        return refuse(server, session, row, argv, errors.NO_AUTH)
    if special & IN_MULTI and row.flags & NO_MULTI:
        return refuse(server, session, row, argv, errors.NOT_IN_MULTI)
    if server.special:
        line = _server_refuses(server, session, row)
        if line:
            return refuse(server, session, row, argv, line)
    if special & SUBSCRIBED and not session.resp3 and row.name not in _FOR_SUBSCRIBERS:
        return refuse(server, session, row, argv, errors.not_in_subscriber(row.name))
    if special & MONITORING and row.flags & (READONLY | WRITE):
        return refuse(server, session, row, argv, MONITOR_TOUCHES_KEYS)
    if server.special & LOADING_DATA and not row.flags & LOADING:
        return refuse(server, session, row, argv, errors.LOADING)
    if server.special & (PAUSED_ALL | PAUSED_WRITES) and _is_paused(server, session, row):
        session.special |= PAUSED
        return HELD
    if special & IN_MULTI and _is_queued(row):
        _queue(session, row, argv)
        _bound_queue(server, session)
        return QUEUED
    return None


def _is_queued(row: Command) -> bool:
    return row.name not in _UNQUEUED and not row.flags & NO_MULTI


def _queue_same(
    server: Server, session: Session, row: Command, requests: list[list[bytes]], at: int, end: int
) -> int:
    """Queue a request and some after it, up to ``end``, of the same command and as many words.

    Returns: the place of the first one that was not queued.
    """
    argv = requests[at]
    following = at
    end = min(end, at + MOST_ALIKE)  # what is queued and what is answered is to be bounded
    while following < end:
        words = requests[following]
        if len(words) != len(argv) or words[0] != argv[0]:
            break
        _queue(session, row, words)
        following += 1
    _bound_queue(server, session)
    wire = _QUEUED_LINE * (following - at)
    session.out.append(wire)
    session.answered_bytes += len(wire)
    return following


def _queue(session: Session, row: Command, argv: list[bytes]) -> None:
    transaction = session.transaction
    assert transaction is not None
    if transaction.failed or session.watch_broken:
        return  # it will not be run: keeping it would only cost memory
    transaction.rows.append(row)
    transaction.requests.append(argv)
    for argument in argv:
        transaction.size_bytes += len(argument)
    if row.flags & WRITE or row.name in _REPLICATED_READS:
        transaction.writes = True
    if row.flags & DENYOOM:
        transaction.grows = True


def _bound_queue(server: Server, session: Session) -> None:
    """Drop a client whose queue outgrows what it may have sent without being served."""
    transaction = session.transaction
    limit_bytes = server.config.client_query_buffer_limit
    if transaction is not None and transaction.size_bytes > limit_bytes:
        server.stats.query_buffer_disconnections += 1
        log.warning("client id=%d closed: query buffer limit reached", session.id)
        session.peer.abort()


def _server_refuses(server: Server, session: Session, row: Command) -> bytes:
    transaction = session.transaction
    writes = bool(row.flags & WRITE) or (
        row.name == b"exec" and transaction is not None and transaction.writes
    )
    if server.special & MEMORY_LIMITED and _needs_memory(session, row) and server.over_maxmemory():
        return errors.OUT_OF_MEMORY
    if server.special & SAVE_FAILED and (writes or row.name == b"ping"):
        return errors.MISCONF_SNAPSHOT
    if server.special & WRITES_REFUSED and (writes or row.name == b"ping"):
        return errors.MISCONF_AOF % server.write_error
    return b""


def _needs_memory(session: Session, row: Command) -> bool:
    if row.flags & DENYOOM:
        return True
    transaction = session.transaction
    return row.name == b"exec" and transaction is not None and transaction.grows


def _is_paused(server: Server, session: Session, row: Command) -> bool:
    if server.special & PAUSED_ALL:
        return True
    if row.flags & WRITE or row.name in _REPLICATED_READS:
        return True
    transaction = session.transaction
    return row.name == b"exec" and transaction is not None and transaction.writes


def run(
    server: Server, session: Session, row: Command, requests: list[list[bytes]], at: int, end: int
) -> int:
    """Run an admitted request and answer it, and those up to ``end`` that are alike.

    Each one is the command, then its effects, then who was waiting for them. The next one is run
    where it is the same command with as many words and nothing has come up that it would have to
    be admitted for.

    Returns: the place of the first request that was not run.
    """
    call = server.call
    call.session = session
    call.db = session.db
    call.now_ms = server.clock_ns // 1_000_000
    call.may_block = not session.special & IN_MULTI
    handler = row.run_alike
    until = at + 1 if handler is None else alike_until(requests, at, end)
    if handler is not None and until > at + 1:
        count, wire = run_alike(server, call, row, handler, requests, at, until)
        if count > 0:
            count_alike(server, call, row, requests, at, count, _lap(server))
            session.out.append(wire)
            session.answered_bytes += len(wire)
            return at + count
        if count == NONE_ALIKE:
            handler = None
    out = session.out
    ready = server.blocking.ready
    argv = requests[at]
    while True:
        pieces = len(out)
        reply = invoke(call, row, argv)
        at += 1
        if isinstance(reply, Parked):
            _park(server, session, row, reply)
            call.row = None  # it counts once, when it is served
            reply = NO_REPLY
            finish(server, call)
        else:
            if call.effects or server.aof is not None:
                _make_known(server, call)
            count_call(server, call, row, _lap(server))
        if ready:
            serve_ready(server)
            end = at
        if len(out) == pieces and not session.special:
            session.answered_bytes += write_reply(out, reply, session.resp3)
        else:
            session.answer(reply, pieces)
        if at >= end or session.special or server.special:
            return at
        following = requests[at]
        if len(following) != len(argv) or following[0] != argv[0]:
            return at
        if session.answered_bytes > OUTPUT_PAUSE_BYTES:
            return at
        if handler is not None and alike_until(requests, at, end) > at + 1:
            return at
        argv = following
        call.now_ms = server.clock_ns // 1_000_000


def alike_until(requests: list[list[bytes]], at: int, end: int) -> int:
    """Where requests after ``at`` stop having as many words, the same name and the same key.

    At ``end``, or after ``MOST_ALIKE``, at the latest.
    """
    first = requests[at]
    width = len(first)
    name = first[0]
    key = first[1]
    end = min(end, at + MOST_ALIKE)
    at += 1
    while at < end:
        words = requests[at]
        if len(words) != width or words[1] != key or words[0] != name:
            break
        at += 1
    return at


def run_alike(
    server: Server,
    call: Call,
    row: Command,
    handler: AlikeHandler,
    requests: list[list[bytes]],
    at: int,
    end: int,
) -> tuple[int, bytes]:
    """Run some of ``requests[at:end]`` at once; how many, or ``NONE_ALIKE``, and their replies.

    They are those that ``alike_until`` tells.
    """
    call.row = row
    call.argv = requests[at]
    try:
        return handler(call, requests, at, end)
    except Exception:
        log.exception("command %r failed with an internal error", row.name)
        return 1, b"-" + _crashed(server, row).text + b"\r\n"


def _park(server: Server, session: Session, row: Command, parked: Parked) -> None:
    waiter = server.blocking.park(session, row, parked)
    session.special |= BLOCKED
    if waiter.deadline_ms:
        server.host.wake_at(waiter.deadline_ms)
    if parked.group is not None and parked.claim_ms >= 0:
        for key in parked.keys:
            _set_alarms(server, (waiter.db_index, key), parked.group)


def finish(server: Server, call: Call) -> None:
    """Make the effects of what has been run known and account for its time."""
    _make_known(server, call)
    spent_ns = _lap(server)
    if call.row is not None:
        count_call(server, call, call.row, spent_ns)


def _make_known(server: Server, call: Call) -> None:
    effects = call.effects
    if effects:
        server.tell(effects)
        effects.clear()
    aof = server.aof
    if aof is not None and aof.pending:
        aof.end_command()


def _lap(server: Server) -> int:
    """Set the time to now; how long it has been since it was set, in nanoseconds."""
    now_ns = read_ns()
    spent_ns = now_ns - server.clock_ns
    server.clock_ns = now_ns
    return max(0, spent_ns)  # less where the clock was set back


def count_call(server: Server, call: Call, row: Command, spent_ns: int) -> None:
    """Put one call into the statistics of its row and, where it was slow, into the logs."""
    _count(server, row, 1, spent_ns)
    if spent_ns >= server.slow_ns:
        _note_slow(server, call, row, spent_ns)


def count_alike(
    server: Server,
    call: Call,
    row: Command,
    requests: list[list[bytes]],
    at: int,
    count: int,
    spent_ns: int,
) -> None:
    """As ``count_call``, for requests that were run at once; ``spent_ns`` is what all took."""
    each_ns = spent_ns // count
    _count(server, row, count, each_ns)
    if each_ns >= server.slow_ns:
        for argv in requests[at : at + count]:
            call.argv = argv
            _note_slow(server, call, row, each_ns)
    elif spent_ns >= server.slow_ns:  # one of them has held up everybody: which is not known
        _note_slow(server, call, row, spent_ns)


def _count(server: Server, row: Command, count: int, each_ns: int) -> None:
    """Put calls that took ``each_ns`` nanoseconds into the statistics of their row."""
    row.calls += count
    row.nsec += count * each_ns
    if server.track_latency:
        if each_ns < QUICK_NS:
            row.quick_calls += count
        else:
            row.histogram[(each_ns // 1000).bit_length()] += count


def serve_ready(server: Server) -> None:
    """Run the requests of clients whose keys have become ready, until nothing more changes."""
    ready = server.blocking.ready
    while ready:
        place = next(iter(ready))
        del ready[place]
        value = server.dbs[place[0]].get(place[1], server.clock_ns // 1_000_000)
        last_id = (value.last_ms, value.last_seq) if isinstance(value, Stream) else None
        for waiter in server.blocking.candidates(place, last_id):
            if waiter.active:
                _serve(server, waiter)
        for group in server.blocking.groups_at(place):
            _serve_group(server, place, group)


def _serve_group(server: Server, place: Place, name: bytes) -> None:
    """Serve those who read for a group at a key, one by one, while there is something to give."""
    while True:
        waiter = _next_of_group(server, place, name)
        if waiter is None:
            break
        _serve(server, waiter)
        if waiter.active:
            break
    _set_alarms(server, place, name)


def _next_of_group(server: Server, place: Place, name: bytes) -> Waiter | None:
    """Who is to be served next at a key for a group; None when nobody can be."""
    queue = server.blocking.group_queue(place, name)
    if queue is None:
        return None
    now_ms = server.clock_ns // 1_000_000
    stream = server.dbs[place[0]].get(place[1], now_ms)
    group = stream.groups.get(name) if isinstance(stream, Stream) else None
    if not isinstance(stream, Stream) or group is None:
        return queue.first()  # to be told so
    if has_new(stream, group):
        return queue.first()
    if not queue.claimers:
        return None
    since_ms = claimable_since(stream, group)
    return None if since_ms == NEVER else queue.first_claimer(now_ms - since_ms)


def _set_alarms(server: Server, place: Place, name: bytes) -> None:
    """See that a group's claiming readers are looked at when something gets old enough for them.

    What is delivered from now on is younger than what is pending, but XCLAIM can make it older.
    With nothing pending there is nothing to look at: what becomes pending while somebody waits
    makes the key ready.
    """
    blocking = server.blocking
    queue = blocking.group_queue(place, name)
    if queue is None or not queue.claimers:
        return
    now_ms = server.clock_ns // 1_000_000
    stream = server.dbs[place[0]].get(place[1], now_ms)
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
            blocking.set_alarm(place, name, claim_ms, moment_ms)
            server.host.wake_at(moment_ms)


def _serve(server: Server, waiter: Waiter) -> None:
    call = server.call
    call.session = waiter.session
    call.db = server.dbs[waiter.db_index]
    call.now_ms = server.clock_ns // 1_000_000
    call.may_block = True
    reply = invoke(call, waiter.row, waiter.parked.argv)
    if isinstance(reply, Parked):
        server.blocking.park_again(waiter, reply)
        call.row = None  # it counts once, when it is served
        finish(server, call)
        return
    finish(server, call)
    server.unpark(waiter.session, reply)


def _note_slow(server: Server, call: Call, row: Command, spent_ns: int) -> None:
    usec = spent_ns // 1000
    at_s = server.clock_ns // 1_000_000_000
    config = server.config
    threshold_us = config.slowlog_log_slower_than
    if 0 <= threshold_us <= usec and not row.flags & SKIP_SLOWLOG:
        server.slowlog.add(call.argv, at_s, usec, call.session, config.slowlog_max_len)
    event = b"fast-command" if row.flags & FAST else b"command"
    server.latency.sample(event, at_s, usec // 1000)


def invoke(call: Call, row: Command, argv: list[bytes]) -> object:
    """Run the function of a command and nothing else; EXEC runs its queue through here."""
    server = call.server
    call.row = row
    call.argv = argv
    handler = row.run
    assert handler is not None
    if server.freezing is not None and row.flags & WRITE:
        for position in key_positions(row, argv):
            call.db.before_change(argv[position])
    try:
        reply = handler(call)
    except CommandError as error:
        reply = _failed(server, row, error.line)
    except StorageError as refusal:
        reply = _failed(server, row, storage_error_line(refusal))
    except Exception:
        log.exception("command %r failed with an internal error", argv[0])
        reply = _crashed(server, row)
    if server.expired_found:
        server.drain_expired(call)
    return reply


def _failed(server: Server, row: Command, line: bytes) -> ErrorReply:
    row.failed_calls += 1
    server.stats.count_error(line)
    return ErrorReply(line)


def _crashed(server: Server, row: Command) -> ErrorReply:
    """A bug of ours: say so, and stop when the keyspace may have been left half changed."""
    server.stats.unexpected_errors += 1
    if row.flags & WRITE:
        server.fail("a write failed half way: the append-only file is the truth")
    return _failed(server, row, errors.INTERNAL)
