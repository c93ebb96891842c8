"""Many plans, in one process or in some, for hours perhaps, and what has come of them so far."""

from __future__ import annotations

import gc
import os
import platform
import signal
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from types import FrameType
from typing import Final

import headrace.server.clock
from simulator import determinism
from simulator.attempts import Failure, attempt, command_of, shrink
from simulator.world import Plan, Tally

CHUNK: Final = 10  # seeds that a process runs before it reports
LIFE: Final = 200  # chunks that a process runs in its life
SHRINK_S: Final = 120.0
TOLD_EVERY_S: Final = 30.0
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
Result = tuple[int, Tally, list[Failure]]


def run_some(plans: list[Plan]) -> Result:
    """Run some plans."""
    determinism.prepare()
    tally = Tally()
    failures: list[Failure] = []
    for plan in plans:
        found = attempt(plan, tally)
        if found is not None:
            failures.append(found)
    gc.collect()
    return len(plans), tally, failures


def _obey_nobody() -> None:
    """Whoever ends the run by a signal asks its first process, which ends the others."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class Campaign:
    """Runs plans, and tells what has become of them.

    Args:
        jobs: in how many processes.
        minutes: how long at most; 0 is for as long as there are plans.
        most_failures: after so many it ends.
        shortens: whether it looks for the fewest steps that still fail.
    """

    def __init__(self, jobs: int, minutes: float, most_failures: int, shortens: bool) -> None:
        self.seeds = 0
        self.tally: Final = Tally()
        self.failures: Final[list[Failure]] = []
        self.stopped = False  # by a signal
        self._jobs: Final = jobs
        self._most_failures: Final = most_failures
        self._shortens: Final = shortens
        self._began: Final = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        self._started_s: Final = time.monotonic()
        self._told_s = self._started_s
        self._deadline_s: Final = self._started_s + (minutes * 60 if minutes else float("inf"))

    def run(self, plans: Iterator[Plan]) -> None:
        """Run all plans, or as many as there is time for. A signal ends it after those at hand."""
        before = [signal.signal(number, self._stop) for number in SIGNALS]
        try:
            if self._jobs <= 1:
                while chunk := self._next(plans):
                    self._take(run_some(chunk))
            else:
                while self._run_in_processes(plans):
                    pass
        finally:
            for number, handler in zip(SIGNALS, before, strict=True):
                signal.signal(number, handler)

    def _run_in_processes(self, plans: Iterator[Plan]) -> bool:
        """Run as much as processes run in their lives; whether there may be more."""
        left = LIFE * self._jobs
        context = get_context("fork")
        with ProcessPoolExecutor(self._jobs, context, _obey_nobody) as pool:
            pending: set[Future[Result]] = set()
            while True:
                while left and len(pending) < 2 * self._jobs and (chunk := self._next(plans)):
                    pending.add(pool.submit(run_some, chunk))
                    left -= 1
                if self.stopped:
                    pending = {future for future in pending if not future.cancel()}
                if not pending:
                    return not left
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(future.result())

    def _next(self, plans: Iterator[Plan]) -> list[Plan]:
        is_over = time.monotonic() >= self._deadline_s
        if self.stopped or is_over or len(self.failures) >= self._most_failures:
            return []
        return list(islice(plans, CHUNK))

    def _take(self, result: Result) -> None:
        seeds, tally, failures = result
        self.seeds += seeds
        self.tally.add(tally)
        for failure in failures:
            self.failures.append(failure)
            self._tell(failure)
        if time.monotonic() - self._told_s > TOLD_EVERY_S:
            self._told_s = time.monotonic()
            print(self._progress(), flush=True)

    def _tell(self, failure: Failure) -> None:
        print(f"VIOLATION, seed {failure.plan.seed}: {failure.text}")
        print(f"  again: {command_of(failure.plan)}", flush=True)
        if self._shortens:
            short = shrink(failure, SHRINK_S, lambda: self.stopped)
            if short.plan != failure.plan:
                print(f"  shorter: {short.text}\n  again: {command_of(short.plan)}", flush=True)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """End soon; asked again, at once."""
        self.stopped = True
        signal.signal(number, signal.default_int_handler)

    # What has come of it

    def _progress(self) -> str:
        spent_s = time.monotonic() - self._started_s
        tally = self.tally
        return (
            f"{self.seeds:,} seeds in {spent_s:,.0f} s ({self.seeds / spent_s:.1f}/s): "
            f"{tally.operations:,} operations ({tally.refused:,} refused), "
            f"{tally.records:,} records, {sum(tally.faults.values()):,} faults, "
            f"{len(self.failures):,} violations"
        )

    def text(self) -> str:
        """A summary, for people."""
        faults = ", ".join(f"{n:,} {name}" for name, n in sorted(self.tally.faults.items()))
        lines = [
            self._progress() + (", stopped" if self.stopped else ""),
            f"  faults: {faults or 'none'}",
            f"  begun {self._began}, {self._jobs} at a time; {machine()}",
        ]
        invariants: dict[str, int] = {}
        for failure in self.failures:
            invariants[failure.invariant] = invariants.get(failure.invariant, 0) + 1
        lines += [f"  {count:,} times {name}" for name, count in sorted(invariants.items())]
        return "\n".join(lines)


def machine() -> str:
    """Return what it runs on."""
    is_pure = str(headrace.server.clock.__file__).endswith(".py")
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, "
        f"CPython {platform.python_version()}, {'pure' if is_pure else 'compiled'}"
    )
