"""Trimming of lanes: what is to stay does, and one lane is trimmed as a plain stream is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.group_state import Create, start_after
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.trim import (
    entries_to_trim,
    lanes_below,
    lanes_by_length,
)
from headrace.storage.sharing import SEMI_STRICT
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.references import ACKED, DELREF, Trim, trim
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream

ID = tuple[int, int]
SMALL = NodeLimits(4096, 3)
ENTRY = [b"f", b"v"]

Adds = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40)
Deleted = st.sets(st.integers(0, 39), max_size=12)
Bounds = st.tuples(st.integers(0, 60), st.integers(0, 2))


def lanes_of(adds: list[tuple[int, int]], deleted: set[int]) -> RegionalStream:
    """A stream whose entries were added by up to three origins; some of them are deleted."""
    region = Region(9)
    region.mode = SEMI_STRICT
    stream = RegionalStream(region, 100, 100)
    last: dict[bytes, int] = {}
    ids = []
    for number, step in adds:
        origin = b"%d.0" % (1 + number)
        new_lane = 0 if origin in last else 1
        last[origin] = last.get(origin, 0) + 1 + step
        stream.arrive(origin, new_lane, False, last[origin], 1, ENTRY, 0, SMALL)
        ids.append((origin + b".1", (last[origin], 1)))
    for place in deleted:
        if place < len(ids):
            stream.remove_entry(*ids[place])
    return stream


def alike(stream: RegionalStream) -> Stream:
    """A plain stream with the nodes of the only lane."""
    plain = Stream(100, 100)
    if stream.lanes:
        plain.copy_entries(stream.lanes[0].log)
    return plain


def entries(stream: Stream) -> list[tuple[bytes, ID]]:
    lanes = stream.lanes if isinstance(stream, RegionalStream) else []
    found = []
    for name, log in [(lane.name, lane.log) for lane in lanes] or [(b"1.0.1", stream)]:
        for part in log.parts((0, 0), (ID_MAX, ID_MAX), 0, False):
            for number in range(part.low, part.high):
                if part.dead is None or not part.dead[number]:
                    found.append((name, (part.run.ms[number], part.run.seq[number])))
    return sorted(found, key=lambda entry: (entry[1], entry[0]))


@given(
    Adds,
    Deleted,
    st.integers(0, 30),
    st.booleans(),
    st.integers(0, 12),
    st.booleans(),
)
def test_by_length(
    adds: list[tuple[int, int]],
    deleted: set[int],
    most: int,
    approximate: bool,
    limit: int,
    whole_nodes: bool,
) -> None:
    limit = limit if approximate else 0
    stream = lanes_of(adds, deleted)
    before = entries(stream)
    reach = lanes_by_length(stream, most, approximate, limit, whole_nodes)
    removed = stream.trim_to(reach)
    left = entries(stream)
    assert len(left) == len(before) - removed == stream.length
    newest = before[len(before) - min(most, len(before)) :]
    assert set(newest) <= set(left)
    if not approximate:
        assert left == newest
    elif limit and whole_nodes:
        assert removed <= limit
    elif not limit:
        lanes = len({number for number, _ in adds})
        assert len(left) <= max(most, 0) + 3 * lanes


@given(Adds, Deleted, Bounds, st.booleans(), st.integers(0, 12), st.booleans())
def test_below_an_id(
    adds: list[tuple[int, int]],
    deleted: set[int],
    bound: ID,
    approximate: bool,
    limit: int,
    whole_nodes: bool,
) -> None:
    limit = limit if approximate else 0
    stream = lanes_of(adds, deleted)
    before = entries(stream)
    stream.trim_to(lanes_below(stream, bound, approximate, limit, whole_nodes))
    left = entries(stream)
    kept = [entry for entry in before if entry[1] >= bound]
    assert left[len(left) - len(kept) :] == kept
    if not approximate:
        assert left == kept


@given(
    st.lists(st.integers(0, 3), max_size=40),
    Deleted,
    st.one_of(st.integers(0, 30), Bounds),
    st.booleans(),
    st.integers(0, 12),
    st.booleans(),
)
def test_one_lane_is_trimmed_as_a_plain_stream_is(
    steps: list[int],
    deleted: set[int],
    where: int | ID,
    approximate: bool,
    limit: int,
    whole_nodes: bool,
) -> None:
    stream = lanes_of([(0, step) for step in steps], deleted)
    plain = alike(stream)
    limit = limit if approximate else 0
    if isinstance(where, int):
        reach = lanes_by_length(stream, where, approximate, limit, whole_nodes)
        removed = plain.trim_to_length(where, approximate, limit, whole_nodes)
    else:
        reach = lanes_below(stream, where, approximate, limit, whole_nodes)
        removed = plain.trim_below(*where, approximate, limit, whole_nodes)
    assert stream.trim_to(reach) == removed
    assert entries(stream) == entries(plain)


@given(
    st.lists(st.integers(0, 3), max_size=30),
    Deleted,
    st.integers(0, 30),
    st.one_of(st.integers(0, 30), Bounds),
    st.integers(0, 12),
    st.sampled_from([DELREF, ACKED]),
    st.booleans(),
)
def test_with_heed_to_groups_as_a_plain_stream(
    steps: list[int],
    deleted: set[int],
    read: int,
    where: int | ID,
    limit: int,
    mode: int,
    to_the_end: bool,
) -> None:
    stream = lanes_of([(0, step) for step in steps], deleted)
    stream.add_create(b"g", Create((b"1.0", 1), start_after((0, 0)), {}))
    group = stream.groups[b"g"]
    places_of(group).deliver(places_of(group).parts(stream, read) if read else [])
    plain = alike(stream)
    plain.groups[b"g"] = group.copy()
    last = places_of(group).place.get(b"1.0.1", (0, 0))
    plain.groups[b"g"].places = None
    plain.groups[b"g"].last_ms, plain.groups[b"g"].last_seq = last
    if isinstance(where, int):
        how = Trim(where, (0, 0), limit, to_the_end)
    else:
        how = Trim(-1, where, limit, to_the_end)
    found = entries_to_trim(stream, how, mode)
    for lane, entry_id in found:
        assert stream.remove_entry(lane, entry_id)
    assert trim(plain, how, mode) == len(found)
    assert entries(plain) == entries(stream)


@given(Adds, Deleted, st.integers(0, 30))
def test_with_heed_to_groups_in_several_lanes(
    adds: list[tuple[int, int]], deleted: set[int], most: int
) -> None:
    stream = lanes_of(adds, deleted)
    before = entries(stream)
    found = entries_to_trim(stream, Trim(most, (0, 0), 0, True), DELREF)
    assert found == before[: max(0, len(before) - most)]
    stream.add_create(b"g", Create((b"1.0", 1), start_after((0, 0)), {}))
    assert entries_to_trim(stream, Trim(most, (0, 0), 0, True), ACKED) == []


def test_of_entries_with_equal_ids_the_first_lane_gives_first() -> None:
    stream = lanes_of([(0, 0), (1, 0), (2, 0), (0, 0)], set())
    assert lanes_by_length(stream, 3, False, 0, False) == {b"1.0.1": (1, 1)}
    assert lanes_by_length(stream, 2, False, 0, False) == {b"1.0.1": (1, 1), b"2.0.1": (1, 1)}
    assert lanes_by_length(stream, 4, False, 0, False) == {}
    assert lanes_below(stream, (2, 0), False, 0, False) == {
        b"1.0.1": (1, 1),
        b"2.0.1": (1, 1),
        b"3.0.1": (1, 1),
    }
    assert lanes_below(stream, (1, 1), False, 0, False) == {}
