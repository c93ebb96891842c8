"""``make mutants``: plants bugs in regions one after another, and prints what finds each of them.

Each bug is looked for by all scenarios, which are directed cases, and by worlds of the simulator,
seed after seed until one fails; by a few of them where a scenario has found it. A bug that neither
finds is a hole in the tests.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from simulator.planted import VARIABLE, Bug, read_bugs

STEPS: Final = 120
SEEDS: Final = 400
FEW: Final = 10  # worlds to look at where a scenario has found it
PATIENCE_S: Final = 900.0
_VIOLATION: Final = re.compile(r"VIOLATION, seed (\d+): (.*)")
_SCENARIO: Final = re.compile(r"FAILED (\S+):")


class Found(NamedTuple):
    """What has found a bug.

    Attributes:
        scenarios: those that failed.
        seed: the first that violated an invariant; 0 where none did.
        text: what it violated.
    """

    scenarios: list[str]
    seed: int
    text: str
    spent_s: float


def look(name: str, seeds: int) -> Found:
    """Look for a planted bug."""
    started_s = time.monotonic()
    scenarios = _SCENARIO.findall(_run(name, "--scenarios"))
    seeds = min(seeds, FEW) if scenarios else seeds
    out = _run(
        name,
        *("--seeds", f"1-{seeds}", "--steps", str(STEPS), "--failures", "1", "--no-shrink"),
    )
    first = min(((int(found[1]), found[2]) for found in _VIOLATION.finditer(out)), default=(0, ""))
    return Found(scenarios, first[0], first[1], time.monotonic() - started_s)


def _run(name: str, *words: str) -> str:
    environment = {**os.environ, VARIABLE: name, "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "simulator", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return str(late.stdout or "")
    if "Error" in done.stderr:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    return done.stdout


def row(name: str, bug: Bug, found: Found) -> str:
    """A line of the table."""
    directed = ", ".join(found.scenarios[:3]) + (" …" if len(found.scenarios) > 3 else "")
    by_seed = f"{found.seed}: {found.text.split(':')[0]}" if found.seed else "-"
    caught = "caught" if found.seed or found.scenarios else "NOT CAUGHT"
    return f"{name:52} {bug.where:26} {caught:10} {directed or '-':42} {by_seed}"


def main() -> int:
    """Run from the command line; how many bugs are not caught."""
    parser = argparse.ArgumentParser(prog="make mutants", description=(__doc__ or "").strip())
    parser.add_argument("--only", default="", help="those with this in their names")
    parser.add_argument("--skip", type=int, default=0, help="so many at the beginning")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many worlds at most")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    bugs = {name: bug for name, bug in read_bugs().items() if options.only in name}
    for name in list(bugs)[: options.skip]:
        del bugs[name]
    print(f"{'bug':52} {'in':26} {'':10} {'scenarios':42} seed")
    missed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        looks = {name: pool.submit(look, name, options.seeds) for name in bugs}
        for name, future in looks.items():
            found = future.result()
            missed += not found.seed and not found.scenarios
            print(row(name, bugs[name], found), flush=True)
    print(f"{len(bugs)} bugs, {missed} not caught")
    return missed


if __name__ == "__main__":
    sys.exit(min(1, main()))
