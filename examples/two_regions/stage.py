"""The stage: three regions, the links between them, who uses them, and what may be done to them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console

from two_regions.clients import STREAM, Name, Worker, Writer
from two_regions.links import Links
from two_regions.servers import PASSING, Region, client
from two_regions.verdict import entries_of, wait_until_level
from two_regions.view import View

BILLING = "billing"
LOOK_EVERY_S = 0.3
FETCH_MS = 3_000


class Stage:
    """What a run has.

    Attributes:
        home: the region in which billing is done.
        burnt: acknowledged entries that nobody had fetched when their disk was lost.
    """

    def __init__(
        self, regions: Sequence[Region], links: Links, console: Console, rate: float
    ) -> None:
        self.regions = regions
        self.links = links
        self.home = regions[0]
        self.burnt: set[Name] = set()
        self.writers = [Writer(region, f"writer-{region.number}", rate) for region in regions]
        self.readers = [self._reader(region) for region in regions]
        self.billing = Worker(BILLING, lambda: self.home)
        self.view = View(console, regions, links, self.writers, self.readers, self.billing)

    def _reader(self, region: Region) -> Worker:
        return Worker(f"copy-{region.number}", lambda: region)

    @property
    def workers(self) -> list[Worker]:
        """Of all groups."""
        return [*self.readers, self.billing]

    def open(self) -> None:
        """Start everything."""
        for region in self.regions:
            region.start()
        for region in self.regions:
            region.wait_until_it_writes()
        with client(self.regions[0].port) as asking:
            for worker in self.workers:
                asking.xgroup_create(STREAM, worker.group, id="0", mkstream=True)
        wait_until_level(self.regions)
        for each in (*self.writers, *self.workers):
            each.start()

    def close(self) -> None:
        """End all clients."""
        for each in (*self.writers, *self.workers):
            each.end()

    # What may be done

    def show_for(self, seconds: float) -> None:
        """Show what goes on, for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.view.show()
            time.sleep(min(LOOK_EVERY_S, max(0.0, until - time.monotonic())))

    def move_billing(self, target: Region) -> bool:
        """Let the workers of billing go on in another region; whether the move was taken."""
        self.billing.rest()
        try:
            with client(self.home.port) as asking:
                asking.execute_command("AA", "MOVE", STREAM, BILLING, target.number)
            self.home = target
            return True
        except PASSING:
            return False
        finally:
            self.billing.go_on()

    def let_others_fetch(self, region: Region) -> None:
        """Rest its writer until the others have what it has acknowledged, as far as they can."""
        self.writers[region.number - 1].rest()
        try:
            with client(region.port) as asking:
                token = asking.execute_command("AA", "TOKEN")
            for other in self.regions:
                if other is not region and other.state == "up":
                    with client(other.port) as asking:
                        asking.execute_command("AA", "WAIT", token, FETCH_MS)
        except PASSING:
            pass  # then they do not have it

    def lose_disk(self, region: Region) -> int:
        """Kill a region and destroy its disk; how many entries nobody else has fetched.

        They are gone, and nothing brings them back.
        """
        writer = self.writers[region.number - 1]
        region.kill()
        fetched: set[Name] = set()
        for other in self.regions:
            if other.state == "up":
                fetched |= {name for _, name in entries_of(other)}
        gone = writer.acknowledged.keys() - fetched - self.burnt
        self.burnt |= gone
        region.lose_disk()
        return len(gone)
