"""How long a newcomer waits: from a fresh clone to the first PONG, and to the compiled server.

    make time-to-pong

The last commit of this checkout is cloned into a temporary folder, where nothing is kept of earlier
times, pip's cache included. ``make run`` is started there as README says.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 900
LOOK_S: Final = 0.05
COMPILED: Final = "compiled build, Python"  # in the start-up line of the log


def free_port() -> int:
    """A TCP port that nobody listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    """Return whether PING is answered."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=5) as client,
    ):
        client.sendall(b"PING\r\n")
        return client.recv(16).startswith(b"+PONG")
    return False


class FirstRun:
    """``make run`` in a folder, and what it prints."""

    def __init__(self, checkout: Path, port: int) -> None:
        self._port = port
        self._log = checkout / "first-run.log"
        self._began_s = time.monotonic()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["make", "run", f"PORT={port}"],
                cwd=checkout,
                env={**os.environ, "PIP_NO_CACHE_DIR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def seconds_to_pong(self) -> float:
        """Since the start."""
        while not answers(self._port):
            self._wait()
        return time.monotonic() - self._began_s

    def seconds_to_compiled(self) -> float:
        """Since the start, until the compiled server has taken over; none may be connected."""
        while COMPILED not in self._log.read_text(errors="replace"):
            self._wait()
        return self.seconds_to_pong()

    def end(self) -> None:
        """End the server and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()

    def _wait(self) -> None:
        ended = self._process.poll() is not None
        if ended or time.monotonic() - self._began_s > PATIENCE_S:
            raise SystemExit(f"no server came:\n{self._log.read_text(errors='replace')}")
        time.sleep(LOOK_S)


def main() -> None:
    """Clone, run, and say how long it took."""
    with tempfile.TemporaryDirectory(prefix="headrace-first-") as folder:
        checkout = Path(folder, "headrace")
        subprocess.run(["git", "clone", "--quiet", ".", checkout], check=True)
        port = free_port()
        first = FirstRun(checkout, port)
        try:
            print(f"PONG after {first.seconds_to_pong():.1f} s, from Python", flush=True)
            print(f"PONG from the compiled server after {first.seconds_to_compiled():.0f} s")
        finally:
            first.end()
        second = FirstRun(checkout, port)
        try:
            print(f"at the next start, PONG after {second.seconds_to_pong():.2f} s", flush=True)
        finally:
            second.end()


if __name__ == "__main__":
    main()
