"""One plan after another: whether it fails, how it is made shorter, and what runs it again."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from simulator.disks import folder
from simulator.ledger import Violated
from simulator.workload import LATER
from simulator.world import COPIES, DEPARTURES, FAULTS, STANDBYS, Plan, Tally, World


class Failure(NamedTuple):
    """A seed that violates an invariant."""

    plan: Plan
    text: str

    @property
    def invariant(self) -> str:
        """Return what is violated, without what differs from run to run."""
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


def _never() -> bool:
    return False


def shrink(failure: Failure, budget_s: float, is_stopped: Callable[[], bool] = _never) -> Failure:
    """The same violation with fewer steps and fewer kinds of faults."""
    deadline_s = time.monotonic() + budget_s
    best = failure

    def more() -> bool:
        return time.monotonic() < deadline_s and not is_stopped()

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
    while size and more():
        at = 0
        while at < len(kept) and more():
            fewer = kept[:at] + kept[at + size :]
            total = best.plan.steps + best.plan.steps // 4
            skipped = frozenset(range(total)) - frozenset(fewer)
            if still(_with(best.plan, skipped=skipped)):
                kept = fewer
            else:
                at += size
        size //= 2
    for name in (*FAULTS, *DEPARTURES, *STANDBYS, *LATER, COPIES):
        if name not in best.plan.without and more():
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
    """Return what runs a plan again."""
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
