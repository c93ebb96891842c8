"""``make simulate``: worlds of regions by chance, and what became of them.

Each seed is a world: some regions, clients of every kind, clocks that differ by hours, links that
are slow or cut, processes that are killed, disks that lose what was not synced, or everything, and
older folders put back. The code is the server's own. A failure is printed with the command that
makes the same run again, and with the fewest steps that still show it.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from typing import Final

from simulator.attempts import read_ranges
from simulator.campaign import Campaign
from simulator.scenarios import SCENARIOS
from simulator.stage import play
from simulator.workload import LATER
from simulator.world import COPIES, DEPARTURES, FAULTS, STANDBYS, Plan

KINDS: Final = ", ".join((*FAULTS, *DEPARTURES, *STANDBYS, *LATER, COPIES))


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


def main(words: list[str] | None = None) -> int:
    """Run from the command line; how many seeds failed."""
    parser = argparse.ArgumentParser(prog="make simulate", description=(__doc__ or "").strip())
    parser.add_argument("--seeds", default="1-", help="the first and the last, such as 1-500")
    parser.add_argument("--steps", type=int, default=240, help="of each run, about")
    parser.add_argument("--regions", default="2,3,5", help="how many, by turns")
    parser.add_argument("--minutes", type=float, default=0, help="end after so long")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="steps to run, such as 1-20,31")
    parser.add_argument("--without", default="", help="what to leave out: " + KINDS)
    parser.add_argument("--failures", type=int, default=5, help="end after so many")
    parser.add_argument("--no-shrink", action="store_true", help="print failures as they are")
    parser.add_argument("--trace", action="store_true", help="show what happens, step by step")
    parser.add_argument("--verbose", action="store_true", help="show what the regions log")
    parser.add_argument(
        "--scenarios", nargs="?", const=",".join(SCENARIOS), help="run these, or all, instead"
    )
    options = parser.parse_args(words)
    if options.seeds.endswith("-") and not options.minutes:
        options.minutes = 1.0
    logging.disable(logging.NOTSET if options.verbose else logging.CRITICAL)
    if options.verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.scenarios:
        return run_scenarios(options.scenarios.split(","))
    campaign = Campaign(options.jobs, options.minutes, options.failures, not options.no_shrink)
    campaign.run(plans_of(options))
    print(campaign.text(), flush=True)
    return len(campaign.failures)


def run_scenarios(names: list[str]) -> int:
    """Run some scenarios; how many fail."""
    failed = 0
    for name in names:
        try:
            play(SCENARIOS[name])
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(names)} scenarios, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(min(1, main()))
