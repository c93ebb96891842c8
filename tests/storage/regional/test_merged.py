"""Lanes read together, against one sorted list of all their entries."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from librt.vecs import vec
from mypy_extensions import i64

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.sharing import SEMI_STRICT
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.delivery import Lookup
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.ranks import count_between, share_by_rows, share_evenly
from headrace.storage.stream.run import ID_MAX
from headrace.storage.vectors import lane_key
from support.campaigns import drawn

ID = tuple[int, int]
GREATEST = (ID_MAX, ID_MAX)
SMALL = NodeLimits(4096, 3)  # blocks are sealed, emptied and reopened all the time

IDs = st.tuples(st.integers(0, 30), st.integers(0, 2))
Steps = st.tuples(st.integers(0, 4), st.integers(1, 3))
Rows = st.lists(st.sampled_from([b"a", b"b", b"x" * 60]), min_size=2, max_size=4).filter(
    lambda row: len(row) % 2 == 0
)
Origins = st.sampled_from([b"1.0", b"2.0", b"3.0", b"10.0"])


class Model(NamedTuple):
    """An entry: what it is found by, and what is in it."""

    entry_id: ID
    lane: tuple[int, int, int]
    row: list[bytes]


def rows_of(parts: list[Part], reverse: bool = False) -> list[tuple[ID, list[bytes]]]:
    """Return what a reader of the parts sees."""
    found = []
    for part in parts:
        for number in (part.low, part.high - 1):
            assert part.dead is None or not part.dead[number]
        numbers = range(part.low, part.high)
        for number in reversed(numbers) if reverse else numbers:
            if part.dead is None or not part.dead[number]:
                run = part.run
                found.append(((run.ms[number], run.seq[number]), run.row(number)))
    return found


class MergedMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.region = Region(1)
        self.region.mode = SEMI_STRICT
        self.stream = RegionalStream(self.region, 100, 100)
        self.model: list[Model] = []
        self.last: dict[bytes, ID] = {}

    @rule(origin=Origins, step=Steps, row=Rows)
    def arrive(self, origin: bytes, step: tuple[int, int], row: list[bytes]) -> None:
        ms, seq = self.last.get(origin, (0, 0))
        ms, seq = (ms + step[0], step[1]) if step[0] else (ms, seq + step[1])
        new_lane = 0 if origin in self.last else 1
        assert self.stream.arrive(origin, new_lane, False, ms, seq, row, 0, SMALL)
        self.last[origin] = (ms, seq)
        self.model.append(Model((ms, seq), lane_key(origin + b".1"), row))
        self.model.sort()

    @rule(entry_id=IDs)
    def delete(self, entry_id: ID) -> None:
        left = [entry for entry in self.model if entry.entry_id != entry_id]
        assert self.stream.delete(*entry_id) == (len(left) < len(self.model))
        self.model = left

    @rule(reach=st.dictionaries(Origins, IDs, min_size=1))
    def trim(self, reach: dict[bytes, ID]) -> None:
        vector = {}
        for origin, entry_id in reach.items():
            vector[origin + b".1"] = min(entry_id, self.last.get(origin, (0, 0)))
        left = [
            entry
            for entry in self.model
            if entry.entry_id > vector.get(b"%d.%d.%d" % entry.lane, (0, 0))
        ]
        assert self.stream.trim_to(vector) == len(self.model) - len(left)
        self.model = left

    @rule(start=IDs, end=IDs | st.just(GREATEST), count=st.integers(0, 7), reverse=st.booleans())
    def read(self, start: ID, end: ID, count: int, reverse: bool) -> None:
        wanted = [(e.entry_id, e.row) for e in self.model if start <= e.entry_id <= end]
        if reverse:
            wanted.reverse()
        parts = self.stream.parts(start, end, count, reverse)
        assert rows_of(parts, reverse) == (wanted[:count] if count else wanted)
        assert count_between(self.stream, start, end) == len(wanted)

    @rule(start=IDs, count=st.integers(0, 7), most_bytes=st.integers(1, 300))
    def read_so_many_bytes(self, start: ID, count: int, most_bytes: int) -> None:
        wanted = [(e.entry_id, e.row) for e in self.model if start <= e.entry_id]
        wanted = wanted[:count] if count else wanted
        parts = self.stream.parts(start, GREATEST, count, False, most_bytes)
        found = rows_of(parts)
        assert found == wanted[: len(found)]
        sizes = [part.least_bytes() for part in parts]
        assert sum(sizes) >= most_bytes or found == wanted
        assert sum(sizes[:-1]) < most_bytes

    @rule(entry_id=IDs)
    def look_for_one(self, entry_id: ID) -> None:
        alike = [entry for entry in self.model if entry.entry_id == entry_id]
        part = self.stream.one(*entry_id)
        seen = [] if part is None else rows_of([part])
        assert seen == [(entry_id, entry.row) for entry in alike[:1]]
        assert [lane.key for lane in self.stream.holders(*entry_id)] == [e.lane for e in alike]
        assert self.stream.contains(*entry_id) == bool(alike)
        before = [entry for entry in self.model if entry.entry_id < entry_id]
        assert self.stream.count_before(*entry_id) == len(before)
        after = len(self.model) - len(before) - len(alike)
        assert self.stream.has_after(*entry_id) == (after > 0)

    @rule(ids=st.sets(IDs, min_size=1, max_size=5))
    def look_up_pending(self, ids: set[ID]) -> None:
        nacks = [Nack(ms, seq, None, 0) for ms, seq in sorted(ids)]
        lookup = Lookup(self.stream, nacks)
        for nack in nacks:
            part = lookup.part_of(nack)
            rows = [entry.row for entry in self.model if entry.entry_id == (nack.ms, nack.seq)]
            assert ([] if part is None else [rows_of([part])[0][1]]) == rows[:1]

    @rule(start=IDs, rows=st.integers(1, 6))
    def share(self, start: ID, rows: int) -> None:
        ids = [entry.entry_id for entry in self.model if entry.entry_id >= start]
        found = share_by_rows(self.stream, start, GREATEST, rows, 0)
        cut = [ids[at : at + rows] for at in range(0, len(ids), rows)]
        assert [(s.first, s.last, s.count) for s in found] == [
            (part[0], part[-1], len(part)) for part in cut
        ]
        assert sum(s.count for s in share_evenly(self.stream, start, GREATEST, 3)) == len(ids)

    @rule(ms=st.integers(0, 30))
    def look_ahead(self, ms: int) -> None:
        self.stream.look_ahead(vec[i64]([ms]))
        assert not self.stream.is_scattered()

    @invariant()
    def has_the_ends(self) -> None:
        ids = [entry.entry_id for entry in self.model]
        assert self.stream.length == len(ids)
        assert self.stream.first_id() == (ids[0] if ids else (0, 0))
        assert self.stream.last_entry_id() == (ids[-1] if ids else (0, 0))
        assert self.stream.top() == max(self.last.values(), default=(0, 0))
        assert self.stream.seen() == {name + b".1": last for name, last in self.last.items()}
        keys = [lane.key for lane in self.stream.lanes]
        assert keys == sorted(keys)


MergedMachine.TestCase.settings = settings(max_examples=drawn(150), stateful_step_count=50)
TestMerged = MergedMachine.TestCase


def finely_mixed(counts: int) -> RegionalStream:
    """Two lanes whose entries alternate."""
    stream = RegionalStream(Region(1), 100, 100)
    for number in range(counts):
        origin = b"1.0" if number % 2 else b"2.0"
        new_lane = 1 if number < 2 else 0
        words = [b"f", b"%d" % number]
        stream.arrive(origin, new_lane, False, 1 + number, 1, words, 0, NodeLimits(4096, 100))
    return stream


def test_reads_of_a_long_mixed_stream() -> None:
    stream = finely_mixed(3000)
    wanted = [((1 + number, 1), [b"f", b"%d" % number]) for number in range(3000)]
    assert rows_of(stream.parts((0, 0), GREATEST, 0, False)) == wanted
    assert rows_of(stream.parts((0, 0), GREATEST, 0, True), True) == wanted[::-1]
    for count in (1, 2, 3, 99, 100, 101, 1000):
        assert rows_of(stream.parts((500, 0), GREATEST, count, False)) == wanted[499 : 499 + count]
        back = rows_of(stream.parts((0, 0), (2000, 5), count, True), True)
        assert back == wanted[2000 - count : 2000][::-1]
    shares = share_evenly(stream, (0, 0), GREATEST, 7)
    assert sum(share.count for share in shares) == 3000
    assert shares[0].first == (1, 1)
    assert shares[-1].last == (3000, 1)
