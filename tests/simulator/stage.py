"""The scenarios in the simulator: real servers, simulated time, and links that carry at `sync`."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from simulator import determinism
from simulator.disks import folder
from simulator.ledger import Ledger
from simulator.network import Events, Network
from simulator.region import Region
from simulator.resp import Words
from simulator.scenarios import WAITS, Failed, Regions, Scenario, run
from simulator.virtual import Time
from simulator.world import START_MS

SYNC_MS: Final = 20_000  # that a sync may take, of simulated time
SETTLE_MS: Final = 60_000
STEP_MS: Final = 10


class Stage(Regions):
    """Regions of the simulator for one scenario."""

    def __init__(self, scenario: Scenario, root: Path) -> None:
        self.count = scenario.regions
        self.time: Final = Time(START_MS)
        self.events: Final = Events(self.time)
        self.ledger: Final = Ledger()
        self.regions: Final[dict[int, Region]] = {}
        for number in range(1, self.count + 1):
            self.regions[number] = Region(
                number, root / f"r{number}", self.time, 0, _settings(scenario, number), self.ledger
            )
        chance = random.Random(1)
        self.network: Final = Network(self.events, dict(self.regions), chance)
        self.network.torn = 0.0
        self.network.lossy = 0.0
        for pair in self.network.delays_ms:
            self.network.delays_ms[pair] = ((1, 1), (1, 1))
        for region in self.regions.values():
            region.network = self.network
            region.start()
        for number in self.regions:
            self.settle(number)
        for number in self.regions:
            self._pause(number)

    def close(self) -> None:
        """End all."""
        for region in self.regions.values():
            if region.running:
                region.kill()

    def call(self, region: int, client: str, words: Words) -> object:
        process = self.regions[region]
        reply = process.call(client, words)
        if reply is WAITS and words[0].upper() != b"SUBSCRIBE":
            self._wait(0)
            reply = self.reply(region, client)
        self._wait(0)
        return reply

    def reply(self, region: int, client: str) -> object:
        received = self.regions[region].client(client).received
        return received.pop(0) if received else WAITS

    def sync(self, regions: list[int]) -> None:
        """With several, each of them has what the others of them had, and nothing of the rest."""
        self._wait(50)  # what was acknowledged a moment ago is written down
        left_out = {*self.regions} - {*regions} if len(regions) > 1 else set()
        before = self.network.down
        self.network.partition(before | {(a, b) for a in regions for b in left_out})
        begun_ms = self.time.now_ms
        for number in regions:
            while not self._is_level(number, left_out):
                if self.time.now_ms - begun_ms > SETTLE_MS:
                    raise Failed(f"region {number} does not catch up: {self._trouble(number)}")
        self.network.partition(before)
        self._wait(50)

    def _is_level(self, number: int, left_out: set[int]) -> bool:
        """Have a region pull all; whether it has. Where it needs a full copy, that comes."""
        region = self.regions[number]
        reply = region.call("sync", [b"AA", b"SYNC", b"%d" % SYNC_MS])
        until_ms = self.time.now_ms + SYNC_MS
        while reply is WAITS and self.time.now_ms < until_ms:
            self._wait(STEP_MS)
            reply = self.reply(number, "sync")
        assert isinstance(reply, list), reply
        states = dict(zip(reply[::2], reply[1::2], strict=True))
        if all(states[key] == b"level" for key in states if int(key) not in left_out):
            return True
        region.resume()
        self._wait(1000)
        self._pause(number)
        return False

    def _trouble(self, number: int) -> str:
        return self.regions[number].trouble()

    def resume(self) -> None:
        for region in self.regions.values():
            region.resume()

    def set_clock(self, region: int, ms: int) -> None:
        process = self.regions[region]
        process.set_skew(ms - self.time.now_ms)

    def elapse(self, ms: int) -> None:
        self._wait(ms)

    def fsync(self, region: int) -> None:
        self.regions[region].sync()

    def power(self, region: int) -> None:
        process = self.regions[region]
        self.network.ended(region)
        process.power_cut(None)
        self._lost()
        self.start(region)

    def kill(self, region: int) -> None:
        self.network.ended(region)
        self.regions[region].kill()
        self.start(region)

    def stop(self, region: int) -> None:
        self.network.ended(region)
        self.regions[region].stop()

    def start(self, region: int) -> None:
        process = self.regions[region]
        process.start()
        until_ms = self.time.now_ms + SETTLE_MS
        while not process.ready and self.time.now_ms < until_ms:
            self._wait(STEP_MS)
        if not self.network.is_cut:
            self._pause(region)

    def keep(self, region: int, name: str) -> None:
        self.regions[region].keep(name)

    def restore(self, region: int, name: str) -> None:
        self.regions[region].restore(name)
        self._lost()

    def check_counts(self) -> None:
        """Those that run count as their files say.

        Raises:
            Violated: I16.
        """
        for region in self.regions.values():
            if region.ready and not region.unwritten:
                region.observe()
                region.check_counts()

    def _lost(self) -> None:
        """Of some records there may be no trace any more."""
        self.ledger.forget([region.known for region in self.regions.values()])

    def full(self, region: int) -> None:
        self.regions[region].committer.is_full = True

    def room(self, region: int) -> None:
        self.regions[region].committer.is_full = False

    def cut(self) -> None:
        numbers = list(self.regions)
        self.network.partition({(a, b) for a in numbers for b in numbers if a != b})

    def cut_between(self, one: int, other: int) -> None:
        self.network.partition(self.network.down | {(one, other), (other, one)})

    def heal(self) -> None:
        self.network.partition(set())

    def settle(self, region: int) -> None:
        process = self.regions[region]
        until_ms = self.time.now_ms + SETTLE_MS
        process.resume()
        while process.obstacle() and self.time.now_ms < until_ms:
            self._wait(STEP_MS)
        self._pause(region)

    def rewrite(self, region: int) -> None:
        self.regions[region].rewrite()

    def _pause(self, region: int) -> None:
        self.regions[region].call("pause", [b"AA", b"PAUSE", b"ALL"])

    def _wait(self, ms: int) -> None:
        until_ms = self.time.now_ms + ms
        while True:
            running = [region for region in self.regions.values() if region.running]
            next_ms = min([until_ms, *[region.next_ms() for region in running]])
            self.events.run_until(max(next_ms, self.time.now_ms))
            for region in running:
                region.go_on()
                if region.ready:
                    region.observe()
            if self.time.now_ms >= until_ms:
                return


def _settings(scenario: Scenario, number: int) -> dict[str, bytes]:
    others = [other for other in range(1, scenario.regions + 1) if other != number]
    return {
        "aa-region-id": b"%d" % number,
        "aa-peers": b", ".join([b"%d 127.0.0.1 %d" % (n, 7400 + n) for n in others]),
        "aa-xadd-id-mode": scenario.mode.encode(),
        "aa-ack-interval-ms": b"0",
        "aa-log-max-bytes": b"1048576",
        "aa-backlog-bytes": b"65536",
        "notify-keyspace-events": b"KEA",
    }


@contextlib.contextmanager
def staged(scenario: Scenario) -> Iterator[Stage]:
    """Regions of the simulator for a scenario, which end with the block."""
    with determinism.prepared():
        root = Path(tempfile.mkdtemp(prefix="headrace-scenario-", dir=folder()))
        stage = Stage(scenario, root)
        try:
            yield stage
        finally:
            stage.close()
            shutil.rmtree(root, ignore_errors=True)


def play(scenario: Scenario) -> None:
    """Put regions of the simulator through a scenario.

    Raises:
        Failed: a step went another way.
    """
    with staged(scenario) as stage:
        run(scenario, stage)
        stage.check_counts()
