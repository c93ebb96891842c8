"""Groups of a stream that several regions write: which exist, and what they are given."""

from __future__ import annotations

from itertools import permutations

import pytest

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.group_state import (
    Create,
    decode_start,
    start_after,
    start_after_seen,
)
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.remembered import EXPIRE, Tombstone
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.sharing import SEMI_STRICT
from headrace.storage.stream.delivery import hand_out
from headrace.storage.stream.groups import Group, lag
from headrace.storage.stream.references import is_referenced
from headrace.storage.stream.run import ID_MAX
from headrace.storage.vectors import Dot, raise_numbers
from support.lanes import copied
from support.replicas import ENTRY, LIMITS, ZERO, Replica, give, sync

ID = tuple[int, int]


def a_pair(mode: int = SEMI_STRICT) -> tuple[Replica, Replica]:
    return Replica(1, mode), Replica(2, mode)


def state(replica: Replica) -> list[tuple[bytes, list[Dot]]]:
    state = replica.stream.group_states
    return [(name, state[name].dots()) for name in sorted(state) if state[name].creates]


# Which exist


def test_two_groups_made_at_once_both_survive() -> None:
    first, second = a_pair()
    first.add(1)
    sync(first, second)
    first.create(b"group1")
    second.create(b"group2")
    sync(first, second)
    assert sorted(first.stream.groups) == sorted(second.stream.groups) == [b"group1", b"group2"]


def test_one_group_made_twice_is_one_group() -> None:
    first, second = a_pair()
    first.add(1)
    sync(first, second)
    first.create(b"g")
    second.create(b"g")
    assert second.read() == [(1, 1)]
    sync(first, second)
    assert first.read() == [(1, 1)], "nobody has acknowledged it"
    assert second.ack(1, 1)
    sync(first, second)
    assert first.pending() == []
    assert state(first) == state(second) == [(b"g", [(b"1.0", 2), (b"2.0", 1)])]


def test_a_deletion_of_the_key_beats_a_group_that_it_had_not_seen() -> None:
    first, second = a_pair()
    first.create(b"group1")
    sync(first, second)
    first.remove()
    second.create(b"group2")
    sync(first, second)
    assert not first.stream.exists()
    assert not second.stream.exists()
    second.create(b"group2")
    sync(first, second)
    assert list(first.stream.groups) == [b"group2"]
    assert first.stream.exists()


def test_an_entry_survives_a_deletion_that_kills_groups() -> None:
    first, second = a_pair()
    first.create(b"group1")
    sync(first, second)
    first.remove()
    second.create(b"group2")
    second.add(5)
    sync(first, second)
    for replica in (first, second):
        assert replica.stream.exists()
        assert replica.stream.length == 1
        assert not replica.stream.groups


def test_destroying_a_group_beats_one_made_at_once() -> None:
    first, second, third = Replica(1), Replica(2), Replica(3)
    first.create(b"group1")
    sync(first, second)
    second.destroy(b"group1")
    third.create(b"group1")
    sync(first, second, third)
    for replica in (first, second, third):
        assert not replica.stream.groups
        assert not replica.stream.exists()
        assert not replica.stream.is_idle(), "others may not have seen the end of it"


def test_an_expiry_spares_groups_made_since() -> None:
    """S16: the key expires in both regions, and one of them makes a new one meanwhile."""
    first, second = a_pair()
    first.add(1)
    first.create(b"g")
    sync(first, second)
    first.remove(EXPIRE)
    first.add(2)
    first.create(b"g")
    second.remove(EXPIRE)
    sync(first, second)
    for replica in (first, second):
        assert list(replica.stream.groups) == [b"g"]
        assert replica.stream.length == 1
    assert state(first) == state(second)


def test_a_late_deletion_does_not_spare_groups_made_since() -> None:
    first, second = a_pair()
    first.add(1)
    first.create(b"g")
    sync(first, second)
    first.remove()
    first.create(b"g")
    second.remove()
    sync(first, second)
    assert not first.stream.groups
    assert not second.stream.groups


def test_creates_and_deletions_in_any_order() -> None:
    """Three regions make, destroy and delete at once; records come in each order of origins."""
    makers = [Replica(number) for number in (1, 2, 3)]
    first, second, third = makers
    first.create(b"g")
    sync(first, second)
    first.create(b"h")
    first.destroy(b"g")
    first.create(b"g")
    second.remove()
    second.create(b"h")
    second.emit("mode", b"h", 1, 5)
    third.create(b"g")
    third.create(b"h", start_after((5, 0)))
    third.emit("mode", b"h", 1, 3)
    third.destroy(b"g")
    states = []
    for order in permutations(makers):
        replica = Replica(9)
        for source in order:
            give(source, replica)
        groups = replica.stream.groups
        states.append((state(replica), {name: groups[name].max_pending for name in groups}))
    sync(*makers)
    states.extend(
        (
            state(maker),
            {name: maker.stream.groups[name].max_pending for name in maker.stream.groups},
        )
        for maker in makers
    )
    assert all(found == states[0] for found in states), states
    assert states[0] == ([(b"h", [(b"2.0", 2)])], {b"h": 3}), "the higher of two regions"


