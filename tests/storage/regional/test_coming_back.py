"""A region that comes with nothing has records of some regions, and then copies of others.

What its records name may be forgotten already where a copy comes from.
"""

from __future__ import annotations

from random import Random

import pytest

from headrace.regions.lanes.fingerprint import shared_state
from headrace.regions.lanes.group_state import ANYWHERE, Home
from headrace.regions.lanes.handover import reached, take_places
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.remembered import DEL, EXPIRE
from headrace.storage.sharing import SEMI_STRICT
from headrace.storage.stream.groups import HERE, ON_ITS_WAY
from support.replicas import Logs, Replica

MEMBERS = (1, 2, 3)


class World:
    """Three regions that share a stream, and a fourth one that comes to know it.

    Args:
        seed: of the chances by which things happen.
    """

    def __init__(self, seed: int = 0) -> None:
        logs: Logs = {}
        self.random = Random(seed)
        self.members = [Replica(number, SEMI_STRICT, logs) for number in MEMBERS]
        self.new = Replica(4, SEMI_STRICT, logs)
        self._now_ms = 1

    def exchange(self) -> None:
        """Let all members have all records, of earlier epochs, too."""
        for one in self.members:
            for origin in list(one.logs):
                one.receive(origin)

    def forget(self) -> None:
        """All get to know all, end what has outlived its epoch, and forget what all know."""
        self.exchange()
        for one in self.members:
            one.end_lanes()
        self.exchange()
        for one in self.members:
            one.beat()
        self.exchange()
        for one in self.members:
            one.collect(list(MEMBERS))

    def check(self) -> None:
        states = [shared_state(one.stream) for one in (*self.members, self.new)]
        assert states == [states[0]] * 4

    # By chance

    def act(self) -> None:
        """Let a region do something, or learn of what others have done."""
        random = self.random
        one = random.choice(self.members)
        stream = one.stream
        kind = random.randrange(12)
        if kind < 4:
            self._now_ms = 1 + max(self._now_ms, *[each.stream.last_ms for each in self.members])
            one.add(self._now_ms)
        elif kind == 4 and len(stream.filled_lanes()) > 1:
            lanes = random.sample(stream.filled_lanes(), 2)
            (low, winner), (high, loser) = sorted((e.log.last_entry_id(), e.name) for e in lanes)
            one.emit("delete_for", (winner, low), (loser, high))
        elif kind == 5 and b"g" not in stream.groups:
            one.create(b"g")
        elif kind in (6, 7) and b"g" in stream.groups:
            for entry_id in one.read(b"g", 3):
                one.ack(*entry_id)
        elif kind == 8 and stream.filled_lanes():
            one.delete(*random.choice(stream.filled_lanes()).log.first_id())
        elif kind == 9:
            one.trim(random.randrange(3))
        elif kind == 10:
            one.region.begin_epoch(one.region.epoch + 1, 0, b"")
        elif kind == 11 and random.random() < 0.2 and stream.exists():
            one.remove(random.choice((DEL, EXPIRE)))
        else:
            self._receive(one)
        if random.random() < 0.3:
            self._receive(self.new)

    def _receive(self, one: Replica) -> None:
        if one.logs:
            one.receive(self.random.choice(list(one.logs)), self.random.randrange(1, 9))


@pytest.mark.parametrize("part", range(4))
def test_it_agrees_with_those_that_have_forgotten(part: int) -> None:
    for seed in range(250 * part, 250 * part + 250):
        world = World(seed)
        for _ in range(2):
            for _ in range(world.random.randrange(5, 60)):
                world.act()
            if world.random.random() < 0.5:
                world.exchange()
                world.random.choice(world.members).remove()
            world.forget()
            world.new.join(world.random.choice(world.members))
            world.check()


def test_a_removal_waits_for_no_entry_that_is_forgotten() -> None:
    world = World()
    one, two, three = world.members
    one.add(1)
    two.add(2)
    world.exchange()
    three.emit("delete_for", (b"1.0.1", (1, 1)), (b"2.0.1", (2, 2)))
    for origin in (b"2.0", b"3.0"):
        world.new.receive(origin)
    assert len(world.new.stream.awaited) == 1
    one.remove()
    world.forget()
    assert not one.stream.lanes
    world.new.join(one)
    assert not world.new.stream.awaited
    world.check()


@pytest.mark.parametrize("for_create", [True, False])
def test_an_acknowledgement_of_what_is_forgotten_goes(for_create: bool) -> None:
    world = World()
    one, two, three = world.members
    one.create(b"g")
    two.add(1)
    world.exchange()
    three.ack(*three.read()[0])
    if for_create:
        world.new.receive(b"1.0")
    world.new.receive(b"3.0")
    two.delete(1, 2)
    two.region.begin_epoch(1, 0, b"")
    two.add(2)
    world.forget()
    assert [lane.name for lane in one.stream.lanes] == [b"2.1.1"]
    assert not one.stream.group_states[b"g"].creates[0].intervals
    world.new.join(one)
    assert not world.new.stream.group_states[b"g"].creates[0].intervals
    world.check()


def test_a_group_that_has_moved_waits_for_nothing_that_is_forgotten() -> None:
    world = World()
    one, two, _ = world.members
    one.create(b"g")
    two.add(1)
    world.exchange()
    assert one.read() == [(1, 2)]
    world.new.receive(b"1.0")
    stream = world.new.stream
    group = stream.groups[b"g"]
    create = places_of(group).anchor
    stream.add_home(b"g", Home((b"1.0", 99), 1, ANYWHERE, [create]))
    take_places(group, reached(one.stream.groups[b"g"]), create)
    assert places_of(group).elsewhere(stream) == ON_ITS_WAY
    two.delete(1, 2)
    two.region.begin_epoch(1, 0, b"")
    two.add(2)
    world.forget()
    world.new.join(one)
    assert places_of(group).elsewhere(stream) == HERE
    assert world.new.read() == [(2, 2)]
