"""One server as a process would have it, but for its sockets, timers and threads.

It is put together of the server's own parts. What a process would get from outside is here: turns
of the event loop end when the simulator says so, time is simulated, and the disk keeps after a
power cut what was synced, and as much more as chance has it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.persistence.aof.file import AppendOnlyFile
from headrace.server.clients.session import BLOCKED, CLOSING, HOLD, Peer, Session
from headrace.server.config.config import Config
from headrace.server.config.parameters import BY_NAME
from headrace.server.cron import Cron
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.dispatch.serving import serve_ready, time_out_waiters
from headrace.server.durability.commit import Committer
from headrace.server.durability.durability import Durability
from headrace.server.durability.files import Files
from headrace.server.gate import HALF_JOINED, LOADING_DATA, REGION_REFUSES
from headrace.server.loading.starting import start_persistence
from headrace.server.settings import Settings
from headrace.server.state import Host, Server
from simulator.resp import Words, read_replies
from simulator.scenarios import WAITS
from simulator.virtual import Loop, RegionClock, Time

Result = TypeVar("Result")


class Died(Exception):
    """The process has ended by itself."""


class InlinePool(ThreadPoolExecutor):
    """A thread that has always done at once what it is given."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class SteppedCommitter(Committer):
    """Writes when a turn ends, and syncs when it has to, or is told to."""

    def __init__(self, server: Server, files: Files) -> None:
        super().__init__(server, files)
        self._clients = server.clients
        self._config = server.config
        self._open = files
        self.is_full = False  # the disk

    def end_turn(self) -> None:
        aof = self._open.aof
        if aof is not None and not self.failed:
            if aof.pending:
                self._write(aof)
            if self._config.appendfsync == b"always" and aof.size_bytes > aof.synced_bytes:
                self._sync_inline(aof)
        if not self.failed:
            for session in self._clients.take_flushing():
                session.peer.flush()

    def _write(self, aof: AppendOnlyFile) -> bool:
        if not self.is_full:
            return super()._write(aof)
        aof.take()
        aof.pending = True  # as a write that fails leaves it
        self._write_failed(OSError(errno.ENOSPC, "No space left on device"))
        return False

    def _start_sync(self, aof: AppendOnlyFile) -> None:
        self._sync_inline(aof)  # there is no thread

    def _on_timer(self) -> None:
        """Try again what could not be written."""
        self._timer = None
        if not self.failed:
            self._arm(0.2) if self.is_full else self.end_turn()

    def sync(self) -> None:
        """Sync what is written, as happens once a second."""
        aof = self._open.aof
        if aof is not None and not self.failed and aof.size_bytes > aof.synced_bytes:
            self._sync_inline(aof)


class Client(Peer):
    """A client that sends one request and looks what it gets.

    Attributes:
        received: replies, and messages, that it has not looked at.
        raw: they are here, as they came, while ``is_raw``.
        was_refusing: its region took no writes when it was given the last of that.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self.session = Session(0, process.server.data.dbs[0], 0, self)
        self.received: list[object] = []
        self.waits_for: Words = []
        self.of_region = False
        self.is_raw = False
        self.raw = b""
        self.was_refusing = False

    def flush_soon(self) -> None:
        server = self._process.server
        self.was_refusing = bool(server.gate.reasons & REGION_REFUSES)
        if not server.clients.flushing:
            server.host.flush_soon()
        server.clients.flushing.append(self.session)

    def flush(self) -> None:
        session = self.session
        session.flush_pending = False
        if session.out:
            wire = b"".join(session.out)
            session.out.clear()
            if self.is_raw:
                self.raw += wire
            else:
                self.received += read_replies(wire)

    def take(self) -> bytes:
        session = self.session
        session.flush_pending = False
        wire = b"".join(session.out)
        session.out.clear()
        return wire

    def send(self, wire: bytes) -> None:
        self.received += read_replies(wire)

    def has_left(self) -> bool:
        return self.session.closed


class _Host(Host):
    """The process around the server."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.turn_open = False
        self.exit_code = -1
        self.publishing = False

    def wake_at(self, deadline_ms: int) -> None:
        process = self._process
        delay_ms = max(0, deadline_ms - process.clock.monotonic_ms())
        process.loop.call_later(delay_ms / 1000, process.time_out)

    def flush_soon(self) -> None:
        self.turn_open = True

    def flush_now(self) -> None:
        self._process.committer.end_turn()

    def publish_soon(self) -> None:
        process = self._process
        if not self.publishing:
            self.publishing = True
            delay_s = process.server.config.aa_ack_interval_ms / 1000
            process.loop.call_later(delay_s, self._publish)

    def _publish(self) -> None:
        self.publishing = False
        self._process.publish()

    def stop(self, exit_code: int) -> None:
        self.exit_code = exit_code


