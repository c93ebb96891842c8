"""Servers as subprocesses: ours, and the real Redis that judges it."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from support import build
from support.client import Argument, RawClient, WireError
from support.waiting import DEADLINE_S, wait_until

START_TIMEOUT_S = 120.0

PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST_PORT = 25_000  # what people start by hand is mostly below

# What a healthy server never logs.
TROUBLE = re.compile(
    r"^.*(Traceback \(most recent|\w+Warning: |never retrieved|never awaited|internal error).*$",
    re.MULTILINE,
)


@functools.cache
def quiet_ports() -> list[int]:
    """Ports that the system gives to no connection of its own accord; none where it does not say.

    Of the others it may give one to a client of whatever test while a server is being started anew.
    """
    try:
        low, high = map(int, PORT_RANGE.read_text().split())
    except (OSError, ValueError):
        return []
    return [*range(_LOWEST_PORT, low), *range(high + 1, 1 << 16)]


def state_of(pid: int) -> str:
    """One letter, as ``ps`` shows it; X where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or nothing of it is left but its exit code.

    An orphan's is read by process 1, some time later or never.
    """
    return state_of(pid) in "ZX"


def free_port() -> int:
    """A TCP port that nobody listens on at the moment."""
    chance = random.SystemRandom()
    while True:
        ports = quiet_ports()
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", chance.choice(ports) if ports else 0))
            port: int = probe.getsockname()[1]
            return port


def claim_port() -> tuple[int, socket.socket]:
    """A free TCP port that is kept from other tests on this machine, until the socket is closed.

    A server takes a while before it listens, and again when it is started anew. So that nobody
    else is given its port meanwhile, the port's name is taken as an abstract Unix socket's.
    """
    while True:
        port = free_port()
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0headrace-test-port-{port}")
        except OSError:
            claim.close()
            continue
        return port, claim


class Process:
    """A server with a folder, a port and a log of its own.

    Args:
        options: command line after the port and folder, such as ``"--appendonly", "yes"``.
        directory: working folder, kept at the end; without it a temporary one.
        port: TCP port; without it a free one.
        config: text of a configuration file to start with.
        environment: more environment variables.
    """

    name = "server"

    def __init__(
        self,
        *options: str,
        directory: Path | None = None,
        port: int = 0,
        config: str = "",
        environment: dict[str, str] | None = None,
    ) -> None:
        self._own_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="headrace-test-"))
        self.port = port
        self._any_port = port == 0
        self._claim: socket.socket | None = None
        self.options = options
        self.config_path = self.directory / "server.conf"
        if config:
            self.config_path.write_text(config)
        self._has_config = bool(config)
        self._environment = environment or {}
        self._settings = b""
        self.log_path = self.directory / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()

    def command(self) -> list[str]:
        """The program and what always stands before the options."""
        raise NotImplementedError

    def variables(self) -> dict[str, str]:
        return {**os.environ, **self._environment}

    # Life

    def spawn(self) -> Self:
        """Start the process without waiting for it to answer."""
        assert not self.running
        if self._any_port:
            self._release_port()
            self.port, self._claim = claim_port()
        command = self.command()
        if self._has_config:
            command.append(str(self.config_path))
        command += ["--port", str(self.port), "--dir", str(self.directory), *self.options]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=self.variables(),
            )
        return self

    def start(self, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Start the process and wait until it answers PING and has loaded its data."""
        self.spawn()
        self.wait_until_ready(timeout_s)
        return self

    def wait_until_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if not self.running:
                raise RuntimeError(f"{self.name} ended at start ({self.returncode}):\n{self.log()}")
            if self._answers():
                return
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not answer within {timeout_s} s:\n{self.log()}")

    def _answers(self) -> bool:
        try:
            with RawClient(self.port) as client:
                return client.call("PING").startswith((b"+PONG", b"-NOAUTH"))
        except (OSError, ValueError):
            return False

    def stop(self, sig: int = signal.SIGTERM) -> None:
        """Shut down cleanly; fails when the server does not, or when its log shows trouble."""
        self.signal(sig)
        code = self.wait()
        assert code == 0, f"{self.name} ended with {code}:\n{self.log()}"
        self.check_log()

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        if self.running:
            self.signal(signal.SIGKILL)
            self.wait()

    def restart(self, *, crash: bool = False) -> Self:
        """Stop (or kill) and start again on the same folder and port."""
        if crash:
            self._wait_until_written()
            self.kill()
        else:
            self.stop()
        self._any_port = False
        return self.start()

    def start_or_empty(self) -> Self:
        """Make ready for the next of the tests that share it: no keys, and the settings it had."""
        started = not self.running
        if started:
            self.start()
        with self.client() as client:
            client.call("FLUSHALL")
            settings = client.call("CONFIG", "GET", "*")
            if started:
                self._settings = settings
            elif settings != self._settings:
                words = settings_apart(self._settings, settings)
                assert client.call("CONFIG", "SET", *words) == b"+OK\r\n", words
        return self

    def _wait_until_written(self) -> None:
        """Wait for what has been answered: a reply waits no longer than a tenth of a second for it.

        A busy disk may take longer for a sync that the write has to wait for.
        """
        if self.running:
            with contextlib.suppress(OSError, WireError):
                wait_until(self._has_written)

    def _has_written(self) -> bool:
        facts = self.info("persistence")
        refused = facts.get("aof_last_write_status") == "err"
        return refused or facts.get("aof_buffer_length", "0") == "0"

    def discard(self) -> None:
        """End the process however it stands, and remove its temporary folder."""
        self.kill()
        self._release_port()
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _release_port(self) -> None:
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def signal(self, sig: int) -> None:
        assert self._process is not None
        self._process.send_signal(sig)

    def wait(self, timeout_s: float = DEADLINE_S) -> int:
        """Wait for the end of the process; return its exit code."""
        assert self._process is not None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(
                f"{self.name} still ran after {timeout_s} s:\n{self.log()}"
            ) from None

    # Facts

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        return None if self._process is None else self._process.poll()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def cpu_s(self) -> float:
        """Processor time that the process has taken, whatever others take meanwhile."""
        # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of Linux; clock_getcpuclockid(3) in C.
        return time.clock_gettime((~self.pid << 3) | 2)

    def log(self) -> str:
        """Everything the process wrote so far, over all its starts."""
        if not self.log_path.exists():
            return ""
        return self.log_path.read_text(errors="backslashreplace")

    def check_log(self) -> None:
        trouble = TROUBLE.search(self.log())
        assert trouble is None, f"{self.name} logged trouble:\n{self.log()}"

    def wait_for_log(self, text: str, timeout_s: float = DEADLINE_S) -> None:
        """Wait until the log holds ``text``."""
        deadline = time.monotonic() + timeout_s
        while text not in self.log():
            assert time.monotonic() < deadline, f"{text!r} is not in the log:\n{self.log()}"
            time.sleep(0.02)

    # Talking to it

    def client(self, *, resp3: bool = False, timeout_s: float = DEADLINE_S) -> RawClient:
        return RawClient(self.port, resp3=resp3, timeout_s=timeout_s)

    def call(self, *arguments: Argument) -> object:
        """One command on a connection of its own; the parsed reply. Error replies are raised."""
        with self.client() as client:
            reply = client.call_parsed(*arguments)
        if isinstance(reply, WireError):
            raise reply
        return reply

    def info(self, section: str = "all") -> dict[str, str]:
        """INFO as a dict."""
        text = self.call("INFO", section)
        assert isinstance(text, bytes)
        lines = (line.partition(":") for line in text.decode().splitlines() if ":" in line)
        return {name: value for name, _, value in lines}


