"""``make region-faults``: regions under faults, and what came of what clients were told.

Each campaign starts 2 to 5 regions with a proxy for each directed link. In each of its rounds
clients write, retry, delete, read and work in groups, while processes are killed, links are cut in
every way, clocks are set, groups move, files are rewritten, and regions lose power, disks, or their
newest files, are forgotten, or run twice. Then all is healed, and the history of all clients is
judged. A failure keeps the files, and prints the options that make the same choices again; when
things happen is up to the machine, so it may take some runs.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from support import standby_rounds
from support.region_faults.campaign import POLICIES, Campaign, Failure
from support.region_faults.clients import Away

ROUNDS = 5  # of one campaign
SENTINEL = "redis-7.0"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="make region-faults", description=(__doc__ or "").strip())
    parser.add_argument("--rounds", type=int, default=50, help="how many at least")
    parser.add_argument("--minutes", type=float, default=0, help="go on for so long")
    parser.add_argument("--seed", type=int, default=0, help="choices to make; 0: others each time")
    parser.add_argument("--campaign", type=int, default=-1, help="only the one of this number")
    parser.add_argument("--policy", choices=POLICIES, default="", help="of appendfsync, everywhere")
    parser.add_argument(
        "--no-disasters", action="store_true", help="nobody loses a disk, power, or newest files"
    )
    parser.add_argument(
        "--standbys", action="store_true", help="play a region with standbys under real sentinels"
    )
    options = parser.parse_args()
    if options.standbys:
        return standby_rounds.judged(options.rounds, list(standby_rounds.FAULTS), SENTINEL)
    seed = options.seed or random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {seed}", flush=True)
    return run(
        seed,
        options.campaign,
        options.rounds,
        options.minutes,
        options.policy,
        not options.no_disasters,
    )


def run(seed: int, only: int, rounds: int, minutes: float, policy: str, disasters: bool) -> int:
    """Run campaigns, and print what was counted; how many of them failed."""
    began_s = time.monotonic()
    number = max(0, only)
    done = failed = 0
    counts: Counter[str] = Counter()
    while done < rounds or time.monotonic() - began_s < minutes * 60:
        campaign = Campaign(seed, number, policy, disasters)
        print(f"campaign {number}: {campaign}", flush=True)
        finished, failure = play(campaign)
        done += finished
        counts += campaign.findings.counts
        for line in campaign.faults.told:
            counts["fault: " + " ".join(re.findall("[a-zA-Z-]+", line)[:3])] += 1
        if failure:
            failed += 1
            print(f"FAILED: campaign {number}, round {finished}: {failure}")
            print(
                f"  again: make region-faults ARGS='--seed {seed} --campaign {number}'", flush=True
            )
        number += 1
        if only >= 0:
            break
        print(
            f"{done} rounds, {counts['acknowledged XADD']} acknowledged, {failed} campaigns failed"
        )
    print(f"{done} rounds in {time.monotonic() - began_s:.0f} s, {failed} campaigns failed")
    for name, count in sorted(counts.items()):
        print(f"  {count:8} {name}")
    return failed


def play(campaign: Campaign, rounds: int = ROUNDS) -> tuple[int, str]:
    """Play the rounds of a campaign.

    Returns: how many were played to their end, and what was wrong then.
    """
    done = 0
    with campaign:
        try:
            for _ in range(rounds):
                campaign.round()
                done += 1
        except (Failure, Away, AssertionError, RuntimeError, OSError) as failure:
            folder = Path(tempfile.mkdtemp(prefix="headrace-region-faults-"))
            campaign.keep(folder)
            return done, f"{failure}\n  its files: {folder}"
    return done, ""


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
