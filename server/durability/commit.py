"""Group commit: what a turn of the event loop did is written once, then its replies leave.

A reply is a promise. What the promise says depends on ``appendfsync``:

``always``
    No reply to anything executed after an unsynced write, reads included, leaves before the sync
    that covers it. While syncs are short they run inline: the hop to a thread and back costs more
    than the sync. When their moving average says that the disk is slow, they run in one worker
    thread: commands go on executing, and replies are held in two batches, those that the sync
    under way covers and those that need the next one. A failed write or sync stops the process
    before a reply leaves.
``everysec``
    Written before the reply leaves, so that a crash of the process loses nothing; synced about
    once a second in the worker thread, so that a crash of the machine loses about a second.
``no``
    Written before the reply leaves; the system syncs when it likes.

With the last two, records that cannot be written stay in memory, writes are refused (MISCONF) and
the write is tried again until the disk is back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from server.durability.sync_waits import serve_sync_waits
from server.session import Peer, Session
from server.state import WRITES_REFUSED, Server

if TYPE_CHECKING:
    from persistence.aof import AppendOnlyFile

log: Final = logging.getLogger("headrace")

SLOW_SYNC_NS: Final = 1_000_000  # a mean above this sends syncs to the thread
FAST_SYNC_NS: Final = 500_000  # a mean below this brings them back
MEAN_WEIGHT: Final = 8  # one part of the moving average is the last sync
SYNC_PERIOD_S: Final = 1.0
STUCK_SYNC_S: Final = 2.0
RETRY_S: Final = 0.2
LOG_PERIOD_S: Final = 30.0

Held = tuple[Peer, bytes]


class Committer:
    """Writes and syncs the append-only file of one server, and lets replies go.

    Attributes:
        failed: under ``always`` the disk failed: nothing leaves any more.
    """

    def __init__(self, server: Server) -> None:
        self.failed = False
        self._server: Final = server
        self._mean_sync_ns = 0
        self._threaded = False
        self._pool: ThreadPoolExecutor | None = None
        self._running: Future[OSError | None] | None = None
        self._ticket = 0  # tells the sync under way from one that was waited for
        self._target_bytes = 0  # the sync under way covers the file up to here
        self._started_s = 0.0  # when the last background sync started
        self._covered: list[Held] = []  # replies that the sync under way covers
        self._waiting: list[Held] = []  # replies that need the sync after it
        self._timer: asyncio.TimerHandle | None = None
        self._logged_s = -LOG_PERIOD_S
        server.committer = self

    # A turn

    def end_turn(self) -> None:
        """Write what the turn did, and send or hold its replies."""
        server = self._server
        sessions = server.flushing
        server.flushing = []
        aof = server.aof
        if aof is not None:
            always = server.config.appendfsync == b"always"
            if aof.pending and (always or not server.write_error):
                self._write(aof)
            if self.failed:
                return
            if always or self._covered or self._waiting:
                self._commit(aof, sessions)
                return
            if self._timer is None and server.config.appendfsync == b"everysec":
                self._sync_later(aof)
        for session in sessions:
            session.peer.flush()

    def _write(self, aof: AppendOnlyFile) -> bool:
        started_ns = time.perf_counter_ns()
        try:
            aof.write()
        except OSError as error:
            self._write_failed(error)
            return False
        self._sample(b"aof-write", time.perf_counter_ns() - started_ns)
        status = self._server.aof_status
        if not status.write_ok:
            status.write_ok = True
            log.warning("The append-only file can be written again")
            self._show_trouble(b"")
        return True

    # Policy always

    def _commit(self, aof: AppendOnlyFile, sessions: list[Session]) -> None:
        """Let replies go once everything executed before them is on the disk."""
        if self._running is not None:
            later = bool(self._waiting) or aof.size_bytes > self._target_bytes
            batch = self._waiting if later else self._covered
            _hold(sessions, batch)
            return
        if aof.size_bytes > aof.synced_bytes:
            if self._threaded:
                _hold(sessions, self._covered)
                self._start_sync(aof)
                return
            if not self._sync_inline(aof):
                return
        for session in sessions:
            session.peer.flush()

    def _sync_inline(self, aof: AppendOnlyFile) -> bool:
        started_ns = time.perf_counter_ns()
        try:
            aof.sync()
        except OSError as error:
            self._sync_failed(error)
            return False
        self._measure(time.perf_counter_ns() - started_ns)
        serve_sync_waits(self._server)
        return True

    def _measure(self, spent_ns: int) -> None:
        """Choose where the next sync runs."""
        self._sample(b"aof-fsync-always", spent_ns)
        self._mean_sync_ns += (spent_ns - self._mean_sync_ns) // MEAN_WEIGHT
        if self._threaded:
            self._threaded = self._mean_sync_ns > FAST_SYNC_NS
        else:
            self._threaded = self._mean_sync_ns > SLOW_SYNC_NS

    # The worker thread

    def _start_sync(self, aof: AppendOnlyFile) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "aof-sync")
        self._ticket += 1
        self._target_bytes = aof.size_bytes
        self._started_s = time.monotonic()
        self._server.aof_status.syncing = True
        loop = asyncio.get_running_loop()
        self._running = self._pool.submit(self._sync_in_thread, aof, loop, self._ticket)

    def _sync_in_thread(
        self, aof: AppendOnlyFile, loop: asyncio.AbstractEventLoop, ticket: int
    ) -> OSError | None:
        """Runs in the worker: touches nothing but the file."""
        failure: OSError | None = None
        started_ns = time.perf_counter_ns()
        try:
            aof.sync()
        except OSError as error:
            failure = error
        spent_ns = time.perf_counter_ns() - started_ns
        loop.call_soon_threadsafe(self._synced, ticket, spent_ns, failure)
        return failure

    def _synced(self, ticket: int, spent_ns: int, failure: OSError | None) -> None:
        """The sync under way has ended: let go what it covers, start the next one."""
        if self._running is None or ticket != self._ticket:
            return
        self._running = None
        self._server.aof_status.syncing = False
        if failure is not None:
            self._sync_failed(failure)
            return
        self._sync_succeeded()
        aof = self._server.aof
        always = self._server.config.appendfsync == b"always"
        if always:
            self._measure(spent_ns)
        covered = self._covered
        self._covered = self._waiting
        self._waiting = []
        _release(covered)
        if aof is None or aof.size_bytes <= aof.synced_bytes:
            self._release_covered()
        elif not always:
            self._release_covered()
            self._sync_later(aof)
        elif self._threaded:
            self._start_sync(aof)
        elif self._sync_inline(aof):
            self._release_covered()

    def _release_covered(self) -> None:
        covered = self._covered
        self._covered = []
        _release(covered)

    # Policies everysec and no

    def _sync_later(self, aof: AppendOnlyFile) -> None:
        if aof.size_bytes > aof.synced_bytes and self._timer is None:
            self._arm(max(0.0, self._started_s + SYNC_PERIOD_S - time.monotonic()))

    def _arm(self, delay_s: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        """Try again what failed, sync what is due."""
        self._timer = None
        server = self._server
        aof = server.aof
        if aof is None or self.failed:
            return
        if aof.pending and not self._write(aof):
            return
        if not server.aof_status.sync_ok or (
            server.config.appendfsync == b"everysec" and aof.size_bytes > aof.synced_bytes
        ):
            self._sync_in_background(aof)

    def _sync_in_background(self, aof: AppendOnlyFile) -> None:
        if self._running is None:
            self._start_sync(aof)
            return
        if time.monotonic() - self._started_s >= STUCK_SYNC_S:
            self._server.aof_status.delayed_syncs += 1
            self._log_now_and_then("Syncing the append-only file takes long: is the disk busy?")
        self._arm(SYNC_PERIOD_S)

    # Trouble

    def _write_failed(self, error: OSError) -> None:
        self._server.aof_status.write_ok = False
        self._trouble("write", error)

    def _sync_failed(self, error: OSError) -> None:
        self._server.aof_status.sync_ok = False
        self._trouble("sync", error)

    def _sync_succeeded(self) -> None:
        serve_sync_waits(self._server)
        status = self._server.aof_status
        if not status.sync_ok:
            status.sync_ok = True
            log.warning("The append-only file can be synced again")
            self._show_trouble(b"")

    def _trouble(self, action: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        if self._server.config.appendfsync == b"always":
            self._fail(f"cannot {action} the append-only file under appendfsync always: {reason}")
            return
        self._log_now_and_then(f"Cannot {action} the append-only file: {reason}")
        self._show_trouble(reason.encode())
        self._covered += self._waiting
        self._waiting = []
        self._release_covered()
        self._arm(RETRY_S)

    def _show_trouble(self, reason: bytes) -> None:
        """Refuse writes, or take them again when all is well."""
        server = self._server
        status = server.aof_status
        if reason:
            server.write_error = reason
        elif status.write_ok and status.sync_ok:
            server.write_error = b""
        server.set_special(WRITES_REFUSED, bool(server.write_error))

    def _fail(self, reason: str) -> None:
        """Stop before any reply leaves that promises what the disk does not hold."""
        self.failed = True
        self._covered = []
        self._waiting = []
        for session in list(self._server.sessions.values()):
            session.out.clear()
            session.peer.abort()
        self._server.fail(reason)

    def _log_now_and_then(self, text: str) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_s >= LOG_PERIOD_S:
            self._logged_s = now_s
            log.warning("%s", text)

    def _sample(self, event: bytes, spent_ns: int) -> None:
        server = self._server
        if server.latency.threshold_ms:
            server.latency.sample(event, server.clock_ns // 1_000_000_000, spent_ns // 1_000_000)

    # The end

    def settle(self) -> bool:
        """Write and sync everything and let all held replies go, now; False when that fails."""
        aof = self._server.aof
        if aof is None or self.failed:
            return not self.failed
        running = self._running
        if running is not None:
            self._running = None
            self._server.aof_status.syncing = False
            failure = running.result()
            if failure is not None:
                self._sync_failed(failure)
                return False
        if aof.pending and not self._write(aof):
            return False
        if aof.size_bytes > aof.synced_bytes and not self._sync_inline(aof):
            return False
        self._sync_succeeded()
        self._covered += self._waiting
        self._waiting = []
        self._release_covered()
        return True

    def close(self) -> bool:
        """Settle and close the file; False when data may be missing from it."""
        settled = self.settle()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        self.let_go()
        return settled

    def let_go(self) -> None:
        """Close the file and its folder, which have been settled."""
        server = self._server
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if server.aof is not None:
            server.aof.close()
            server.aof = None
        if server.aof_directory is not None:
            server.aof_directory.close()
            server.aof_directory = None
        server.aof_status.write_ok = True
        server.aof_status.sync_ok = True
        self._show_trouble(b"")


def _hold(sessions: list[Session], batch: list[Held]) -> None:
    """Take the replies of sessions out, so that later ones of the same session stay behind them."""
    for session in sessions:
        batch.append((session.peer, session.peer.take()))


def _release(batch: list[Held]) -> None:
    for peer, wire in batch:
        peer.send(wire)