def test_a_create_that_ends_gives_way_to_one_before_it_whose_end_has_not_come() -> None:
    first, second, third, fourth = Replica(1), Replica(2), Replica(3), Replica(4)
    fourth.remove()
    give(fourth, first)
    first.create(b"g")
    for replica in (second, third):
        give(first, replica)
    third.destroy(b"g")
    give(third, second)
    second.create(b"g")
    for order in permutations((first, second, fourth)):
        replica = Replica(9)
        for source in order:
            give(source, replica)
        assert state(replica) == [(b"g", [(b"1.0", 1)])], "the removal ends the second create"
        assert state(replica.copy()) == state(replica)
        give(third, replica)
        assert not replica.stream.groups
        assert not replica.stream.group_states[b"g"].known()


def test_a_group_begins_anew_where_another_create_lives() -> None:
    first, second = a_pair()
    first.add(1)
    first.create(b"g")
    assert first.read() == [(1, 1)]
    second.create(b"g", start_after_seen({}))
    give(first, second)
    give(second, first)
    assert first.pending() == [(1, 1)]
    dead = first.stream.groups[b"g"]
    first.destroy(b"g")
    second.emit("destroy", b"other", second.region.known())
    assert b"g" not in first.stream.groups
    # A create that knows of the end lives beside it, and everything local begins anew.
    first.create(b"g", start_after((1, 1)))
    assert first.stream.groups[b"g"] is not dead
    assert first.pending() == []
    assert first.read() == []
    sync(first, second)
    assert state(first) == state(second) == [(b"g", [(b"1.0", 4)])]


def test_the_other_create_goes_on_when_the_anchor_dies() -> None:
    stream = RegionalStream(Region(1), 100, 100)
    stream.arrive(b"2.0", 1, False, 5, 2, ENTRY, 0, LIMITS)
    stream.add_create(b"g", Create((b"1.0", 1), ZERO, {b"1.0": 1}))
    stream.add_create(b"g", Create((b"2.0", 2), start_after((5, 2)), {b"2.0": 2, b"3.0": 1}))
    old = stream.groups[b"g"]
    assert places_of(old).anchor == (b"1.0", 1)
    assert lag(stream, old) == 1
    assert stream.add_tombstone(b"g", Tombstone((b"3.0", 1), {b"3.0": 1})) == [old]
    new = stream.groups[b"g"]
    assert places_of(new).anchor == (b"2.0", 2)
    assert lag(stream, new) == 0


def test_a_create_that_had_seen_another_one_replaces_it() -> None:
    stream = RegionalStream(Region(1), 100, 100)
    later = Create((b"2.0", 2), ZERO, {b"2.0": 2, b"1.0": 1})
    assert stream.add_create(b"g", later)
    assert not stream.add_create(b"g", Create((b"1.0", 1), ZERO, {b"1.0": 1}))
    other = RegionalStream(Region(1), 100, 100)
    assert other.add_create(b"g", Create((b"1.0", 1), ZERO, {b"1.0": 1}))
    assert other.add_create(b"g", Create((b"2.0", 2), ZERO, {b"2.0": 2, b"1.0": 1}))
    assert other.group_states[b"g"].dots() == stream.group_states[b"g"].dots() == [(b"2.0", 2)]


# What they are given


def test_a_late_lower_id_is_given() -> None:
    """S10."""
    first, second = a_pair(0)
    first.create(b"g")
    sync(first, second)
    first.add(110)
    first.add(120)
    second.add(115)
    assert first.read(count=2) == [(110, 1), (120, 1)]
    sync(first, second)
    assert first.read() == [(115, 2)]
    assert first.read() == []
    group = first.stream.groups[b"g"]
    assert (group.last_ms, group.last_seq) == (120, 1)
    assert first.pending() == [(110, 1), (115, 2), (120, 1)]


