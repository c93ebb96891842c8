"""The server: its parts, what concerns several of them, and what they need from the process."""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.persistence.log import Log
from headrace.protocol.replies import ErrorReply
from headrace.server.acl.log import DenialLog
from headrace.server.acl.users import Users
from headrace.server.changes.changes import Changes, Turn
from headrace.server.changes.watching import KeyEvents, Watches
from headrace.server.clients.clients import Clients
from headrace.server.clients.session import CLOSING, Session
from headrace.server.clock import Clock, VirtualClock
from headrace.server.cluster import ClusterNode
from headrace.server.config.config import Config
from headrace.server.data import Account, Data
from headrace.server.faults import Faults
from headrace.server.gate import MONITORED, NO_REPLICAS, Gate
from headrace.server.role import Role
from headrace.server.statistics.statistics import Statistics
from headrace.server.tracking import ClientTracking
from headrace.server.waiting import Blocking
from headrace.storage.stream.appending import NodeLimits


@mypyc_attr(allow_interpreted_subclasses=True)
class Host(Turn):
    """Timers, the turns of the event loop, and the end of the process."""

    def wake_at(self, deadline_ms: int) -> None:
        """Look at waits when ``monotonic_ms`` has come to this, or sooner."""

    def flush_soon(self) -> None:
        """Flush the sessions in ``flushing`` at the end of this turn."""

    def flush_now(self) -> None:
        """Flush the sessions in ``flushing``, now or when more of them have come."""

    def publish_soon(self) -> None:
        """Send other regions what was acknowledged, after ``aa-ack-interval-ms``."""

    def answered(self) -> None:
        """Note that a lone client has its answer; it waits for each before it asks again."""

    def move_clock(self, to_ns: int) -> None:
        """Move a ``VirtualClock`` on to a time of day, and do all that becomes due until then."""

    def clock_changed(self) -> None:
        """Look at waits anew, because time runs on from another moment."""

    def lend_files(self) -> None:
        """Free descriptors that are kept for files which are about to be opened."""

    def stop(self, exit_code: int) -> None:
        """End the process in order, after this turn of the event loop."""

    def leave(self) -> None:
        """End the process at once, with nothing saved."""

    def ask_to_end(self, number: int) -> None:
        """Handle a signal that asks for the end of the process."""

    def notify_supervisor(self, status: str) -> None:
        """Report what the process is doing to its supervisor."""

    def supervisor(self) -> bytes:
        """Return the supervisor, as INFO shows it."""
        return b"no"

    def loop_name(self) -> bytes:
        """Return the name of the event loop, as INFO shows it."""
        return b"none"


log: Final = logging.getLogger("headrace")


class StandbyInput:
    """The stream of a region, as its standby takes it."""

    @abstractmethod
    def take(self, words: list[bytes]) -> bool:
        """Take a record if it is a region's; False where it is a command to be run.

        Raises PersistenceError: it cannot be taken now, or CorruptAOF: at no time.
        """

    @abstractmethod
    def keep(self, words: list[bytes]) -> None:
        """Add a command that was run to the file."""

    @abstractmethod
    def end_unit(self) -> None:
        """End what belongs together: a command or a transaction."""


class Neighbours:
    """A server's relations to other regions, and to standbys of its own; see ``regions``."""

    @abstractmethod
    def refused(self, host: str, reason: str) -> None:
        """Log that a region that called from a host was refused; the same at most once an hour."""

    @abstractmethod
    def stream(self, on_piece: Callable[[bytes], None]) -> Log:
        """Return the stream for standbys, which is a ``CommandStream``."""

    @abstractmethod
    def follow(self) -> StandbyInput:
        """Leave the others: another server is this region, and this one is its standby."""

    @abstractmethod
    def lead(self, has_all: bool) -> None:
        """Be the region from now on; ``has_all``: nothing is missing that it was before."""

    @abstractmethod
    def emptied(self) -> None:
        """Forget what was known, because the data goes."""

    @abstractmethod
    def loaded(self) -> None:
        """Note that a copy of the region is there."""


class ScriptFigures:
    """The numbers of scripts and functions, and the memory that they take.

    Attributes:
        interpreter_bytes: what Lua holds for scripts; functions_bytes: for functions.
        script_text_bytes: the scripts as they were sent; library_text_bytes: the libraries.
    """

    def __init__(self) -> None:
        self.scripts = 0
        self.functions = 0
        self.libraries = 0
        self.interpreter_bytes = 0
        self.functions_bytes = 0
        self.script_text_bytes = 0
        self.library_text_bytes = 0


class Policies:
    """The policies of streams and groups, by the names of keys; see ``policies``."""

    @abstractmethod
    def codes(self) -> list[bytes]:
        """Return requests, in wire form, that set all of them."""

    @abstractmethod
    def forget(self) -> None:
        """Forget all of them, but those of the configuration."""

    @abstractmethod
    def take_back(self, code: bytes) -> None:
        """Run such requests of a file. Raises CommandError."""


