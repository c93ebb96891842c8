"""The regions: one Headrace server each, which may be killed and lose its disk."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from two_regions.links import Links

START_TIMEOUT_S = 60.0
# Errors that are over some time later: the region is away, or does not take writes yet.
PASSING = (redis.ConnectionError, redis.TimeoutError, redis.ResponseError)

_given: set[int] = set()  # ports of this run

# redis-py types replies as those of its blocking and its asynchronous clients at once.
Client = Any


def free_port() -> int:
    """A port that nobody listens on, and that no outgoing connection is given by chance."""
    while True:
        port = random.randint(15_000, 30_000)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given.add(port)
            return port


def client(port: int) -> Client:
    """A connection that does not try again by itself: what becomes of a request is counted."""
    made: Client = redis.Redis(
        port=port,
        decode_responses=True,
        protocol=3,
        socket_timeout=10,
        retry=Retry(NoBackoff(), 0),
    )
    made.response_callbacks.pop("INFO")  # it takes texts apart that hold commas
    return made


class Region:
    """One region, not started yet.

    Args:
        group: of processes, to be in.
    """

    def __init__(self, number: int, folder: Path, group: int) -> None:
        self.number = number
        self.port = free_port()
        self.aa_port = free_port()
        self.folder = folder / f"region-{number}"
        self.log_path = folder / f"region-{number}.log"
        self.state = "off"
        self._group = group
        self._peers = ""
        self._process: subprocess.Popen[bytes] | None = None

    def know(self, links: Links) -> None:
        """Hear through which links the others are reached."""
        self._peers = ", ".join(
            f"{asked} 127.0.0.1 {link.port}"
            for (asking, asked), link in links.all.items()
            if asking == self.number
        )

    def start(self) -> None:
        """Start it, on what its folder holds."""
        self.folder.mkdir(exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "headrace"),
                    *("--port", str(self.port), "--dir", str(self.folder)),
                    *("--appendonly", "yes", "--save", ""),
                    *("--aa-region-id", str(self.number), "--aa-database", f"demo-{os.getpid()}"),
                    *("--aa-port", str(self.aa_port), "--aa-peers", self._peers),
                    *("--aa-beat-ms", "100"),  # so they compare themselves every second
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=self._group,
            )
        self.state = "starts"

    def wait_until_it_writes(self) -> None:
        """Wait until it takes writes.

        Raises:
            RuntimeError: it does not.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.takes_writes():
            ended = self._process is not None and self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"region {self.number} does not start:\n{self.log_end()}")
            time.sleep(0.05)

    def takes_writes(self) -> bool:
        """Return whether it does by now."""
        try:
            with client(self.port) as asking:
                if "aa_writable:1" in facts(asking):
                    self.state = "up"
        except PASSING:
            pass
        return self.state == "up"

    def kill(self) -> None:
        """``kill -9``."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.state = "killed"

    def lose_disk(self) -> None:
        """Take away everything that it has written."""
        shutil.rmtree(self.folder)

    def stop(self) -> None:
        """Ask it to end, and wait for that."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def log_end(self, lines: int = 15) -> str:
        """The last lines of its log."""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])


def facts(asking: Client) -> str:
    """INFO activeactive."""
    text: str = asking.execute_command("INFO", "activeactive")
    return text
