"""What is forgotten, and when; and states that are joined: one case for each rule."""

from __future__ import annotations

import tracemalloc

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.fingerprint import shared_state
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.remembered import DEL, Removal, Setting, Top
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.tombstones import collect
from headrace.storage.sharing import SEMI_STRICT
from headrace.storage.stream.appending import NodeLimits
from support.replicas import Logs, Replica, catch_up_all, give, sync


def three(mode: int = 0) -> list[Replica]:
    logs: Logs = {}
    return [Replica(number, mode, logs) for number in (1, 2, 3)]


def beat_and_collect(replicas: list[Replica]) -> None:
    """All say what they know, have heard it, and forget."""
    for replica in replicas:
        replica.beat()
    sync(*replicas)
    for replica in replicas:
        replica.collect([each.region.id for each in replicas])


# Forgetting


def test_a_dead_lane_stays_while_a_deletion_may_still_name_it() -> None:
    first, second, third = three()
    first.add(100)
    sync(first, second, third)
    first.remove()
    third.remove()  # names the lane, too, and has not seen the deletion
    first.collect([1, 2, 3])
    assert first.stream.find_lane(b"1.0.1") is not None
    sync(first, second, third)
    for replica in (first, second, third):
        assert len(replica.stream.removals) == 2
        assert all(lane.is_dead() for lane in replica.stream.lanes)
    beat_and_collect([first, second, third])
    for replica in (first, second, third):
        assert replica.stream.is_idle()
        assert not replica.stream.lanes
        assert not replica.stream.current_lanes()


def test_nothing_is_forgotten_before_all_have_said_that_they_know() -> None:
    first, second, third = three()
    first.add(1)
    first.create(b"g")
    sync(first, second, third)
    first.destroy(b"g")
    first.remove()
    sync(first, second)
    for replica in (first, second):
        replica.beat()
    sync(first, second)
    assert first.collect([1, 2, 3]) == 0
    assert first.collect([1, 2]) == 3, "one removal, one tombstone, one lane"


def test_a_lane_of_which_only_a_trim_is_known_is_not_dead() -> None:
    """Collecting it would forget the trim."""
    stream = RegionalStream(Region(1), 100, 100)
    stream.trim_to({b"2.0.1": (5, 2)})
    stream.remove_entry(b"3.0.1", (5, 3))
    assert collect(stream, {b"2.0": 9, b"3.0": 9}) == 0
    for origin, number in ((b"2.0", 2), (b"3.0", 3)):
        words = [b"f", b"v"]
        assert not stream.arrive(origin, 1, False, 5, number, words, 0, NodeLimits(0, 0))


def test_places_and_intervals_of_a_lane_go_with_it() -> None:
    first, second, _ = three(SEMI_STRICT)
    first.add(1)
    first.create(b"g")
    first.read()
    first.ack(1, 1)
    first.emit("remove", 1, first.stream.seen(), {})  # an expiry that had not seen the group
    first.create(b"h")
    sync(first, second)
    assert first.stream.group_states[b"g"].creates[0].intervals
    first.publish()
    assert first.acks() == 1, "nothing of the lane is there, so there is nothing to be told"
    for replica in (first, second):
        replica.beat()
    sync(first, second)
    first.collect([1, 2])
    assert first.stream.group_states[b"g"].creates[0].intervals == {}
    places = places_of(first.stream.groups[b"g"])
    assert places.place == places.begun == {}
    second.collect([1, 2])
    assert shared_state(first.stream, True) == shared_state(second.stream, True)


def test_memory_comes_back() -> None:
    """A thousand keys that were deleted leave nothing, and before that little."""
    region = Region(1)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    streams = [RegionalStream(region, 100, 100) for _ in range(100)]
    for stream in streams:
        stream.append_next(5, [b"f", bytes(1000)], 0, NodeLimits(4096, 100))
        stream.add_removal(Removal(DEL, (b"1.0", 2), {b"1.0": 1}))
        stream.cover(stream.seen())
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (used - before) / 100 < 5000, "a stream, a lane and a removal"
    for stream in streams:
        collect(stream, {b"1.0": 2})
        assert stream.is_idle()


# What comes late