def settings_apart(wanted: bytes, now: bytes) -> list[bytes]:
    """The words for CONFIG SET that give back settings, of two raw replies of CONFIG GET."""
    lines = zip(wanted.split(b"\r\n"), now.split(b"\r\n"), strict=True)
    pairs = list(lines)[2::2]  # the lines between say how many there are, and how long they are
    return [
        word
        for (name, _), (old, new) in zip(pairs[::2], pairs[1::2], strict=True)
        if old != new
        for word in (name, old)
    ]


def incr(server: Process) -> bytes:
    """The incr file of the append-only folder of a server, of which there is one."""
    [path] = (server.directory / "appendonlydir").glob("*.incr.*")
    return path.read_bytes()


class ServerProcess(Process):
    """Our server, in the build under test, with asyncio's debug mode and warnings as errors.

    Args, besides those of ``Process``:
        debug: False for tests that measure time or memory.
        check_log: whether trouble in the log fails the test at its end.
    """

    name = "headrace"

    def __init__(
        self,
        *options: str,
        directory: Path | None = None,
        port: int = 0,
        config: str = "",
        environment: dict[str, str] | None = None,
        debug: bool = True,
        check_log: bool = True,
    ) -> None:
        super().__init__(
            *options, directory=directory, port=port, config=config, environment=environment
        )
        self.debug = debug
        self.check_log_at_end = check_log

    def command(self) -> list[str]:
        warnings = ["-W", "error"] if self.debug else []
        return [sys.executable, "-P", *warnings, "-m", "headrace"]

    def variables(self) -> dict[str, str]:
        debug = {"PYTHONASYNCIODEBUG": "1", "PYTHONFAULTHANDLER": "1"} if self.debug else {}
        return {**build.environment(), **debug, "PYTHONUNBUFFERED": "1", **self._environment}


