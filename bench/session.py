"""What all parts of the suite share: the plan, the servers, the load, the results, the progress."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Final, NamedTuple, NoReturn

from tqdm import tqdm

from bench.load import Load
from bench.measure import Missing, Prepared, Shape
from bench.peers import OURS, Cores, Peer, Server, ServerError
from bench.ratios import AOF
from bench.results import Cell, Figure, Results, Sample, middle
from bench.workloads import Workload

CALM: Final = 0.03  # of the CPU time taken by other machines; above that a run is done again
MOST_AGAIN: Final = 2

tqdm.monitor_interval = 0  # its thread would run on the cores that make the load


@dataclass(frozen=True)
class Plan:
    """What is asked for."""

    peers: tuple[Peer, ...]
    workloads: tuple[Workload, ...]
    clients: tuple[int, ...]
    depths: tuple[int, ...]
    rounds: int
    seconds: float
    divisor: int = 1  # of the entries that are prepared
    budget_s: float = 0.0  # after so long no other workload is begun; 0 is no limit
    folder: Path | None = None  # where the servers keep their files; None is the usual one
    scale_most: int = 50_000_000
    pause_entries: int = 10_000_000

    def shapes(self, workload: Workload) -> list[Shape]:
        """Return how the load of this workload is spread."""
        clients = workload.clients or self.clients
        return [Shape(many, depth) for many in clients for depth in self.depths]

    def races(self) -> int:
        """Return how many times servers are compared: each workload in each of its shapes."""
        return sum(len(self.shapes(workload)) for workload in self.workloads)


class Entrant(NamedTuple):
    """A server in a comparison."""

    server: Server
    variant: str = ""  # what sets it apart from others of its name


@dataclass
class Session:
    """A run of the suite."""

    plan: Plan
    cores: Cores
    load: Load
    results: Results
    results_path: Path | None = None
    started_s: float = field(default_factory=time.monotonic)
    _bar: tqdm[NoReturn] | None = field(default=None, repr=False)

    # Servers

    @contextlib.contextmanager
    def servers(self, *options: str, slow: bool = True, pin: bool = True) -> Iterator[list[Server]]:
        """All peers, started; those that take redis-server's options with these.

        Args:
            slow: whether peers take part that cannot be filled with much.
            pin: whether they stay on the servers' core.
        """
        with contextlib.ExitStack() as stack:
            yield [
                stack.enter_context(self.server(peer, *options, pin=pin))
                for peer in self.plan.peers
                if slow or not peer.is_slow
            ]

    @contextlib.contextmanager
    def server(self, peer: Peer, *options: str, pin: bool = True) -> Iterator[Server]:
        """One peer, started; its version is noted."""
        cores = self.cores.server if pin else self.cores.server | self.cores.load
        with Server(peer, *options, cores=cores, parent=self.plan.folder) as server:
            if not self.results.servers[peer.name]:
                self.results.servers[peer.name] = server.version()
                say(f"  {peer.name} {self.results.servers[peer.name]}")
            yield server

    # Progress

    @contextlib.contextmanager
    def part(self, title: str, runs: int) -> Iterator[None]:
        """A part of the suite, shown as a bar of so many runs; saves what it has measured."""
        say(title)
        # Without a terminal there is no bar, and the lines of `say` tell how far it is.
        bar: tqdm[NoReturn] = tqdm(
            total=runs, unit="run", leave=False, dynamic_ncols=True, disable=None
        )
        with bar:
            self._bar = bar
            try:
                yield
            finally:
                self._bar = None
                self.save()

    def step(self, what: str, done: int = 0) -> None:
        """Say what is going on, and how many runs have ended since the last word."""
        if self._bar is not None:
            self._bar.set_description_str(what, refresh=False)
            self._bar.update(done)
            self._bar.refresh()

    def is_out_of_time(self) -> bool:
        """Return whether the plan allows no other workload."""
        return 0 < self.plan.budget_s < time.monotonic() - self.started_s

    def save(self) -> None:
        """Write the results so far where they are kept."""
        if self.results_path is not None:
            self.results.save(self.results_path)

    def add(self, figure: Figure) -> None:
        """Note a figure, and show it."""
        self.results.figures.append(figure)
        say(f"  {figure.title}: {figure.server} {median(figure.values):,.1f} {figure.unit}")

    def leave_out(self, what: str) -> None:
        """Note what is not measured and why, and say it."""
        self.results.failures.append(what)
        say(what)

    # Measuring

    def prepare(
        self, entrants: Sequence[Entrant], workload: Workload
    ) -> list[tuple[Entrant, Prepared | Missing]]:
        """Set a workload up on each server."""
        return [(entrant, self.ready(entrant.server, workload)) for entrant in entrants]

    def ready(
        self, server: Server, workload: Workload, *, keep: bool = False
    ) -> Prepared | Missing:
        """Set a workload up on one server.

        Args:
            keep: leave what the server holds as it is, and take the workload's size as it stands.
        """
        self.step(f"{workload.title}: filling {server.name}")
        try:
            return Prepared(server, workload, 1 if keep else self.plan.divisor, keep=keep)
        except Missing as missing:
            return missing

    def compare(
        self,
        part: str,
        prepared: Sequence[tuple[Entrant, Prepared | Missing]],
        workload: Workload,
        shape: Shape,
        *,
        variant: str = "",
        seconds: float = 0.0,
        rounds: int = 0,
        rate_per_s: float = 0.0,
    ) -> None:
        """Measure one workload in one shape with all servers in turn, round after round.

        Args:
            variant: what the report calls it; without it the shape's words.
            seconds: how long a run takes; without it as planned.
            rounds: how many; without it as planned.
            rate_per_s: above 0, requests leave at this rate.
        """
        runners = []
        for entrant, ready in prepared:
            words = variant or shape.words(workload)
            if entrant.variant:
                words = f"{entrant.variant}, {words}"
            runners.append(Runner(part, entrant.server.name, words, workload, shape, ready))
        self.race(runners, rounds or self.plan.rounds, seconds or self.plan.seconds, rate_per_s)

    def race(
        self, runners: Sequence[Runner], rounds: int, seconds: float, rate_per_s: float = 0.0
    ) -> None:
        """Measure all of these in turn, round after round."""
        title = runners[0].cell.title
        running = [runner for runner in runners if not runner.cell.missing]
        for runner in running:
            self.step(f"{title}: warming {runner.cell.server}")
            self._warm_up(runner, seconds)
        for turn in range(rounds):
            # In an order of its own, lest one always follow the same.
            for runner in Random(turn).sample(running, len(running)):
                words = f"{title}, {runner.cell.variant}"
                self.step(f"{words}: {runner.cell.server}")
                self._sample(runner, seconds, rate_per_s)
                self.step(words, 1)
        self.step(title, (len(runners) - len(running)) * rounds)
        cells = [runner.cell for runner in runners]
        self.results.cells += cells
        for line in summary(cells, self.results.rivals):
            say(line)

    def _warm_up(self, runner: Runner, seconds: float) -> None:
        try:
            runner.prepared.warm_up(self.load, runner.shape, seconds)
        except (OSError, ServerError) as error:
            runner.fail(str(error))

    def _sample(self, runner: Runner, seconds: float, rate_per_s: float) -> None:
        if runner.cell.missing:
            return
        try:
            run = partial(runner.run, self.load, seconds, rate_per_s)
            runner.cell.samples.append(calmest(run))
        except (OSError, ServerError) as error:
            # A server that fails once is not to be judged by the runs in which it did not.
            runner.fail(str(error))


class Runner:
    """A server that takes part in a race, with what it has to do there.

    Args:
        variant: what the report calls it.
        ready: the workload, set up on the server, or why it is not.
    """

    def __init__(
        self,
        part: str,
        server: str,
        variant: str,
        workload: Workload,
        shape: Shape,
        ready: Prepared | Missing,
    ) -> None:
        self.cell: Final = Cell(part, workload.name, workload.title, workload.unit, variant, server)
        self.shape: Final = shape
        self._syncs: Final = variant.startswith(AOF)
        self._ready: Final = ready
        if isinstance(ready, Missing):
            self.cell.missing = str(ready)
        elif not ready.fits(shape):
            self.cell.missing = "takes too long to prepare"

    @property
    def prepared(self) -> Prepared:
        """The workload, set up; there unless the cell says what is missing."""
        assert isinstance(self._ready, Prepared)
        return self._ready

    def run(self, load: Load, seconds: float, rate_per_s: float) -> Sample:
        """Measure once.

        Raises: OSError, ServerError.
        """
        if self._syncs:
            os.sync()  # what others have written is not to be in the way of the disk
        return self.prepared.run(load, self.shape, seconds, rate_per_s)

    def fail(self, why: str) -> None:
        """Leave the race."""
        self.cell.missing = why
        self.cell.samples.clear()
        self.prepared.server.hang_up()


def calmest(run: Callable[[], Sample]) -> Sample:
    """Return what a run measures.

    While other machines have much of this one, nothing here is as fast as it is. Such a run is
    done again, a few times at most, and the one counts in which they had least.
    """
    best = run()
    for _ in range(MOST_AGAIN):
        if best.stolen <= CALM:
            break
        best = min(best, run(), key=lambda sample: sample.stolen)
    return best


def say(line: str) -> None:
    """A line that stays, above the bar."""
    tqdm.write(line, file=sys.stderr)


def summary(cells: Sequence[Cell], rivals: Sequence[str]) -> Iterator[str]:
    """One line for each variant: throughput of each server, and ours beside the best rival."""
    for variant in dict.fromkeys(cell.variant for cell in cells):
        together = [cell for cell in cells if cell.variant == variant]
        best = best_per_s(together, rivals)
        shown = []
        for cell in together:
            if cell.missing:
                shown.append(f"{cell.server} n/a")
                continue
            per_s = middle(cell.samples).per_s
            ratio = f" ({per_s / best:.2f})" if cell.server == OURS and best else ""
            shown.append(f"{cell.server} {per_s:,.0f}/s{ratio}")
        yield f"  {together[0].title}, {variant}: " + "   ".join(shown)


def best_per_s(cells: Sequence[Cell], rivals: Sequence[str]) -> float:
    """The throughput of the fastest rival; 0 when there is none."""
    return max(
        (middle(cell.samples).per_s for cell in cells if cell.server in rivals and cell.samples),
        default=0.0,
    )