def test_a_setting_that_a_deletion_had_seen_comes_to_nothing() -> None:
    stream = RegionalStream(Region(1), 100, 100)
    stream.add_removal(Removal(DEL, (b"3.0", 1), {b"2.0": 5, b"3.0": 1}))
    assert not stream.add_ttl(Setting((b"2.0", 5), 1, 99))
    assert stream.deadline_ms() == -1
    assert stream.add_limits(Setting((b"2.0", 4), 1, 7, 7)) == []
    assert (stream.idmp_duration_s, stream.idmp_maxsize) == (100, 100)
    assert stream.add_ttl(Setting((b"2.0", 6), 1, 99))
    assert stream.deadline_ms() == 99
    stream.add_mode(b"g", Setting((b"2.0", 3), 1, 4))
    assert not stream.group_states


def test_the_longer_of_concurrent_deadlines_stands_and_none_is_the_longest() -> None:
    stream = RegionalStream(Region(1), 100, 100)
    assert stream.add_ttl(Setting((b"1.0", 1), 1, 100))
    assert not stream.add_ttl(Setting((b"3.0", 1), 1, 50))
    assert stream.deadline_ms() == 100
    assert stream.add_ttl(Setting((b"2.0", 1), 1, -1))
    assert stream.deadline_ms() == -1
    assert stream.ttl.next_version() == 2
    assert stream.add_ttl(Setting((b"1.0", 2), 2, 10))
    stream.add_removal(Removal(DEL, (b"3.0", 2), {b"1.0": 2, b"2.0": 1}))
    assert stream.deadline_ms() == 50, "what the deletion had not seen stands again"


def test_limits_go_with_a_deletion_that_has_seen_them() -> None:
    stream = RegionalStream(Region(1), 100, 200)
    stream.add_limits(Setting((b"2.0", 1), 1, 7, 8))
    stream.record_iid(b"p", b"1", 5, 1, 0)
    idmp = stream.idmp
    assert (stream.idmp_duration_s, stream.idmp_maxsize) == (7, 8)
    freed = stream.add_removal(Removal(DEL, (b"3.0", 1), {b"2.0": 1, b"3.0": 1}))
    assert (stream.idmp_duration_s, stream.idmp_maxsize) == (100, 200)
    assert freed == [idmp]


# CopyJoin


def joined(mine: Replica, other: Replica) -> RegionalStream:
    twin = mine.copy()
    twin.join(other)
    exchanged = mine.copy()
    catch_up_all(exchanged, other)
    assert shared_state(twin.stream, True) == shared_state(exchanged.stream, True)
    return twin.stream


def test_an_origin_goes_on_with_the_lane_that_the_one_says_that_knows_more() -> None:
    first, second, _ = three()
    first.add(1)
    sync(first, second)
    first.remove()
    first.add(2)
    for mine, other in ((second, first), (first, second)):
        stream = joined(mine, other)
        assert [lane.name for lane in stream.current_lanes()] == [b"1.0.3"]
        assert stream.arrive(b"1.0", 0, False, 3, 1, [b"f", b"v"], 0, NodeLimits(0, 0))


def test_what_either_side_removed_does_not_come_back() -> None:
    first, second, _ = three(SEMI_STRICT)
    for ms in range(1, 30):
        first.add(ms, 1)
    sync(first, second)
    first.delete(3, 1)
    second.delete(7, 1)
    first.add(40, 1)
    second.add(35, 2)
    second.trim(25)
    stream = joined(first, second)
    assert stream.length == joined(second, first).length
    assert stream.length == 26
    for ms in (3, 7):
        assert not stream.contains(ms, 1)
    for ms, seq in ((40, 1), (35, 2)):
        assert stream.contains(ms, seq)


def test_an_empty_region_takes_a_copy_over() -> None:
    first, second, third = three()
    for ms in range(1, 200):
        first.add(ms)
    first.create(b"g")
    first.read()
    first.ack(1, 1)
    log = first.stream.lanes[0].log
    payloads = [block.payload for block in log.index.blocks]
    stream = joined(third, first)
    assert [block.payload for block in stream.lanes[0].log.index.blocks] == payloads
    assert places_of(stream.groups[b"g"]).place == {}, "that is local"
    assert not stream.groups[b"g"].consumers
    assert second.stream.length == 0


