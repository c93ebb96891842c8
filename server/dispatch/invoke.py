"""Commands are run, one or several at once; their changes are made known, and their cost counted.

While HOTKEYS looks for the keys that cost most, the cost of each request is counted for its keys.
Only then does the gate have requests run one by one, so that otherwise none is tested for this.
"""

from __future__ import annotations

import errno
import logging
import os
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.type_errors import storage_error_line
from headrace.protocol.packing import packed_replies
from headrace.protocol.replies import ErrorReply, PackedReplies
from headrace.server.clients.session import IN_SCRIPT, TRACKED, Session
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.key_specs import key_positions
from headrace.server.dispatch.permission import redacted
from headrace.server.dispatch.rows import (
    ADMIN,
    FAST,
    SKIP_MONITOR,
    SKIP_SLOWLOG,
    WRITE,
    AlikeHandler,
    Command,
)
from headrace.server.gate import KEYS_MEASURED
from headrace.server.state import Server
from headrace.server.statistics.statistics import QUICK_NS
from headrace.storage.keyspace import Keyspace
from headrace.storage.value import StorageError

if TYPE_CHECKING:
    from headrace.server.statistics.hot_keys import HotKeys


def begin_measuring(server: Server, hot_keys: HotKeys) -> None:
    """Begin to look for hot keys, without what was found before."""
    server.statistics.hot_keys = hot_keys
    server.gate.set(KEYS_MEASURED, True)


def stop_measuring(server: Server) -> None:
    """Stop looking for hot keys, and keep what was found."""
    hot_keys = server.statistics.hot_keys
    assert hot_keys is not None
    hot_keys.stop(server.clock.monotonic_ms())
    server.gate.set(KEYS_MEASURED, False)


def stop_if_over(server: Server) -> None:
    """Stop at the end of the time that was asked for."""
    hot_keys = server.statistics.hot_keys
    assert hot_keys is not None
    if hot_keys.is_over(server.clock.monotonic_ms()):
        stop_measuring(server)


def measure(server: Server, row: Command, argv: list[bytes], ns: int, wire_bytes: int) -> None:
    """Count the cost of a request for its keys, if it names any."""
    hot_keys = server.statistics.hot_keys
    assert hot_keys is not None
    positions = key_positions(row, argv)
    if positions:
        hot_keys.note([argv[position] for position in positions], ns, wire_bytes)


log: Final = logging.getLogger("headrace")
MOST_ALIKE: Final = 128  # requests that are run, or queued, at once
STEP_NS: Final = 1_000_000_000  # if it seems to take this long, the clock may have been set


def invoke(call: Call, row: Command, argv: list[bytes]) -> object:
    """Run the function of a command and nothing else; EXEC runs its queue through here."""
    server = call.server
    call.row = row
    call.argv = argv
    handler = row.run
    assert handler is not None
    if server.data.guarded and row.flags & WRITE and not _needs_no_guard(server, row):
        for position in key_positions(row, argv):
            call.db.before_change(argv[position])
    try:
        reply = handler(call)
    except CommandError as error:
        reply = failed(server, row, error.line)
    except StorageError as refusal:
        reply = failed(server, row, storage_error_line(refusal))
    except MemoryError:
        log.critical("command %r failed: out of memory", argv[0])
        reply = crashed(server, row)
    except Exception as fault:
        if _lacks_files(fault):  # before anything was changed
            log.warning("command %r failed: %s", argv[0], fault)
            reply = failed(server, row, errors.TOO_MANY_FILES)
        else:
            log.exception("command %r failed with an internal error", argv[0])
            reply = crashed(server, row)
    changes = server.changes
    if changes.expired:
        changes.report_expired()
    return reply


def _lacks_files(fault: Exception) -> bool:
    """Return whether a lazy import or open failed for want of descriptors."""
    if isinstance(fault, OSError):
        return fault.errno in (errno.EMFILE, errno.ENFILE)
    return isinstance(fault, ImportError) and os.strerror(errno.EMFILE) in str(fault)


def alike_until(requests: list[list[bytes]], at: i64, end: i64, of_any_key: bool = False) -> i64:
    """Return where requests after ``at`` stop having as many words, the same name and second word.

    The second word is their key, or a subcommand; it does not matter if they are ``of_any_key``.
    They stop at ``end`` or after ``MOST_ALIKE`` at the latest.
    """
    first = requests[at]
    width = len(first)
    end = min(end, at + MOST_ALIKE)
    at += 1
    if at >= end or len(requests[at]) != width:  # mostly so, where commands take turns
        return at
    name = first[0]
    key = first[1]
    while at < end:
        words = requests[at]
        if len(words) != width or not (of_any_key or words[1] is key or words[1] == key):
            break
        if words[0] is not name and words[0] != name:  # the parser repeats words that repeat
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
) -> tuple[int, PackedReplies]:
    """Run some of ``requests[at:end]`` at once; return how many, or ``NONE_ALIKE``, and replies."""
    call.row = row
    call.argv = requests[at]
    if server.data.guarded and row.flags & WRITE and not _needs_no_guard(server, row):
        _guard_alike(call.db, requests, at, end)
    try:
        count, replies = handler(call, requests, at, end)
        if call.session.special & TRACKED and count > 0 and not row.remembers:
            _note_alike(server, call.session, row, requests, at, at + count)
        return count, replies
    except Exception:
        log.exception("command %r failed with an internal error", row.name)
        return 1, packed_replies([crashed(server, row)], call.session.resp3)


