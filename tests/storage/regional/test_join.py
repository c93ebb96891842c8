"""Regions that do whatever clients want: they agree in the end, however they got to know of it."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.regions.lanes.fingerprint import fingerprint, shared_state
from headrace.regions.lanes.group_state import start_after, start_after_seen
from headrace.regions.lanes.remembered import DEL, EXPIRE
from headrace.storage.digest import Digest
from headrace.storage.sharing import SEMI_STRICT
from headrace.storage.vectors import Numbers, raise_numbers
from support.campaigns import drawn
from support.replicas import Logs, Replica, sync

REGIONS = (1, 2, 3)
Places = st.integers(0, 2)
Groups = st.sampled_from([b"g", b"h"])


def known_to_all(replicas: list[Replica]) -> Numbers:
    known: Numbers = {}
    for replica in replicas:
        raise_numbers(known, replica.region.known())
    return known


def catch_up(replica: Replica, numbers: Numbers, backwards: bool) -> None:
    """Have all records up to these numbers, one origin after the other."""
    for origin in sorted(numbers, reverse=backwards):
        replica.receive(origin, numbers[origin] - replica.region.number_of(origin))


def digest_of(replica: Replica) -> bytes:
    digest = Digest()
    replica.stream.add_to(digest)
    return digest.hexadecimal()


class RegionsMachine(RuleBasedStateMachine):
    """What clients of three regions do, and how records travel."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: Logs = {}
        self.all = [Replica(number, SEMI_STRICT, self.logs) for number in REGIONS]

    # Clients

    @rule(at=Places, ms=st.integers(1, 12))
    def add(self, at: int, ms: int) -> None:
        replica = self.all[at]
        ms = max(ms, replica.stream.last_ms)
        replica.add(ms)

    @rule(at=Places, ms=st.integers(1, 12), seq=st.integers(0, 3))
    def add_own_id(self, at: int, ms: int, seq: int) -> None:
        if (ms, seq) > self.all[at].stream.top():
            self.all[at].add(ms, seq)

    @rule(at=Places, number=st.integers(0, 20))
    def delete(self, at: int, number: int) -> None:
        lanes = self.all[at].stream.filled_lanes()
        if lanes:
            lane = lanes[number % len(lanes)]
            first = lane.log.first_id() if number % 2 else lane.log.last_entry_id()
            self.all[at].delete(*first)

    @rule(at=Places)
    def delete_for_another(self, at: int) -> None:
        """Rule I: of two entries for one message, the lower one stands."""
        lanes = self.all[at].stream.filled_lanes()
        if len(lanes) > 1:
            both = sorted((lane.log.last_entry_id(), lane.name) for lane in lanes)[:2]
            winner, loser = [(name, entry_id) for entry_id, name in both]
            self.all[at].emit("delete_for", winner, loser)

    @rule(at=Places, most=st.integers(0, 4))
    def trim(self, at: int, most: int) -> None:
        self.all[at].trim(most)

    @rule(at=Places, kind=st.sampled_from([DEL, EXPIRE]))
    def remove(self, at: int, kind: int) -> None:
        if self.all[at].stream.exists():
            self.all[at].remove(kind)

    @rule(at=Places, group=Groups, where=st.integers(0, 2))
    def create(self, at: int, group: bytes, where: int) -> None:
        replica = self.all[at]
        if group not in replica.stream.groups:
            start = start_after((where, 0))
            replica.create(group, start_after_seen(replica.stream.seen()) if where == 2 else start)

    @rule(at=Places, group=Groups)
    def destroy(self, at: int, group: bytes) -> None:
        if group in self.all[at].stream.groups:
            self.all[at].destroy(group)

    @rule(at=Places, group=Groups, count=st.integers(1, 4), acked=st.integers(0, 4))
    def read(self, at: int, group: bytes, count: int, acked: int) -> None:
        replica = self.all[at]
        if group in replica.stream.groups:
            for entry_id in replica.read(group, count)[:acked]:
                replica.ack(*entry_id, group)

    @rule(at=Places, group=Groups, ms=st.integers(0, 5))
    def set_place(self, at: int, group: bytes, ms: int) -> None:
        found = self.all[at].stream.groups.get(group)
        if found is not None and found.places is not None:
            self.all[at].set_place(group, ms)

    @rule(at=Places, group=Groups, most=st.integers(0, 3))
    def mode(self, at: int, group: bytes, most: int) -> None:
        if group in self.all[at].stream.groups:
            self.all[at].mode(group, most)

    @rule(at=Places, ms=st.integers(1, 12))
    def top(self, at: int, ms: int) -> None:
        if self.all[at].stream.exists():
            self.all[at].top(ms)

    @rule(at=Places, ms=st.integers(-1, 2))
    def expire_at(self, at: int, ms: int) -> None:
        if self.all[at].stream.exists():
            self.all[at].expire_at(ms)

    # Records

    @rule(at=Places, number=st.integers(0, 20), most=st.integers(1, 9))
    def receive(self, at: int, number: int, most: int) -> None:
        origins = sorted(self.logs)
        if origins:
            self.all[at].receive(origins[number % len(origins)], most)

    @invariant()
    def lanes_are_whole(self) -> None:
        for replica in self.all:
            stream = replica.stream
            assert stream.length == sum(lane.log.length for lane in stream.lanes)
            for lane in stream.lanes:
                assert lane.log.last_entry_id() <= lane.last()
                assert not lane.log.length or lane.log.first_id() > max(lane.deleted, lane.trimmed)
                assert all(early > lane.last() for early in lane.early)
            for name, group in stream.groups.items():
                assert stream.group_states[name].creates, "a group lives by its creates"
                assert group.pel.size == sum(c.pel.size for c in group.consumers.values())


