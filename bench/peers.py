"""The servers under measurement: finding them, starting them, reading what they cost.

Each server listens on a free port of 127.0.0.1 and has a temporary folder, no snapshots and, unless
asked for, no append-only file. Where the machine has two cores or more, servers share one of them
(only one is under load at a time) and the load has the others, so that neither takes the other's
time and the scheduler moves nobody.

What a server cost is read from outside, the same way for all: CPU time of the process with all its
threads, and its resident memory.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import hiredis

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
BATCH: Final = 1000
SLOW_BATCH: Final = 50  # fakeredis hangs up when its replies are not fetched soon enough
FREEING_LOOK_S: Final = 0.005  # between looks at what is still to be freed
CALL_TIMEOUT_S: Final = 600.0  # a fill, a rewrite, a FLUSHALL of tens of millions of entries
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

OURS: Final = "headrace"
OURS_PURE: Final = "headrace-pure"
FAKEREDIS: Final = "fakeredis"
REAL: Final = ("redis-server", "valkey-server")
USUAL: Final = (*REAL, FAKEREDIS)  # peers that a machine may have


class ServerError(Exception):
    """A server did not start, did not answer, or answered with an error."""


class Peer(NamedTuple):
    """A server that can be started."""

    name: str
    command: tuple[str, ...]
    is_redis_like: bool = True  # takes redis-server's options

    @property
    def is_slow(self) -> bool:
        """Return whether preparing as much data as for the others would take minutes."""
        return not self.is_redis_like

    @property
    def is_rival(self) -> bool:
        """Return whether ratios are taken to it: a real server that is not ours."""
        return self.is_redis_like and self.name not in (OURS, OURS_PURE)


def ours(command: str = "") -> Peer:
    """Our server: as told, or the one installed beside this interpreter."""
    if command:
        return Peer(OURS, tuple(shlex.split(command)))
    script = Path(sys.executable).with_name("headrace")
    if script.exists():
        return Peer(OURS, (str(script),))
    return Peer(OURS, (sys.executable, "-P", "-m", "headrace"))


def pure(command: str = "") -> Peer:
    """Our server uncompiled: as told, or the checkout as it is."""
    if command:
        return Peer(OURS_PURE, tuple(shlex.split(command)))
    path = f"PYTHONPATH={Path(__file__).parents[1]}"
    return Peer(OURS_PURE, ("env", path, sys.executable, "-P", "-m", "headrace"))


def found() -> list[Peer]:
    """The peers that this machine has."""
    peers = []
    for name in REAL:
        program = shutil.which(name)
        if program is not None:
            peers.append(Peer(name, (program,)))
    if importlib.util.find_spec("fakeredis") is not None:
        program = str(Path(__file__).with_name("fakeredis_server.py"))
        peers.append(Peer(FAKEREDIS, (sys.executable, "-P", program), is_redis_like=False))
    return peers


# Cores


class Cores(NamedTuple):
    """Which cores the servers have, and which the load; the same where there is only one."""

    server: frozenset[int]
    load: frozenset[int]


def divide_cores() -> Cores:
    """The last core for the servers, the others for the load."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) == 1:
        return Cores(frozenset(available), frozenset(available))
    return Cores(frozenset(available[-1:]), frozenset(available[:-1]))


