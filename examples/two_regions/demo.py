"""The demo: three regions write to one stream while links and servers fail, and the reckoning.

Exit code 0: no acknowledged write is lost, no ID is there twice, nothing is doubled or skipped, and
all regions show the same. 1: something of this is not so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from two_regions.by_hand import ByHand
from two_regions.links import Links
from two_regions.script import Script
from two_regions.servers import Region
from two_regions.stage import Stage
from two_regions.typed import Typed
from two_regions.verdict import judge, table

NUMBERS = (1, 2, 3)


@contextmanager
def process_group() -> Iterator[int]:
    """A group of processes that ends when the demo is gone, in whatever way."""
    shell = subprocess.Popen(
        ["sh", "-c", "cat > /dev/null; kill -KILL 0"], stdin=subprocess.PIPE, process_group=0
    )
    assert shell.stdin is not None
    try:
        yield shell.pid
    finally:
        shell.stdin.close()
        shell.wait()


def play(given: argparse.Namespace, stage: Stage, console: Console) -> bool:
    """Disturb them in one way or the other; whether everything is as promised."""
    stage.open()
    view = stage.view
    with view:
        view.tell("three regions; a writer and a group of readers in each")
        if given.by_hand:
            with Typed() as typed:
                ByHand(stage, typed).run()
        else:
            Script(stage, given.seconds).run()
        for writer in stage.writers:
            writer.rest()
        view.tell("writers rest; all links are there; the regions become level")
        findings = judge(stage.regions, stage.writers, stage.workers, stage.burnt)
    stage.close()
    console.print(table(findings))
    again = sum(worker.again for worker in stage.workers)
    told = f"Groups were given {again:,} entries again: delivery is at least once."
    console.print(told, highlight=False)
    if stage.burnt:
        told = f"{len(stage.burnt):,} entries went with a disk before anybody could fetch them."
        console.print(told, highlight=False)
    good = not any(finding.found for finding in findings)
    console.print("All is as promised." if good else "[red]This was not promised.[/]")
    return good


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo; exits with the verdict."""
    parser = argparse.ArgumentParser(
        prog="make demo-regions ARGS=...",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, about (60)")
    parser.add_argument("--rate", type=float, default=200.0, help="entries a second, each (200)")
    parser.add_argument("--by-hand", action="store_true", help="you say what happens, and when")
    parser.add_argument("--keep", action="store_true", help="keep folders and logs, and say where")
    given = parser.parse_args(arguments)
    console = Console()
    with ExitStack() as stack:
        if given.keep:
            folder = Path(tempfile.mkdtemp(prefix="headrace-regions-"))
            console.print(f"folders and logs: {folder}", highlight=False)
        else:
            temporary = tempfile.TemporaryDirectory(prefix="headrace-regions-")
            folder = Path(stack.enter_context(temporary))
        group = stack.enter_context(process_group())
        regions = [Region(number, folder, group) for number in NUMBERS]
        links = Links({region.number: region.aa_port for region in regions})
        stack.enter_context(links)
        for region in regions:
            region.know(links)
            stack.callback(region.stop)
        try:
            good = play(given, Stage(regions, links, console, given.rate), console)
        except RuntimeError as failure:
            sys.exit(str(failure))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
