"""The server's state."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

from headrace.compat.quoting import quoted
from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.aof.file import AppendOnlyFile
from headrace.protocol.replies import ErrorReply, Status, encode
from headrace.server.changes.changes import Changes, Turn
from headrace.server.changes.key_events import KeyEvents
from headrace.server.changes.watching import Watches
from headrace.server.clients.pubsub import PubSub
from headrace.server.clients.session import (
    BLOCKED,
    CLOSING,
    NOBODY,
    PAUSED,
    REPLY_SKIP,
    Session,
    session_of,
)
from headrace.server.clock import monotonic_ms, read_ns
from headrace.server.dispatch.call import Call
from headrace.server.durability.aof_status import AofStatus
from headrace.server.durability.worker import Worker
from headrace.server.statistics.counters import Stats
from headrace.server.statistics.latency import LatencyMonitor
from headrace.server.statistics.memory import Memory
from headrace.server.statistics.rates import Rates
from headrace.server.statistics.slowlog import SlowLog
from headrace.server.waiting.blocking import Blocking
from headrace.storage.expiring import Expiring
from headrace.storage.freeable import Freeable
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.appending import NodeLimits

if TYPE_CHECKING:
    from headrace.server.config.config import Config
    from headrace.server.dispatch.rows import Command
    from headrace.server.durability.commit import Committer
    from headrace.server.durability.rewriting import Rewriting
    from headrace.server.durability.saving import Saving
    from headrace.server.durability.snapshot_job import SnapshotJob
    from headrace.server.durability.sync_waits import SyncWait
    from headrace.server.waiting.waiters import Queue
    from headrace.storage.freezing import Freezing

# Why every request must take the slow path through ``admit``; zero is the fast path.
LOADING_DATA: Final = 1 << 0
MONITORED: Final = 1 << 1
PAUSED_WRITES: Final = 1 << 2
PAUSED_ALL: Final = 1 << 3
WRITES_REFUSED: Final = 1 << 4  # the AOF cannot be written: MISCONF
MEMORY_LIMITED: Final = 1 << 5  # maxmemory is set
SAVE_FAILED: Final = 1 << 6  # the last snapshot failed, and writes are to be refused: MISCONF
NO_REPLICAS: Final = 1 << 7  # as many as min-replicas-to-write asks for: NOREPLICAS
STEP_MS: Final = 1000  # less is a clock that is corrected little by little
LENGTHY_AT_WORK: Final = 1 << 8  # a request is being run in slices, and some have to wait for it
NEVER_NS: Final = 1 << 61  # small enough to stay unboxed in compiled code
RESAMPLE_BYTES: Final = 1 << 20  # input after which memory is looked at anew

log: Final = logging.getLogger("headrace")


class Host(Turn):
    """What the server asks of the process around it: timers, and the end of the process."""

    def wake_at(self, deadline_ms: int) -> None:
        """See that ``time_out_waiters`` runs at this moment of ``monotonic_ms`` at the latest."""

    def flush_soon(self) -> None:
        """See that the sessions in ``flushing`` are flushed at the end of this turn."""

    def flush_now(self) -> None:
        """Flush the sessions in ``flushing``, or see that they are when more of them have come."""

    def answered(self) -> None:
        """A client has its answer that is alone, and waits for each before it asks again."""

    def stop(self, exit_code: int) -> None:
        """End the process in order, after this turn of the event loop."""

    def ask_to_end(self, number: int) -> None:
        """A signal asks for the end of the process."""

    def tell_supervisor(self, status: str) -> None:
        """Report what the process is doing to its supervisor."""

    def supervisor(self) -> bytes:
        """Who that is, as INFO shows it."""
        return b"no"

    def loop_name(self) -> bytes:
        """Which event loop runs, as INFO shows it."""
        return b"none"


class Slicing:
    """A request that is being run in slices; see ``server.dispatch.slicing``."""

    def holds_back(self, session: Session, row: Command, argv: list[bytes]) -> bool:
        """Whether an admitted request has to wait; it is offered again when this one is done."""
        raise NotImplementedError

    def postpones(self, queue: Queue) -> bool:
        """Whether those who wait for a key that is ready have to wait until this is done."""
        raise NotImplementedError

    def finish_now(self) -> None:
        """Run all the rest, while everybody waits."""
        raise NotImplementedError


class Server:
    """Everything that outlives a command.

    One thread touches it, the event loop's; a command runs from start to end without giving way.
    """

    def __init__(self, config: Config) -> None:
        self.config: Final = config
        self.special = 0
        expired: list[tuple[int, bytes]] = []  # by any database, and not reported yet
        self.lazy_free: list[Freeable] = []  # what waits to be freed in slices
        self.expiring: Final = Expiring()  # producers of streams, by when they are to be looked at
        self.dbs: list[Keyspace] = [
            Keyspace(index, expired, self.lazy_free, self.expiring)
            for index in range(config.databases)
        ]
        self.rows: dict[bytes, Command] = {}  # by name as typed; filled as names are met
        self.last_name = b""  # the name met last, for the next is often the same
        self.last_row: Command | None = None  # its row
        self.sessions: dict[int, Session] = {}
        self.next_session_id = 1
        self.pubsub = PubSub()
        self.blocking = Blocking(len(self.dbs))
        self.host = Host()
        self.changes: Final = Changes(expired, self.blocking, self.host)
        self.watches: Final = Watches(self.changes, self.dbs)
        self.key_events: Final = KeyEvents(self.changes, self.pubsub)
        self.aof: AppendOnlyFile | None = None  # where records go; None when it is off
        self.aof_directory: AofDirectory | None = None  # the folder that the file lies in
        self.aof_status: Final = AofStatus()
        self.committer: Committer | None = None  # writes the file and sends what waits for that
        self.rewriting: Rewriting | None = None  # turns the file on and off and writes it anew
        self.saving: Saving | None = None  # writes the snapshot beside the file
        self.worker: Final = Worker()  # for what takes time with files
        self.job: SnapshotJob | None = None  # a snapshot or a base being written
        self.slicing: Slicing | None = None  # the request that is being run in slices
        self.freezing: Freezing | None = None  # the state that it takes
        self.epoch = 0  # how many states have been taken
        self.monitors: dict[Session, None] = {}
        self.stats: Final = Stats()
        self.slowlog: Final = SlowLog()
        self.latency: Final = LatencyMonitor()
        self.memory: Final = Memory()
        self.memory_sampled_at = 0  # bytes received by then
        self.rates: Final = Rates()
        self.recent_max_input_bytes = 0  # of any one client, as the cron saw it lately
        self.recent_max_output_bytes = 0
        self.cron_paused = False
        self.sync_waits: list[SyncWait] = []  # clients of WAITAOF
        self.slow_ns = NEVER_NS  # commands at least this long get a look by SLOWLOG and LATENCY
        self.track_latency = True
        self.node_limits = NodeLimits(config.stream_node_max_bytes, config.stream_node_max_entries)
        self.keyspace_hits = 0
        self.keyspace_misses = 0
        self.clock_ns = read_ns()  # read at the end of each command: the start of the next
        self.started_ms: Final = self.clock_ns // 1_000_000
        self.up_since_ms: Final = monotonic_ms()
        self.ahead_ms = self.started_ms - self.up_since_ms  # the time of day, of ``monotonic_ms``
        self.run_id: Final = os.urandom(20).hex().encode()
        self.replication_id = os.urandom(20).hex().encode()
        self.last_save_s = self.started_ms // 1000
        self.pause_end_ms = 0  # of ``monotonic_ms``
        self.active_expire = True
        self.lazy_freed = 0
        self.http_warned_ms = 0  # when the log last reported a client that speaks HTTP
        self.stopping = False
        self.write_error = b""  # why WRITES_REFUSED is set
        self.call: Final = Call(self, Session(0, self.dbs[0], self.started_ms, NOBODY))
        self.sender_id = 0  # of the session that had replies to send last
        self.flushing: list[Session] = []  # sessions with output to send at the end of this turn

    def attach(self, host: Host) -> None:
        """Belong to this process."""
        self.host = host
        self.changes.turn = host

    def record_to(self, aof: AppendOnlyFile | None) -> None:
        """Let records go to this append-only file, and no more to the one before; None is none."""
        if self.aof is not None:
            self.changes.remove_log(self.aof)
        self.aof = aof
        if aof is not None:
            self.changes.add_log(aof)

    # Sessions

    def note_latency(self, event: bytes, spent_ns: int) -> None:
        """Tell the latency monitor how long something took that has just ended."""
        if spent_ns >= 1_000_000 * STEP_MS:
            spent_ns = self.without_step(spent_ns)
        self.latency.sample(event, self.clock_ns // 1_000_000_000, spent_ns // 1_000_000)

    def refresh_clock(self) -> int:
        """Read the clock; milliseconds since 1970."""
        self.clock_ns = read_ns()
        return self.clock_ns // 1_000_000

    def session_closed(self, session: Session) -> None:
        """Forget a session everywhere; calling it again does nothing."""
        if session.closed:
            return
        session.closed = True
        self.blocking.unpark(session)
        self.watches.unwatch(session)
        self.pubsub.drop_session(session)
        if session in self.monitors:
            del self.monitors[session]
            self.set_special(MONITORED, bool(self.monitors))
        session.transaction = None
        session.out.clear()
        self.sessions.pop(session.id, None)

    def stop_serving(self) -> None:
        """Execute nothing from here on, and answer nobody who waits: what is saved is the end.

        What was executed before is still answered.
        """
        self.stopping = True
        for session in self.sessions.values():
            self.blocking.unpark(session)
            session.special |= CLOSING

    def without_step(self, spent_ns: int) -> int:
        """How long something took that ends now, by a time of day that may have been set."""
        step_ms = self.clock_ns // 1_000_000 - monotonic_ms() - self.ahead_ms
        if abs(step_ms) >= STEP_MS:
            spent_ns -= step_ms * 1_000_000
        return max(0, spent_ns)

    def set_special(self, bit: int, on: bool) -> None:
        """Set or clear one of the reasons for the slow path."""
        if on:
            self.special |= bit
        else:
            self.special &= ~bit

    def feed_monitors(self, session: Session, argv: list[bytes]) -> None:
        """Show a request to the clients that called MONITOR."""
        usec = self.clock_ns // 1000
        words = b" ".join([quoted(argument) for argument in argv])
        line = b"%d.%06d [%d %b] %b" % (
            usec // 1_000_000,
            usec % 1_000_000,
            session.db.index,
            session.address,
            words,
        )
        wire = encode(Status(line))
        for monitor in self.monitors:
            monitor.deliver_wire(wire)

    def fail(self, reason: str) -> None:
        """Stop the process rather than go on with what cannot be trusted."""
        log.critical("stopping: %s", reason)
        self.host.stop(1)

    # Blocking

    def unpark(self, session: Session, reply: object) -> None:
        """End a client's wait with ``reply``, and let its next requests run."""
        if session.waiter is None:
            return
        self.blocking.unpark(session)
        session.special &= ~BLOCKED
        if session.special & REPLY_SKIP:
            session.special ^= REPLY_SKIP
        else:
            session.deliver(reply)
        session.peer.resume_soon()

    def end_wait(self, session: Session, reply: object) -> None:
        """As ``unpark``, for a request that is not run again: it counts now."""
        row = session.last_row
        if session.waiter is None or row is None:
            return
        row.calls += 1
        if self.track_latency:
            row.quick_calls += 1
        if isinstance(reply, ErrorReply):
            row.failed_calls += 1
            self.stats.count_error(reply.text)
        self.unpark(session, reply)

    def time_out_waiters(self) -> int:
        """Answer those who waited long enough, end a pause; when to look next, or 0.

        All moments are of ``monotonic_ms``, but those at which something may be claimed: how long
        it has been idle depends on the time of day.

        Readers that may claim something by now are noted, to be served by the caller; while there
        is a pause they are not, for they would write.
        """
        now_ms = monotonic_ms()
        for waiter in self.blocking.due(now_ms):
            self.end_wait(session_of(waiter), waiter.parked.timeout_reply)
        next_ms = self.blocking.next_deadline_ms()
        if self.pause_end_ms:
            if self.pause_end_ms <= now_ms:
                self.unpause()
            elif not next_ms or self.pause_end_ms < next_ms:
                return self.pause_end_ms
            else:
                return next_ms
        day_ms = self.refresh_clock()
        self.blocking.ring(day_ms)
        alarm_ms = self.blocking.next_alarm_ms()
        if alarm_ms:
            alarm_ms += now_ms - day_ms
            if not next_ms or alarm_ms < next_ms:
                return alarm_ms
        return next_ms

    # Pauses

    def pause(self, for_ms: int, writes_only: bool) -> None:
        """Hold requests back, or only those that write, for so long or until an end set before.

        Args:
            for_ms: 0 is no pause at all.
        """
        end_ms = max(self.pause_end_ms, monotonic_ms() + for_ms if for_ms else 0)
        self.unpause()  # what is held back now may be free to run under the new rule
        if end_ms:
            self.pause_end_ms = end_ms
            self.set_special(PAUSED_WRITES if writes_only else PAUSED_ALL, True)
            self._hold_expiry(True)
            self.host.wake_at(end_ms)

    def unpause(self) -> None:
        """Let the requests run that a pause holds back."""
        self.pause_end_ms = 0
        self.set_special(PAUSED_ALL | PAUSED_WRITES, False)
        self._hold_expiry(False)
        for session in self.sessions.values():
            if session.special & PAUSED:
                session.special &= ~PAUSED
                session.peer.resume_soon()
        if self.blocking.next_alarm_ms():
            self.host.wake_at(monotonic_ms())

    def _hold_expiry(self, held: bool) -> None:
        for db in self.dbs:
            db.expire_held = held

    # Memory

    def over_maxmemory(self) -> bool:
        """Whether more memory is in use than ``maxmemory`` allows.

        The last sample tells; a new one is taken when much has come in since.
        """
        if self.stats.net_input_bytes - self.memory_sampled_at > RESAMPLE_BYTES:
            self.sample_memory()
        return self.memory.used_bytes > self.config.maxmemory

    def sample_memory(self) -> int:
        """Look how much memory is in use, in bytes."""
        self.memory_sampled_at = self.stats.net_input_bytes
        return self.memory.sample()

    def free_later(self, value: object | None) -> None:
        """Free a value, or a part of one, without holding up the request: the cron does it.

        What is one object and no more is freed at once.
        """
        if isinstance(value, Freeable) and value.effort():
            self.lazy_free.append(value)
