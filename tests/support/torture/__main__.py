"""``make torture``: campaigns of kill -9, power cuts, signals and rewrites, and what came of them.

Each campaign starts a server with an empty folder (every fifth one without an append-only file),
ends it in ten rounds, and compares it with a twin after each. A failure is printed with the options
that make the same choices again; when the process ends is a matter of microseconds, so it may take
a few runs. The folder of the failure is kept.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from support.torture.campaign import ROUNDS, Campaign, Failure

WITHOUT_AOF = 5  # one campaign of so many has no append-only file


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="make torture", description=(__doc__ or "").strip())
    parser.add_argument("--rounds", type=int, default=100, help="how many at least")
    parser.add_argument("--minutes", type=float, default=0, help="go on for so long")
    parser.add_argument("--seed", type=int, default=0, help="choices to make; 0: others each time")
    parser.add_argument("--campaign", type=int, default=-1, help="only the one of this number")
    options = parser.parse_args()
    seed = options.seed or random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {seed}", flush=True)
    return torture(seed, options.campaign, options.rounds, options.minutes)


def torture(seed: int, only: int, rounds: int, minutes: float) -> int:
    """Run campaigns; how many of them failed."""
    deadline = time.monotonic() + minutes * 60
    number = max(0, only)
    done = commands = failed = 0
    while done < rounds or time.monotonic() < deadline:
        with Campaign(seed, number, bool((number + 1) % WITHOUT_AOF)) as campaign:
            try:
                campaign.run()
            except (Failure, AssertionError) as failure:
                failed += 1
                folder = Path(tempfile.mkdtemp(prefix="headrace-torture-"))
                campaign.keep(folder)
                print(f"FAILED: campaign {number}, {failure}")
                print(f"  its files: {folder}")
                print(f"  again: make torture ARGS='--seed {seed} --campaign {number}'", flush=True)
            commands += campaign.commands
        done += ROUNDS
        number += 1
        print(f"{done} rounds, {commands} commands, {failed} campaigns failed", flush=True)
        if only >= 0:
            break
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
