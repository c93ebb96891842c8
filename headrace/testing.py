"""Servers for tests: real ones, each with a port and a folder of its own, and none left behind.

    with HeadraceServer(appendonly=True) as server:
        client = server.client()
        server.clock.shift(3600)
        server.faults.close_after("XADD", times=1)

A server is ready when it has been made, and it ends with the process that made it, even if that is
killed. Nothing is imported here that the server does not need; redis-py is, for ``client``.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import hiredis

if TYPE_CHECKING:
    import redis
    import redis.asyncio

HOST: Final = "127.0.0.1"
PORTS_TRIED: Final = 20  # each may be taken by another process just before it is used
LOOK_S: Final = 0.002  # between two looks whether a server is ready
STOP_S: Final = 10.0  # for what it has to save
LOG_LINES: Final = 20  # that an error shows

Value = str | bytes | int | float | Path
Parameter = Value | bool | Sequence[Value]
USUAL: Final[dict[str, Parameter]] = {
    "save": "",
    "appendonly": False,
    "enable-debug-command": "local",
}


class ServerError(RuntimeError):
    """A server does not start, or refuses what a test asks of it; the text says why."""


class HeadraceServer:
    """One server.

    Args:
        executable: what to run instead of the Headrace that is installed here, such as
            ``redis-server``; that has neither clock nor faults.
        port: 0 takes a free one.
        folder: for its files; without one it has a temporary one, which goes with it.
        start_s: how long it may take to be ready.
        parameters: of its configuration, with ``_`` for ``-``. True is ``yes``, a sequence is
            several words. Without them nothing is saved, and clients of this machine may use DEBUG.

    Attributes:
        host, port, unix_socket, url: where it listens.
        folder: where its files are, among them its log.
        clock, faults: see ``Clock`` and ``Faults``.

    Raises:
        ServerError: it does not start.
    """

    def __init__(
        self,
        *,
        executable: str | Path | None = None,
        port: int = 0,
        folder: str | Path | None = None,
        start_s: float = 10.0,
        **parameters: Parameter,
    ) -> None:
        self.host: Final = HOST
        self.port = port
        self.clock: Final = Clock(self)
        self.faults: Final = Faults(self)
        self._owns_folder: Final = folder is None
        made = tempfile.mkdtemp(prefix="headrace-") if folder is None else str(folder)
        self.folder: Final = Path(made).resolve()
        self.unix_socket: Final = str(self.folder / "headrace.sock")
        self._start_s: Final = start_s
        self._command: Final = _command(executable)
        self._options: Final = _options({**USUAL, **_dashed(parameters)})
        self._password: Final = _text(parameters.get("requirepass", ""))
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        self._control: _Control | None = None
        self._owner: Final = os.getpid()
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    # Life

    def start(self) -> None:
        """Start it again after ``stop`` or ``kill``, at the same port."""
        if self.is_running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        _ALIVE.add(self)
        self._hang_up()
        self._drop_lifeline()
        for tried in range(PORTS_TRIED):
            port = self.port or _free_port()
            self._spawn(port)
            if self._is_ready():
                self.port = port
                return
            log = self.log()
            self.kill()
            if self.port or "already in use" not in log or tried + 1 == PORTS_TRIED:
                lines = "\n".join(log.splitlines()[-LOG_LINES:])
                raise ServerError(
                    f"{self._command[0]} does not start:\n{lines or 'it logs nothing'}"
                )

    def restart(self, crash: bool = False) -> None:
        """Stop and start it; with ``crash`` by SIGKILL, so that it saves nothing at the end.

        The clock shows the system's time again, and there are no faults.
        """
        if crash:
            self.kill()
        else:
            self._terminate()
        self.start()

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """End it, with what it saves at its end; a temporary folder goes."""
        if os.getpid() != self._owner:  # a child of the process that made it
            return
        _ALIVE.discard(self)
        if self._owns_folder:
            self.kill()
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self._terminate()

    @property
    def is_running(self) -> bool:
        """Return whether its process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Return the number of its process."""
        assert self._process is not None, "it was never started"
        return self._process.pid

    def log(self) -> str:
        """Return all that it has logged."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "headrace.log").read_text(errors="replace")
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.stop()

    # For clients

    @property
    def url(self) -> str:
        """Return its address; ``/4711`` behind it is another database."""
        login = f":{self._password}@" if self._password else ""
        return f"redis://{login}{self.host}:{self.port}"

    def client(self, **options: Any) -> redis.Redis:
        """Return a client of redis-py."""
        import redis

        options.setdefault("password", self._password or None)
        return redis.Redis(host=self.host, port=self.port, **options)

    def async_client(self, **options: Any) -> redis.asyncio.Redis:
        """Return a client of redis.asyncio."""
        import redis.asyncio

        options.setdefault("password", self._password or None)
        return redis.asyncio.Redis(host=self.host, port=self.port, **options)

    def call(self, *words: Value) -> Any:
        """Send one command over a connection of the kit's own; return the reply.

        Raises:
            ServerError: the server refuses it.
        """
        if self._control is None:
            self._control = _Control(self.unix_socket, self._password)
        return self._control.call(words)

    def clean(self) -> None:
        """Bring it back to its start: data, users, parameters, clients, clock, faults."""
        self.call("DEBUG", "CLEAN")

    # Its process

    def _spawn(self, port: int) -> None:
        words = [*self._command, "--port", str(port), "--bind", HOST, "--dir", str(self.folder)]
        words += ["--unixsocket", self.unix_socket, *self._options]
        reader, self._lifeline = os.pipe()
        about = f"{reader}:{self.folder}" if self._owns_folder else str(reader)
        variables = {**os.environ, "HEADRACE_LIFELINE": about, **_search_path()}
        with open(self.folder / "headrace.log", "ab") as log:
            try:
                self._process = subprocess.Popen(
                    words,
                    cwd=self.folder,  # no module of the tests is taken for one of the server
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[reader],
                    start_new_session=True,  # Ctrl-C ends the tests first
                )
            except OSError as error:
                raise ServerError(f"{words[0]} cannot be run: {error.strerror}") from None
            finally:
                os.close(reader)

    def _is_ready(self) -> bool:
        """Wait until it serves; False when it has ended, or takes too long."""
        until_s = time.monotonic() + self._start_s
        while self.is_running and time.monotonic() < until_s:
            with contextlib.suppress(OSError, ServerError):
                if self.call("PING") == b"PONG":
                    return True
            self._hang_up()
            time.sleep(LOOK_S)
        return False

    def _terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        self._hang_up()
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._process = None
        self._drop_lifeline()

    def _drop_lifeline(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _hang_up(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None


_ALIVE: Final[set[HeadraceServer]] = set()


@atexit.register
def _stop_all() -> None:
    for server in list(_ALIVE):
        server.stop()


def _command(executable: str | Path | None) -> list[str]:
    return [sys.executable, "-m", "headrace"] if executable is None else [str(executable)]


def _search_path() -> dict[str, str]:
    """Let the server import the package that this module is in, where that is a checkout."""
    place = str(Path(__file__).resolve().parent.parent)
    if Path(place).name in ("site-packages", "dist-packages"):
        return {}
    others = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{place}{os.pathsep}{others}" if others else place}


def _dashed(parameters: dict[str, Parameter]) -> dict[str, Parameter]:
    return {name.replace("_", "-"): value for name, value in parameters.items()}


def _options(parameters: dict[str, Parameter]) -> list[str]:
    """Return parameters as options of the command line."""
    words: list[str] = []
    for name, value in parameters.items():
        words.append(f"--{name}")
        if isinstance(value, bool):
            words.append("yes" if value else "no")
        elif isinstance(value, (list, tuple)):
            words += [_text(each) for each in value]
        else:
            words.append(_text(value))
    return words


def _text(value: object) -> str:
    return os.fsdecode(value) if isinstance(value, bytes) else str(value)


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as trial:
        port: int = trial.getsockname()[1]
        return port


class _Control:
    """A connection over the Unix socket."""

    def __init__(self, path: str, password: str) -> None:
        self._socket: Final = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        self._reader: Final = hiredis.Reader()
        if password:
            self.call(("AUTH", password))

    def call(self, words: Sequence[Value]) -> Any:
        texts: list[Any] = [word if isinstance(word, bytes) else str(word) for word in words]
        self._socket.sendall(hiredis.pack_command(tuple(texts)))
        reply = self._reader.gets()
        while reply is False:
            data = self._socket.recv(65536)
            if not data:
                raise ServerError("the server has closed the connection")
            self._reader.feed(data)
            reply = self._reader.gets()
        if isinstance(reply, hiredis.ReplyError):
            raise ServerError(str(reply))
        return reply

    def close(self) -> None:
        self._socket.close()


class Clock:
    """The clock of a server; see DEBUG CLOCK.

    When a move returns, all that became due has happened, in the order of time: keys have expired,
    clients that were blocked have been answered. Time never goes back, except by ``reset``.
    """

    def __init__(self, server: HeadraceServer) -> None:
        self._server: Final = server

    def now(self) -> datetime:
        """Return the time that it shows, in UTC."""
        return _moment(dict(_pairs(self._server.call("DEBUG", "CLOCK", "GET")))[b"ms"])

    def freeze(self, at: datetime | float | None = None) -> datetime:
        """Let it stand, now or at a later time (a number is in seconds since 1970)."""
        return self._set("FREEZE", *([] if at is None else [_ms(at)]))

    def move_to(self, at: datetime | float) -> datetime:
        """Move it to a later time; it stands or runs on from there as it did."""
        return self._set("MOVE-TO", _ms(at))

    def shift(self, by: timedelta | float) -> datetime:
        """Move it on by so many seconds."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        return self._set("SHIFT", round(seconds * 1000))

    def resume(self) -> datetime:
        """Let it run on from the time that it shows."""
        return self._set("RESUME")

    def reset(self) -> datetime:
        """Let it show the system's time again."""
        return self._set("RESET")

    def _set(self, *words: str | int) -> datetime:
        return _moment(self._server.call("DEBUG", "CLOCK", *words))


def _ms(at: datetime | float) -> int:
    return round((at.timestamp() if isinstance(at, datetime) else at) * 1000)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _pairs(flat: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


class Faults:
    """Makes a server fail on demand; see DEBUG FAULT.

    Each method adds a fault and returns its ID. ``command`` is a name such as ``XADD``, or ``*``.
    Options: ``key`` and ``client`` are glob patterns of a key and of the client's name; it fires
    ``times`` times, at ``percent`` of the requests, which ``seed`` chooses.
    """

    def __init__(self, server: HeadraceServer) -> None:
        self._server: Final = server

    def delay(self, command: str, ms: int, **options: Value) -> int:
        """Run requests so much later; the server's clock decides when."""
        return self._add(command, ["delay", ms], options)

    def error(self, command: str, text: str, **options: Value) -> int:
        """Refuse requests with an error, such as ``LOADING ...`` or ``OOM ...``."""
        return self._add(command, ["error", text], options)

    def close_before(self, command: str, **options: Value) -> int:
        """Close the connection, and run nothing."""
        return self._add(command, ["close-before"], options)

    def close_after(self, command: str, **options: Value) -> int:
        """Run the request, and close the connection without the reply."""
        return self._add(command, ["close-after"], options)

    def silence(self, command: str, **options: Value) -> int:
        """Run the request, and answer nothing any more on this connection."""
        return self._add(command, ["silence"], options)

    def list(self) -> list[dict[str, Any]]:
        """Return all faults, with how often each has fired."""
        return [
            {_decoded(name): _decoded(value) for name, value in _pairs(found)}
            for found in self._server.call("DEBUG", "FAULT", "LIST")
        ]

    def clear(self, fault: int | None = None) -> int:
        """Remove one fault, or all; return how many were removed."""
        gone: int = self._server.call(
            "DEBUG", "FAULT", "CLEAR", *([] if fault is None else [fault])
        )
        return gone

    def _add(self, command: str, action: Sequence[Value], options: dict[str, Value]) -> int:
        words: list[Value] = ["COMMAND", command]
        for name, value in options.items():
            words += [name.upper(), value]
        fault: int = self._server.call("DEBUG", "FAULT", "ADD", *words, "ACTION", *action)
        return fault


def _decoded(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
