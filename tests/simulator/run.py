"""``make simulate``: worlds of regions by chance, and what became of them.

Each seed is a world: some regions, clients of every kind, clocks that differ by hours, links that
are slow or cut, processes that are killed, disks that lose what was not synced, or everything, and
older folders put back. The code is the server's own. A failure is printed with the command that
makes the same run again, and with the fewest steps that still show it.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from simulator import determinism
from simulator.disks import folder
from simulator.ledger import Violated
from simulator.scenarios import SCENARIOS
from simulator.stage import play
from simulator.world import FAULTS, Plan, Tally, World

CHUNK: Final = 4  # seeds that a process runs before it reports
SHRINK_S: Final = 120.0


class Failure(NamedTuple):
    """A seed that violates an invariant."""

    plan: Plan
    text: str

    @property
    def invariant(self) -> str:
        """What is violated, without what differs from run to run."""
        return self.text.split(":", 1)[0].split(" (", 1)[0]


def attempt(plan: Plan, tally: Tally | None = None) -> Failure | None:
    """Run a plan; why it failed, or None."""
    root = Path(tempfile.mkdtemp(prefix="headrace-simulator-", dir=folder()))
    world = None
    try:
        world = World(plan, root)
        world.run()
    except Violated as violation:
        return Failure(plan, str(violation))
    except Exception as error:
        if os.environ.get("SIMULATOR_TRACE"):
            traceback.print_exc()
        frames = traceback.extract_tb(error.__traceback__)
        where = ", ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[-3:])
        return Failure(plan, f"{type(error).__name__} at {where}: {error}")
    finally:
        if world is not None and tally is not None:
            tally.add(world.tally)
    return None


def shrink(failure: Failure, budget_s: float) -> Failure:
    """The same violation with fewer steps and fewer kinds of faults."""
    deadline_s = time.monotonic() + budget_s
    best = failure

    def still(plan: Plan) -> bool:
        nonlocal best
        found = attempt(plan)
        if found is not None and found.invariant == failure.invariant:
            best = found
            return True
        return False

    plan = failure.plan
    for steps in (plan.steps // 8, plan.steps // 4, plan.steps // 2):
        if steps and still(_with(best.plan, steps=steps)):
            break
    kept = [n for n in range(best.plan.steps + best.plan.steps // 4) if n not in plan.skipped]
    size = max(1, len(kept) // 2)
    while size and time.monotonic() < deadline_s:
        at = 0
        while at < len(kept) and time.monotonic() < deadline_s:
            fewer = kept[:at] + kept[at + size :]
            total = best.plan.steps + best.plan.steps // 4
            skipped = frozenset(range(total)) - frozenset(fewer)
            if still(_with(best.plan, skipped=skipped)):
                kept = fewer
            else:
                at += size
        size //= 2
    for name in FAULTS:
        if name not in best.plan.without and time.monotonic() < deadline_s:
            still(_with(best.plan, without=best.plan.without | {name}))
    return best


def _with(
    plan: Plan,
    steps: int | None = None,
    skipped: frozenset[int] | None = None,
    without: frozenset[str] | None = None,
) -> Plan:
    return Plan(
        plan.seed,
        plan.regions,
        plan.steps if steps is None else steps,
        plan.skipped if skipped is None else skipped,
        plan.without if without is None else without,
    )


def command_of(plan: Plan) -> str:
    """What runs a plan again."""
    words = [
        f"--seeds {plan.seed}-{plan.seed}",
        f"--regions {plan.regions}",
        f"--steps {plan.steps}",
    ]
    total = plan.steps + plan.steps // 4
    if plan.skipped:
        words.append(f"--only {_ranges(sorted(set(range(total)) - plan.skipped))}")
    if plan.without:
        words.append(f"--without {','.join(sorted(plan.without))}")
    return f"make simulate ARGS='{' '.join(words)}'"


def _ranges(numbers: list[int]) -> str:
    parts: list[str] = []
    for number in numbers:
        if parts and int(parts[-1].split("-")[-1]) == number - 1:
            parts[-1] = f"{parts[-1].split('-')[0]}-{number}"
        else:
            parts.append(str(number))
    return ",".join(parts) or "none"


def read_ranges(text: str) -> frozenset[int]:
    """The numbers that ``1-3,7`` stands for."""
    numbers: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low != "none":
            numbers.update(range(int(low), int(high or low) + 1))
    return frozenset(numbers)


def run_some(plans: list[Plan]) -> tuple[int, Tally, list[Failure]]:
    """Run some plans in a process of their own."""
    determinism.prepare()
    tally = Tally()
    failures: list[Failure] = []
    for plan in plans:
        found = attempt(plan, tally)
        if found is not None:
            failures.append(found)
    gc.collect()
    return len(plans), tally, failures


def plans_of(options: argparse.Namespace) -> Iterator[Plan]:
    """The plans to run, without end where there is no last seed."""
    first, _, last = options.seeds.partition("-")
    regions = [int(word) for word in options.regions.split(",")]
    seed = int(first)
    while not last or seed <= int(last):
        steps = options.steps
        skipped: frozenset[int] = frozenset()
        if options.only:
            skipped = frozenset(range(steps + steps // 4)) - read_ranges(options.only)
        without = frozenset(word for word in options.without.split(",") if word)
        count = regions[seed % len(regions)]
        yield Plan(seed, count, steps, skipped, without, options.trace)
        seed += 1


class Summary:
    """What has been run."""

    def __init__(self) -> None:
        self.seeds = 0
        self.tally = Tally()
        self.failures: list[Failure] = []
        self.started_s = time.monotonic()

    def text(self) -> str:
        spent_s = time.monotonic() - self.started_s
        tally = self.tally
        faults = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.faults.items()))
        return (
            f"{self.seeds:,} seeds in {spent_s:.0f} s ({self.seeds / spent_s:.1f}/s): "
            f"{tally.operations:,} operations ({tally.refused:,} refused), "
            f"{tally.records:,} records, faults: {faults or 'none'}; "
            f"{len(self.failures)} violations"
        )


def main(words: list[str] | None = None) -> int:
    """Run from the command line; how many seeds failed."""
    parser = argparse.ArgumentParser(prog="make simulate", description=(__doc__ or "").strip())
    parser.add_argument("--seeds", default="1-", help="the first and the last, such as 1-500")
    parser.add_argument("--steps", type=int, default=240, help="of each run, about")
    parser.add_argument("--regions", default="2,3,5", help="how many, by turns")
    parser.add_argument("--minutes", type=float, default=0, help="end after so long")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="steps to run, such as 1-20,31")
    parser.add_argument("--without", default="", help="faults to leave out: " + ", ".join(FAULTS))
    parser.add_argument("--failures", type=int, default=5, help="end after so many")
    parser.add_argument("--no-shrink", action="store_true", help="print failures as they are")
    parser.add_argument("--trace", action="store_true", help="show what happens, step by step")
    parser.add_argument("--verbose", action="store_true", help="show what the regions log")
    parser.add_argument("--scenarios", action="store_true", help="run all scenarios instead")
    options = parser.parse_args(words)
    if options.seeds.endswith("-") and not options.minutes:
        options.minutes = 1.0
    logging.disable(logging.NOTSET if options.verbose else logging.CRITICAL)
    if options.verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.scenarios:
        return run_scenarios()
    summary = run(options)
    print(summary.text(), flush=True)
    return len(summary.failures)


def run_scenarios() -> int:
    """Run the scenarios; how many fail."""
    failed = 0
    for name, scenario in SCENARIOS.items():
        try:
            play(scenario)
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(SCENARIOS)} scenarios, {failed} failed")
    return failed


def run(options: argparse.Namespace) -> Summary:
    """Run all plans, or as many as there is time for."""
    summary = Summary()
    deadline_s = summary.started_s + options.minutes * 60 if options.minutes else float("inf")
    plans = plans_of(options)
    told_s = summary.started_s

    def take(result: tuple[int, Tally, list[Failure]]) -> None:
        nonlocal told_s
        count, tally, failures = result
        summary.seeds += count
        summary.tally.add(tally)
        for failure in failures:
            summary.failures.append(failure)
            _tell(failure, options)
        if time.monotonic() - told_s > 30:
            told_s = time.monotonic()
            print(summary.text(), flush=True)

    def more() -> list[Plan]:
        if time.monotonic() >= deadline_s or len(summary.failures) >= options.failures:
            return []
        return list(islice(plans, CHUNK))

    if options.jobs <= 1:
        while chunk := more():
            take(run_some(chunk))
        return summary
    with ProcessPoolExecutor(options.jobs, get_context("fork")) as pool:
        pending: set[Future[tuple[int, Tally, list[Failure]]]] = set()
        while True:
            while len(pending) < 2 * options.jobs and (chunk := more()):
                pending.add(pool.submit(run_some, chunk))
            if not pending:
                return summary
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                take(future.result())


def _tell(failure: Failure, options: argparse.Namespace) -> None:
    print(f"VIOLATION, seed {failure.plan.seed}: {failure.text}")
    print(f"  again: {command_of(failure.plan)}", flush=True)
    if not options.no_shrink:
        short = shrink(failure, SHRINK_S)
        if short.plan != failure.plan:
            print(f"  shorter: {short.text}\n  again: {command_of(short.plan)}", flush=True)


if __name__ == "__main__":
    sys.exit(min(1, main()))
