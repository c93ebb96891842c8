"""A single server's stream becomes a region's, and a region's stream a single server's."""

from __future__ import annotations

from random import Random

import pytest

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.conversion import adopted, alone
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.delivery import hand_out
from headrace.storage.stream.groups import Group
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream
from support.lanes import LIMITS, random_stream
from support.snapshots import make_stream, odd_streams, plain_group

ID = tuple[int, int]


def rows(stream: Stream) -> list[tuple[ID, list[bytes]]]:
    return [
        ((part.run.ms[number], part.run.seq[number]), list(part.run.row(number)))
        for part in stream.parts((0, 0), (ID_MAX, ID_MAX), 0, False)
        for number in range(part.low, part.high)
        if part.dead is None or not part.dead[number]
    ]


def pending_of(group: Group) -> object:
    """All of a group but how far it has read."""
    facts, *others = plain_group(group)
    return facts[0], others


@pytest.mark.parametrize("key", sorted(odd_streams()))
def test_all_of_a_stream_is_taken_over(key: bytes) -> None:
    plain = odd_streams()[key]
    before = rows(plain)
    last = (plain.last_ms, plain.last_seq)
    groups = {name: pending_of(group) for name, group in plain.groups.items()}
    iids = list(plain.idmp_records())
    limits = (plain.idmp_duration_s, plain.idmp_maxsize)
    region = Region(3)
    region.count = 1
    stream = adopted(region, plain, 2_000_000_000_000)
    assert rows(stream) == before
    assert stream.top() == last
    assert {name: pending_of(group) for name, group in stream.groups.items()} == groups
    assert list(stream.idmp_records()) == iids
    assert (stream.idmp_duration_s, stream.idmp_maxsize) == limits
    assert stream.deadline_ms() == 2_000_000_000_000
    assert [lane.name for lane in stream.lanes] == ([b"3.0.0"] if last > (0, 0) else [])
    for state in stream.group_states.values():
        assert state.dots() == [(b"3.0", 1)]
    twin = alone(stream)
    assert rows(twin) == before
    assert {name: pending_of(group) for name, group in twin.groups.items()} == groups
    assert list(twin.idmp_records()) == iids


def to_come(stream: RegionalStream, group: Group) -> list[ID]:
    """Return what a group has still to be given."""
    return [
        (part.run.ms[number], part.run.seq[number])
        for part in places_of(group).parts(stream, 0)
        for number in range(part.low, part.high)
        if part.dead is None or not part.dead[number]
    ]


def read(stream: RegionalStream) -> list[ID]:
    """Let its group ``g`` read all that it has still to be given."""
    group = stream.groups[b"g"]
    found = to_come(stream, group)
    consumer = group.consumers.get(b"c") or group.create_consumer(b"c", 1)
    hand_out(stream, group, places_of(group).parts(stream, 0), consumer, 1)
    return found


def a_group() -> Stream:
    """Of nine entries a group has read five and acknowledged three, the last among them."""
    stream = make_stream((n, 0, [b"a", b"%d" % n]) for n in range(1, 10))
    group = Group(b"g", 5, 0, 5)
    consumer = group.create_consumer(b"c", 1)
    for number in (3, 4):
        group.deliver(number, 0, consumer, 1)
    stream.groups[b"g"] = group
    return stream


def test_a_group_goes_on_where_it_was() -> None:
    region = Region(1)
    region.count = 1
    stream = adopted(region, a_group(), -1)
    assert read(stream) == [(6, 0), (7, 0), (8, 0), (9, 0)]
    assert read(stream) == []


def test_late_entries_of_others_are_news_whatever_their_id() -> None:
    region = Region(1)
    region.count = 1
    stream = adopted(region, a_group(), -1)
    read(stream)
    stream.arrive(b"2.0", 1, False, 2, 2, [b"a", b"b"], 0, LIMITS)
    assert read(stream) == [(2, 2)]


def test_what_is_acknowledged_in_a_row_is_told_the_others() -> None:
    region = Region(1)
    region.count = 1
    stream = adopted(region, a_group(), -1)
    group = stream.groups[b"g"]
    places = places_of(group)
    assert places.prefix(stream, group) == []
    group.ack(3, 0)
    assert places.prefix(stream, group) == [(b"1.0.0", (2, 0), (3, 0))]
    group.ack(4, 0)
    assert places.prefix(stream, group) == [(b"1.0.0", (2, 0), (5, 0))]


def test_own_entries_go_on_in_the_lane() -> None:
    region = Region(1)
    region.count = 1
    stream = adopted(region, make_stream([(7, 9, [b"a", b"b"])]), -1)
    stream.append_next(3, [b"a", b"c"], 0, LIMITS)
    assert stream.top() == (7, 17)
    assert [lane.name for lane in stream.lanes] == [b"1.0.0"]
    assert not stream.began


def test_a_stream_that_never_had_an_entry_is_there_for_its_groups() -> None:
    stream = adopted(Region(1), Stream(100, 100), -1)
    assert not stream.exists()
    assert isinstance(stream.lane(b"1.0.0"), Lane)


@pytest.mark.parametrize("seed", range(60))
def test_alone_nothing_is_skipped(seed: int) -> None:
    """Any state of any stream: the groups are given what they would have been given, or more."""
    random = Random(seed)
    stream = random_stream(random, Region(1), 150)
    merged = dict(rows(stream)[::-1])  # of equal IDs the first one
    top = stream.top()
    wanted = {name: to_come(stream, group) for name, group in stream.groups.items()}
    pending = {name: pending_of(group) for name, group in stream.groups.items()}
    twin = alone(stream)
    assert dict(rows(twin)) == merged
    assert len(rows(twin)) == len(merged)
    assert (twin.last_ms, twin.last_seq) == top
    assert {name: pending_of(group) for name, group in twin.groups.items()} == pending
    for name, group in twin.groups.items():
        last = (group.last_ms, group.last_seq)
        assert set(wanted[name]) <= {entry_id for entry_id, _ in rows(twin) if entry_id > last}
