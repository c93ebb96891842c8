"""Long lanes are joined by blocks, in pieces between which they can be read."""

from __future__ import annotations

from random import Random

import pytest

from headrace.persistence.forms.stream.form import check_stream
from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.join import Join
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.run import ID_MAX

SMALL_NODES = NodeLimits(4096, 4)


def long_lane(origin: bytes, upto: int, gone: set[int]) -> RegionalStream:
    """A stream of region 9 with a lane of many blocks, of which some entries are gone."""
    stream = RegionalStream(Region(9), 100, 100)
    for ms in range(1, upto + 1):
        stream.arrive(origin, int(ms == 1), False, ms, 2, [b"f", b"%d" % ms], 0, SMALL_NODES)
    lane = stream.lane(origin + b".1")
    for ms in gone:
        stream.remove_entry(lane.name, (ms, 2))
    return stream


@pytest.mark.parametrize(("mine_upto", "copy_upto"), [(50, 203), (203, 50), (102, 103), (0, 99)])
@pytest.mark.parametrize("seed", range(6))
def test_blocks_come_as_they_are(mine_upto: int, copy_upto: int, seed: int) -> None:
    """Whatever is gone on either side, in the middle of blocks or as whole ones."""
    random = Random(seed)
    share = random.choice((0.0, 0.1, 0.9))
    my_gone = {ms for ms in range(1, mine_upto + 1) if random.random() < share}
    their_gone = {ms for ms in range(1, copy_upto + 1) if random.random() < share}
    mine = long_lane(b"2.0", mine_upto, my_gone)
    copy = long_lane(b"2.0", copy_upto, their_gone)
    joining = Join(mine, copy, {b"2.0": mine_upto}, {b"2.0": copy_upto}, SMALL_NODES)
    pieces = 1
    while joining.step():
        assert mine.length == sum(lane.log.length for lane in mine.lanes)
        assert mine.plain().length == mine.length  # it can be read
        pieces += 1
    gone = my_gone | their_gone
    expected = [ms for ms in range(1, max(mine_upto, copy_upto) + 1) if ms not in gone]
    lane = mine.lane(b"2.0.1")
    check_stream(lane.log.copy())
    rows = [
        (part.run.ms[number], part.run.row(number))
        for part in mine.parts((0, 0), (ID_MAX, ID_MAX), 0, False)
        for number in range(part.low, part.high)
        if part.dead is None or not part.dead[number]
    ]
    assert rows == [(ms, [b"f", b"%d" % ms]) for ms in expected]
    assert lane.last() == (max(mine_upto, copy_upto), 2)
    assert lane.log.entries_added == max(mine_upto, copy_upto)
    assert mine.length == len(expected)
    if mine_upto > 1:
        assert pieces > 2
    mine.arrive(b"2.0", 0, False, 1000, 2, [b"f", b"v"], 0, SMALL_NODES)
    assert mine.length == len(expected) + 1
    check_stream(lane.log.copy())