def test_nothing_slips_behind_a_place() -> None:
    """Each lane has a place of its own, and is given from there on."""
    first, second = a_pair(0)
    first.create(b"g")
    first.add(110)
    second.add(115)
    sync(first, second)
    assert first.read() == [(110, 1), (115, 2)]
    second.stream.arrive(b"3.0", 1, False, 90, 3, ENTRY, 0, LIMITS)
    second.add(116)
    first.add(120)
    assert first.read() == [(120, 1)]
    sync(first, second)
    assert first.read() == [(116, 2)]
    first.stream.arrive(b"3.0", 1, False, 90, 3, ENTRY, 0, LIMITS)
    assert first.read() == [(90, 3)]


def test_where_a_group_begins() -> None:
    first, second = a_pair(0)
    first.add(100)
    second.add(90)
    first.create(b"all")
    first.create(b"new", start_after_seen(first.stream.seen()))
    first.create(b"after", start_after((95, 0)))
    sync(first, second)
    assert first.read(b"all") == [(90, 2), (100, 1)]
    assert first.read(b"new") == [(90, 2)], "it is news, however low"
    assert first.read(b"after") == [(100, 1)]


@pytest.mark.parametrize("text", [b"0", b"5-0", b"0-1", b"-", b"1.0.5=7-1", b"1.0.5=7-1,2.0.1=5-2"])
def test_a_start_as_text(text: bytes) -> None:
    start = decode_start(text)
    assert start.encode() == text
    assert start.floor(b"3.0.1") == (start.entry_id if not start.seen else (0, 0))


def test_the_prefix_is_sent_and_read_no_more() -> None:
    """S9, in its own words."""
    first, second = a_pair()
    for ms in (110, 120, 130):
        first.add(ms, 0)
    first.create(b"g")
    assert first.read(consumer=b"Alice") == [(110, 0), (120, 0), (130, 0)]
    first.ack(110, 0)
    sync(first, second)
    assert first.acks() == 1
    first.ack(130, 0)
    sync(first, second)
    assert first.acks() == 1
    assert lag(second.stream, second.stream.groups[b"g"]) == 2
    first.ack(120, 0)
    sync(first, second)
    assert first.acks() == 2
    assert second.read(consumer=b"Bob") == []


def test_acknowledgements_end_what_is_pending_elsewhere() -> None:
    """S9b and S9c."""
    first, second = a_pair()
    for ms in (110, 120, 130):
        first.add(ms, 0)
    first.create(b"g")
    first.read()
    first.ack(110, 0)
    first.ack(130, 0)
    sync(first, second)
    assert second.read(consumer=b"Bob") == [(120, 0), (130, 0)]
    assert second.ack(120, 0)
    assert second.ack(130, 0)
    sync(first, second)
    assert first.pending() == []


def test_an_entry_that_is_gone_holds_nothing_back() -> None:
    """S9d."""
    first, second = a_pair()
    for ms in (110, 120, 130):
        first.add(ms, 0)
    first.create(b"g")
    first.read()
    first.delete(110, 0)
    first.ack(120, 0)
    sync(first, second)
    assert first.pending() == [(110, 0), (130, 0)]
    assert second.read() == [(130, 0)]


def test_nor_does_one_that_is_gone_in_the_middle() -> None:
    first, second = a_pair()
    for ms in (100, 110, 120, 130):
        first.add(ms, 0)
    first.create(b"g")
    first.read()
    first.ack(100, 0)
    first.delete(110, 0)
    first.ack(120, 0)
    sync(first, second)
    assert second.read() == [(130, 0)]


def test_what_is_trimmed_while_pending_holds_nothing_back() -> None:
    first, second = a_pair()
    first.create(b"g")
    for ms in range(1, 401):
        first.add(ms, 0)
    first.read()
    first.stream.trim_to({b"1.0.2": (300, 0)})
    for ms in range(301, 304):
        first.ack(ms, 0)
    sync(first, second)
    assert second.stream.group_states[b"g"].creates[0].intervals[b"1.0.2"].pairs() == [
        ((0, 0), (303, 0))
    ]


def test_places_that_were_set_back_do_not_skip() -> None:
    """A place set ahead leaves what lies between to the others; set back, it is given again."""
    first, second = a_pair()
    for ms in (1, 2, 3, 4):
        first.add(ms, 0)
    first.create(b"g")
    sync(first, second)
    group = first.stream.groups[b"g"]
    places_of(group).set(start_after((2, 0)), {})
    assert first.read() == [(3, 0), (4, 0)]
    first.ack(3, 0)
    first.ack(4, 0)
    sync(first, second)
    assert second.read() == [(1, 0), (2, 0)], "an interval and not a floor"
    places_of(group).set(ZERO, {})
    assert first.read() == [(1, 0), (2, 0)]
    places_of(group).set(ZERO, first.stream.seen())
    assert first.read() == [(1, 0), (2, 0), (3, 0), (4, 0)], "acknowledged, and asked for"