@contextlib.contextmanager
def pinned(cores: frozenset[int]) -> Iterator[None]:
    """Return what this thread starts inside runs on these cores from its first instruction."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# Talking to a server outside of measurements


def encode(*words: str | bytes | int) -> bytes:
    """A request, as clients send it."""
    # Its annotation says a tuple of one.
    request: bytes = hiredis.pack_command(words)  # type: ignore[arg-type]
    return request


def first_error(reply: object) -> str:
    """The text of the first error within a parsed reply, or nothing."""
    if isinstance(reply, hiredis.ReplyError):
        return str(reply)
    if isinstance(reply, list):
        for part in reply:
            text = first_error(part)
            if text:
                return text
    return ""


class Control:
    """A blocking connection for all that is not measured: filling, resetting, asking.

    Args:
        batch: how many requests may be sent at once.
    """

    def __init__(self, port: int, timeout_s: float = CALL_TIMEOUT_S, batch: int = BATCH) -> None:
        self.batch = batch
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _receive(self, raw: bytearray | None = None) -> object:
        while True:
            reply = self._reader.gets()
            if reply is not False:
                return reply
            data = self._socket.recv(1 << 18)
            if not data:
                raise ServerError("the server hung up")
            if raw is not None:
                raw += data
            self._reader.feed(data)

    def call(self, *words: str | bytes | int) -> object:
        """One command; its parsed reply.

        Raises: ServerError for an error reply.
        """
        self._socket.sendall(encode(*words))
        reply = self._receive()
        error = first_error(reply)
        if error:
            raise ServerError(error)
        return reply

    def number(self, *words: str | bytes | int) -> int:
        """One command that replies with an integer.

        Raises: ServerError.
        """
        reply = self.call(*words)
        if not isinstance(reply, int):
            raise ServerError(f"{words[0]!r} gave {reply!r}, not a number")
        return reply

    def probe(self, request: bytes, replies: int = 1) -> bytes:
        """Send encoded requests that give so many replies; the bytes of all of these.

        Raises: ServerError when one of them is an error.
        """
        self._socket.sendall(request)
        raw = bytearray()
        for _ in range(replies):
            error = first_error(self._receive(raw))
            if error:
                raise ServerError(error)
        return bytes(raw)

    def send_all(self, chunks: Iterable[tuple[bytes, int]]) -> None:
        """Send chunks of encoded requests, each with the number of its replies, and read these.

        The next chunk is sent before the replies of the last are read, so the server does not wait.

        Raises: ServerError for the first error reply.
        """
        owed = 0
        for data, replies in chunks:
            self._socket.sendall(data)
            self._read_off(owed)
            owed = replies
        self._read_off(owed)

    def _read_off(self, replies: int) -> None:
        for _ in range(replies):
            error = first_error(self._receive())
            if error:
                raise ServerError(error)


# Servers


class CpuTime(NamedTuple):
    """What a process has used so far."""

    total_s: float
    user_ticks: int
    system_ticks: int


def cpu_time(pid: int) -> CpuTime:
    """CPU time of a process, of threads that ended too.

    The kernel's clock of the process counts nanoseconds but knows only the sum; /proc tells user
    from system in hundredths of a second. The first gives the amount, the second the share.
    """
    # The second field, the program's name, may hold blanks: count from behind it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    try:
        # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of Linux; clock_getcpuclockid(3) in C.
        total_s = time.clock_gettime((~pid << 3) | 2)
    except OSError:
        total_s = (user_ticks + system_ticks) / TICKS_PER_S
    return CpuTime(total_s, user_ticks, system_ticks)


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def parse_info(reply: object) -> dict[str, str]:
    """The fields of an INFO reply."""
    if not isinstance(reply, bytes):
        return {}
    lines = (line.partition(":") for line in reply.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in lines}


class Server:
    """A peer that runs, from ``with`` to its end.

    Args:
        peer: what to start.
        options: more options in redis-server's words, left out for a peer that does not know them.
        cores: where it runs; None leaves the choice to the system.
        parent: the folder in which its own is made.
    """

    def __init__(
        self,
        peer: Peer,
        *options: str,
        cores: frozenset[int] | None = None,
        parent: Path | None = None,
    ) -> None:
        self.peer = peer
        self.name = peer.name
        self.options = options
        self.port = free_port()
        self.start_s = 0.0  # from its start to its first answer
        self._cores = cores
        self._directory = Path(tempfile.mkdtemp(prefix="headrace-bench-", dir=parent))
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Control | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _command(self) -> list[str]:
        if not self.peer.is_redis_like:
            return [*self.peer.command, str(self.port)]
        always = f"--port {self.port} --bind 127.0.0.1 --maxclients 20000 --dir".split()
        quiet = ["--save", "", "--auto-aof-rewrite-percentage", "0"]
        return [*self.peer.command, *always, str(self._directory), *quiet, *self.options]

    def _start(self) -> None:
        log_path = self._directory / "server.log"
        cores = self._cores or frozenset(os.sched_getaffinity(0))
        started = time.perf_counter()
        with log_path.open("wb") as log, pinned(cores):
            self._process = subprocess.Popen(
                self._command(),
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while time.perf_counter() < started + START_TIMEOUT_S:
            if self._process.poll() is not None:
                break
            if self._answers():
                self.start_s = time.perf_counter() - started
                self._check_pid()
                return
            time.sleep(0.001)
        tail = log_path.read_text(errors="replace")[-2000:]
        raise ServerError(f"{self.name} does not answer:\n{' '.join(self._command())}\n{tail}")

    def _check_pid(self) -> None:
        """See that the process whose time and memory are counted is the server.

        Raises: ServerError where a script has started it, say.
        """
        if self.peer.is_redis_like and self.info("server").get("process_id") != str(self.pid):
            raise ServerError("the server is a process of its own: start it with exec")

    def _answers(self) -> bool:
        try:
            control = Control(self.port)
            try:
                control.call("PING")
            finally:
                control.close()
        except (OSError, ServerError):
            return False
        return True

    def stop(self) -> None:
        """End the process and remove its folder."""
        self.hang_up()
        if self._process is not None:
            # What it holds is of no use: no time is lost on a clean end.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(STOP_TIMEOUT_S)
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def control(self) -> Control:
        """A connection for all that is not measured."""
        if self._control is None:
            batch = SLOW_BATCH if self.peer.is_slow else BATCH
            self._control = Control(self.port, batch=batch)
        return self._control

    def hang_up(self) -> None:
        """Close the connection for all that is not measured; the next use makes a new one."""
        if self._control is not None:
            self._control.close()
            self._control = None

    @property
    def pid(self) -> int:
        """The process whose time and memory are counted."""
        if self._process is None:
            raise ServerError(f"{self.name} does not run")
        return self._process.pid

    def cpu_time(self) -> CpuTime:
        """CPU time used so far."""
        return cpu_time(self.pid)

    def resident_bytes(self) -> int:
        """Memory of the process that lies in RAM."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    def settle(self) -> None:
        """Wait until it has let go of what was deleted, which it may do behind its replies.

        Else one server would pay for that while it is measured, and another before.
        """
        if self.peer.is_redis_like:  # fakeredis hangs up on INFO
            while self.info("memory").get("lazyfree_pending_objects", "0") != "0":
                time.sleep(FREEING_LOOK_S)

    def info(self, section: str) -> dict[str, str]:
        """A section of INFO; empty when the server has no INFO."""
        try:
            return parse_info(self.control.call("INFO", section))
        except ServerError:
            return {}

    def version(self) -> str:
        """The version, and which build where the server says so."""
        if self.peer.name == FAKEREDIS:
            return importlib.metadata.version("fakeredis")
        info = self.info("server")
        for field in ("headrace_version", "valkey_version", "redis_version"):
            if field in info:
                if "headrace_build" not in info:
                    return info[field]
                python = info.get("headrace_python", "?")
                return f"{info[field]} ({info['headrace_build']} build, Python {python})"
        return "unknown"