class AgreeingMachine(RegionsMachine):
    @rule(at=Places)
    def begin_epoch(self, at: int) -> None:
        region = self.all[at].region
        region.begin_epoch(region.epoch + 1, region.generation, b"")

    def teardown(self) -> None:
        """Whatever is where now, all come to the same, with all that is remembered."""
        numbers = known_to_all(self.all)
        fresh = [Replica(9, SEMI_STRICT, self.logs) for _ in range(2)]
        for replica in (*self.all, *fresh):
            catch_up(replica, numbers, replica is fresh[1])
        states = [shared_state(replica.stream, True) for replica in (*self.all, *fresh)]
        assert all(state == states[0] for state in states)
        assert len({fingerprint(replica.stream) for replica in (*self.all, *fresh)}) == 1
        assert len({digest_of(replica) for replica in self.all}) == 1
        tops = {(replica.stream.top(), replica.stream.exists()) for replica in self.all}
        assert len(tops) == 1
        modes = [
            {name: group.max_pending for name, group in replica.stream.groups.items()}
            for replica in self.all
        ]
        assert all(mode == modes[0] for mode in modes)


class JoiningMachine(RegionsMachine):
    @rule(at=Places, step=st.integers(1, 2))
    def join_is_exchange(self, at: int, step: int) -> None:
        """What a copy brings is what records would have brought."""
        mine = self.all[at]
        other = self.all[(at + step) % 3]
        numbers = known_to_all([mine, other])
        joined = mine.copy()
        joined.join(other)
        assert joined.region.known() == numbers
        exchanged = mine.copy()
        catch_up(exchanged, numbers, False)
        wanted = shared_state(exchanged.stream, True)
        assert shared_state(joined.stream, True) == wanted
        assert joined.stream.top() == exchanged.stream.top()
        assert sorted(joined.stream.groups) == sorted(exchanged.stream.groups)
        swapped = other.copy()
        swapped.join(mine)
        assert shared_state(swapped.stream, True) == wanted
        joined.join(other)
        joined.join(joined.copy())
        assert shared_state(joined.stream, True) == wanted

    @rule(at=Places, step=st.integers(1, 2))
    def join(self, at: int, step: int) -> None:
        self.all[at].join(self.all[(at + step) % 3])

    def teardown(self) -> None:
        numbers = known_to_all(self.all)
        for replica in self.all:
            catch_up(replica, numbers, False)
        states = [shared_state(replica.stream, True) for replica in self.all]
        assert all(state == states[0] for state in states)


class ForgettingMachine(RegionsMachine):
    @initialize()
    def make_something(self) -> None:
        self.all[0].add(1)
        self.all[0].create(b"g")

    @rule(at=Places)
    def beat(self, at: int) -> None:
        self.all[at].beat()

    @rule(at=Places)
    def collect(self, at: int) -> None:
        replica = self.all[at]
        before = shared_state(replica.stream)
        replica.collect(list(REGIONS))
        assert shared_state(replica.stream) == before

    def teardown(self) -> None:
        """What is visible is the same; two rounds of beats later nothing is left to forget."""
        for _ in range(2):
            numbers = known_to_all(self.all)
            for replica in self.all:
                catch_up(replica, numbers, False)
            states = [shared_state(replica.stream) for replica in self.all]
            assert all(state == states[0] for state in states)
            for replica in self.all:
                replica.beat()
        numbers = known_to_all(self.all)
        for replica in self.all:
            catch_up(replica, numbers, False)
            replica.collect(list(REGIONS))
            stream = replica.stream
            assert not stream.has_garbage() or stream.left_over()
            if not stream.exists() and not stream.tops and not stream.ttl.settings:
                assert stream.is_idle() or any(
                    b.mode.settings for b in stream.group_states.values()
                )
        states = [shared_state(replica.stream, True) for replica in self.all]
        assert all(state == states[0] for state in states)


def test_acknowledgements_that_came_before_their_group_are_united_with_those_of_the_copy() -> None:
    logs: Logs = {}
    one, two, three = [Replica(number, SEMI_STRICT, logs) for number in REGIONS]
    one.create(b"g")
    for ms in (1, 2, 3):
        one.add(ms)
    sync(one, two)
    two.ack(*two.read(b"g", 1)[0])
    sync(one, two)
    three.receive(two.region.origin)
    for entry_id in one.read():
        one.ack(*entry_id)
    acknowledged = one.stream.group_states[b"g"].intervals(b"1.0.2")
    assert acknowledged is not None
    assert acknowledged.pairs() == [((0, 0), (3, 1))]
    three.join(one)
    assert three.read() == []
    assert shared_state(three.stream) == shared_state(one.stream)


STEPS = settings(max_examples=drawn(120), stateful_step_count=40)
AgreeingMachine.TestCase.settings = STEPS
JoiningMachine.TestCase.settings = STEPS
ForgettingMachine.TestCase.settings = STEPS
TestAgreeing = AgreeingMachine.TestCase
TestJoining = JoiningMachine.TestCase
TestForgetting = ForgettingMachine.TestCase
