"""How the programs keep running: work, wait, and start again after any failure that passes."""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NoReturn, Protocol

import psycopg
import redis

# Lost connections, servers that start or stop, timeouts, conflicts between transactions. Anything
# else is a bug or a wrong address, and ends the program.
PASSING = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    redis.ConnectionError,
    redis.TimeoutError,
)


class SimulatedCrash(Exception):
    """What the example does to itself, to show that it makes no difference."""


class Failures:
    """Chance, of which there is a fixed amount.

    Args:
        rate: probability of a crash at each place where one is simulated, from 0 to 1.
    """

    def __init__(self, rate: float = 0.0) -> None:
        self.rate = rate

    def may_strike(self, where: str) -> None:
        """Raises: SimulatedCrash, at times."""
        if random.random() < self.rate:
            raise SimulatedCrash(where)


class Worker(Protocol):
    """A program that repeats itself."""

    def run_once(self) -> int:
        """Do what there is to do; how much it was."""

    def wait(self) -> None:
        """Wait until there may be more."""


def say(text: str) -> None:
    """One line of the program's log."""
    print(f"{datetime.now():%H:%M:%S.%f} {text}", flush=True)


def keep_running(start: Callable[[], AbstractContextManager[Worker]]) -> None:
    """Run a worker until SIGTERM or Ctrl-C; after a failure start it anew, as after a crash."""
    stop = threading.Event()

    def end(signum: int, frame: object) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    pause_s = 0.05
    while not stop.is_set():
        try:
            with start() as worker:
                while not stop.is_set():
                    if not worker.run_once() and not stop.is_set():
                        worker.wait()
                    pause_s = 0.05
        except SimulatedCrash as crash:
            say(f"simulated crash {crash}")
        except PASSING as failure:
            say(f"starting again in {pause_s:.2f} s: {type(failure).__name__}: {_first(failure)}")
            stop.wait(pause_s)
            pause_s = min(1.0, pause_s * 2)


def _first(failure: Exception) -> str:
    return (str(failure).splitlines() or [""])[0]


def fail(text: str) -> NoReturn:
    """End the program with a sentence instead of a traceback."""
    sys.exit(f"rocket_rides: {text}")