class Inside:
    """While somebody is in the event loop of a process."""

    def __init__(self, process: Process) -> None:
        self._process: Final = process
        self._before: Final[list[asyncio.AbstractEventLoop | None]] = []

    def __enter__(self) -> None:
        self._process.touched = True
        self._before.append(asyncio._get_running_loop())
        asyncio._set_running_loop(self._process.loop)
        self._process.server.clock.refresh()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._process.end_turn()
        finally:
            asyncio._set_running_loop(self._before.pop())


class Process:
    """A server and its folder.

    Args:
        folder: where its data lies.
        settings: parameters by name, beside those that every one has.

    Attributes:
        server: while it runs.
        running: its process is there; ready: it has loaded its data, and takes commands.
        boot: which boot of its machine it lives in.
        touched: something may have happened in it.
    """

    server: Server
    durability: Durability
    dispatcher: Dispatcher
    committer: SteppedCommitter
    host: _Host

    def __init__(self, folder: Path, time: Time, skew_ms: int, settings: dict[str, bytes]) -> None:
        self.folder: Final = folder
        self.time: Final = time
        self.skew_ms = skew_ms
        self.settings: Final = settings
        self.loop: Final = Loop(time)  # type: ignore[abstract]  # it has what is asked of it
        self.running = False
        self.ready = False
        self.touched = False
        self._starting: asyncio.Task[None] | None = None
        self.boot = 1
        self.clock = RegionClock(time, skew_ms)
        self._clients: dict[str, Client] = {}
        self._inside: Final = Inside(self)
        folder.mkdir(parents=True, exist_ok=True)

    # Life

    def start(self) -> None:
        """Start; what is on the disk is loaded."""
        assert not self.running
        self.clock = RegionClock(self.time, self.skew_ms)
        config = Config()
        config.dir = os.fsencode(self.folder)
        for name, value in {"appendonly": b"yes", **self.settings}.items():
            row = BY_NAME[name.encode()]
            words = value.split() if name == "replicaof" else [value]
            config.store(row, row.read(words, config.value(row)))
        assert config.contradiction() is None
        self.server = Server(config, self.clock)
        Settings(self.server)
        self.host = _Host(self)
        self.server.attach(self.host)
        files = Files(self.server.changes, self.clock.started_ms // 1000)
        self.committer = SteppedCommitter(self.server, files)
        self.durability = Durability(self.server, files, self.committer)
        self.dispatcher = Dispatcher(self.server, self.durability)
        self.prepare()
        self.server.gate.set(LOADING_DATA, True)
        self.cron = Cron(self.dispatcher)
        self._clients = {}
        self.running = True
        self.ready = False
        with self.entered():
            self._starting = asyncio.Task(self._start(), loop=self.loop)

    async def _start(self) -> None:
        await self.load()
        self.server.gate.set(LOADING_DATA, False)
        self.ready = True

    async def load(self) -> None:
        """Load what is on the disk."""
        await start_persistence(self.server, self.durability)

    def prepare(self) -> None:
        """What goes before loading."""

    def became_ready(self) -> None:
        """It takes commands from now on."""

    def publish(self) -> None:
        """Let others know what has been acknowledged."""

    def entered(self) -> Inside:
        """Be in its event loop; at the end its turn ends, too."""
        return self._inside

    def end_turn(self) -> None:
        """End turns of the loop until nothing is left to be done."""
        self.loop.run_due()
        while self.host.turn_open:
            self.host.turn_open = False
            self.committer.end_turn()
            self.loop.run_due()
        starting = self._starting
        if starting is not None and starting.done():
            self._starting = None
            starting.result()
            self.became_ready()
        if self.host.exit_code >= 0:
            raise Died(f"exit code {self.host.exit_code}")

    def stop(self) -> None:
        """End in order."""
        with self.entered():
            assert self.committer.close()
        self._ended()

    def kill(self) -> None:
        """End at once: what was not written is gone."""
        files = self.durability.files
        if files.aof is not None:
            files.aof.close()
        if files.directory is not None:
            files.directory.close()
        self._ended()

    def power_cut(self, chance: random.Random | None) -> None:
        """End at once, and with it what the disk had not been asked to keep.

        Without chance nothing more than that is kept.
        """
        files = self.durability.files
        aof = files.aof
        self.kill()
        self.boot += 1
        if aof is not None and aof.size_bytes > aof.synced_bytes:
            least = aof.synced_bytes
            kept = least if chance is None else chance.randint(least, aof.size_bytes)
            os.truncate(aof.path, kept)

    def lose_disk(self) -> None:
        """All that it had on its disk is gone."""
        assert not self.running
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def keep(self, name: str) -> None:
        """Make a copy of its folder, as it is at this moment."""
        target = self.folder.parent / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder, target)

    def restore(self, name: str) -> None:
        """Put a copy in the place of its folder."""
        assert not self.running
        shutil.rmtree(self.folder)
        shutil.copytree(self.folder.parent / name, self.folder)

    def _ended(self) -> None:
        self.running = False
        self.ready = False
        if self._starting is not None:
            self._starting._log_destroy_pending = False  # type: ignore[attr-defined]
            self._starting = None
        self.loop.clear()
        self._clients = {}

    # What happens

    def client(self, name: str) -> Client:
        """A connected client, by a name; made where there is none."""
        found = self._clients.get(name)
        if found is None or found.session.closed:
            found = self._clients[name] = Client(self)
            self.adopt(found)
        return found

    def connected(self, name: str) -> Client | None:
        """A client that is there, by its name."""
        return self._clients.get(name)

    def adopt(self, client: Client) -> None:
        """A client has connected."""
        server = self.server
        now_ms = server.clock.now_ns // 10**6
        session = Session(server.clients.next_id, server.data.dbs[0], now_ms, client)
        client.session = session
        server.clients.next_id += 1
        server.clients.sessions[session.id] = session

    def is_held(self, client: Client) -> bool:
        """Return whether a client has to wait before it may ask again."""
        return bool(client.session.special & HOLD)

    def hang_up(self, name: str) -> None:
        """A client goes."""
        client = self._clients.pop(name, None)
        if client is not None:
            with self.entered():
                self.server.session_closed(client.session)

    def call(self, name: str, words: Words) -> object:
        """Run one command as a client; its reply, or ``WAITS``."""
        client = self.client(name)
        self.ask(client, [words])
        return client.received.pop(0) if client.received else WAITS

    def call_all(self, name: str, requests: list[Words]) -> bytes:
        """Run commands of which none waits, as a client that sends them at once; their replies."""
        client = self.client(name)
        client.is_raw = True
        self.ask(client, requests)
        client.is_raw = False
        wire = client.raw
        client.raw = b""
        return wire

    def ask(self, client: Client, requests: list[Words]) -> None:
        """Run commands that have come at once; those who send several spell them otherwise."""
        session = client.session
        assert not session.special & BLOCKED
        client.waits_for = requests[-1]
        if len(requests) > 1:
            requests = [[words[0].lower(), *words[1:]] for words in requests]
        with self.entered():
            done = execute(self.dispatcher, session, requests, 0, len(requests))
            while done < len(requests) and not session.special & (BLOCKED | CLOSING):
                done = execute(self.dispatcher, session, requests, done, len(requests))
            if session.out and not session.flush_pending:
                session.flush_pending = True
                client.flush_soon()

    def time_out(self) -> None:
        """Look at who has waited long enough."""
        if not self.running:
            return
        self.server.clock.refresh()
        next_ms = time_out_waiters(self.server)
        if self.server.blocking.ready:
            serve_ready(self.dispatcher)
        if next_ms:
            self.host.wake_at(next_ms)

    def tick(self) -> None:
        """What happens some times a second."""
        with self.entered():
            self.cron.tick()

    def sync(self) -> None:
        """What happens once a second with everysec."""
        with self.entered():
            self.committer.sync()

    def rewrite(self) -> None:
        """Write the files anew, to the end; while a copy is half joined, that waits for it."""
        with self.entered():
            self.durability.rewriting.rewrite_soon()
            files, gate = self.durability.files, self.server.gate
            self.loop.run_all(lambda: files.job is None or bool(gate.reasons & HALF_JOINED))
