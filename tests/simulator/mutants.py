"""``make mutants``: plants bugs in regions one after another, and looks whether each is found.

The list says what finds each bug: a scenario, which is a directed case, or one of the first worlds
of the simulator. A bug that is not found is a hole in the tests. ``--search`` looks with all
scenarios and many worlds what else finds it.
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
from simulator.scenarios import SCENARIOS

STEPS: Final = 120
SEEDS: Final = 400  # to search in
PATIENCE_S: Final = 900.0
_VIOLATION: Final = re.compile(r"VIOLATION, seed (\d+): (.*)")
_SCENARIO: Final = re.compile(r"FAILED (\S+): (.*)")


class Found(NamedTuple):
    """What has found a bug.

    Attributes:
        by: scenarios, or the first seed.
        text: what was violated; empty where nothing was.
    """

    by: str
    text: str
    spent_s: float


def look(name: str, scenarios: list[str], worlds: int) -> Found:
    """Look for a planted bug with these scenarios, and where they find nothing, with worlds."""
    started_s = time.monotonic()
    by = text = ""
    if scenarios:
        found = _SCENARIO.findall(_run(name, "--scenarios", ",".join(scenarios)))
        by = ", ".join(scenario for scenario, _ in found[:3]) + (" …" if len(found) > 3 else "")
        text = found[0][1] if found else ""
    if worlds and not text:
        words = ("--seeds", f"1-{worlds}", "--steps", str(STEPS), "--failures", "1", "--no-shrink")
        violations = _VIOLATION.findall(_run(name, *words))
        seed, text = min(((int(s), text) for s, text in violations), default=(0, ""))
        by = f"seed {seed}" if seed else ""
    return Found(by, text, time.monotonic() - started_s)


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
    text = re.sub(r"^Failed: \S+ \(|^Violated: ", "", found.text)
    return (
        f"{name:54} {bug.where:26} {found.by or 'NOT FOUND':18} {found.spent_s:4.0f} s  {text[:70]}"
    )


def main() -> int:
    """Run from the command line; how many bugs are not found."""
    parser = argparse.ArgumentParser(prog="make mutants", description=(__doc__ or "").strip())
    parser.add_argument("--only", default="", help="those with this in their names")
    parser.add_argument("--search", action="store_true", help="look at all scenarios, and worlds")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many worlds to search in")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    bugs = {name: bug for name, bug in read_bugs().items() if options.only in name}
    print(f"{'bug':54} {'in':26} {'found by':18}  time  it says")
    missed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        looks = {
            name: pool.submit(
                look,
                name,
                list(SCENARIOS) if options.search else bug.scenarios,
                options.seeds if options.search else bug.worlds,
            )
            for name, bug in bugs.items()
        }
        for name, future in looks.items():
            found = future.result()
            missed += not found.text
            print(row(name, bugs[name], found), flush=True)
    print(f"{len(bugs)} bugs, {missed} not found")
    return missed


if __name__ == "__main__":
    sys.exit(min(1, main()))