USERS: Final = b"users"
PARAMETERS: Final = b"parameters"


class Scripting:
    """The scripts and functions of a server; ``allows_all``: they may call all commands."""

    def __init__(self) -> None:
        self.allows_all = False
        self.runs = 0

    def figures(self) -> ScriptFigures:
        """Return their figures. Complexity: O(scripts + functions)."""
        raise NotImplementedError

    def codes(self) -> list[bytes]:
        """Return the libraries of functions, as they were loaded."""
        raise NotImplementedError

    def holds_scripts(self) -> bool:
        """Return whether a script that SCRIPT LOAD has loaded is still there."""
        raise NotImplementedError

    def forget_functions(self) -> None:
        """Forget all libraries, and what they keep."""
        raise NotImplementedError

    def flags_of(self, flags: int, name: bytes, argv: list[bytes]) -> int:
        """Return the flags that admit a request that runs a script; ``flags``: its command's."""
        raise NotImplementedError

    def take_back(self, codes: list[bytes], replaces: bool) -> None:
        """Load the libraries of a file, in the place of the present ones if ``replaces`` is set.

        Raises CommandError: one cannot be loaded, or is there already and ``replaces`` is not set.
        """
        raise NotImplementedError


class Evicting:
    """Makes room where ``maxmemory`` is reached; see ``server.eviction``.

    Attributes:
        short: no room could be made before the current command.
        has_more: there is more to evict, between commands.
        room_bytes: how much was left below the limit before the present command.
    """

    def __init__(self) -> None:
        self.short = False
        self.has_more = False
        self.room_bytes = 0

    def fits_until(self, requests: list[list[bytes]], at: i64, end: i64) -> i64:
        """Return the index before which requests keep the limit, whatever they add to the data.

        The request at ``at`` is the present command.
        """
        raise NotImplementedError

    def make_room(self, at_hand: Session | None = None, argv_bytes: int = 0) -> None:
        """Close clients and evict keys, if more memory is in use than allowed.

        ``at_hand`` is the client that is about to be served, with a request of ``argv_bytes``.
        """
        raise NotImplementedError


class ShutdownOptions:
    """The options of SHUTDOWN.

    ``save``: with a snapshot in any case; ``nosave``: in none; ``force``: whatever fails; ``now``:
    without waiting for replicas.
    """

    def __init__(self, words: Collection[bytes]) -> None:
        self.save: Final = b"save" in words
        self.nosave: Final = b"nosave" in words
        self.force: Final = b"force" in words
        self.now: Final = b"now" in words


ENDS: Final = 0  # nothing more is run
WAITS: Final = 1  # for replicas
STAYS: Final = 2  # an obstacle prevents the end


class Shutdown:
    """The end of the process, in order."""

    @abstractmethod
    def begin(self, options: ShutdownOptions, on_stay: Callable[[], None] | None = None) -> int:
        """End, or begin to wait; return one of the outcomes above.

        ``on_stay`` is called where an obstacle appears later, or the end is called off.
        """

    @abstractmethod
    def await_with(self, session: Session) -> None:
        """Let a client wait for the end: it gets an error if the server does not end."""

    @abstractmethod
    def call_off(self) -> bool:
        """Cancel the end; False where none is waited for."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Check whether the wait is over."""