def test_both_duplicates_are_given_and_pending_once() -> None:
    """S3."""
    first, second = a_pair()
    first.add(100, 1)
    second.add(100, 1)
    sync(first, second)
    first.create(b"g")
    sync(first, second)
    assert first.read() == [(100, 1), (100, 1)]
    assert first.pending() == [(100, 1)]
    assert second.read(count=1) == [(100, 1)]
    assert second.read(count=1) == [(100, 1)]
    assert first.ack(100, 1)
    assert first.pending() == []
    sync(first, second)
    assert second.pending() == []


def test_one_of_two_duplicates_acknowledged_stays_pending() -> None:
    stream = RegionalStream(Region(3), 100, 100)
    for origin in (b"1.0", b"2.0"):
        stream.arrive(origin, 1, False, 100, 1, ENTRY, 0, LIMITS)
    stream.add_create(b"g", Create((b"1.0", 1), ZERO, {}))
    group = stream.groups[b"g"]
    places = places_of(group)
    hand_out(stream, group, places.parts(stream, 0), group.create_consumer(b"c", 0), 0)
    dots = [(b"1.0", 1)]
    assert stream.acknowledge(b"g", dots, [(b"1.0.1", (0, 0), (100, 1))]) == 0
    assert stream.acknowledge(b"g", dots, [(b"2.0.1", (0, 0), (100, 1))]) == 1
    assert group.pel.size == 0


def test_acknowledgements_that_come_before_their_create() -> None:
    first, second = a_pair()
    first.add(1, 0)
    first.create(b"g")
    first.read()
    sync(first, second)
    second.stream.groups[b"g"].create_consumer(b"c", 0)
    assert second.read() == [(1, 0)]
    second.ack(1, 0)
    third = Replica(3)
    give(second, third)
    assert third.stream.group_states[b"g"].acks
    give(first, third)
    assert third.read() == []
    assert not third.stream.group_states[b"g"].acks


def test_what_a_group_still_needs() -> None:
    first, second = a_pair()
    for ms in (1, 2, 3):
        first.add(ms, 0)
    first.create(b"g")
    sync(first, second)
    assert first.read(count=2) == [(1, 0), (2, 0)]
    first.ack(1, 0)
    assert [is_referenced(first.stream, ms, 0) for ms in (1, 2, 3, 9)] == [False, True, True, True]
    sync(first, second)
    assert [is_referenced(second.stream, ms, 0) for ms in (1, 2, 3)] == [False, True, True]


def test_a_limit_on_what_is_pending_comes_and_goes() -> None:
    first, second = a_pair()
    first.add(1)
    first.create(b"g")
    first.emit("mode", b"g", first.stream.group_state(b"g").mode.next_version(), 7)
    sync(first, second)
    assert second.stream.groups[b"g"].max_pending == 7
    second.emit("mode", b"g", second.stream.group_state(b"g").mode.next_version(), 0)
    sync(first, second)
    assert first.stream.groups[b"g"].max_pending == 0
    second.emit("mode", b"g", second.stream.group_state(b"g").mode.next_version(), 9)
    second.destroy(b"g")
    second.create(b"g")
    sync(first, second)
    assert first.stream.groups[b"g"].max_pending == 0
    assert second.stream.groups[b"g"].max_pending == 0


def test_an_alike_copy() -> None:
    first, second = a_pair()
    first.add(1)
    first.create(b"g")
    first.read(count=1)
    second.add(2)
    sync(first, second)
    twin = copied(first.stream)
    group_copy = twin.groups[b"g"]
    assert group_copy is not first.stream.groups[b"g"]
    assert lag(twin, group_copy) == lag(first.stream, first.stream.groups[b"g"]) == 1
    twin.acknowledge(b"g", [(b"1.0", 2)], [(b"2.0.1", (0, 0), (2, 2))])
    assert lag(twin, group_copy) == 0
    assert lag(first.stream, first.stream.groups[b"g"]) == 1
    assert twin.top() == (2, 2)
    assert twin.used_bytes(0) == pytest.approx(first.stream.used_bytes(0), rel=0.2)


def test_numbers_of_sync_are_what_regions_know() -> None:
    first, second = a_pair()
    first.add(1)
    second.add(2)
    sync(first, second)
    known = first.region.known()
    raise_numbers(known, second.region.known())
    assert known == first.region.known() == second.region.known()
    group = Group(b"g", ID_MAX, ID_MAX, 0)
    assert lag(first.stream, group) == 0
