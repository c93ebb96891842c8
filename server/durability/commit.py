"""Group commit: the changes of one turn of the event loop are written once, then its replies leave.

A reply is a promise. What it promises depends on ``appendfsync``:

``always``
    No reply to anything executed after an unsynced write, reads included, leaves before the sync
    that covers it. While syncs are short they run inline, because the hop to a thread and back
    costs more than the sync. When most of the last ones were slow, or while a snapshot or a base is
    written, which keeps the disk at work, they run in a thread: commands go on executing, and
    replies are held in two batches, those that the sync under way covers and those that need the
    next one. A failed write or sync stops the process before a reply leaves.
``everysec``
    Written before the reply leaves, so that a crash of the process loses nothing; synced about once
    a second in a thread, so that a crash of the machine loses about a second. Much data is synced
    sooner, in pieces, because a write that meets a sync waits for about as long as that takes.
``no``
    Written before the reply leaves; the system syncs when it likes.

Clients that wait for a reply send again when they get it, not quite at the same moment. A commit
that began with the first of them would leave all others to the next one. So under ``always`` a turn
is drawn out while more requests keep coming in: up to as many clients as the last commits had, and
for no longer than a part of what a sync takes.

A write may have to wait for a sync of the same file. So while one is under way the other policies
write in a second thread. Replies wait for it there, but not for long: after ``PATIENCE_S`` they
leave all the same, as Redis's do while it postpones a write. When the disk has been stuck for two
seconds the server waits for it, so that unwritten data does not fill the memory; Redis does the
same, and both count it in ``aof_delayed_fsync``.

The record of a request of very many words is written in that thread under every policy, and all
replies wait for it, except those that show the connection alone, as PING's does.

With the last two policies, records that cannot be written stay in memory, writes are refused
(MISCONF) and the write is tried again until the disk is back. After a sync that failed, the
contents of the disk are unknown, whatever the next sync reports: then the files are written anew.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.persistence.aof.file import AppendOnlyFile
from headrace.persistence.errors import advice
from headrace.server.clients.session import Peer, Session
from headrace.server.durability.files import Files, Rewriter, SyncWait
from headrace.server.durability.worker import AofWorker, as_os_error
from headrace.server.gate import WRITES_REFUSED
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

SLOW_SYNC_NS: Final = 1_000_000  # syncs that mostly take longer are sent to the thread
FAST_SYNC_NS: Final = 500_000  # syncs that mostly take less are brought back
LARGE_SYNC_BYTES: Final = 1024 * 1024  # so much is synced in the thread in any case
SYNCS_KEPT: Final = 9  # how many syncs are looked at: the one in the middle decides
GATHER_PART: Final = 2  # a turn is drawn out by this part of a sync at most
GATHER_MAX_NS: Final = 1_000_000
GATHER_IDLE_TURNS: Final = 3  # and ends when so many of the loop's turns brought nothing new
SYNC_PERIOD_S: Final = 1.0
SYNC_PIECE_BYTES: Final = 4 * 1024 * 1024  # so much is not left for the end of the period
SYNC_SHARE: Final = 4  # but as many times as long as it takes, the disk is left alone
STUCK_S: Final = 2.0
PATIENCE_S: Final = 0.1
RETRY_S: Final = 0.2
LOG_PERIOD_S: Final = 30.0

Held = tuple[Peer, bytes]


@mypyc_attr(allow_interpreted_subclasses=True)
class Committer:
    """Writes and syncs the append-only file of one server, and sends replies.

    A subclass may end turns in another way, such as without timers and threads.

    Attributes:
        failed: under ``always`` the disk failed: nothing leaves any more.
        rewriter: writes the files anew when their contents are unknown.
    """

    def __init__(self, server: Server, files: Files) -> None:
        self.failed = False
        self.rewriter: Rewriter | None = None
        self._server: Final = server
        self._files: Final = files
        self._sync: Final = AofWorker("aof-sync", _sync_file, self._synced)
        self._covered: list[Held] = []  # replies that the work under way covers
        self._waiting: list[Held] = []  # replies that need the one after it
        self._promised = False  # what is held waits for a sync, whatever the policy is by now
        self._timer: asyncio.TimerHandle | None = None
        self._when_free: Callable[[], None] | None = None
        self._logged_s = -LOG_PERIOD_S
        # Policy always
        self._sync_times_ns: Final[list[int]] = []  # of the last syncs
        self._sync_ns = 0  # what a sync mostly takes
        self._threaded = False
        self._gathering_since_ns = 0  # 0: the turn is not drawn out
        self._gathered = 0  # sessions when it was last looked at
        self._idle_turns = 0
        self._expected = 0  # sessions that the last commits had
        # The other policies
        self._writer: Final = AofWorker("aof-write", _write_file, self._written)
        self._patience: asyncio.TimerHandle | None = None
        self._postponed = False  # the write under way may have met a sync
        self._impatient = False  # the write under way takes too long: replies leave without it
        self._postponed_since_s = 0.0  # 0: no write has met the sync under way
        self._next_piece_s = 0.0  # not to be synced sooner

    # A turn

    def end_turn(self) -> None:
        """Write the changes of the turn, and send or hold its replies."""
        aof = self._files.aof
        if aof is None or self.failed:
            sessions = self._take_sessions()
            if not self.failed:
                _flush(sessions)
        elif self._is_strict():
            if not self._gather(aof):
                self._commit(aof, self._take_sessions())
        else:
            self._pass_on(aof, self._take_sessions())

    def send_waiting(self) -> None:
        """Send what waits for the end of the turn, which is far off, because a script runs.

        The script's own writes wait for its end. In a region the replies do, too.
        """
        aof = self._files.aof
        if aof is None:
            self.end_turn()
        elif aof.put_aside():
            if self.settle():
                self.end_turn()
            aof.put_back()

    def _is_strict(self) -> bool:
        """Return whether replies wait for a sync, be it only behind others that do."""
        return self._promised or self._server.config.appendfsync == b"always"

    def _take_sessions(self) -> list[Session]:
        """Return the sessions to send to, those that asked last first.

        A client that is answered first asks first again, and would run away from the others. In
        this order they stay together, and what they share, such as a part of a stream, stays in the
        processor.
        """
        sessions = self._server.clients.take_flushing()
        sessions.reverse()
        return sessions

    def _write(self, aof: AppendOnlyFile) -> bool:
        started_ns = time.perf_counter_ns()
        try:
            aof.write()
        except Exception as error:
            self._write_failed(as_os_error(error))
            return False
        self._write_succeeded(time.perf_counter_ns() - started_ns)
        return True

    def _write_succeeded(self, spent_ns: int) -> None:
        self._server.statistics.note_latency(b"aof-write", spent_ns)
        aof = self._files.aof
        if aof is not None:
            aof.written(self._server.clock.now_ns // 1_000_000)
        status = self._files.status
        if not status.write_ok:
            status.write_ok = True
            log.warning("The append-only file can be written again")
            self.show_trouble(b"")

    # Policy always

    def _gather(self, aof: AppendOnlyFile) -> bool:
        server = self._server
        count = len(server.clients.flushing) + len(self._covered)
        nothing = not aof.pending and aof.is_synced()
        if nothing or self._sync.busy or count >= self._expected:
            self._gathering_since_ns = 0
            return False
        now_ns = time.perf_counter_ns()
        if not self._gathering_since_ns:
            self._gathering_since_ns = now_ns
            self._gathered = count
            self._idle_turns = 0
        elif count > self._gathered:
            self._gathered = count
            self._idle_turns = 0
        else:
            self._idle_turns += 1
        longest_ns = min(self._sync_ns // GATHER_PART, GATHER_MAX_NS)
        if self._idle_turns >= GATHER_IDLE_TURNS or now_ns - self._gathering_since_ns > longest_ns:
            self._gathering_since_ns = 0
            return False
        server.host.flush_soon()
        return True

    def _commit(self, aof: AppendOnlyFile, sessions: list[Session]) -> None:
        if self._sync.busy:
            # Nothing is written now: it might have to wait for the sync.
            later = bool(self._waiting) or aof.pending or self._writer.busy
            _hold(_flush_free(sessions), self._waiting if later else self._covered)
            self._promised = True
            return
        if self._writer.busy and not self._postponed:
            _hold(_flush_free(sessions), self._waiting or self._covered)
            self._promised = True
            return
        if not self._await_writes():
            return
        if aof.much_pending:
            self._hold_for_sync(_flush_free(sessions))
            self._start_write(aof)
            return
        if aof.pending and not self._write(aof):
            return
        if aof.is_synced():
            self._release_all()
        elif not self._may_sync():
            self._release_all()
            self._arm(SYNC_PERIOD_S)
        else:
            count = len(sessions) + len(self._covered)
            self._expected = max(count, self._expected - 1 - self._expected // 8)
            if self._is_long_sync(aof):
                self._hold_for_sync(_flush_free(sessions))
                self._start_sync(aof)
                return
            if not self._sync_inline(aof):
                return
            self._release_all()
        _flush(sessions)

    def _is_long_sync(self, aof: AppendOnlyFile) -> bool:
        if self._threaded or self._files.job is not None:
            return True
        return aof.size_bytes - aof.synced_bytes >= LARGE_SYNC_BYTES

    def _hold_for_sync(self, sessions: list[Session]) -> None:
        self._covered += self._waiting
        self._waiting = []
        _hold(sessions, self._covered)
        self._promised = True

    def _sync_inline(self, aof: AppendOnlyFile) -> bool:
        started_ns = time.perf_counter_ns()
        try:
            aof.sync()
        except Exception as error:
            self._sync_failed(as_os_error(error))
            return False
        spent_ns = time.perf_counter_ns() - started_ns
        self._server.statistics.syncs.count(1, spent_ns, True)
        self._measure(spent_ns)
        self._sync_succeeded()
        return True

    def _measure(self, spent_ns: int) -> None:
        """Choose where the next sync runs, by the median of the last ones."""
        self._server.statistics.note_latency(b"aof-fsync-always", spent_ns)
        times = self._sync_times_ns
        times.append(spent_ns)
        if len(times) > SYNCS_KEPT:
            del times[0]
        self._sync_ns = sorted(times)[len(times) // 2]
        self._threaded = self._sync_ns > (FAST_SYNC_NS if self._threaded else SLOW_SYNC_NS)

    # The sync in the thread

    def _start_sync(self, aof: AppendOnlyFile) -> None:
        self._postponed_since_s = 0.0
        self._files.status.syncing = True
        self._sync.start(aof)

    def _synced(self, failure: OSError | None, spent_ns: int) -> None:
        self._after_sync(failure, spent_ns)
        self._tell_free()

    def _after_sync(self, failure: OSError | None, spent_ns: int) -> None:
        server = self._server
        self._files.status.syncing = False
        self._next_piece_s = time.monotonic() + SYNC_SHARE * spent_ns / 1e9
        if failure is not None:
            self._sync_failed(failure)
            return
        self._sync_succeeded()
        server.statistics.syncs.count(1, spent_ns, True)
        aof = self._files.aof
        if aof is None or not self._is_strict():
            if not self._writer.busy:  # else they wait for the write
                self._release_all()
            if aof is not None:
                self._sync_later(aof)
            return
        self._measure(spent_ns)
        if self._writer.busy:  # from a policy before; the next commit waits for it
            server.host.flush_soon()
            return
        covered = self._covered
        self._covered = self._waiting
        self._waiting = []
        self._promised = bool(self._covered)
        _release(covered)
        if self._covered or aof.pending:
            server.host.flush_soon()  # to commit them with the clients' next requests

    def _release_all(self) -> None:
        held = self._covered + self._waiting
        self._covered = []
        self._waiting = []
        self._promised = False
        _release(held)

    def _may_sync(self) -> bool:
        server = self._server
        return self._files.job is None or not server.config.no_appendfsync_on_rewrite

    # Policies everysec and no

    def _pass_on(self, aof: AppendOnlyFile, sessions: list[Session]) -> None:
        """Send replies once everything executed before them is written, or the disk is stuck."""
        if aof.pending or self._writer.busy:
            sessions = _flush_free(sessions)
        if aof.pending and not self._files.write_error:
            if self._sync.busy or self._writer.busy:
                self._write_beside(aof)
            elif aof.much_pending:
                self._start_write(aof)
            else:
                self._write(aof)
        if self._writer.busy and not self._impatient:
            _hold(sessions, self._waiting if self._waiting or aof.pending else self._covered)
        else:
            _flush(sessions)
        self._sync_later(aof)

    def _write_beside(self, aof: AppendOnlyFile) -> None:
        now_s = time.monotonic()
        if not self._postponed_since_s:
            self._postponed_since_s = now_s
        elif now_s - self._postponed_since_s >= STUCK_S:
            self._postponed_since_s = now_s
            self._files.status.delayed_syncs += 1
            self._log_now_and_then(
                "Syncing the append-only file takes long (is the disk busy?): "
                "writing without waiting for it, which may slow the server down"
            )
            if not self._await_writes():
                return
        if not self._writer.busy:
            self._start_write(aof)

    def _start_write(self, aof: AppendOnlyFile) -> None:
        aof.take()
        self._impatient = False
        self._postponed = self._sync.busy
        self._writer.start(aof)
        if self._patience is None:
            self._patience = asyncio.get_running_loop().call_later(PATIENCE_S, self._look_at_write)

    def _look_at_write(self) -> None:
        """Send replies without the write under way, if a sync has held it up for too long."""
        self._patience = None
        if not self._writer.busy or not self._postponed:
            return
        left_s = self._writer.started_s + PATIENCE_S - time.monotonic()
        aof = self._files.aof
        if left_s <= 0 and aof is not None and not aof.settled:
            left_s = PATIENCE_S  # no part of this write is in the file yet, and none may be
        if left_s > 0:
            self._patience = asyncio.get_running_loop().call_later(left_s, self._look_at_write)
        elif not self._is_strict():
            self._impatient = True
            self._release_all()

    def _await_writes(self) -> bool:
        while self._writer.busy:
            started_ns = time.perf_counter_ns()
            failure = self._writer.wait()
            self._after_write(failure, time.perf_counter_ns() - started_ns)
            if failure is not None:
                return False
        return True

    def _written(self, failure: OSError | None, spent_ns: int) -> None:
        self._after_write(failure, spent_ns)
        self._tell_free()

    def _after_write(self, failure: OSError | None, spent_ns: int) -> None:
        if failure is not None:
            self._write_failed(failure)
            return
        self._write_succeeded(spent_ns)
        aof = self._files.aof
        if aof is None:
            return
        if self._is_strict():
            self._server.host.flush_soon()  # what is held waits for a sync now
            return
        covered = self._covered
        self._covered = self._waiting
        self._waiting = []
        _release(covered)
        if not self._sync.busy:
            self._postponed_since_s = 0.0
        if aof.pending and (self._sync.busy or aof.much_pending):
            self._start_write(aof)
            return
        if aof.pending:
            self._write(aof)
        self._release_all()
        self._sync_later(aof)

    def _sync_later(self, aof: AppendOnlyFile) -> None:
        unsynced_bytes = aof.size_bytes - aof.synced_bytes
        if unsynced_bytes <= 0 or self._server.config.appendfsync != b"everysec":
            return
        if unsynced_bytes >= SYNC_PIECE_BYTES and self._may_sync_piece():
            self._start_sync(aof)
        elif self._timer is None:
            self._arm(max(0.0, self._sync.started_s + SYNC_PERIOD_S - time.monotonic()))

    def _may_sync_piece(self) -> bool:
        if self.busy or self._files.write_error or not self._may_sync():
            return False
        return time.monotonic() >= self._next_piece_s

    def _arm(self, delay_s: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        server = self._server
        aof = self._files.aof
        if aof is None or self.failed:
            return
        if self._sync.busy or self._writer.busy or not self._may_sync():
            self._arm(RETRY_S if self._files.write_error else SYNC_PERIOD_S)
            return
        if aof.pending and self._files.write_error and not self._write(aof):
            return
        if not self._files.status.sync_ok or (
            server.config.appendfsync != b"no" and not aof.is_synced()
        ):
            self._start_sync(aof)

    # Trouble

    def _write_failed(self, error: OSError) -> None:
        self._files.status.write_ok = False
        self._trouble("write", error)

    def _sync_failed(self, error: OSError) -> None:
        self._files.status.sync_ok = False
        if self._files.aof is not None:
            self._files.aof.doubt()
        self._trouble("sync", error)

    def _sync_succeeded(self) -> None:
        self.serve_sync_waits()
        if self._files.aof is not None:
            self._files.aof.synced()
        status = self._files.status
        if not status.sync_ok:
            status.sync_ok = True
            log.warning("The append-only file can be synced again; it is written anew to be sure")
            self.show_trouble(b"")
            if self.rewriter is not None:
                self.rewriter.rewrite_soon()

    def serve_sync_waits(self) -> None:
        """Answer the clients of WAITAOF whose writes have reached the disk."""
        files = self._files
        if not files.sync_waits:
            return
        still: list[SyncWait] = []
        for wait in files.sync_waits:
            if wait.over:
                continue
            if not wait.is_synced(files.aof):
                still.append(wait)
            elif wait.with_replicas:
                assert self._server.role.replicas is not None
                self._server.role.replicas.synced(wait.session)
            else:
                self._server.end_wait(wait.session, [1, 0])
        files.sync_waits[:] = still

    def _trouble(self, action: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        aof = self._files.aof
        assert aof is not None
        start = aof.size_bytes if action == "write" else aof.synced_bytes
        where = f"{os.fsdecode(aof.path)}, from offset {start}: {advice(error)}"
        if self._server.config.appendfsync == b"always":
            self._fail(f"cannot {action} the append-only file under appendfsync always: {where}")
            return
        self._log_now_and_then(f"Cannot {action} the append-only file {where}")
        self.show_trouble(reason.encode())
        self._release_all()
        self._arm(RETRY_S)

    def show_trouble(self, reason: bytes) -> None:
        """Refuse writes for this reason, or take them again when it is empty."""
        server = self._server
        status = self._files.status
        if reason or status.lost:
            self._files.write_error = reason or status.lost
        elif status.write_ok and status.sync_ok:
            self._files.write_error = b""
        server.gate.set(WRITES_REFUSED, bool(self._files.write_error))

    def _fail(self, reason: str) -> None:
        self.failed = True
        self._covered = []
        self._waiting = []
        for session in list(self._server.clients.sessions.values()):
            session.out.clear()
            session.peer.abort()
        self._server.fail(reason)

    def _log_now_and_then(self, text: str) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_s >= LOG_PERIOD_S:
            self._logged_s = now_s
            log.warning("%s", text)

    # The end

    @property
    def busy(self) -> bool:
        """Return whether a write or a sync is under way in a thread."""
        return self._sync.busy or self._writer.busy

    def sync_soon(self) -> bool:
        """Begin a sync in the thread; False when everything is on the disk."""
        aof = self._files.aof
        if aof is None or self.busy or aof.is_synced():
            return False
        self._start_sync(aof)
        return True

    def when_free(self, call: Callable[[], None] | None) -> None:
        """Call this once, in the event loop, when no thread is at work any more."""
        self._when_free = call

    def _tell_free(self) -> None:
        call = self._when_free
        if call is not None and not self.busy:
            self._when_free = None
            call()

    def hand_over(self, path: bytes) -> bool:
        """Send records to another file from here on; False when the present one has a fault.

        What is not synced yet is synced in the thread. Only replies that would wait for a sync
        anyway wait for that; before it ends, nothing gets into the new file. Raises OSError:
        nothing has changed.
        """
        aof = self._files.aof
        assert aof is not None
        doubtful = self.failed or not self._files.status.sync_ok or not aof.settled
        if self.busy or doubtful or aof.begins_synced:
            if not self.settle():
                return False
        else:
            aof.end_command()
            if aof.pending and not self._write(aof):
                return False
        aof.switch(path, aof.total_bytes)
        if not aof.settled:
            if self._is_strict():
                self._hold_for_sync([])
            self._start_sync(aof)
        return True

    def settle(self) -> bool:
        """Write and sync everything and send all held replies, now; False when that fails."""
        aof = self._files.aof
        if aof is None or self.failed:
            return not self.failed
        aof.end_command()  # it may have more to do, but what it did is to be in the file
        if not self._await_writes():
            return False
        if self._sync.busy:
            failure = self._sync.wait()
            self._files.status.syncing = False
            if failure is not None:
                self._sync_failed(failure)
                return False
        if aof.pending and not self._write(aof):
            return False
        if not aof.is_synced() and not self._sync_inline(aof):
            return False
        self._sync_succeeded()
        self._release_all()
        if self._when_free is not None:
            asyncio.get_running_loop().call_soon(self._tell_free)
        return True

    def close(self) -> bool:
        """Settle and close the file; False when data may be missing from it."""
        settled = self.settle()
        aof = self._files.aof
        if settled and aof is not None and aof.named:
            try:
                aof.mark_closed()
            except OSError as error:
                log.warning("The append-only file has no mark at its end: %s", advice(error))
        self._sync.close()
        self._writer.close()
        self.close_files()
        return settled

    def close_files(self) -> None:
        """Close the file and its folder, which have been settled."""
        for timer in (self._timer, self._patience):
            if timer is not None:
                timer.cancel()
        self._timer = None
        self._patience = None
        if self._files.aof is not None:
            self._files.aof.close()
            self._files.record_to(None)
        if self._files.directory is not None:
            self._files.directory.close()
            self._files.directory = None
        self._files.status.write_ok = True
        self._files.status.sync_ok = True
        self.show_trouble(b"")


def _sync_file(aof: AppendOnlyFile) -> None:
    aof.sync()


def _write_file(aof: AppendOnlyFile) -> None:
    aof.write_taken()


def _flush(sessions: list[Session]) -> None:
    for session in sessions:
        session.peer.flush()


def _flush_free(sessions: list[Session]) -> list[Session]:
    of_data = []
    for session in sessions:
        if session.peer.may_show_data():
            of_data.append(session)
        else:
            session.peer.flush()
    return of_data


def _hold(sessions: list[Session], batch: list[Held]) -> None:
    for session in sessions:
        batch.append((session.peer, session.peer.take()))


def _release(batch: list[Held]) -> None:
    for peer, wire in batch:
        peer.send(wire)
