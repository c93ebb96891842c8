"""The load: processes, each with some of the clients, that prepare, start and stop together.

A process encodes its requests, connects, says that it is ready, and runs when it is told to. What
its clients do is in `bench.clients`.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import traceback
from array import array
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection as Pipe
from types import TracebackType
from typing import Final, NamedTuple, NoReturn, Self

from bench.clients import Run, Tally, Task, WrongReplyError, batches_of
from bench.peers import ServerError, pinned

MORE_S: Final = 120.0  # what preparing and the slowest last batch may take beyond the run itself
KEPT_REQUESTS: Final = 8  # workloads whose encoded requests are kept for the next run
MOST_PROCESSES: Final = 4

# Words between the processes.
READY: Final = "ready"
GO: Final = "go"
CANCEL: Final = "cancel"


class Failure(NamedTuple):
    """Why one process has not."""

    text: str
    is_servers: bool  # the server's fault, or ours


def serve(pipe: Pipe, niceness: int) -> None:
    """The life of a load process: prepare, say so, go, report; until the pipe is closed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.nice(niceness)
    kept: dict[tuple[object, ...], list[list[bytes]]] = {}
    gc.disable()  # nothing here has cycles, and a collection would count as the server's latency
    while True:
        try:
            task = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            perform(task, pipe, kept)
        except (EOFError, KeyboardInterrupt):
            return
        except (OSError, ServerError, WrongReplyError) as error:
            pipe.send(Failure(str(error) or type(error).__name__, is_servers=True))
        except Exception:
            pipe.send(Failure(traceback.format_exc(), is_servers=False))


def perform(task: Task, pipe: Pipe, kept: dict[tuple[object, ...], list[list[bytes]]]) -> None:
    """One task, from its connections to its tally."""
    # Two workloads of one name may differ in size, but not in what they send for one size.
    key = (task.workload.name, task.entries, task.clients, task.depth)
    requests = kept.get(key)
    if requests is None:
        requests = [batches_of(task, client) for client in task.own_clients()]
        while len(kept) >= KEPT_REQUESTS:
            del kept[next(iter(kept))]
        kept[key] = requests
    run = Run(task, requests)
    try:
        pipe.send(READY)
        if pipe.recv() == GO:
            pipe.send(run.go())
    finally:
        run.close()


class Outcome(NamedTuple):
    """What all processes have done together."""

    units: int
    requests: int
    elapsed_s: float
    latencies_ns: list[int]
    busiest: float  # share of the time that the busiest process computed


class Load:
    """Load processes, from ``with`` to its end."""

    def __init__(self, cores: frozenset[int], processes: int = 0, niceness: int = 0) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Pipe] = []
        self._processes = []
        with pinned(cores):
            for _ in range(processes or min(len(cores), MOST_PROCESSES)):
                ours, theirs = context.Pipe()
                process = context.Process(target=serve, args=(theirs, niceness), daemon=True)
                process.start()
                theirs.close()
                self._pipes.append(ours)
                self._processes.append(process)
        self._running: list[Pipe] = []
        self._patience_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()

    def run(self, task: Task, before: Callable[[], None] = lambda: None) -> Outcome:
        """Run a task to its end.

        Args:
            before: called when all clients are connected and nothing has been sent yet.

        Raises: ServerError when the server failed, RuntimeError when the load did.
        """
        self.prepare(task)
        before()
        self.go()
        return self.finish()

    def prepare(self, task: Task) -> None:
        """Encode the requests and connect."""
        loop = task.workload.loop
        count = 1 if loop.is_together else min(len(self._pipes), task.clients)
        clients = task.clients + 1 if loop.is_fan_out else task.clients
        self._patience_s = task.seconds + MORE_S
        self._running = self._pipes[:count]
        for number, pipe in enumerate(self._running):
            pipe.send(replace(task, clients=clients, process=number, processes=count))
        answers = [self._receive(pipe) for pipe in self._running]
        if answers != [READY] * count:
            for pipe, answer in zip(self._running, answers, strict=True):
                if answer == READY:
                    pipe.send(CANCEL)
            complain(answers)

    def go(self) -> None:
        """Start sending."""
        for pipe in self._running:
            pipe.send(GO)

    def finish(self) -> Outcome:
        """Wait for the end.

        Raises: ServerError when the server failed, RuntimeError when the load did.
        """
        answers = [self._receive(pipe) for pipe in self._running]
        tallies = [answer for answer in answers if isinstance(answer, Tally)]
        if len(tallies) < len(answers):
            complain(answers)
        return add_up(tallies)

    def _receive(self, pipe: Pipe) -> object:
        if not pipe.poll(self._patience_s):
            raise RuntimeError("a load process does not come to an end")
        try:
            return pipe.recv()
        except EOFError:
            raise RuntimeError("a load process ended") from None


def complain(answers: list[object]) -> NoReturn:
    """Raise the first failure."""
    for answer in answers:
        if isinstance(answer, Failure):
            raise ServerError(answer.text) if answer.is_servers else RuntimeError(answer.text)
    raise RuntimeError(f"a load process said {answers!r}")


def add_up(tallies: list[Tally]) -> Outcome:
    """Return what the processes did, as one."""
    latencies: array[int] = array("q")
    for tally in tallies:
        latencies.frombytes(tally.latencies_ns)
    elapsed_ns = max(tally.ended_ns for tally in tallies) - min(t.started_ns for t in tallies)
    elapsed_s = max(elapsed_ns, 1) / 1e9
    return Outcome(
        sum(tally.units for tally in tallies),
        sum(tally.requests for tally in tallies),
        elapsed_s,
        sorted(latencies),
        max(tally.cpu_s for tally in tallies) / elapsed_s,
    )