class RedisProcess(Process):
    """A real server that judges ours. It saves nothing by itself.

    Args, besides those of ``Process``:
        program: where it lies.
    """

    name = "redis"

    def __init__(
        self,
        *options: str,
        program: str,
        directory: Path | None = None,
        port: int = 0,
        config: str = "",
        environment: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            *options, directory=directory, port=port, config=config, environment=environment
        )
        self._program = program

    def command(self) -> list[str]:
        return [self._program, "--save", "", "--enable-debug-command", "yes"]

    @functools.cached_property
    def version(self) -> tuple[int, ...]:
        """The version of Redis whose ways it has: 7.2.4 for Valkey."""
        return tuple(int(part) for part in self.info("server")["redis_version"].split("."))


class Pair:
    """One connection to each server; every command goes to both and must get the same bytes.

    Args:
        version: that of the Redis which the real one follows, where ``since`` is made use of.
    """

    def __init__(self, ours: RawClient, real: RawClient, version: tuple[int, ...] = ()) -> None:
        self.ours = ours
        self.real = real
        self.version = version

    @classmethod
    def of(cls, ours: Process, real: RedisProcess, *, resp3: bool = False) -> Self:
        """A connection to each of two servers."""
        return cls(ours.client(resp3=resp3), real.client(resp3=resp3), real.version)

    def both(self, *arguments: Argument, since: tuple[int, int] = (0, 0)) -> bytes:
        """Send a command to both, compare the raw replies, return ours.

        Args:
            since: the first version of Redis that answers as we do; older ones are only told.
        """
        real = self.real.call(*arguments)
        ours = self.ours.call(*arguments)
        told_only = since > (0, 0) and self.version < since
        assert told_only or ours == real, f"{arguments!r}\n  ours {ours!r}\n  real {real!r}"
        return ours

    def both_about(self, *arguments: Argument, within: int) -> None:
        """Send a command to both, whose replies are integers that time may set apart a little."""
        real = self.real.call_parsed(*arguments)
        ours = self.ours.call_parsed(*arguments)
        assert isinstance(real, int), real
        assert isinstance(ours, int), ours
        assert abs(ours - real) <= within, f"{arguments!r}\n  ours {ours}\n  real {real}"

    def both_send(self, data: bytes) -> bytes:
        """Send raw bytes to both, compare one reply."""
        self.real.send(data)
        self.ours.send(data)
        real, ours = self.real.read(), self.ours.read()
        assert ours == real, f"{data!r}\n  ours {ours!r}\n  real {real!r}"
        return ours

    def close(self) -> None:
        self.ours.close()
        self.real.close()
