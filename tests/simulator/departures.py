"""Regions that go for good, are forgotten by an operator, and perhaps come back.

One that has gone has lost its disk, or it lies there stopped. What the others have of it stays, and
what only it knew is lost. Once all the others know that it was forgotten, a server with its old
folder is refused: at its start, or as soon as it hears of that. With an empty folder it joins as a
new one, at any time.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from headrace.persistence.errors import PersistenceError
from simulator.ledger import Violated
from simulator.process import Died
from simulator.region import Region
from simulator.scenarios import Refused
from simulator.workload import Asked

if TYPE_CHECKING:
    from simulator.world import World

FORGOTTEN: Final = b"AAFORGOTTEN "
REFUSED_WITHIN_MS: Final = 60_000
STEP_MS: Final = 50
AGAIN_MS: Final = 2000  # after which an operator looks whether a region still takes part
OPERATOR: Final = "operator"


class Departures:
    """Those that have gone.

    Attributes:
        gone: by number.
    """

    def __init__(self, world: World) -> None:
        self.gone: Final[dict[int, Region]] = {}
        self._world: Final = world
        self._without_disk: Final[set[int]] = set()
        self._next_look_ms = 0

    def leave(self, chance: random.Random) -> bool:
        """A region goes for good."""
        world = self._world
        ready = [region for region in world.regions.values() if region.ready]
        if len(ready) < 2:
            return False
        region = chance.choice(ready)
        world.tell(f"--- region {region.number} goes")
        world.end(region, region.kill)
        world.standbys.drop(region.number)
        if chance.random() < 0.5:
            self._lose_disk(region)
        del world.regions[region.number]
        self.gone[region.number] = region
        world.lost(region)
        return True

    def _lose_disk(self, region: Region) -> None:
        region.lose_disk()
        self._without_disk.add(region.number)

    def forget(self, chance: random.Random) -> bool:
        """An operator of some region forgets one that has gone."""
        ready = [region for region in self._world.regions.values() if region.ready]
        if not self.gone or not ready:
            return False
        self._forget(chance.choice(ready), chance.choice(list(self.gone)))
        return True

    def _forget(self, where: Region, number: int) -> None:
        if where.obstacle():  # it has lost its disk, and is told not to wait for who knows more
            self._world.checks.forget_told(where.number)
        self._world.checks.ask(where, Asked(OPERATOR, [[b"AA", b"FORGET", b"%d" % number]]))

    def see_to(self) -> None:
        """Operators look at who takes part, and forget who has gone."""
        world = self._world
        if not self.gone or world.time.now_ms < self._next_look_ms:
            return
        self._next_look_ms = world.time.now_ms + AGAIN_MS
        for number in self.gone:
            for region in world.regions.values():
                if region.ready and number in region.regions.region.members():
                    self._forget(region, number)
                    break

    def come_back(self, chance: random.Random) -> bool:
        """One that has gone is started: with the folder that it had, or with an empty one."""
        if not self.gone:
            return False
        number = chance.choice(list(self.gone))
        if number not in self._without_disk and chance.random() < 0.5:
            return self._come_back_as_it_was(number)
        self._come_back_anew(number)
        return True

    def end(self, chance: random.Random) -> None:
        """Let some of them come back."""
        for number in list(self.gone):
            kind = chance.random()
            if kind < 0.3 and number not in self._without_disk:
                self._come_back_as_it_was(number)
            if kind < 0.6:
                self._come_back_anew(number)

    def _come_back_anew(self, number: int) -> None:
        world = self._world
        region = self.gone[number]
        if number not in self._without_disk:
            region.lose_disk()
            world.lost(region)
        self._without_disk.discard(number)
        world.tell(f"--- region {number} comes back as a new one")
        self._admit(region)
        world.guarded(region, region.start)

    def _admit(self, region: Region) -> None:
        regions = self._world.regions
        del self.gone[region.number]
        regions[region.number] = region
        for number in sorted(regions):  # they are chosen from in the order of their numbers
            regions[number] = regions.pop(number)

    def _come_back_as_it_was(self, number: int) -> bool:
        """It is refused, and goes again."""
        world = self._world
        region = self.gone[number]
        begun = region.regions.region.begun
        others = list(world.regions.values())
        if any(other.view.forgotten.get(number, -1) < begun for other in others):
            return False
        if not any(other.ready for other in others):
            return False
        world.tell(f"--- region {number} comes back with its folder")
        network = world.network
        lossy, network.lossy = network.lossy, 0.0
        network.partition({pair for pair in network.down if number not in pair})
        self._admit(region)
        try:
            self._start_and_hear(region)
        except PersistenceError as error:
            if f"forgotten region {number}" not in str(error):
                raise Violated(f"I17: region {number} does not start: {error}") from None
        finally:
            network.lossy = lossy
            network.ended(number)
            region.kill()
            self._lose_disk(region)
            del world.regions[number]
            self.gone[number] = region
        world.lost(region)
        return True

    def _start_and_hear(self, region: Region) -> None:
        """Start it; it does not start, or it hears that it is forgotten, and takes no writes then.

        Raises:
            PersistenceError: it does not start.
            Violated: I17.
        """
        world = self._world
        until_ms = world.time.now_ms + REFUSED_WITHIN_MS
        try:
            world.guarded(region, region.start)
            while not region.obstacle().startswith(FORGOTTEN):
                if world.time.now_ms > until_ms:
                    state = region.trouble()
                    raise Violated(f"I17: region {region.number} is forgotten, and runs: {state}")
                world.pass_time(STEP_MS)
        except Died as died:
            raise Violated(f"I17: region {region.number} stopped: {died}") from None
        reply = region.call(OPERATOR, [b"XADD", world.workload.keys[0], b"*", b"late", b"1"])
        if not isinstance(reply, Refused) or not reply.text.startswith(FORGOTTEN):
            raise Violated(f"I17: region {region.number} is forgotten, and takes writes: {reply!r}")
