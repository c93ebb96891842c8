"""Processes: started, killed at random, started again."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from rocket_rides.guard import Guard
from rocket_rides.postgres import Cluster

LONGEST_END_S = 15.0
LONGEST_RECOVERY_S = 10.0
TWO_IN_A_ROW = 0.25


class Victim(Protocol):
    """A process that may be killed, and comes back."""

    name: str
    starts: int
    kills: int
    ends: list[int]
    """Exit codes of those times when it ended although nobody had asked it to."""

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""

    def kill(self) -> None:
        """End it without a warning."""

    def tend(self) -> None:
        """Start it again if it has ended."""

    def stop(self) -> None:
        """Ask it to end."""

    def wait(self) -> None:
        """Wait for its end; kill it when that takes too long."""


class Program:
    """One program of the example, or the server of the log.

    Args:
        guard: whoever ends it when we cannot.
        environment: its environment variables.
        log_path: where its output goes.
    """

    def __init__(
        self,
        guard: Guard,
        name: str,
        command: Sequence[str],
        environment: dict[str, str],
        log_path: Path,
    ) -> None:
        self.guard = guard
        self.name = name
        self.command = list(command)
        self.environment = environment
        self.log_path = log_path
        self.starts = 0
        self.kills = 0
        self.ends: list[int] = []
        self._killed = False
        self._stopping = False
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at_s = 0.0

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def tend(self) -> None:
        """Start it again if it has ended."""
        if self.pid is not None or self._stopping:
            return
        if self._process is not None:
            if not self._killed:
                self.ends.append(self._process.returncode)
                self._start_at_s = time.monotonic() + 0.5
            self._process = None
        if time.monotonic() < self._start_at_s:
            return
        self._killed = False
        self.starts += 1
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                process_group=self.guard.group,
            )

    def kill(self) -> None:
        """``kill -9``."""
        if self.pid is not None and self._process is not None:
            self._process.kill()
            self._killed = True
            self.kills += 1

    def stop(self) -> None:
        """Ask it to end, and start it no more."""
        self._stopping = True
        if self.pid is not None and self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        """Wait for its end; kill it when that takes too long."""
        self._stopping = True
        if self._process is None:
            return
        try:
            self._process.wait(LONGEST_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self.ends.append(-signal.SIGKILL)

    def log_end(self, lines: int = 20) -> str:
        """The last lines of its output."""
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])


class Postgres:
    """The cluster, as a victim."""

    name = "postgres"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.starts = 1
        self.kills = 0
        self.ends: list[int] = []
        self._killed = False

    @property
    def pid(self) -> int | None:
        """Its first process, while it runs."""
        return self.cluster.pid if self.cluster.running else None

    def tend(self) -> None:
        """Start it again if it has ended."""
        if self.cluster.running:
            return
        if not self._killed:
            self.ends.append(-1)
        self._killed = False
        self.starts += 1
        self.cluster.start()

    def kill(self) -> None:
        """Crash it, all its processes at once."""
        if self.cluster.running:
            self.cluster.crash()
            self._killed = True
            self.kills += 1

    def stop(self) -> None:
        """It ends with the cluster."""

    def wait(self) -> None:
        """It ends with the cluster."""


class Supervisor:
    """Keeps processes running and, for a while, kills one now and then.

    It waits with the next until the system has come back from the last, most of the time: on a slow
    machine there would be nothing but starts otherwise.

    Args:
        kill_every_s: time between two kills, on average, at least; 0 for none.
        most_kills: how many at all.
    """

    def __init__(
        self, victims: Sequence[Victim], kill_every_s: float, most_kills: int | None = None
    ) -> None:
        self.victims = victims
        self.kill_every_s = kill_every_s
        self.most_kills = most_kills
        self.killing = kill_every_s > 0
        self._kill_at_s = time.monotonic() + 2 * kill_every_s
        self._latest_s = self._kill_at_s + LONGEST_RECOVERY_S
        self._recovered = False
        self._progress: int | None = None

    def tend(self) -> None:
        """Start what has ended; kill, when the time has come."""
        for victim in self.victims:
            victim.tend()
        now_s = time.monotonic()
        if self.killing and now_s >= (self._kill_at_s if self._recovered else self._latest_s):
            self._kill_one()
            self._kill_at_s = now_s + self.kill_every_s * random.uniform(0.5, 1.5)
            self._latest_s = self._kill_at_s + LONGEST_RECOVERY_S
            self._recovered = random.random() < TWO_IN_A_ROW
            self._progress = None

    def _kill_one(self) -> None:
        running = [victim for victim in self.victims if victim.pid is not None]
        if running:
            random.choice(running).kill()
        if self.most_kills is not None and self.kills >= self.most_kills:
            self.killing = False

    def note(self, progress: int) -> None:
        """Hear how much was done so far: when that grows again, the system has recovered."""
        if self._progress is None:
            self._progress = progress
        elif progress > self._progress and all(victim.pid for victim in self.victims):
            self._recovered = True

    @property
    def kills(self) -> int:
        """Return how many were killed so far."""
        return sum(victim.kills for victim in self.victims)

    def stop(self) -> None:
        """End everything."""
        for victim in self.victims:
            victim.stop()
        for victim in self.victims:
            victim.wait()
