"""Standbys: other servers that follow a region, and can be it.

A region has one at most. The link between both carries bytes at once, or is cut. A standby may be
let lead at any time: with all that its region has, or with less, because the link was cut before.
What clients were given since then does not count any more, as after a backup was put back. The
former region is the standby next. By FAILOVER both change their roles, and nothing is lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.server.links.link import Link, LinkUser
from simulator.ledger import Violated
from simulator.network import Caller
from simulator.process import Died, Process
from simulator.region import Deliveries, Region, deliveries_of

if TYPE_CHECKING:
    from simulator.world import World

HAVE_ONE: Final = 0.4  # the part of worlds in which regions have standbys
OPERATOR: Final = "operator"
STEP_MS: Final = 20
PLANNED_MS: Final = 3000  # until a planned failover is over, or given up
CATCHING_UP_MS: Final = 20_000


class StandbyCaller(Caller):
    """The side of the region: a client whose bytes go to the standby."""

    def __init__(self, process: Process, line: StandbyLine) -> None:
        super().__init__(process, line)  # type: ignore[arg-type]  # it is asked for two methods
        self.of_region = False

    def when_drained(self, call: Callable[[], None]) -> None:
        self.line.world_soon(partial(self._drained, call))

    def _drained(self, call: Callable[[], None]) -> None:
        if self._process.running and not self.session.closed:
            with self._process.entered():
                call()


class StandbyLine(Link):
    """The connection of a standby with its region."""

    def __init__(self, standbys: Standbys, asking: Region, asked: Region, user: LinkUser) -> None:
        self._standbys: Final = standbys
        self._asking: Final = asking
        self._asked: Final = asked
        self._user: Final = user
        self._caller: StandbyCaller | None = None
        self.open = True
        self.world_soon(self._begin)

    def world_soon(self, what: Callable[[], None]) -> None:
        self._standbys.world.events.after(0, what)

    def _begin(self) -> None:
        asked = self._asked
        if not self.open:
            return
        if not asked.running or self._asking.number in self._standbys.cut:
            self.broken()
            return
        self._caller = StandbyCaller(asked, self)
        asked.adopt(self._caller)
        with self._asking.entered():
            self._user.connected(self)

    def send(self, wire: bytes) -> None:
        self.world_soon(partial(self._asked_gets, wire))

    def _asked_gets(self, wire: bytes) -> None:
        if self.open and self._caller is not None and self._asked.running:
            self._caller.feed(wire)

    def answered(self, wire: bytes) -> None:
        self.world_soon(partial(self._asking_gets, wire))

    def _asking_gets(self, wire: bytes) -> None:
        if self.open and self._asking.running:
            with self._asking.entered():
                self._user.received(self, wire)

    def pause(self, paused: bool) -> None:
        """It is sent little enough to be kept."""

    def close(self) -> None:
        self.open = False
        self.world_soon(self._hang_up)

    def broken(self) -> None:
        """It ends, and both hear of that."""
        if self.open:
            self.open = False
            self.world_soon(self._hang_up)
            self.world_soon(self._lost)

    def _hang_up(self) -> None:
        caller = self._caller
        if caller is not None and self._asked.running and not caller.session.closed:
            with self._asked.entered():
                self._asked.server.session_closed(caller.session)

    def _lost(self) -> None:
        if self._asking.running:
            with self._asking.entered():
                self._user.lost(self, "the connection was lost")


class Standbys:
    """The standbys of one world.

    Attributes:
        servers: by the number of the region; cut: the numbers of those whose link is cut.
    """

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world: Final = world
        self.servers: Final[dict[int, Region]] = {}
        self.cut: Final[set[int]] = set()
        self.is_on: Final = chance.random() < HAVE_ONE
        self._lines: list[StandbyLine] = []
        self._had: Final[dict[int, tuple[Deliveries, Deliveries]]] = {}
        self._made = 0

    # What the others need

    def link(self, asking: Region, user: LinkUser) -> Link:
        """Connect a standby with its region, or a former region with the one that it is now."""
        number = asking.number
        region = self.world.regions.get(number, asking)
        asked = region if region is not asking else self.servers.get(number, region)
        self._lines = [each for each in self._lines if each.open]
        line = StandbyLine(self, asking, asked, user)
        self._lines.append(line)
        return line

    def running(self) -> list[Region]:
        """Return those that run."""
        return [each for each in self.servers.values() if each.running]

    def known(self) -> list[dict[bytes, int]]:
        """Return what each of them knows."""
        return [each.regions.region.known() for each in self.running()]

    def ended(self, region: Region) -> None:
        """A process has ended: its connections break."""
        for line in self._lines:
            if region in (line._asking, line._asked):
                line.broken()

    # What happens to them

    def begin(self, chance: random.Random) -> bool:
        """A region gets a standby, or that is started again."""
        world = self.world
        without = [each for each in world.regions.values() if each.number not in self.servers]
        resting = [each for each in self.servers.values() if not each.running]
        found = [*without, *resting]
        if not found:
            return False
        chosen = chance.choice(found)
        if chosen in resting:
            self._start(chosen)
            return True
        self._made += 1
        folder = world.root / f"r{chosen.number}s{self._made}"
        other = Region(
            chosen.number, folder, world.time, chosen.skew_ms, dict(chosen.settings), world.ledger
        )
        other.network = world.network
        other.standbys = self
        other.log_bytes = chosen.log_bytes
        self.servers[chosen.number] = other
        self._start(other)
        return True

    def _start(self, standby: Region) -> None:
        standby.settings["replicaof"] = b"region 1"
        standby.check_ready = None
        standby.start()

    def end(self, chance: random.Random) -> bool:
        """A standby is killed."""
        running = self.running()
        if not running:
            return False
        self._kill(chance.choice(running))
        self.world.burn()
        return True

    def _kill(self, standby: Region) -> None:
        self.ended(standby)
        self._had.pop(standby.number, None)
        standby.kill()

    def drop(self, number: int) -> None:
        """A region goes for good, and its standby with it."""
        standby = self.servers.pop(number, None)
        self._had.pop(number, None)
        if standby is not None and standby.running:
            self._kill(standby)

    def cut_off(self, chance: random.Random) -> bool:
        """A standby that has all loses its link."""
        level = [each for each in self.running() if self.is_level(each)]
        if not level:
            return False
        standby = chance.choice(level)
        self._note(standby)
        self.cut.add(standby.number)
        self.ended(standby)
        return True

    def heal(self) -> None:
        """All links carry again."""
        self.cut.clear()
        self._had.clear()

    def is_level(self, standby: Region) -> bool:
        """Return whether it has all that its region has."""
        region = self.world.regions.get(standby.number)
        if region is None or not region.ready or not standby.ready or region.unwritten:
            return False
        role, other = region.server.role, standby.server.role
        if other.following is None or not other.following.link_is_up():
            return False
        return not role.follows and role.id == other.id and role.offset() == other.offset()

    def _note(self, standby: Region) -> None:
        """Note what clients of its region were given, which it knows of."""
        region = self.world.regions[standby.number]
        self.world.checks.happened(region)
        self._had[standby.number] = deliveries_of(region)

    # It leads

    def promote(self, chance: random.Random) -> bool:
        """A standby is let lead: the region is gone, or both change their roles."""
        found = [each for each in self.running() if each.ready and self._may_lead(each)]
        if not found:
            return False
        standby = chance.choice(found)
        if self.is_level(standby):
            if chance.random() < 0.5:
                return self._change_roles(standby)
            self._note(standby)
        world = self.world
        region = world.regions[standby.number]
        if region.running:
            world.end(region, region.kill)
        self._swap(standby)
        world.pass_time(STEP_MS)  # it hears that its link is lost
        self._lead(standby)
        world.lost(standby)
        return True

    def _may_lead(self, standby: Region) -> bool:
        return self.is_level(standby) or standby.number in self._had

    def _lead(self, standby: Region) -> None:
        assert standby.call(OPERATOR, [b"REPLICAOF", b"NO", b"ONE"]) == b"OK"
        self.world.checks.happened(standby)

    def _swap(self, standby: Region) -> None:
        """Let the standby be the region from now on, in the eyes of the world."""
        world = self.world
        number = standby.number
        former = world.regions[number]
        had = self._had.pop(number)
        self.cut.discard(number)
        standby.settings.pop("replicaof", None)
        former.settings.pop("replicaof", None)
        standby.is_now(former, had)
        world.regions[number] = standby
        world.network.processes[number] = standby
        self.servers[number] = former

    def _change_roles(self, standby: Region) -> bool:
        """FAILOVER: the region hands over."""
        world = self.world
        region = world.regions[standby.number]
        if region.call(OPERATOR, [b"FAILOVER"]) != b"OK":
            return False
        until_ms = world.time.now_ms + PLANNED_MS
        while standby.server.role.follows:
            world.pass_time(STEP_MS)
            if world.time.now_ms > until_ms or not self.is_level(standby):
                break
        if standby.server.role.follows:
            if region.server.role.failover != b"no-failover":
                region.call(OPERATOR, [b"FAILOVER", b"ABORT"])
            return False
        self._note(standby)
        world.network.ended(standby.number)
        self._swap(standby)
        world.burn()
        return True

    # The end

    def go_on(self) -> None:
        """Do what is due in each of them."""
        for standby in self.running():
            try:
                standby.go_on()
            except Died as died:
                raise Violated(f"the standby of {standby.number} stopped: {died}") from None

    def check(self) -> None:
        """Each has what its region has.

        Raises:
            Violated: I18.
        """
        self.heal()
        for standby in self.running():
            region = self.world.regions[standby.number]
            region.call(OPERATOR, [b"AA", b"TOKEN"])  # what was acknowledged is published by that
            until_ms = self.world.time.now_ms + CATCHING_UP_MS
            while not self.is_level(standby):
                if self.world.time.now_ms > until_ms:
                    raise Violated(f"I18: the standby of {standby.number} does not catch up")
                self.world.pass_time(STEP_MS)
            for words in ([b"AA", b"TOKEN"], [b"AA", b"DIGEST"]):
                mine, other = region.call(OPERATOR, words), standby.call(OPERATOR, words)
                if mine != other:
                    raise Violated(f"I18: {words}: region {region.number} {mine!r}, {other!r}")
