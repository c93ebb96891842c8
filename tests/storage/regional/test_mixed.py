"""Lanes whose entries alternate are read as one list, whatever their fields and gaps are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.merge import lane_of, reached_by
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.run import ID_MAX

ID = tuple[int, int]
ROWS = st.sampled_from([[b"f", b"1"], [b"f", b"2"], [b"f", b"1", b"g", b"2"], [b"h", b"3"]])
ENTRIES = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 3), ROWS, st.booleans()), max_size=60
)


def stream_of(
    entries: list[tuple[int, int, list[bytes], bool]], node: int
) -> tuple[RegionalStream, list[tuple[ID, bytes, list[bytes]]]]:
    """A stream of lanes, and all that is to be read of it."""
    stream = RegionalStream(Region(1), 100, 100)
    wanted: list[tuple[ID, tuple[int, int, int], bytes, list[bytes]]] = []
    last = dict.fromkeys((1, 2, 3), 0)
    for region, gap, row, dies in entries:
        ms = last[region] + gap + 1
        first = not last[region]
        last[region] = ms
        origin = b"%d.0" % region
        stream.arrive(origin, 1 if first else 0, False, ms, region, row, 0, NodeLimits(0, node))
        lane = stream.current(origin)
        assert lane is not None
        if dies:
            stream.remove_entry(lane.name, (ms, region))
        else:
            wanted.append(((ms, region), lane.key, lane.name, row))
    wanted.sort(key=lambda entry: entry[:2])
    return stream, [(entry_id, name, row) for entry_id, _, name, row in wanted]


@given(ENTRIES, st.integers(1, 9), st.integers(0, 20))
def test_alternating_lanes_are_one_list(
    entries: list[tuple[int, int, list[bytes], bool]], node: int, count: int
) -> None:
    stream, wanted = stream_of(entries, node)
    found: list[tuple[ID, bytes, list[bytes]]] = []
    parts = stream.parts((0, 0), (ID_MAX, ID_MAX), count, False)
    several = len(stream.filled_lanes()) > 1
    for part in parts:
        for number in range(part.low, part.high):
            if part.dead is None or not part.dead[number]:
                name = lane_of(part, number).name if several else wanted[len(found)][1]
                entry_id = (part.run.ms[number], part.run.seq[number])
                found.append((entry_id, name, part.run.row(number)))
    wanted = wanted[:count] if count else wanted
    assert found == wanted
    if several:
        assert reached_by(parts) == {name: entry_id for entry_id, name, _ in wanted}