def _needs_no_guard(server: Server, row: Command) -> bool:
    """Return whether only sizes are kept, and the table of keys sees to them by itself."""
    return row.replaces and server.data.freezing is None


def _guard_alike(db: Keyspace, requests: list[list[bytes]], at: int, end: int) -> None:
    """Notify listeners before requests change the keys that they name first."""
    last = b""
    for number in range(at, end):
        key = requests[number][1]
        if key is not last:
            last = key
            db.before_change(key)


def note_reads(server: Server, session: Session, row: Command, argv: list[bytes]) -> None:
    """Remember the keys that a client that tracks has read by a request that has been run."""
    if row.reads_second_word:
        server.tracking.remember_one(session, argv[1])
    elif row.reads_keys:
        server.tracking.remember(session, [argv[at] for at in key_positions(row, argv)])


def _note_alike(
    server: Server, session: Session, row: Command, requests: list[list[bytes]], at: int, end: int
) -> None:
    if row.reads_second_word:
        server.tracking.remember_alike(session, requests, at, end)
    else:
        for number in range(at, end):
            note_reads(server, session, row, requests[number])


def end_tracked(server: Server, session: Session, row: Command, argv: list[bytes]) -> None:
    """Remember what a client that tracks has read, and notify it of its own changes."""
    if session.special & TRACKED:
        note_reads(server, session, row, argv)
    server.tracking.end_request()


def failed(server: Server, row: Command, line: bytes) -> ErrorReply:
    """Return the reply to a command that was refused, and count it."""
    row.failed_calls += 1
    server.statistics.counters.count_error(line)
    return ErrorReply(line)


def crashed(server: Server, row: Command) -> ErrorReply:
    """Report a bug of ours, and stop when the keyspace may have been left half changed."""
    server.statistics.counters.unexpected_errors += 1
    if row.flags & WRITE:
        server.fail("a write failed half way: the append-only file is the truth")
    return failed(server, row, errors.INTERNAL)


def finish(server: Server, call: Call, row: Command | None) -> None:
    """Make known what has been run, and count its time for a row, unless that is None."""
    server.changes.end_command(call.session.written)
    spent_ns = lap(server)
    if row is not None:
        count_call(server, call, row, spent_ns)


def finish_own(server: Server) -> None:
    """Make known what the server has done by itself."""
    server.changes.end_command()
    lap(server)


def lap(server: Server) -> int:
    """Set the time to now; return the nanoseconds since it was last set."""
    now_ns = server.clock.read_ns()
    spent_ns = now_ns - server.clock.now_ns
    server.clock.now_ns = now_ns
    if 0 <= spent_ns < STEP_NS:
        return spent_ns
    return server.clock.without_step(spent_ns)


def count_call(server: Server, call: Call, row: Command, spent_ns: int) -> None:
    """Count one call in the statistics of its row and, where it was slow, in the logs."""
    if spent_ns < QUICK_NS and server.statistics.track_latency:  # as ``count`` does
        row.calls += 1
        row.nsec += spent_ns
        row.quick_calls += 1
    else:
        row.count(1, spent_ns, server.statistics.track_latency)
    if spent_ns >= server.statistics.slow_ns:
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
    """Count as ``count_call`` requests that were run at once; ``spent_ns`` is what all took."""
    each_ns = spent_ns // count
    row.count(count, each_ns, server.statistics.track_latency)
    if each_ns >= server.statistics.slow_ns:
        for argv in requests[at : at + count]:
            call.argv = argv
            _note_slow(server, call, row, each_ns)
    elif spent_ns >= server.statistics.slow_ns:  # one held up all: not known which
        _note_slow(server, call, row, spent_ns)


def _note_slow(server: Server, call: Call, row: Command, spent_ns: int) -> None:
    usec = spent_ns // 1000
    at_s = server.clock.now_ns // 1_000_000_000
    config = server.config
    threshold_us = config.slowlog_log_slower_than
    if 0 <= threshold_us <= usec and not row.flags & SKIP_SLOWLOG:
        session = call.session
        address = b"" if session.special & IN_SCRIPT else session.address
        server.statistics.slowlog.add(call.argv, at_s, usec, address, session.name, config)
    event = b"fast-command" if row.flags & FAST else b"command"
    server.statistics.latency.sample(event, at_s, usec // 1000)


def show_monitors(server: Server, session: Session, row: Command, argv: list[bytes]) -> None:
    """Show a request that has been run to the clients that called MONITOR."""
    if not row.flags & (SKIP_MONITOR | ADMIN):
        server.clients.feed_monitors(session, redacted(row.name, argv), server.clock.now_ns)
