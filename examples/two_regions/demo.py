"""The demo: three regions write to one stream while links and servers fail, and the reckoning.

Exit code 0: no acknowledged write is lost, no ID is there twice, nothing is doubled or skipped, and
all regions show the same. 1: something of this is not so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from two_regions.clients import STREAM, Worker, Writer
from two_regions.links import Links
from two_regions.servers import Region, client
from two_regions.verdict import judge, table, wait_until_level
from two_regions.view import View

NUMBERS = (1, 2, 3)
BILLING = "billing"
LOOK_EVERY_S = 0.3


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


class Demo:
    """One run."""

    def __init__(
        self, given: argparse.Namespace, regions: list[Region], links: Links, console: Console
    ) -> None:
        self.given = given
        self.regions = regions
        self.links = links
        self.console = console
        self.home = regions[0]  # where billing is done
        self.writers = [Writer(region, f"writer-{region.number}", given.rate) for region in regions]
        self.readers = [self._reader(region) for region in regions]
        self.billing = Worker(BILLING, lambda: self.home)
        self.view = View(console, regions, links, self.writers, self.readers, self.billing)

    def _reader(self, region: Region) -> Worker:
        return Worker(f"copy-{region.number}", lambda: region)

    def run(self) -> bool:
        """Run it; whether everything is as promised."""
        for region in self.regions:
            region.start()
        for region in self.regions:
            region.wait_until_it_writes()
        self._make_groups()
        clients = [*self.writers, *self.readers, self.billing]
        for each in clients:
            each.start()
        with self.view:
            self.view.tell("three regions; a writer and a group of readers in each")
            self._disturb()
            for writer in self.writers:
                writer.rest()
            self.view.tell("writers rest; all links are there; the regions become level")
            findings = judge(self.regions, self.writers, [*self.readers, self.billing])
        for each in clients:
            each.end()
        self.console.print(table(findings))
        again = sum(worker.again for worker in (*self.readers, self.billing))
        self.console.print(
            f"Groups were given {again:,} entries again: delivery is at least once.",
            highlight=False,
        )
        good = not any(finding.found for finding in findings)
        self.console.print("All is as promised." if good else "[red]This was not promised.[/]")
        return good

    def _make_groups(self) -> None:
        with client(self.regions[0].port) as asking:
            for worker in (*self.readers, self.billing):
                asking.xgroup_create(STREAM, worker.group, id="0", mkstream=True)
        wait_until_level(self.regions)

    # What happens to them

    def _disturb(self) -> None:
        """Go through all disturbances; each takes its share of the time."""
        steps: list[Callable[[], None]] = [
            self._undisturbed,
            self._cut_one_link,
            self._cut_one_region_off,
            self._hear_one_way,
            self._kill,
            self._move_billing,
            self._lose_disk,
            self._undisturbed,
        ]
        for step in steps:
            step()

    def _pass(self, share: float) -> None:
        """Let this share of the whole time go by."""
        until = time.monotonic() + share * self.given.seconds
        while time.monotonic() < until:
            self.view.show()
            time.sleep(min(LOOK_EVERY_S, max(0.0, until - time.monotonic())))

    def _undisturbed(self) -> None:
        self._pass(0.08)

    def _heal(self) -> None:
        self.links.heal()
        self.view.tell("healed: each gets what it has missed")
        self._pass(0.04)

    def _cut_one_link(self) -> None:
        self.view.tell("the links between 1 and 2 are cut, both ways; 3 hears and is heard")
        self.links.cut((1, 2), (2, 1))
        self._pass(0.1)
        self._heal()

    def _cut_one_region_off(self) -> None:
        self.view.tell("region 3 is cut off; it goes on writing, and so do the others")
        self.links.cut(*self.links.around(3))
        self._pass(0.12)
        self._heal()

    def _hear_one_way(self) -> None:
        self.view.tell("1 hears nobody, but all hear 1")
        self.links.cut((1, 2), (1, 3))
        self._pass(0.08)
        self._heal()

    def _kill(self) -> None:
        victim = self.regions[1]
        self.view.tell("kill -9 of region 2, in the middle of its writes")
        victim.kill()
        self._pass(0.06)
        victim.start()
        victim.wait_until_it_writes()
        self.view.tell("region 2 is back, with all that it has acknowledged")
        self._pass(0.06)

    def _move_billing(self) -> None:
        self.view.tell("billing moves from region 1 to region 2: its worker stops,")
        self.billing.rest()
        with client(self.home.port) as asking:
            asking.execute_command("AA", "MOVE", STREAM, BILLING, self.regions[1].number)
        self.home = self.regions[1]
        self.billing.go_on()
        self.view.tell("... AA MOVE carries what the group has read, and it goes on in region 2")
        self._pass(0.06)

    def _lose_disk(self) -> None:
        """What nobody has fetched would be gone with the disk: so the writer rests before."""
        victim = self.regions[0]
        self.view.tell("the writer of region 1 rests until the others have its entries,")
        self.writers[0].rest()
        with client(victim.port) as asking:
            token = asking.execute_command("AA", "TOKEN")
        for region in self.regions[1:]:
            with client(region.port) as asking:
                asking.execute_command("AA", "WAIT", token, 10_000)
        self.view.tell("... then kill -9 of region 1, and its disk is lost")
        victim.kill()
        victim.lose_disk()
        self._pass(0.08)
        victim.start()
        self.view.tell("region 1 starts on an empty disk, and takes a copy of another one's state")
        victim.wait_until_it_writes()
        self.view.tell("region 1 has everything again, and takes writes")
        self.writers[0].go_on()
        self._pass(0.08)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo; exits with the verdict."""
    parser = argparse.ArgumentParser(
        prog="make demo-regions ARGS=...",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, about (60)")
    parser.add_argument("--rate", type=float, default=200.0, help="entries a second, each (200)")
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
            good = Demo(given, regions, links, console).run()
        except RuntimeError as failure:
            sys.exit(str(failure))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
