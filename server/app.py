"""The process: event loop, listeners, timers, signals, start and end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.compat.errors import SHUTDOWN_FAILED
from headrace.persistence.errors import PersistenceError
from headrace.protocol.replies import ErrorReply
from headrace.server.acl.rules import UsersError
from headrace.server.active_active import RegionAtWork
from headrace.server.build import PYTHON_VERSION, REDIS_VERSION, VERSION, build_kind
from headrace.server.clients.session import Session
from headrace.server.clock import VirtualClock
from headrace.server.config.config import Config
from headrace.server.cron import Cron, move_clock
from headrace.server.dispatch.dispatcher import HELD_BY_END, Dispatcher, hold_writes, release_writes
from headrace.server.dispatch.serving import serve_ready, time_out_waiters
from headrace.server.durability.durability import Durability, discard_unfinished, ready_to_end
from headrace.server.gate import CLIENTS_LIMITED, LOADING_DATA, NEWCOMERS
from headrace.server.loading.starting import load_users, start_persistence
from headrace.server.net.connection import Connection
from headrace.server.net.encryption import Encryption
from headrace.server.net.listeners import Listeners
from headrace.server.net.past_loop import BusyPoll
from headrace.server.process.signals import Signals
from headrace.server.process.system import (
    Lifeline,
    SpareFiles,
    Supervision,
    remove_pid_file,
    write_pid_file,
)
from headrace.server.role import Following, Replicas
from headrace.server.settings import Settings
from headrace.server.state import (
    ENDS,
    STAYS,
    WAITS,
    Evicting,
    Host,
    Scripting,
    Server,
    Shutdown,
    ShutdownOptions,
)
from headrace.server.succession import Succession
from headrace.server.wing import active_active
from headrace.storage.packed.table import SEED_BITS, set_seed

log: Final = logging.getLogger("headrace")

SWITCH_INTERVAL_S: Final = 0.0002  # of a thread that has written or synced, until it can say so


class App(Host):
    """Runs one server in the calling thread until it is stopped."""

    def __init__(self, config: Config, place: str = ".") -> None:
        if config.aa_region_id:
            active_active()  # to be there when it becomes one
        self.server: Final = Server(config)
        self.settings: Final = Settings(self.server)
        self.server.attach(self)
        self.durability: Final = Durability(self.server)
        self.dispatcher: Final = Dispatcher(self.server, self.durability)
        self._shutdown: Final = OrderlyShutdown(self.server, self.durability)
        self.server.shutdown = self._shutdown
        self.server.make_scripting = self._make_scripting
        self.server.role.make_replicas = self._make_replicas
        self.server.make_evicting = self._make_evicting
        self.server.role.make_following = self._make_following
        self.config: Final = config
        self.exit_code = 0
        self._stopped: asyncio.Event = asyncio.Event()
        self._encryption: Final = Encryption(self.dispatcher)
        self._listeners: Final = Listeners(
            config, self._connect, self._connect_region, self._encryption
        )
        self._region: RegionAtWork | None = None
        if config.aa_region_id:
            self._region = active_active().work(self.dispatcher, self._encryption.call)
        self._signals: Final = Signals(config, self.ask_to_end, self._leave)
        self._cron: Final = Cron(self.dispatcher)
        self._supervision: Final = Supervision(config.supervised)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._flush_scheduled = False
        self._publishing = False
        self._busy_poll: Final = BusyPoll(config)
        self._spare_files: SpareFiles | None = None
        self._lifeline: Final = Lifeline()
        self.succession: Final = Succession(self.server, self._listeners, place)

    def _begin_metrics(self) -> str | None:
        """Import the wing of metrics, by name, with the first port; it hears of the next itself."""
        try:
            wing = import_module("headrace.metrics.wing")
        except ImportError as error:
            return f"there is no {error.name} here; pip install 'headrace[metrics]' brings it"
        refusal: str | None = wing.begin(self.dispatcher)
        return refusal

    def _make_scripting(self) -> Scripting:
        # Here, because Lua is large, and many servers never run a script.
        from headrace.server.net.while_busy import WhileBusy
        from headrace.server.scripting.engine import ScriptEngine

        engine = ScriptEngine(self.dispatcher)
        engine.busy.serving = WhileBusy(
            self.server, engine.busy, self._listeners, self.durability.committer.send_waiting
        )
        return engine

    def _make_replicas(self) -> Replicas:
        # Here, because many servers never have a replica.
        from headrace.server.replication.failover import ReplicaFailover
        from headrace.server.replication.replicas import AllReplicas

        replicas = AllReplicas(self.server, self.durability)
        self.server.role.failover_job = ReplicaFailover(self.server, replicas)
        return replicas

    def _make_evicting(self) -> Evicting:
        # Likewise: many servers have no limit.
        from headrace.server.eviction import RoomMaking

        return RoomMaking(self.dispatcher)

    def _make_following(self) -> Following:
        from headrace.server.following.following import MasterFollowing
        from headrace.server.links.link import LinkUser
        from headrace.server.links.tcp import TcpLink
        from headrace.server.replication.replicas import AllReplicas

        replicas = self.server.role.ready_replicas()
        assert isinstance(replicas, AllReplicas)

        def link(user: LinkUser, host: bytes, port: int) -> TcpLink:
            encrypt = self._encryption.call if self.config.tls_replication else None
            return TcpLink(user, self.config, host, port, encrypt)

        return MasterFollowing(self.dispatcher, replicas, link)

    # Host

    def wake_at(self, deadline_ms: int) -> None:
        """Arm the one timer that all blocked clients share."""
        if self.server.stopping:
            return
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        delay_s = max(0, deadline_ms - self.server.clock.monotonic_ms()) / 1000
        self._timer_ms = deadline_ms
        self._timer = loop.call_later(delay_s, self._time_out_waiters)

    def move_clock(self, to_ns: int) -> None:
        clock = self.server.clock
        assert isinstance(clock, VirtualClock)
        move_clock(self.dispatcher, self._cron, clock, to_ns)

    def clock_changed(self) -> None:
        self._cron.tick()
        if self._timer is not None:
            self._timer.cancel()
        self._time_out_waiters()

    def flush_soon(self) -> None:
        """Flush once all that this turn of the loop reads has been run."""
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def flush_now(self) -> None:
        """Flush before this turn of the loop ends."""
        self.server.statistics.counters.turns += 1
        self.durability.committer.end_turn()

    def publish_soon(self) -> None:
        """Wait until more is acknowledged, because one effect reports it all."""
        if not self._publishing and not self.server.stopping:
            self._publishing = True
            delay_s = self.config.aa_ack_interval_ms / 1000
            asyncio.get_running_loop().call_later(delay_s, self._publish)

    def _publish(self) -> None:
        self._publishing = False
        self.server.clock.refresh()
        if self._region is not None:
            self._region.publish()

    def answered(self) -> None:
        """Do not go to sleep at once, because the next request may be on its way."""
        self._busy_poll.answered()

    def lend_files(self) -> None:
        """Free descriptors until the next turn of the event loop."""
        if self._spare_files is not None:
            self._spare_files.lend()

    def stop(self, exit_code: int) -> None:
        """Leave ``serve`` after this turn, whose state is final; no command runs any more."""
        self.exit_code = exit_code
        self.server.stop_serving()
        self._cron.stop()
        if self._timer is not None:
            self._timer.cancel()
        self._supervision.notify("STOPPING=1\n")
        self._stopped.set()

    def notify_supervisor(self, status: str) -> None:
        """Report to systemd what the server is doing."""
        self._supervision.notify(f"STATUS={status}\n")

    def supervisor(self) -> bytes:
        """Return the supervisor of the process: ``no``, ``systemd`` or ``upstart``."""
        return self._supervision.kind

    def loop_name(self) -> bytes:
        """Return the module of the running loop: ``uvloop`` or ``asyncio``."""
        return type(asyncio.get_running_loop()).__module__.split(".")[0].encode()

    def _time_out_waiters(self) -> None:
        self._timer = None
        self.server.clock.refresh()
        next_ms = time_out_waiters(self.server)
        if self.server.blocking.ready:
            serve_ready(self.dispatcher)
        if next_ms:
            self.wake_at(next_ms)

    def _end_turn(self) -> None:
        self._flush_scheduled = False
        self.server.statistics.counters.turns += 1
        self.server.tracking.end_turn()
        answered = self.server.clients.flushing
        self.durability.committer.end_turn()
        if self.server.gate.reasons & CLIENTS_LIMITED:
            self.server.clients.weigh_these(answered)

    # Life

    async def serve(self) -> int:
        """Load, listen, serve and shut down; return the exit code of the process."""
        loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._signals.install(loop)
        self._lifeline.begin(loop)
        self.server.gate.set(LOADING_DATA, True)
        self._supervision.announce()
        self.notify_supervisor("Loading...")
        try:
            await self._listeners.open()
            self.config.on_change["metrics-port"] = self._begin_metrics
            refusal = self._begin_metrics() if self.config.metrics_port else None
            if refusal is not None:
                number = self.config.metrics_port
                raise OSError(f"Failed listening on port {number} (metrics), aborting. {refusal}")
            write_pid_file(self.config)
            of_region = None if self._region is None else self._region.files()
            await start_persistence(self.server, self.durability, of_region)
        except (OSError, PersistenceError) as error:
            log.critical("%s", error)
            self._listeners.close()
            for session in list(self.server.clients.sessions.values()):
                session.peer.abort()
            await asyncio.sleep(0)
            self._signals.ignore(loop)
            return 1
        self.server.gate.set(LOADING_DATA, False)
        if not self.server.stopping:
            await self._listeners.serve()
            if self._region is not None:
                self._region.open()
            settle_heap()
            follow_configured(self.server)
            gc.callbacks.append(self.server.statistics.latency.collector)
            log.info("Ready to accept connections")
            self._supervision.ready()
            self._cron.start()
            spare = self._spare_files = SpareFiles(loop)
            spare.begin()
            self.succession.start()
            await self._stopped.wait()
            self.succession.stop()
            spare.end()
            gc.callbacks.remove(self.server.statistics.latency.collector)
        code = await self._shut_down()
        self._signals.ignore(loop)
        return code

    def leave(self) -> None:
        """End the process at once; all that clients were answered is in the append-only file."""
        log.warning("Leaving at once, without saving, because a script is at work")
        self._leave()
        os._exit(0)

    def ask_to_end(self, number: int) -> None:
        """Save what is to be saved and end, or stay where that fails."""
        log.info("Received %s, scheduling shutdown...", signal.Signals(number).name)
        if self.server.stopping:
            return
        config = self.config
        asked = config.shutdown_on_sigterm
        if number == signal.SIGINT:
            asked = config.shutdown_on_sigint
        undo = self._signals.let_insist()

        def stay() -> None:
            undo()
            self._report_stay(number)

        self._shutdown.begin(ShutdownOptions(asked.split()), stay)

    def _report_stay(self, number: int) -> None:
        if self.durability.rewriting.recovery.will_end(number):
            log.warning("Everything is being written anew; the server ends when that is done")
            return
        log.warning("Not shut down, see above for the reason")

    def _connect(self) -> asyncio.Protocol:
        self.server.gate.set(NEWCOMERS, True)
        return Connection(self.dispatcher)  # type: ignore[return-value]  # a protocol by its methods

    def _connect_region(self) -> asyncio.Protocol:
        return Connection(self.dispatcher, True)  # type: ignore[return-value]

    async def _shut_down(self) -> int:
        log.info("User requested shutdown...")
        self._listeners.close()
        if self._region is not None:
            self._region.close()
        files = self.durability.files
        if files.job is not None:
            files.job.cancel()
        if self.server.role.following is not None:
            self.server.role.following.stop()
        if self.server.role.replicas is not None:
            self.server.role.replicas.flush()
        failed = not self.durability.committer.close()
        files.worker.close()
        for session in list(self.server.clients.sessions.values()):
            if failed:  # no reply may promise what the disk does not hold
                session.peer.abort()
                continue
            session.peer.close()
            session.peer.flush()
        await asyncio.sleep(0)
        log.info("Headrace is now ready to exit, bye bye...")
        return 1 if failed else self.exit_code

    def _leave(self) -> None:
        discard_unfinished(self.durability)
        remove_pid_file(self.config)


def follow_configured(server: Server) -> None:
    """Follow the master that the configuration names, if it names one."""
    words = server.config.replicaof.split()
    if words:
        server.role.ready_following().follow(words[0], int(words[1]), server.role.resumed_db)


def settle_heap() -> None:
    """Keep the garbage collector away from loaded data, and from most of what comes.

    Reference counts free what commands make. The youngest generations are still collected, because
    a cycle is possible, if rare. The oldest is never collected, because its walk grows with the
    data. The middle one holds 100,000 new objects at most, which takes 6 ms. Keys, blocks and
    pending entries are not among them: they can be in no cycle. Imports have left some hundred
    objects in cycles, to stay.
    """
    gc.freeze()
    gc.enable()  # since the start it rested
    gc.set_threshold(10_000, 10, 1_000_000)


def join_cluster(server: Server) -> bool:
    """Be the one node of a cluster; False where the file of that node cannot be used."""
    from headrace.server.cluster import NodeFileError, open_node  # late: it is rare

    try:
        server.cluster = open_node(server.config)
    except NodeFileError as error:
        log.critical("%s", error)
        return False
    return True


def run(config: Config, place: str) -> int:
    """Serve until stopped, with the process started in ``place``; return the exit code."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    set_seed(int.from_bytes(os.urandom(8), "big") >> (64 - SEED_BITS))
    app = App(config, place)
    try:
        load_users(app.server)
    except UsersError as error:
        log.critical("Aborting startup because of ACL errors: %s", error)
        return 1
    if config.cluster_enabled and not join_cluster(app.server):
        return 1
    log.info(
        "Headrace %s (Redis %s), %s build, Python %s, pid %d, port %d",
        VERSION,
        REDIS_VERSION,
        build_kind(),
        PYTHON_VERSION,
        os.getpid(),
        config.port or config.tls_port,
    )
    try:
        try:
            import uvloop
        except ImportError:
            code = asyncio.run(app.serve())
        else:
            code = int(uvloop.run(app.serve()))
    finally:
        remove_pid_file(config)
    if app.succession.sockets and not code:
        app.succession.become()
    return code