def test_a_top_that_one_side_has_seen_go_stays_gone() -> None:
    first, second, _ = three()
    first.add(1)
    first.top(500)
    sync(first, second)
    second.remove()
    second.stream.removals.clear()  # as if all had seen it
    assert second.stream.top() == (0, 0)
    twin = first.copy()
    twin.join(second)
    assert twin.stream.tops == []
    other = second.copy()
    other.join(first)
    assert other.stream.tops == []
    assert isinstance(first.stream.tops[0], Top)


def test_a_group_that_one_side_has_seen_go_stays_gone() -> None:
    first, second, _ = three()
    first.add(1)
    first.create(b"g")
    first.mode(b"g", 7)
    sync(first, second)
    second.destroy(b"g")
    second.stream.group_states.clear()  # as if all had seen it
    for mine, other in ((first, second), (second, first)):
        twin = mine.copy()
        twin.join(other)
        assert not twin.stream.groups
        assert not twin.stream.group_states


def test_acknowledgements_that_came_before_their_create_are_joined() -> None:
    first, second, third = three()
    first.add(1)
    first.create(b"g")
    second.receive(b"1.0")
    second.read()
    second.ack(1, 1)
    third.receive(b"2.0")
    state = third.stream.group_states[b"g"]
    assert list(state.acks) == [(b"1.0", 2)]
    for mine, other in ((third, first), (first, third)):
        stream = joined(mine, other)
        assert not stream.group_states[b"g"].acks
        assert places_of(stream.groups[b"g"]).is_acked(b"1.0.1", (1, 1))
    assert state.acks
    assert collect(third.stream, {b"1.0": 1}) == 0
    assert collect(third.stream, {b"1.0": 2}) == 1, "their create has died, then"
    assert not third.stream.group_states


def test_removals_that_wait_for_an_entry_are_joined() -> None:
    first, second, third = three()
    first.add(1)
    second.add(2)
    third.receive(b"2.0")
    third.emit("delete_for", (b"1.0.1", (1, 1)), (b"2.0.1", (2, 2)))
    assert third.stream.contains(2, 2)
    give(second, first)
    for mine, other in ((third, first), (first, third)):
        stream = joined(mine, other)
        assert not stream.awaited
        assert not stream.contains(2, 2)
    empty = joined(second, third)
    assert len(empty.awaited) == 1


def test_what_the_other_side_acknowledged_is_pending_no_more() -> None:
    first, second, _ = three()
    for ms in (1, 2, 3):
        first.add(ms)
    first.create(b"g")
    sync(first, second)
    assert second.read() == [(1, 1), (2, 1), (3, 1)]
    second.delete(3, 1)
    first.read()
    first.ack(1, 1)
    second.join(first)
    assert second.pending() == [(2, 1), (3, 1)], "one is open, and one has no entry any more"


def test_a_copy_of_an_earlier_time_brings_nothing_back() -> None:
    first, second, third = three()
    for ms in (1, 2, 3):
        first.add(ms)
    sync(first, second, third)
    old = third.copy()
    first.remove()
    sync(first, second, third)
    beat_and_collect([first, second, third])
    assert not first.stream.lanes
    for one, other in ((first, old), (old, first)):
        fourth = Replica(4, 0, first.logs)
        fourth.join(one)
        assert fourth.stream.length == one.stream.length
        fourth.join(other)
        assert fourth.stream.length == 0
        assert not fourth.stream.lanes
        assert not fourth.stream.current_lanes()
    first.add(9)
    late = first.copy()
    late.join(old)
    assert [lane.name for lane in late.stream.lanes] == [b"1.0.6"]
    assert late.stream.length == 1


def test_a_removal_that_came_early_outlives_a_join() -> None:
    first, second, third = three()
    first.add(1)
    second.receive(b"1.0")
    second.remove()
    third.receive(b"2.0")  # it names a lane of which nothing has come
    fourth = Replica(4, 0, first.logs)
    fourth.join(third)
    third.join(fourth)
    for replica in (third, fourth):
        assert replica.stream.find_lane(b"1.0.1") is not None
        replica.receive(b"1.0")
        assert replica.stream.length == 0
