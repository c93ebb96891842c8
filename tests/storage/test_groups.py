"""Consumer groups against a naive model of them (tests/support/group_model.py)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.storage.stream.groups import MOSTLY_IDLE, UNKNOWN
from headrace.storage.stream.pel import CHUNK
from headrace.storage.stream.references import ACKED, DELREF, KEEPREF
from support.group_model import GREATEST, ID, World, same

Names = st.sampled_from([b"g", b"h"])
Who = st.sampled_from([b"a", b"b", b"c"])
Back = st.integers(-1, 7)  # IDs are counted back from the newest one
Modes = st.sampled_from([KEEPREF, DELREF, ACKED])


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize(count=st.integers(0, 8))
    def start(self, count: int) -> None:
        self.world.create(b"g", (0, 0))
        self.world.add(count)
        self.world.create(b"h", self.id(2))

    def id(self, back: int) -> ID:
        return (max(0, self.world.newest[0] - back), 0)

    @rule(count=st.integers(1, 4))
    def add(self, count: int) -> None:
        self.world.add(count)

    @rule(back=Back, mode=Modes)
    def delete(self, back: int, mode: int) -> None:
        self.world.delete(self.id(back), mode)

    @rule(keep=st.integers(2, 8))
    def trim(self, keep: int) -> None:
        self.world.trim(keep)

    @rule(name=Names, back=Back)
    def move(self, name: bytes, back: int) -> None:
        group, model = self.world.group(name)
        model.last = self.id(back)
        group.last_ms, group.last_seq = model.last
        group.entries_read = UNKNOWN

    @rule(name=Names, back=Back)
    def destroy(self, name: bytes, back: int) -> None:
        group = self.world.stream.groups[name]
        while not group.free_some(1):
            pass
        self.world.create(name, self.id(back))

    @rule(name=Names, who=Who)
    def delete_consumer(self, name: bytes, who: bytes) -> None:
        self.world.delete_consumer(name, who)

    @rule(name=Names, most=st.sampled_from([0, 0, 1, 3]))
    def limit(self, name: bytes, most: int) -> None:
        group, model = self.world.group(name)
        group.max_pending = model.max_pending = most

    @rule(name=Names, who=Who, count=st.integers(0, 4), noack=st.sampled_from([False, False, True]))
    def read(self, name: bytes, who: bytes, count: int, noack: bool) -> None:
        self.world.read(name, who, count, noack)

    @rule(name=Names, who=Who, backs=st.lists(Back, max_size=4), ago_ms=st.integers(0, 3))
    def assign(self, name: bytes, who: bytes, backs: list[int], ago_ms: int) -> None:
        for back in backs:
            self.world.assign(name, who, self.id(back), self.world.now_ms - ago_ms)

    @rule(name=Names, backs=st.lists(Back, max_size=4))
    def release(self, name: bytes, backs: list[int]) -> None:
        for back in backs:
            self.world.release(name, self.id(back))

    @rule(name=Names, backs=st.lists(Back, max_size=4))
    def acknowledge(self, name: bytes, backs: list[int]) -> None:
        for back in backs:
            self.world.acknowledge(name, self.id(back))

    @rule(back=Back)
    def drop_everywhere(self, back: int) -> None:
        self.world.drop_everywhere(self.id(back))

    @rule(name=Names, idle_ms=st.integers(0, 3), most=st.integers(-1, 3))
    def claim(self, name: bytes, idle_ms: int, most: int) -> None:
        self.world.claim(name, idle_ms, most)

    @rule(passed_ms=st.integers(1, 2))
    def wait(self, passed_ms: int) -> None:
        self.world.now_ms += passed_ms

    @rule()
    def copy(self) -> None:
        self.world.copy()

    @rule(name=Names, backs=st.tuples(Back, Back), most=st.sampled_from([0, 1, 3, 9]))
    def listing(self, name: bytes, backs: tuple[int, int], most: int) -> None:
        start, end = self.id(max(backs)), self.id(min(backs))
        for ago_ms in range(4):
            self.world.listing_agrees(name, start, end, most, self.world.now_ms - ago_ms)

    @invariant()
    def agrees(self) -> None:
        self.world.agree()


GroupMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40)
TestGroups = GroupMachine.TestCase


@pytest.mark.parametrize("seed", range(2))
def test_many_entries_in_any_order(seed: int) -> None:
    """As the machine, with as many pending as it takes to cut and to join chunks."""
    chance = random.Random(seed)
    total = 4 * CHUNK
    world = World()
    world.create(b"g", (0, 0))
    world.create(b"h", (0, 0))
    world.add(total)

    def some(share: float, change: Callable[[ID], None]) -> None:
        for number in chance.sample(range(1, total + 1), int(share * total)):
            change((number, 0))

    def who() -> bytes:
        return chance.choice([b"a", b"a", b"b", b"c"])

    world.read(b"h", b"a", 0, False)
    some(0.6, lambda i: world.assign(b"g", who(), i, chance.randrange(1000)))
    world.read(b"g", b"a", total // 2, False)
    some(0.2, lambda i: world.release(b"g", i))
    some(0.2, lambda i: world.acknowledge(b"g", i))
    some(0.1, lambda i: world.delete(i, KEEPREF))
    world.agree()
    for most in (10, 400, -1):
        world.claim(b"g", 500, most)  # meets what was deleted, few and many at a time
    world.agree()
    world.delete_consumer(b"g", b"c")
    world.delete_consumer(b"h", b"a")
    world.agree()
    some(0.2, lambda i: world.assign(b"g", who(), i, chance.randrange(1000)))
    some(0.2, lambda i: world.delete(i, DELREF))
    some(0.2, lambda i: world.delete(i, ACKED))
    world.copy()
    world.agree()
    world.read(b"g", b"b", total // 8, False)  # past the holes that were made
    world.agree()
    for name in (b"g", b"h"):
        world.listing_agrees(name, (total // 4, 0), (total // 2, 0), 300, 700)
        for nack in world.stream.groups[name].pel.from_id(0, 0, 0):
            world.acknowledge(name, (nack.ms, nack.seq))
        assert not world.stream.groups[name].by_time.chunks
    world.agree()


def test_few_idle_entries_of_many_are_found_by_time() -> None:
    world = World()
    world.create(b"g", (0, 0))
    world.add(MOSTLY_IDLE + 500)
    world.read(b"g", b"a", 0, False)
    for number in (2000, 7, 900, 5, 30):
        world.assign(b"g", b"b", (number, 0), number % 4)
    for number in (1500, 3):
        world.release(b"g", (number, 0))
    for number in (5, 3):
        world.delete((number, 0), KEEPREF)
    world.claim(b"g", 999, -1)  # puts the deleted ones last
    group = world.stream.groups[b"g"]
    assert group.by_time.delivered_by(3, MOSTLY_IDLE) is not None
    assert group.by_time.delivered_by(world.now_ms, MOSTLY_IDLE) is None
    for owner in (None, b"a", b"b"):
        consumer = None if owner is None else group.consumers[owner]
        pel = group.pel if consumer is None else consumer.pel
        for end in ((900, 0), GREATEST):
            for most in (0, 2, 10):
                for latest_ms in (-5, 0, 2, 3, world.now_ms):
                    expected = pel.between((4, 0), end, most, latest_ms)
                    found = group.idle_between(consumer, (4, 0), end, most, latest_ms)
                    assert same(found, expected)


def test_a_consumer_that_holds_few_of_many_goes_without_a_walk() -> None:
    """What a consumer holds is found in the group one by one, or in one walk: as either is less."""
    for own in (3, 60, 100, 600):
        world = World()
        world.create(b"g", (0, 0))
        world.add(1000)
        world.read(b"g", b"a", own, False)
        world.read(b"g", b"b", 0, False)
        world.release(b"g", (1, 0))
        world.delete_consumer(b"g", b"a")
        world.agree()
        assert world.stream.groups[b"g"].pel.size == 1000 - own + 1


@pytest.mark.parametrize("others", [2, 19])
@pytest.mark.parametrize("side_by_side", [1, 7, 400])
def test_a_consumer_goes_whose_entries_stand_among_those_of_others(
    others: int, side_by_side: int
) -> None:
    """Chunks of the group are gone through whole or not, and end where its own do not."""
    world = World()
    world.create(b"g", (0, 0))
    world.add(6 * CHUNK)
    names = [b"%d" % number for number in range(others + 1)]
    for number in range(6 * CHUNK):
        who = names[number // side_by_side % len(names)]
        world.assign(b"g", who, (number + 1, 0), number * 7 % 1000 if others == 2 else number)
    for number in range(5, 6 * CHUNK, 11):
        world.acknowledge(b"g", (number, 0))
    for name in names[:2]:
        world.delete_consumer(b"g", name)
        world.agree()


def test_a_consumer_goes_whose_entries_stand_behind_a_long_chunk() -> None:
    world = World()
    world.create(b"g", (0, 0))
    world.add(4 * CHUNK)
    for number in range(2, 4 * CHUNK, 2):
        world.assign(b"g", b"a" if number > 2 * CHUNK else b"b", (number, 0), 1000)
    for number in range(1, CHUNK, 2):  # in between, so the first chunk grows
        world.assign(b"g", b"b", (number, 0), 1000)
    assert world.stream.groups[b"g"].pel.chunks[0].size > CHUNK
    world.delete_consumer(b"g", b"a")
    world.agree()
    for number in range(1, 4 * CHUNK):
        world.acknowledge(b"g", (number, 0))
    world.agree()


def test_deleted_entries_that_come_again_are_claimed_in_their_order() -> None:
    """A stream's ID may be set back, and then IDs are used again that are pending still."""
    world = World()
    world.create(b"g", (0, 0))
    world.add(6)
    world.read(b"g", b"a", 0, False)
    world.release(b"g", (6, 0))
    world.release(b"g", (5, 0))
    world.trim(0)
    world.claim(b"g", 0, -1)
    world.stream.last_ms = 0
    world.stream.groups[b"g"].by_time.revive()
    world.newest = (0, 0)
    world.add(6)
    world.claim(b"g", 0, -1)
