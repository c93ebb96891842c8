"""``make policy-mutants``: plants bugs in policies one after another; is each of them found?

The server of a copied checkout, as Python, is compared with the model. A bug that is not found is a
hole in the tests.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from support.build import ROOT
from support.policy_machine import OPTIONS, Differs, run
from support.process import ServerProcess

LIST: Final = Path(__file__).with_name("policy_bugs.txt")
PACKAGES: Final = (
    *("compat", "console", "headrace", "metrics", "testkit", "persistence", "policies"),
    *("protocol", "regions", "server", "storage"),
)
STEPS: Final = 40_000
SEEDS: Final = (1, 2)


class Bug:
    """One planted bug: the lines ``old`` of ``file`` become ``new``."""

    def __init__(self, file: str, old: str, new: str) -> None:
        self.file: Final = file
        self.old: Final = old
        self.new: Final = new

    def plant(self, folder: Path) -> None:
        path = folder / self.file
        source = path.read_text()
        assert source.count(self.old) == 1, f"{source.count(self.old)} times:\n{self.old}"
        path.write_text(source.replace(self.old, self.new))


def bugs() -> dict[str, Bug]:
    """All bugs, by name."""
    found: dict[str, Bug] = {}
    for block in LIST.read_text().split("\n== ")[1:]:
        name, file, *lines = block.splitlines()
        old = [f"{line[1:]}\n" for line in lines if line.startswith("-")]
        new = [f"{line[1:]}\n" for line in lines if line.startswith("+")]
        found[name] = Bug(file.removeprefix("@ "), "".join(old), "".join(new))
    return found


class Copied(ServerProcess):
    """The server of a checkout, as Python."""

    def variables(self) -> dict[str, str]:
        place = {"PYTHONPATH": str(self.directory), "HEADRACE_PURE": "1"}
        return {**super().variables(), **place}


def copy(folder: Path) -> None:
    """Copy what the server consists of."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, symlinks=True, ignore=shutil.ignore_patterns("*.pyc")
        )


def look(bug: Bug, steps: int) -> str:
    """Return what was found with a bug; empty where nothing was."""
    for seed in SEEDS:
        with tempfile.TemporaryDirectory(prefix="headrace-bug-") as name:
            folder = Path(name)
            copy(folder)
            bug.plant(folder)
            with Copied(*OPTIONS, directory=folder) as server:
                try:
                    run(server.client, steps, seed)
                except (Differs, OSError, EOFError) as found:
                    return str(found).splitlines()[-1] or type(found).__name__
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make policy-mutants", description=__doc__)
    parser.add_argument("--only", default="", help="those with this in their names")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    missed = 0
    chosen = {name: bug for name, bug in bugs().items() if options.only in name}
    for name, bug in chosen.items():
        began_s = time.monotonic()
        found = look(bug, options.steps)
        missed += not found
        spent_s = time.monotonic() - began_s
        print(f"{name:52} {spent_s:4.0f} s  {found[:90] or 'NOT FOUND'}", flush=True)
    print(f"{len(chosen)} bugs, {missed} not found")
    return min(1, missed)


if __name__ == "__main__":
    sys.exit(main())
