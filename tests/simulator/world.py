"""Several regions in one process, and all that can happen to them, from one seed.

A run has a number of steps. Each one has a source of chance of its own, so a step can be left out
and the others still choose as they did: that is how a failing run is made shorter. After the steps
everything is healed: all processes run, all links carry, and the numbers of all regions have to
meet. Then it is looked whether everything is as it has to be, garbage is collected, and clients go
on, and it is looked again.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from simulator.checks import Checks
from simulator.departures import Departures
from simulator.groups_end import GroupsEnd
from simulator.ledger import Ledger, Violated, region_of
from simulator.network import Events, Network
from simulator.process import Died
from simulator.region import Region
from simulator.standbys import Standbys
from simulator.states import States
from simulator.virtual import Time
from simulator.workload import LIBERAL, SEMI_STRICT, STRICT, Asked, Sight, Workload

START_MS: Final = 1_780_000_000_000  # of a year that epochs are counted in
HOUR_MS: Final = 3_600_000
PAIR_MS: Final = 100_000  # how long a pair is remembered
MOST_HEALING_MS: Final = 300_000
HEALING_STEP_MS: Final = 50
REPAIR_MS: Final = 61_000  # that a disk is away: epochs are counted in minutes
BEAT_MS: Final = 1000
MOST_DELAY_MS: Final = 1000  # of a link, both ways
MOST_FORGETTING_MS: Final = 60_000
FORGETTING_STEP_MS: Final = 250


@dataclass
class Plan:
    """What is run.

    Attributes:
        skipped: steps that are left out.
        without: kinds of faults that are left out.
    """

    seed: int
    regions: int
    steps: int
    skipped: frozenset[int] = frozenset()
    without: frozenset[str] = frozenset()
    told: bool = False


@dataclass
class Tally:
    """What has happened, for the summary."""

    operations: int = 0
    refused: int = 0
    records: int = 0
    faults: dict[str, int] = field(default_factory=dict)

    def fault(self, name: str) -> None:
        self.faults[name] = self.faults.get(name, 0) + 1

    def add(self, other: Tally) -> None:
        self.operations += other.operations
        self.refused += other.refused
        self.records += other.records
        for name, count in other.faults.items():
            self.faults[name] = self.faults.get(name, 0) + count


class World:
    """The regions of one run."""

    def __init__(self, plan: Plan, root: Path) -> None:
        self.plan: Final = plan
        self.tally: Final = Tally()
        self.root: Final = root
        chance = random.Random(plan.seed)
        self.time: Final = Time(START_MS)
        self.events: Final = Events(self.time)
        self.ledger: Final = Ledger()
        self.mode = chance.choice((STRICT, STRICT, SEMI_STRICT, LIBERAL))
        self.policies = [chance.choice(("always", "everysec", "everysec", "no"))] * plan.regions
        if chance.random() < 0.3:
            self.policies = [chance.choice(("always", "everysec", "no")) for _ in self.policies]
        skew = chance.choice((0, 0, 50, 5000, 3 * HOUR_MS))
        self.regions: Final[dict[int, Region]] = {}
        for number in range(1, plan.regions + 1):
            settings = self._settings(number, chance)
            region = Region(
                number,
                root / f"r{number}",
                self.time,
                chance.randint(-skew, skew),
                settings,
                self.ledger,
            )
            self.regions[number] = region
        self.network: Final = Network(self.events, dict(self.regions), chance)
        self._lossy = self.network.lossy
        for region in self.regions.values():
            region.network = self.network
        more = random.Random(self._chance_of(-1))
        self.workload: Final = Workload(chance, self.mode, plan.regions, more, plan.without)
        weights = self.workload.weights
        self.renames = weights["rename"] > 0 or weights["restore"] > 0
        self.forgets_pairs = self.workload.weights["limits"] > 0
        self._look_at_clocks()
        self.disks_lost = False
        self._set_clocks: Final[set[int]] = set()
        self.checks: Final = Checks(self)
        self.states: Final = States(self, self.checks)
        self.departures: Final = Departures(self)
        apart = random.Random(-3 * plan.seed - 1)
        self.standbys: Final = Standbys(self, apart)
        for region in self.regions.values():
            region.standbys = self.standbys
        self._kept: dict[int, list[str]] = {number: [] for number in self.regions}
        self._pace_ms = chance.choice((1, 5, 30, 120))
        self._rates: Final = {
            name: rate * 10 ** chance.uniform(-1.0, 0.5) if chance.random() < 0.7 else 0.0
            for name, rate in FAULTS.items()
            if name not in plan.without
        }
        self._departure_rates: Final = {
            name: rate * 10 ** more.uniform(-1.0, 0.5)
            for name, rate in DEPARTURES.items()
            if name not in plan.without
        }
        self._standby_rates: Final = {
            name: rate * 10 ** apart.uniform(-0.5, 0.5)
            for name, rate in STANDBYS.items()
            if self.standbys.is_on and name not in plan.without
        }
        if more.random() < SMALL_LOGS and COPIES not in plan.without:
            self._rates["rewrite"] = OFTEN  # whoever was away for a while needs a copy
            for region in self.regions.values():
                region.log_bytes = SMALL_LOG_BYTES

    def _settings(self, number: int, chance: random.Random) -> dict[str, bytes]:
        peers = [
            f"{other} 127.0.0.1 {7400 + other}"
            for other in range(1, self.plan.regions + 1)
            if other != number
        ]
        return {
            "aa-region-id": b"%d" % number,
            "aa-database": b"simulated",
            "aa-peers": ", ".join(peers).encode(),
            "aa-xadd-id-mode": self.mode.encode(),
            "aa-other-keys": b"local",
            "appendfsync": self.policies[number - 1].encode(),
            "stream-node-max-entries": chance.choice((b"3", b"10", b"100")),
            "auto-aof-rewrite-percentage": b"0",
            "aa-ack-interval-ms": chance.choice((b"0", b"10", b"10")),
            "aa-backlog-bytes": chance.choice((b"65536", b"16777216")),
        }

    # A run

    def run(self) -> None:
        """All of it.

        Raises:
            Violated: an invariant does not hold.
        """
        try:
            for region in self.regions.values():
                region.start()
            self.heal()
            self.steps(0, self.plan.steps, True)
            self.heal()
            self.states.everything("after the run")
            self.pass_time(3 * BEAT_MS)
            self.meet()
            self.states.everything("after garbage")
            self.forget()
            self.departures.end(random.Random(self._chance_of(-2)))
            self.steps(self.plan.steps, self.plan.steps + self.plan.steps // 4, False)
            self.heal()
            self.states.everything("after clients went on")
            GroupsEnd(self, self.checks).read()
            self.meet()
            self.states.everything("at the end")
        finally:
            self.tally.records = self.ledger.total
            for region in (*self.everyone(), *self.standbys.servers.values()):
                if region.running:
                    region.kill()
            shutil.rmtree(self.root, ignore_errors=True)

    def steps(self, first: int, last: int, faults: bool) -> None:
        """Steps of clients and of what befalls the regions."""
        self.network.lossy = self._lossy if faults else 0.0
        for number in range(first, last):
            if number in self.plan.skipped:
                continue
            chance = random.Random(self._chance_of(number))
            self.pass_time(int(chance.expovariate(1) * self._pace_ms))
            if faults:
                for name, rate in self._rates.items():
                    if chance.random() < rate:
                        self.fault(name, chance)
                more = random.Random(-2 * self._chance_of(number))
                for name, rate in self._departure_rates.items():
                    if more.random() < rate:
                        self.fault(name, more)
                apart = random.Random(-3 * self._chance_of(number))
                for name, rate in self._standby_rates.items():
                    if apart.random() < rate:
                        self.fault(name, apart)
            self.ask(chance)
            if number % 20 == 19:
                self.states.pairs()
                self._look_at_lags()

    def _look_at_lags(self) -> None:
        """I13: whatever clocks say, no region is behind by more than the time since it was level.

        A clock that is set is compared again with the next answer only. A region that takes no
        writes so far, because it is new, lacks what is older than itself; and one that has not been
        level since it was started does not know since when it lacks what it does.
        """
        for region in self.regions.values():
            if region.obstacle():
                continue
            for peer in region.regions.peers.values():
                if peer.state != b"up" or {region.number, peer.region} & self._set_clocks:
                    continue
                if peer.level_ms == peer.since_ms:
                    continue
                level_ms = peer.level_ms
                other = self.regions.get(peer.region)
                if other is not None and peer.puller is not None and peer.puller.lag_since_ms:
                    written_ms = peer.puller.lag_since_ms - other.skew_ms
                    level_ms = min(level_ms, written_ms)  # it waited for the peer's disk
                most_ms = self.time.now_ms - level_ms + MOST_DELAY_MS
                lag_ms = region.regions.lag_ms(peer)
                if lag_ms > most_ms:
                    raise Violated(
                        f"I13: region {region.number} is {lag_ms} ms behind {peer.region}"
                    )

    def _chance_of(self, number: int) -> int:
        """Return what a step takes its chance from."""
        return self.plan.seed * 1_000_003 + number

    def ask(self, chance: random.Random) -> None:
        """A client of some region asks for something."""
        ready = [region for region in self.regions.values() if region.ready]
        if not ready:
            return
        region = chance.choice(ready)
        self.workload.chance = chance  # type: ignore[misc]
        sight = Sight(region, ready, self.time.now_ms + region.skew_ms)
        asked = self.workload.next(sight)
        self.tally.operations += len(asked.requests)
        self.checks.ask(region, asked)

    def pass_time(self, ms: int) -> None:
        """Let time go by, with what happens meanwhile."""
        time = self.time
        until_ms = time.now_ms + ms
        standbys = self.standbys.running()
        running = [region for region in self.regions.values() if region.running]
        for region in (*running, *standbys):
            region.touched = True
        while True:
            next_ms = until_ms
            for region in (*running, *standbys):
                if region.touched:
                    region.touched = False
                    region.due_ms = region.next_ms()
                next_ms = min(next_ms, region.due_ms)
            self.events.run_until(max(next_ms, time.now_ms))
            for region in running:
                if region.due_ms <= time.now_ms:
                    self.guarded(region, region.go_on)
                    region.touched = True
                elif region.touched:
                    self.checks.happened(region)
            self.standbys.go_on()
            if self.ledger.unproven:
                self._prove()
            if time.now_ms >= until_ms:
                break

    def _prove(self) -> None:
        """Nothing has been sent that is not in the file of whoever made it.

        Raises:
            Violated: I9.
        """
        for record in self.ledger.unproven:
            made_by = self.departures.gone.get(region_of(record.origin))
            made_by = made_by or self.regions[region_of(record.origin)]
            self.checks.happened(made_by)  # it may have been asked after its turn
            if made_by.known.get(record.origin, 0) < record.number:
                raise Violated(f"I9: {record} was sent before it was written")
        self.ledger.unproven.clear()

    def guarded(self, region: Region, what: Callable[[], None]) -> None:
        """Let something happen in a region that no client asked for, and look what it did."""
        try:
            what()
        except Died as died:
            raise Violated(f"region {region.number} stopped: {died}") from None
        self.checks.happened(region)

    # Faults

    def tell(self, text: str) -> None:
        """Show what happens, if somebody wants to see it."""
        if self.plan.told:
            print(f"{self.time.now_ms - START_MS:8} {text}", flush=True)

    def fault(self, name: str, chance: random.Random) -> None:
        """Something goes wrong."""
        self.tell(f"--- {name}")
        done = getattr(self, "_" + name)(chance)
        if done:
            self.tally.fault(name)

    def _some(self, chance: random.Random, running: bool) -> Region | None:
        found = [region for region in self.regions.values() if region.running == running]
        return chance.choice(found) if found else None

    def end(self, region: Region, how: Callable[[], None]) -> None:
        """A process ends."""
        had_more = region.ready and (region.unwritten or region.is_waiting() or region.has_copy())
        self.network.ended(region.number)
        self.standbys.ended(region)
        how()
        if had_more:  # perhaps it was the only one that had got some records
            self.burn()

    def _kill(self, chance: random.Random) -> bool:
        region = self._some(chance, True)
        if region is None:
            return False
        if region.ready and not region.unwritten and not region.shows_nothing:
            before = self.states.local_state(region)
            region.check_ready = lambda: self.states.same_local_state(region, before)
        self.end(region, region.kill)
        if chance.random() < 0.7:
            self.guarded(region, region.start)
        return True

    def _stop(self, chance: random.Random) -> bool:
        region = self._some(chance, True)
        if region is None or region.committer.is_full:
            return False
        self.end(region, region.stop)
        if chance.random() < 0.5:
            self.guarded(region, region.start)
        return True

    def _power(self, chance: random.Random) -> bool:
        region = self._some(chance, True)
        if region is None:
            return False
        self.end(region, lambda: region.power_cut(chance))
        region.check_ready = None
        self.forgets_pairs = True
        self.burn()
        if chance.random() < 0.7:
            self.guarded(region, region.start)
        return True

    def _full(self, chance: random.Random) -> bool:
        """Some disk is full, or has room again."""
        region = self._some(chance, True)
        if region is None or region.server.config.appendfsync == b"always" or not region.ready:
            return False
        region.committer.is_full = not region.committer.is_full
        return region.committer.is_full

    def _begin(self, chance: random.Random) -> bool:
        region = self._some(chance, False)
        if region is None:
            return False
        self.guarded(region, region.start)
        return True

    def _lose(self, chance: random.Random) -> bool:
        region = self._some(chance, True)
        if region is None or self.plan.regions < 2:
            return False
        self.end(region, region.kill)
        self.standbys.drop(region.number)  # who starts it empty throws away what they have
        region.lose_disk()
        self.lost(region)
        self.time.now_ms += REPAIR_MS
        self.guarded(region, region.start)
        return True

    def lost(self, region: Region) -> None:
        """What a region has on its disk is gone, or will not be seen again."""
        region.check_ready = None
        self.disks_lost = True
        self.forgets_pairs = True
        self.burn()
        self._look_who_is_left()

    def _look_who_is_left(self) -> None:
        """What was told to be stable holds as long as someone takes part who knows of it."""
        if all(region.obstacle() for region in self.regions.values()):
            for number in range(1, self.plan.regions + 1):
                self.checks.forget_told(number)

    def burn(self) -> None:
        """Something is lost: of some records there may be no trace any more."""
        regions = self.everyone()
        known = [region.known for region in regions]
        known += [region.received(self.ledger.records) for region in regions if region.ready]
        self.ledger.forget([*known, *self.standbys.known()])
        for number, names in self._kept.items():  # a copy that has some is another life by now
            if number in self.departures.gone:
                names.clear()  # none of them may come back
                continue
            region = self.regions[number]
            names[:] = [name for name in names if self._is_known(region.kept_numbers(name))]

    def _is_known(self, numbers: dict[bytes, int]) -> bool:
        records = self.ledger.records
        return all(len(records.get(origin, [])) >= count for origin, count in numbers.items())

    def _keep(self, chance: random.Random) -> bool:
        region = self._some(chance, True)
        if region is None:
            return False
        name = f"kept{region.number}.{chance.randrange(2)}"
        region.keep(name)
        if name not in self._kept[region.number]:
            self._kept[region.number].append(name)
        return True

    def _restore(self, chance: random.Random) -> bool:
        region = self._some(chance, True)
        if region is None or not self._kept[region.number] or self.plan.regions < 2:
            return False
        self.end(region, region.kill)
        region.check_ready = None
        self.forgets_pairs = True
        region.restore(chance.choice(self._kept[region.number]))
        self.burn()
        self._look_who_is_left()
        self.time.now_ms += REPAIR_MS
        self.guarded(region, region.start)
        return True

    def _partition(self, chance: random.Random) -> bool:
        numbers = list(self.regions)
        kind = chance.random()
        down: set[tuple[int, int]] = set()
        if kind < 0.5:  # two sides
            side = {number for number in numbers if chance.random() < 0.5}
            down = {(a, b) for a in numbers for b in numbers if (a in side) != (b in side)}
        elif kind < 0.8:  # any links, in one direction
            down = {(a, b) for a in numbers for b in numbers if a != b and chance.random() < 0.5}
        self.network.partition(down)
        return bool(down)

    def _heal_links(self, chance: random.Random) -> bool:
        self.network.partition(set())
        return False

    def _rewrite(self, chance: random.Random) -> bool:
        region = self._some(chance, True)
        if region is None or not region.ready:  # while it loads, nobody may ask for that
            return False
        self.guarded(region, region.rewrite)
        return True

    def _leap(self, chance: random.Random) -> bool:
        """Time goes by, or a clock is set."""
        if chance.random() < 0.5:
            self.pass_time(chance.choice((1000, 3000, 11_000)))
            return False
        region = self._some(chance, True)
        if region is None:
            return False
        self._set_clocks.add(region.number)
        region.set_skew(region.skew_ms + chance.choice((-HOUR_MS, -500, 500, HOUR_MS)))
        self._look_at_clocks()
        self.tell(f"--- the clock of region {region.number} is {region.skew_ms} ms ahead")
        return True

    def _look_at_clocks(self) -> None:
        """A pair's age is counted by its ID: clocks that differ by more make it too old at once."""
        ahead = [region.skew_ms for region in self.regions.values()]
        if max(ahead) - min(ahead) > PAIR_MS:
            self.forgets_pairs = True

    def _standby_begins(self, chance: random.Random) -> bool:
        return self.standbys.begin(chance)

    def _standby_ends(self, chance: random.Random) -> bool:
        return self.standbys.end(chance)

    def _standby_cut(self, chance: random.Random) -> bool:
        return self.standbys.cut_off(chance)

    def _standby_healed(self, chance: random.Random) -> bool:
        self.standbys.heal()
        return False

    def _standby_leads(self, chance: random.Random) -> bool:
        return self.standbys.promote(chance)

    def _leave(self, chance: random.Random) -> bool:
        return self.departures.leave(chance)

    def _forget(self, chance: random.Random) -> bool:
        return self.departures.forget(chance)

    def _come_back(self, chance: random.Random) -> bool:
        return self.departures.come_back(chance)

    def _restart_alone(self, chance: random.Random) -> bool:
        """A region starts again and again, and reaches nobody: each time in another epoch."""
        region = self._some(chance, True)
        if region is None or region.committer.is_full or self.plan.regions < 2:
            return False
        number = region.number
        pairs = {(number, other) for other in self.regions if other != number}
        self.network.partition(pairs | {(other, number) for _, other in pairs})
        key = chance.choice(self.workload.keys)
        for _ in range(chance.randint(2, 4)):
            self.end(region, region.stop)
            self.guarded(region, region.start)
            self.pass_time(2000)
            if not region.ready:
                break
            self.checks.ask(region, Asked("c", [[b"XADD", key, b"*", b"f", b"alone"]]))
            self.checks.ask(region, Asked("c", [[b"XTRIM", key, b"MAXLEN", b"=", b"2"]]))
        return True

    def everyone(self) -> list[Region]:
        """All regions, those that have gone for good included."""
        return [*self.regions.values(), *self.departures.gone.values()]

    # Healing

    def heal(self) -> None:
        """All run, all links carry, and what each of them knows has to meet.

        Raises:
            Violated: I13.
        """
        self.network.partition(set())
        self.network.lossy = 0.0
        for region in self.regions.values():
            if region.running:
                region.committer.is_full = False
            if not region.running:
                self.guarded(region, region.start)
        self.meet()
        self.standbys.check()

    def meet(self) -> None:
        """Let time go by until all know the same, and take writes."""
        begun_ms = self.time.now_ms
        while not self._have_met():
            if self.time.now_ms - begun_ms > MOST_HEALING_MS:
                state = {r.number: (r.trouble(), r.known) for r in self.regions.values()}
                raise Violated(f"I13: what the regions know does not meet: {state}")
            self.departures.see_to()
            self.pass_time(HEALING_STEP_MS)

    def forget(self) -> None:
        """Let time go by until nothing is left to be remembered.

        Raises:
            Violated: I6.
        """
        begun_ms = self.time.now_ms
        while self.time.now_ms - begun_ms < MOST_FORGETTING_MS:
            if not any(region.garbage() for region in self.regions.values()):
                break
            self.pass_time(FORGETTING_STEP_MS)
        self.states.no_garbage()
        self.meet()
        self.states.everything("after garbage is gone")

    def _have_met(self) -> bool:
        regions = list(self.regions.values())
        first = regions[0].known
        return all(
            region.known == first
            and not region.obstacle()
            and region.regions.region.members() == list(self.regions)
            and not any(map(region.regions.members_differ, region.regions.peers.values()))
            for region in regions
        ) and not any(region.is_waiting() or region.unwritten for region in regions)


FAULTS: Final = {
    "kill": 0.006,
    "stop": 0.003,
    "power": 0.006,
    "begin": 0.05,
    "lose": 0.001,
    "keep": 0.004,
    "restore": 0.002,
    "partition": 0.02,
    "heal_links": 0.03,
    "full": 0.003,
    "rewrite": 0.004,
    "leap": 0.01,
}
COPIES: Final = "copies"
SMALL_LOGS: Final = 0.3  # the part of worlds in which logs are so small that copies are needed
SMALL_LOG_BYTES: Final = 1500
OFTEN: Final = 0.03
STANDBYS: Final = {
    "standby_begins": 0.05,
    "standby_ends": 0.005,
    "standby_cut": 0.02,
    "standby_healed": 0.02,
    "standby_leads": 0.02,
}
DEPARTURES: Final = {
    "leave": 0.001,
    "forget": 0.03,
    "come_back": 0.02,
    "restart_alone": 0.002,
}