class OrderlyShutdown(Shutdown):
    """Ends one server, but waits for its replicas first, so that they have all writes.

    While it waits, requests that write are held back, and the end can be called off.
    """

    def __init__(self, server: Server, durability: Durability) -> None:
        self._server: Final = server
        self._durability: Final = durability
        self._options: ShutdownOptions | None = None  # of the end that waits for replicas
        self._on_stay: Callable[[], None] | None = None
        self._clients: list[Session] = []  # that asked for it
        self._offset = 0  # up to where replicas are to have the stream
        self._deadline_ms = 0

    def begin(self, options: ShutdownOptions, on_stay: Callable[[], None] | None = None) -> int:
        if self._options is not None:
            return WAITS
        server = self._server
        replicas = server.role.replicas
        self._on_stay = on_stay
        timeout_s = server.config.shutdown_timeout
        if replicas is not None and timeout_s and not options.now:
            self._offset = replicas.end_offset()
            if replicas.lagging(self._offset):
                log.info("Waiting for replicas before shutting down.")
                self._options = options
                self._deadline_ms = server.clock.monotonic_ms() + timeout_s * 1000
                hold_writes(server, HELD_BY_END)
                replicas.ask_for_acks()
                server.host.notify_supervisor("Waiting for replicas")
                return WAITS
        return self._end(options)

    def await_with(self, session: Session) -> None:
        self._clients.append(session)

    def call_off(self) -> bool:
        if self._options is None:
            return False
        log.info("Shutdown manually aborted.")
        self._stay()
        return True

    def tick(self, now_ms: int) -> None:
        options = self._options
        replicas = self._server.role.replicas
        if options is None or replicas is None:
            return
        lagging = replicas.lagging(self._offset)
        if lagging and now_ms < self._deadline_ms:
            return
        count = replicas.count()
        log.info("%d of %d replicas are in sync when shutting down.", count - lagging, count)
        self._end(options)

    def _end(self, options: ShutdownOptions) -> int:
        if ready_to_end(
            self._server, self._durability, options.save, options.nosave, options.force
        ):
            self._options = None
            self._server.host.stop(0)
            return ENDS
        self._stay()
        return STAYS

    def _stay(self) -> None:
        server = self._server
        if self._options is not None:
            self._options = None
            release_writes(server, HELD_BY_END)
        clients, self._clients = self._clients, []
        for session in clients:
            server.end_wait(session, ErrorReply(SHUTDOWN_FAILED))
        on_stay, self._on_stay = self._on_stay, None
        if on_stay is not None:
            on_stay()