class Server:
    """Everything that outlives a command, in parts that each own their state.

    One thread touches it, the event loop's; a command runs from start to end without giving way.

    Attributes:
        clock: the source of the time; None is the system, which tests may move.
        gate: the reasons to look at requests before they run; blocking: clients that wait for keys.
        users: who clients may be; denials: what they were refused.
        changes: where changes become known; watches, tracking and key_events listen there.
        account: the memory of data and clients.
        cron_paused: DEBUG has stopped the periodic work.
        neighbours: its relations to other regions; None where it is no region.
        cluster: its node of a cluster; None without ``cluster-enabled``.
        policies: None while there was never one.
        scripting: None before the first script; make_scripting: None where requests are not run.
        evicting: None while ``maxmemory`` was never set; make_evicting: as make_scripting.
        shutdown: ends the process; None where there is none to end; stopping: nothing more is run.
        unsaved: what clients have changed and no file holds, ``USERS`` and ``PARAMETERS``.
    """

    def __init__(self, config: Config, clock: Clock | None = None) -> None:
        self.config: Final = config
        if clock is None:
            clock = Clock() if config.enable_debug_command == b"no" else VirtualClock()
        self.clock: Final = clock
        self.gate: Final = Gate()
        limits = NodeLimits(config.stream_node_max_bytes, config.stream_node_max_entries)
        databases = 1 if config.aa_region_id or config.cluster_enabled else config.databases
        self.data: Final = Data(databases, limits)
        if config.aa_region_id:
            self.data.become_region(config.aa_region_id, config.aa_database)
        self.blocking: Final = Blocking()
        self.clients: Final = Clients(self.blocking)
        self.role: Final = Role()
        self.account: Final = Account(self.data, self.clients, self.clock, self.role)
        self.users: Final = Users(config.requirepass)
        self.denials: Final = DenialLog()
        self.host = Host()
        self.changes: Final = Changes(self.data.expired, self.blocking, self.host)
        self.watches: Final = Watches(self.changes, self.data.dbs)
        self.tracking: Final = ClientTracking(config, self.changes, self.clients, self.data.unused)
        self.key_events: Final = KeyEvents(self.changes, self.clients.pubsub)
        self.statistics: Final = Statistics(self.clock)
        self.neighbours: Neighbours | None = None
        self.cluster: ClusterNode | None = None
        self.policies: Policies | None = None
        self.scripting: Scripting | None = None
        self.make_scripting: Callable[[], Scripting] | None = None
        self.evicting: Evicting | None = None
        self.make_evicting: Callable[[], Evicting] | None = None
        self.faults: Final = Faults()
        self.cron_paused = False
        self.shutdown: Shutdown | None = None
        self.stopping = False
        self.unsaved: Final[set[bytes]] = set()
        self.run_id: Final = os.urandom(20).hex().encode()

    def mode(self) -> bytes:
        """Return the kind of this server, in Redis's words."""
        return b"standalone" if self.cluster is None else b"cluster"

    def libraries(self) -> list[bytes]:
        """Return the libraries of functions, as they were loaded, and requests that set policies.

        These are in wire form, and so begin with an asterisk.
        """
        codes = [] if self.scripting is None else self.scripting.codes()
        return codes if self.policies is None else codes + self.policies.codes()

    def ready_policies(self) -> Policies:
        """Return the policies, whose wing is imported, by name, with the first one."""
        policies = self.policies
        if policies is None:
            policies = import_module("headrace.policies.wing").begin(self)
            self.policies = policies
        return policies

    def ready_scripting(self) -> Scripting:
        """Return the runner of scripts, which is made by the first one, because it is large."""
        scripting = self.scripting
        if scripting is None:
            assert self.make_scripting is not None
            scripting = self.make_scripting()
            self.scripting = scripting
        return scripting

    def ready_evicting(self) -> Evicting:
        """Return the evicting part, which is made when it may first be needed."""
        evicting = self.evicting
        if evicting is None:
            assert self.make_evicting is not None
            evicting = self.make_evicting()
            self.evicting = evicting
        return evicting

    def script_figures(self) -> ScriptFigures:
        """Return the figures of scripts, all 0 before the first one."""
        return ScriptFigures() if self.scripting is None else self.scripting.figures()

    def attach(self, host: Host) -> None:
        """Set the process that this server belongs to."""
        self.host = host
        self.changes.turn = host

    def session_closed(self, session: Session) -> None:
        """Forget a session everywhere; calling it again does nothing."""
        if session.closed:
            return
        session.closed = True
        clients = self.clients
        self.blocking.unpark(session)
        self.watches.unwatch(session)
        self.tracking.turn_off(session)
        clients.pubsub.drop_session(session)
        if session in clients.monitors:
            del clients.monitors[session]
            self.gate.set(MONITORED, bool(clients.monitors))
        session.transaction = None
        session.out.clear()
        if session.leaving is not None:
            session.leaving(session)
            session.leaving = None
        clients.held_bytes -= session.held_bytes
        session.held_bytes = 0
        clients.sessions.pop(session.id, None)

    def stop_serving(self) -> None:
        """Execute nothing from here on, and answer no client that waits: what is saved is final.

        The replies to earlier requests are still sent.
        """
        self.stopping = True
        for session in self.clients.sessions.values():
            self.blocking.unpark(session)
            session.special |= CLOSING

    def end_wait(self, session: Session, reply: object) -> None:
        """End the wait of a request that is not run again, and count its call now."""
        row = session.last_row
        if session.waiter is None or row is None:
            return
        row.count(1, 0, self.statistics.track_latency)
        if isinstance(reply, ErrorReply):
            row.failed_calls += 1
            self.statistics.counters.count_error(reply.text)
        self.clients.unpark(session, reply)

    def limit_writes(self) -> None:
        """Refuse writes while too few replicas are connected, or accept them again."""
        config = self.config
        wanted = config.min_replicas_to_write if config.min_replicas_max_lag > 0 else 0
        if self.role.follows:
            wanted = 0  # the master decides that
        replicas = self.role.replicas
        there = replicas.good() if wanted and replicas is not None else 0
        self.gate.set(NO_REPLICAS, there < wanted)

    def fail(self, reason: str) -> None:
        """Stop the process, because its state cannot be trusted any more."""
        log.critical("stopping: %s", reason)
        self.host.stop(1)
