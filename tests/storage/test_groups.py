"""Consumer groups against a naive model: dicts and lists, looked through from end to end."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage.stream.appending import NodeLimits
from storage.stream.delivery import claimable, claimable_since, hand_out, has_new
from storage.stream.groups import (
    MOSTLY_IDLE,
    NEVER,
    UNKNOWN,
    UNLIMITED,
    Consumer,
    Group,
    lag,
)
from storage.stream.ids import ID_MAX
from storage.stream.nack import CHUNK, Chunk, Nack
from storage.stream.pel import NacksById, NacksByTime
from storage.stream.references import (
    ACKED,
    DELETED,
    DELREF,
    KEEPREF,
    MISSING,
    REFERENCED,
    delete,
    drop_references,
    is_referenced,
)
from storage.stream.stream import Stream

GREATEST = (ID_MAX, ID_MAX)
NODE_ENTRIES = 3
ID = tuple[int, int]


class Held:
    """A pending entry as the model has it."""

    def __init__(self, owner: bytes | None, time_ms: int, count: int) -> None:
        self.owner = owner
        self.time_ms = time_ms
        self.count = count


class ModelGroup:
    """What a group ought to be.

    Attributes:
        order: the pending IDs as they are to be claimed: released ones as they were released, then
            the others by time, among equals as they came.
    """

    def __init__(self, last: ID) -> None:
        self.last = last
        self.pending: dict[ID, Held] = {}
        self.order: list[ID] = []
        self.consumers: set[bytes] = set()
        self.max_pending = 0

    def put(self, entry_id: ID, held: Held) -> None:
        """Make pending, or pending in another way."""
        self.forget(entry_id)
        place = 0
        while place < len(self.order):
            other = self.pending[self.order[place]]
            if other.owner is not None and (held.owner is None or other.time_ms > held.time_ms):
                break
            place += 1
        self.order.insert(place, entry_id)
        self.pending[entry_id] = held

    def is_old(self, entry_id: ID, latest_ms: int) -> bool:
        held = self.pending[entry_id]
        return held.owner is None or held.time_ms <= latest_ms

    def forget(self, entry_id: ID) -> bool:
        if entry_id not in self.pending:
            return False
        del self.pending[entry_id]
        self.order.remove(entry_id)
        return True


class World:
    """A stream with groups, and the model of both; each change is made to both and compared."""

    def __init__(self) -> None:
        self.stream = Stream(100, 100)
        self.live: list[ID] = []
        self.newest: ID = (0, 0)
        self.models: dict[bytes, ModelGroup] = {}
        self.now_ms = 1000
        self.removed = False

    def group(self, name: bytes) -> tuple[Group, ModelGroup]:
        return self.stream.groups[name], self.models[name]

    # The log

    def add(self, count: int) -> None:
        for _ in range(count):
            self.newest = (self.newest[0] + 1, 0)
            self.stream.append(*self.newest, [b"f", b"v"], 0, NodeLimits(4096, NODE_ENTRIES))
            self.live.append(self.newest)

    def delete(self, entry_id: ID, mode: int) -> None:
        models = self.models.values()
        expected = DELETED if entry_id in self.live else MISSING
        needed = any(entry_id > m.last or entry_id in m.pending for m in models)
        assert is_referenced(self.stream, *entry_id) == needed
        if mode == ACKED and needed:
            expected = REFERENCED
        assert delete(self.stream, *entry_id, mode) == expected
        if mode == DELREF:
            for model in models:
                model.forget(entry_id)
        if expected == DELETED:
            self.live.remove(entry_id)
            self.removed = True

    def trim(self, keep: int) -> None:
        removed = self.stream.trim_to_length(keep, False, 0, True)
        assert removed == max(0, len(self.live) - keep)
        del self.live[:removed]
        self.removed |= removed > 0

    # Groups

    def create(self, name: bytes, last: ID) -> None:
        self.stream.groups[name] = Group(name, *last, UNKNOWN)
        self.models[name] = ModelGroup(last)

    def consumer(self, name: bytes, who: bytes) -> Consumer:
        group, model = self.group(name)
        model.consumers.add(who)
        found = group.consumers.get(who)
        return group.create_consumer(who, self.now_ms) if found is None else found

    def delete_consumer(self, name: bytes, who: bytes) -> None:
        group, model = self.group(name)
        if who not in model.consumers:
            return
        model.consumers.remove(who)
        held = [entry_id for entry_id, held in model.pending.items() if held.owner == who]
        for entry_id in held:
            model.forget(entry_id)
        consumer = group.consumers[who]
        removed = group.delete_consumer(who)
        assert removed.count == len(held)
        while not removed.free_some(1):
            pass
        assert not consumer.pel.chunks, "what it held is kept alive"

    def read(self, name: bytes, who: bytes, count: int, noack: bool) -> None:
        group, model = self.group(name)
        consumer = self.consumer(name, who)
        to_come = [entry_id for entry_id in self.live if entry_id > model.last]
        room = group.room()
        assert has_new(self.stream, group) == (bool(to_come) and room != 0)
        if room != UNLIMITED:
            count = min(count, room) if count else room
            if not count:
                return
        start = (model.last[0], model.last[1] + 1)
        parts = self.stream.parts(start, GREATEST, count, False)
        hand_out(self.stream, group, parts, None if noack else consumer, self.now_ms)
        for entry_id in to_come[:count] if count else to_come:
            model.last = entry_id
            if not noack:
                model.put(entry_id, Held(who, self.now_ms, 1))

    def assign(self, name: bytes, who: bytes, entry_id: ID, time_ms: int) -> None:
        group, model = self.group(name)
        consumer = self.consumer(name, who)
        nack = group.pel.get(*entry_id)
        assert (nack is not None) == (entry_id in model.pending)
        if nack is None:
            if entry_id not in self.live:
                return  # what is not there cannot be made pending
            group.add_pending(*entry_id, consumer, time_ms)
            model.put(entry_id, Held(who, time_ms, 1))
            return
        group.assign(nack, consumer, time_ms)
        nack.count += 1
        model.put(entry_id, Held(who, time_ms, model.pending[entry_id].count + 1))

    def release(self, name: bytes, entry_id: ID) -> None:
        group, model = self.group(name)
        nack = group.pel.get(*entry_id)
        if nack is None:
            if entry_id not in self.live:
                return
            nack = group.add_pending(*entry_id, None, self.now_ms)
            model.put(entry_id, Held(None, 0, 1))
        group.release(nack)
        model.put(entry_id, Held(None, 0, model.pending[entry_id].count))

    def acknowledge(self, name: bytes, entry_id: ID) -> None:
        group, model = self.group(name)
        assert group.ack(*entry_id) == model.forget(entry_id)

    def drop_everywhere(self, entry_id: ID) -> None:
        dropped = [model.forget(entry_id) for model in self.models.values()]
        assert drop_references(self.stream, *entry_id) == any(dropped)

    def claim(self, name: bytes, idle_ms: int, most: int) -> None:
        group, model = self.group(name)
        latest_ms = self.now_ms - idle_ms
        live = set(self.live)
        waiting = [i for i in model.order if i in live]
        expected = [i for i in waiting if model.is_old(i, latest_ms)]
        if most >= 0:
            expected = expected[:most]
        found = claimable(self.stream, group, latest_ms, most)
        assert [(claim.nack.ms, claim.nack.seq) for claim in found] == expected
        for claim in found:
            assert claim.part.run.ms[claim.part.low] == claim.nack.ms
        since_ms = model.pending[waiting[0]].time_ms if waiting else NEVER
        assert claimable_since(self.stream, group) == since_ms

    def copy(self) -> None:
        original = self.stream
        self.stream = original.copy()
        for group in original.groups.values():
            group.max_pending += 1
            for consumer in list(group.consumers):
                group.delete_consumer(consumer)
            for nack in group.pel.from_id(0, 0, 0):
                group.drop(nack)

    # Agreement

    def agree(self) -> None:
        live = set(self.live)
        for name, model in self.models.items():
            group = self.stream.groups[name]
            assert (group.last_ms, group.last_seq) == model.last
            to_come = sum(entry_id > model.last for entry_id in self.live)
            assert lag(self.stream, group) == to_come
            if not self.removed and group.entries_read != UNKNOWN:
                assert group.entries_read == len(self.live) - to_come
            room = max(0, group.max_pending - len(model.pending))
            assert group.room() == (room if group.max_pending else UNLIMITED)
            self.pending_agree(group, model)
            by_time = self.time_order(group)
            assert [i for i in by_time if i in live] == [i for i in model.order if i in live]

    def pending_agree(self, group: Group, model: ModelGroup) -> None:
        nacks = listed(group.pel)
        assert group.pel.size == len(nacks)
        assert [(n.ms, n.seq) for n in nacks] == sorted(model.pending)
        for nack in nacks:
            held = model.pending[nack.ms, nack.seq]
            owner = None if nack.consumer is None else nack.consumer.name
            assert (owner, nack.delivery_ms, nack.count) == (held.owner, held.time_ms, held.count)
        assert group.zone == sum(held.owner is None for held in model.pending.values())
        assert set(group.consumers) == model.consumers
        for consumer in group.consumers.values():
            own = listed(consumer.pel)
            assert consumer.pel.size == len(own)
            assert same(own, [nack for nack in nacks if nack.consumer is consumer])

    def time_order(self, group: Group) -> list[ID]:
        nacks = listed(group.by_time)
        places = [(nack.order_ms, nack.ticket) for nack in nacks]
        assert places == sorted(set(places))
        assert group.by_time.size == len(nacks)
        ids = [(nack.ms, nack.seq) for nack in nacks]
        assert same(sorted(nacks, key=lambda n: (n.ms, n.seq)), listed(group.pel))
        return ids

    def listing_agrees(self, name: bytes, start: ID, end: ID, most: int, latest_ms: int) -> None:
        group, model = self.group(name)
        inside = [entry_id for entry_id in sorted(model.pending) if start <= entry_id]
        found = group.pel.from_id(*start, most)
        assert [(n.ms, n.seq) for n in found] == (inside[:most] if most else inside)
        inside = [i for i in inside if i <= end and model.is_old(i, latest_ms)]
        found = group.pel.between(start, end, most, latest_ms)
        assert [(n.ms, n.seq) for n in found] == inside[:most]
        idle = group.by_time.delivered_by(latest_ms, len(model.pending))
        assert idle is not None
        old = [entry_id for entry_id in sorted(model.pending) if model.is_old(entry_id, latest_ms)]
        assert sorted((nack.ms, nack.seq) for nack in idle) == old
        if len(old) > 1:
            assert group.by_time.delivered_by(latest_ms, 1) is None


def listed(nacks: NacksById | NacksByTime) -> list[Nack]:
    chunks = nacks.chunks
    for chunk in chunks:
        assert chunk.size == len(chunk.live()) > 0
        assert len(chunk.slots) <= 2 * CHUNK
        assert chunk.slots[: chunk.start] == [None] * chunk.start
        assert chunk.slots[chunk.start] is not None
        assert chunk.slots[-1] is not None
        assert len(chunk.slots) - chunk.start <= 8 * chunk.size
    assert len(nacks._reach) == max(0, len(chunks) - 1)
    for reach, chunk, behind in zip(nacks._reach, chunks, chunks[1:], strict=False):
        assert nacks._key(chunk.last())[0] <= reach <= nacks._key(behind.first())[0]
    return [nack for chunk in chunks for nack in chunk.live()]


def same(ours: list[Nack], theirs: list[Nack]) -> bool:
    return [id(nack) for nack in ours] == [id(nack) for nack in theirs]


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


GroupMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
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


@pytest.mark.parametrize("consumers", [1, 3])
def test_entries_are_acknowledged_around_a_place_that_wanders(consumers: int) -> None:
    chance = random.Random(consumers)
    total = 40 * CHUNK
    group = Group(b"g", 0, 0, 0)
    members = [group.create_consumer(b"%d" % number, 0) for number in range(consumers)]
    for number in range(total):
        group.deliver(number // 7, number % 7, members[number % consumers], number)
    left = list(range(total))
    while left:
        around = chance.choice([0, 0, 0, len(left) // 2, len(left) - 1])
        window = left[around : around + chance.choice([1, 50, 5 * CHUNK])]
        chance.shuffle(window)
        for number in window[:-3] or window:
            assert group.ack(number // 7, number % 7)
            assert not group.ack(number // 7, number % 7)
            left.remove(number)
        assert [7 * nack.ms + nack.seq for nack in group.pel.from_id(0, 0, 0)] == left
        for member in members:
            held = [7 * nack.ms + nack.seq for nack in member.pel.from_id(0, 0, 0)]
            assert held == [n for n in left if members[n % consumers] is member]
        by_time = [
            7 * nack.ms + nack.seq for chunk in group.by_time.chunks for nack in chunk.live()
        ]
        assert by_time == left


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


def grown_chunk(world: World) -> list[Chunk]:
    """The chunks of a group by ID: one with all of 1 to 2 * CHUNK, as large as one gets."""
    world.create(b"g", (0, 0))
    world.add(4 * CHUNK)
    for number in range(2, 2 * CHUNK + 1, 2):
        world.assign(b"g", b"a", (number, 0), 1000)
    for number in range(1, 2 * CHUNK, 2):  # in between, so it grows
        world.assign(b"g", b"a", (number, 0), 999)
    chunks = world.stream.groups[b"g"].pel.chunks
    assert [len(chunk.slots) for chunk in chunks] == [2 * CHUNK]
    return chunks


def test_what_comes_again_fills_the_hole_it_left() -> None:
    world = World()
    chunks = grown_chunk(world)
    for number in range(1, CHUNK + 30):
        world.acknowledge(b"g", (number, 0))
    assert [chunk.start for chunk in chunks] == [CHUNK + 29]
    world.acknowledge(b"g", (CHUNK + 50, 0))
    for number in (CHUNK + 50, 7):
        world.assign(b"g", b"a", (number, 0), 999)
        world.agree()
    assert [(chunk.start, len(chunk.slots)) for chunk in chunks] == [(CHUNK + 28, 2 * CHUNK)]
    world.assign(b"g", b"a", (8, 0), 999)  # for which there is no hole
    world.agree()
    assert [(chunk.start, len(chunk.slots)) for chunk in chunks] == [(0, CHUNK - 27)]
    world.copy()
    world.delete_consumer(b"g", b"a")
    world.agree()


def test_a_full_chunk_with_holes_is_cut_in_half() -> None:
    world = World()
    chunks = grown_chunk(world)
    for number in range(1, 2 * CHUNK, 10):
        world.acknowledge(b"g", (number, 0))
    live = chunks[0].size
    world.stream.groups[b"g"].add_pending(7, 5, None, 0)
    assert [chunk.size for chunk in chunks] == [(live + 1) // 2, live + 1 - (live + 1) // 2]
    assert [len(chunk.slots) for chunk in chunks] == [chunk.size for chunk in chunks]
    world.stream.groups[b"g"].ack(7, 5)
    world.agree()


@pytest.mark.parametrize("step", [1, -1, 7, 97])
def test_holes_are_closed_where_few_entries_are_left(step: int) -> None:
    """Entries go in an order of their own; ``agree`` says what a chunk has to be like."""
    world = World()
    world.create(b"g", (0, 0))
    world.add(3 * CHUNK)
    world.read(b"g", b"a", 0, False)
    total = 3 * CHUNK
    for number in range(total):
        world.acknowledge(b"g", (number * step % total + 1, 0))
        if number % 16 == 0:
            world.agree()
    for number in range(total):
        world.acknowledge(b"g", (number + 1, 0))
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
