"""Streams against a plain list of entries: whatever is done, both say the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.block import Block
from headrace.storage.stream.entry_log import ElementsTooLarge, IDNotGreater, IDsExhausted
from headrace.storage.stream.frozen import FrozenStream
from headrace.storage.stream.part import Part
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Removed
from support.campaigns import drawn
from support.snapshots import make_stream, plain_stream

GREATEST = (ID_MAX, ID_MAX)
NODE_ENTRIES = 3  # small: blocks are sealed, emptied and reopened all the time

IDs = st.tuples(st.integers(0, 40), st.integers(0, 2))
Rows = st.lists(
    st.tuples(st.sampled_from([b"a", b"b"]), st.sampled_from([b"", b"1", b"x" * 70])),
    min_size=1,
    max_size=3,
)


def entries(parts: list[Part], reverse: bool = False) -> list[tuple[int, int, list[bytes]]]:
    """Return what a reader of the parts sees."""
    found = []
    for part in parts:
        numbers = range(part.low, part.high)
        for number in reversed(numbers) if reverse else numbers:
            if part.dead is None or not part.dead[number]:
                run = part.run
                found.append((run.ms[number], run.seq[number], run.row(number)))
    return found


def append_several(
    stream: Stream, now_ms: int, rows: list[list[bytes]], limits: NodeLimits
) -> list[list[bytes]]:
    """Append entries with as many words each as a pipeline does: those that can be at once."""
    requests = [[b"XADD", b"key", b"*", *row] for row in rows]
    at = 0
    while at < len(requests):
        added = stream.append_alike(now_ms, requests, at, len(requests), 3, limits)
        assert added <= len(requests) - at
        if not added:
            stream.append_next(now_ms, requests[at], 3, limits)
        at += added or 1
    return rows


class StreamMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stream = Stream(100, 100)
        self.model: list[tuple[int, int, list[bytes]]] = []
        self.last = (0, 0)
        self.added = 0
        self.max_deleted = (0, 0)

    @rule(new_id=IDs, pairs=Rows)
    def append(self, new_id: tuple[int, int], pairs: list[tuple[bytes, bytes]]) -> None:
        row = [word for pair in pairs for word in pair]
        try:
            self.stream.append(*new_id, row, 0, NodeLimits(4096, NODE_ENTRIES))
        except IDNotGreater:
            assert new_id <= self.last
            return
        assert new_id > self.last
        self.model.append((*new_id, row))
        self.last = new_id
        self.added += 1

    @rule(steps=st.integers(1, 2), pairs=Rows)
    def append_next(self, steps: int, pairs: list[tuple[bytes, bytes]]) -> None:
        self.append((self.last[0] + steps - 1, self.last[1] + 1), pairs)

    @rule(now_ms=st.integers(0, 40), several=st.lists(Rows, min_size=1, max_size=4))
    def append_several(self, now_ms: int, several: list[list[tuple[bytes, bytes]]]) -> None:
        rows = [[word for pair in pairs for word in pair] for pairs in several]
        rows = [row for row in rows if len(row) == len(rows[0])]
        for row in append_several(self.stream, now_ms, rows, NodeLimits(4096, NODE_ENTRIES)):
            self.last = (now_ms, 0) if now_ms > self.last[0] else (self.last[0], self.last[1] + 1)
            self.model.append((*self.last, row))
            self.added += 1

    @rule(which=IDs)
    def delete(self, which: tuple[int, int]) -> None:
        there = [entry for entry in self.model if entry[:2] == which]
        assert self.stream.delete(*which) == bool(there)
        if there:
            self.model.remove(there[0])
            self.max_deleted = max(self.max_deleted, which)

    @rule(data=st.data())
    def delete_one_that_is_there(self, data: st.DataObject) -> None:
        if self.model:
            entry = data.draw(st.sampled_from(self.model))
            self.delete((entry[0], entry[1]))

    @rule(most=st.integers(0, 12))
    def trim_to_length(self, most: int) -> None:
        removed = self.stream.trim_to_length(most, False, 0, True)
        assert removed == max(0, len(self.model) - most)
        del self.model[:removed]

    @rule(least=IDs)
    def trim_below(self, least: tuple[int, int]) -> None:
        removed = self.stream.trim_below(*least, False, 0, True)
        kept = [entry for entry in self.model if entry[:2] >= least]
        assert removed == len(self.model) - len(kept)
        self.model = kept

    @rule(most=st.integers(0, 12), limit=st.integers(0, 6))
    def trim_whole_nodes(self, most: int, limit: int) -> None:
        removed = self.stream.trim_to_length(most, True, limit, True)
        del self.model[:removed]
        assert not limit or removed <= limit
        assert not removed or len(self.model) >= most

    @rule()
    def copy(self) -> None:
        original = self.stream
        self.stream = original.copy()
        original.trim_to_length(0, False, 0, True)

    @rule(start=IDs, end=IDs, count=st.integers(0, 5), reverse=st.booleans())
    def read(self, start: tuple[int, int], end: tuple[int, int], count: int, reverse: bool) -> None:
        found = entries(self.stream.parts(start, end, count, reverse), reverse)
        expected = [entry for entry in self.model if start <= entry[:2] <= end]
        if reverse:
            expected.reverse()
        assert found == (expected[:count] if count else expected)

    @rule(place=IDs)
    def count_before(self, place: tuple[int, int]) -> None:
        below = [entry for entry in self.model if entry[:2] < place]
        assert self.stream.count_before(*place) == len(below)

    @invariant()
    def agrees(self) -> None:
        stream = self.stream
        assert stream.length == len(self.model)
        assert (stream.last_ms, stream.last_seq) == self.last
        assert stream.entries_added == self.added
        assert (stream.max_deleted_ms, stream.max_deleted_seq) == self.max_deleted
        assert stream.first_id() == (self.model[0][:2] if self.model else (0, 0))
        assert stream.last_entry_id() == (self.model[-1][:2] if self.model else (0, 0))
        assert entries(stream.parts((0, 0), GREATEST, 0, False)) == self.model
        assert stream.node_count() if self.model else stream.node_count() <= 1


StreamMachine.TestCase.settings = settings(max_examples=drawn(150), stateful_step_count=60)
TestStream = StreamMachine.TestCase


def filled(count: int, node_entries: int = 100) -> Stream:
    stream = Stream(100, 100)
    for number in range(1, count + 1):
        stream.append(number, 0, [b"f", b"%d" % number], 0, NodeLimits(4096, node_entries))
    return stream


TEXTS = (b"", b"v", b"0", b"-1", b"9" * 19, b"9" * 25, b":", b"x" * 63, b"y" * 64, b"7" * 64)
Values = st.sampled_from([*TEXTS, b"z" * 5000])


@settings(max_examples=drawn(400))
@given(
    st.lists(
        st.tuples(
            st.integers(0, 400),
            st.lists(st.tuples(st.integers(0, 9), Values, Values), min_size=1, max_size=8),
        ),
        max_size=8,
    ),
    st.sampled_from([0, 1, 60, 150, 400, 4096]),
    st.sampled_from([0, 1, 2, 5, 100]),
    st.integers(0, 3),
)
def test_entries_that_come_at_once_are_as_one_by_one(
    pipelines: list[tuple[int, list[tuple[int, bytes, bytes]]]],
    node_bytes: int,
    node_entries: int,
    deleted: int,
) -> None:
    at_once, by_one = Stream(100, 100), Stream(100, 100)
    limits = NodeLimits(node_bytes, node_entries)
    for now_ms, choices in pipelines:
        rows = [[b"a", one, b"other" if odd == 9 else b"b", two] for odd, one, two in choices]
        append_several(at_once, now_ms, rows, limits)
        for row in rows:
            by_one.append_next(now_ms, row, 0, limits)
        for stream in (at_once, by_one):
            for ms, seq, _ in entries(stream.parts((0, 0), GREATEST, deleted, True))[1:]:
                stream.delete(ms, seq)
        node_entries = max(0, node_entries - deleted)
        assert plain_stream(at_once) == plain_stream(by_one)


def test_what_comes_at_once_stops_in_front_of_the_last_id_there_is() -> None:
    stream = Stream(100, 100)
    stream.append(ID_MAX, ID_MAX - 3, [b"f", b"v"], 0, NodeLimits(4096, 100))
    requests = [[b"f", b"v"]] * 4
    assert stream.append_alike(5, requests, 0, 4, 0, NodeLimits(4096, 100)) == 0
    for _ in range(3):
        stream.append_next(5, requests[0], 0, NodeLimits(4096, 100))
    assert stream.append_alike(5, requests, 0, 1, 0, NodeLimits(4096, 100)) == 0
    with pytest.raises(IDsExhausted):
        stream.append_next(5, requests[0], 0, NodeLimits(4096, 100))
    assert stream.length == 4


def test_entries_of_a_sealed_block_come_back_as_they_were() -> None:
    stream = Stream(100, 100)
    rows = [[b"a", b"\x00\xff"], [b"a", b""], [b"b", b"1", b"b", b"2"], [b"a", b"x" * 5000]]
    for number, row in enumerate(rows):
        stream.append(ID_MAX if number == 3 else number, ID_MAX, row, 0, NodeLimits(0, 2))
    found = entries(stream.parts((0, 0), GREATEST, 0, False))
    assert [row for _, _, row in found] == rows
    assert found[-1][:2] == GREATEST


def test_middle_of_a_long_stream_whose_rest_was_deleted() -> None:
    stream = filled(5000, 10)
    for number in range(1, 5001):
        if number not in (1, 2500, 5000):
            assert stream.delete(number, 0)
    assert [entry[0] for entry in entries(stream.parts((2, 0), GREATEST, 0, False))] == [2500, 5000]
    assert len(stream.index.blocks) < 100, "empty places were not swept up"
    assert stream.count_before(5000, 0) == 2


def test_the_last_node_is_reopened_when_the_one_behind_it_is_gone() -> None:
    stream = Stream(100, 100)
    stream.append(1, 0, [b"f", b"x" * 60], 0, NodeLimits(100, 0))
    stream.append(2, 0, [b"f", b"x" * 60], 0, NodeLimits(100, 0))
    assert stream.node_count() == 2
    assert stream.delete(2, 0)
    stream.append(3, 0, [b"f", b""], 0, NodeLimits(100, 0))
    assert stream.node_count() == 1
    assert [entry[0] for entry in entries(stream.parts((0, 0), GREATEST, 0, False))] == [1, 3]


def test_a_half_empty_block_is_packed_anew() -> None:
    stream = filled(300)
    block = stream.index.blocks[1]
    before = len(block.payload)
    for number in range(101, 161):
        assert stream.delete(number, 0)
    assert len(block.payload) < before * 0.6
    assert [entry[0] for entry in entries(stream.parts((150, 0), (162, 0), 0, False))] == [161, 162]


def test_lower_ids_after_everything_was_deleted() -> None:
    """XSETID may take an emptied stream back."""
    stream = Stream(100, 100)
    for number in range(1000, 1300):
        stream.append(number, 0, [b"f", b"v"], 0, NodeLimits(4096, 100))
    for number in range(1299, 999, -1):
        assert stream.delete(number, 0)
    stream.last_ms = 0
    for number in range(1, 301):
        stream.append(number, 0, [b"f", b"v"], 0, NodeLimits(4096, 100))
        assert stream.contains(number, 0)
    assert stream.count_before(50, 0) == 49


def test_an_entry_that_is_too_large_changes_nothing() -> None:
    stream = filled(3)
    value = bytes(1 << 30)
    with pytest.raises(ElementsTooLarge):
        stream.append(9, 0, [b"f", value], 0, NodeLimits(4096, 100))
    assert (stream.length, stream.last_ms, stream.entries_added) == (3, 3, 3)


ODD_NUMBERS = [
    b"0", b"-0", b"00", b"007", b"-7", b"+7", b" 7", b"7 ", b"1.0", b"1e3", b"1,2", b"", b"-", b"]",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808",
    b"18446744073709551615", b"18446744073709551616", b"-9223372036854775809", b"9" * 5000,
    b"null", b"true", b"\xd9\xa1", b"0x10", b"NaN",
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_NUMBERS)
def test_values_are_the_same_bytes_after_sealing(odd: bytes) -> None:
    """A column of integers is packed as such; whatever only looks like one stays text."""
    stream = Stream(100, 100)
    rows = [
        [b"a", b"%d" % number, b"b", odd if number == 1 else b"%d" % -number, b"c", b"x", b"d", odd]
        for number in range(1, 8)
    ]
    for number, row in enumerate(rows, 1):
        stream.append(number, 0, row, 0, NodeLimits(0, 3))
    stream.append(100, 0, [b"seals", b"the rest"], 0, NodeLimits(0, 1))
    found = [
        part.run.row(number)
        for part in stream.parts((0, 0), (50, 0), 0, False)
        for number in range(part.low, part.high)
    ]
    assert found == rows
    assert not any(block.is_open() for block in stream.index.blocks)


def test_integers_take_less_room() -> None:
    sizes = []
    for text in (b"%d", b"x%d"):
        stream = Stream(100, 100)
        for number in range(101):
            stream.append(number + 1, 0, [b"f", text % (number * 77_777)], 0, NodeLimits(0, 100))
        sizes.append(len(stream.index.blocks[0].payload))
    assert sizes[0] < 0.75 * sizes[1]


def test_ids_of_more_than_62_bits_are_found() -> None:
    stream = Stream(100, 100)
    places = [(2**62 - 2, 0), (2**62 - 1, 0), (2**62, 7), (2**62, 8), (2**63, 0), (ID_MAX, 0)]
    for ms, seq in places:
        stream.append(ms, seq, [b"f", b"v"], 0, NodeLimits(0, 1))  # a block for each
    for number, (ms, seq) in enumerate(places):
        assert stream.contains(ms, seq)
        assert not stream.contains(ms, seq + 1) or (ms, seq + 1) in places
        assert stream.count_before(ms, seq) == number
        found = entries(stream.parts((ms, seq), GREATEST, 0, False))
        assert [entry[:2] for entry in found] == places[number:]


@pytest.mark.parametrize("deleted", [0, 1, 3])
def test_many_nodes_are_cut_off_at_once_to_the_same_effect(deleted: int) -> None:
    def made() -> Stream:
        stream = make_stream(((ms, 1, [b"f", b"%d" % ms]) for ms in range(1, 401)), 3)
        for ms in range(1, 401):
            if ms % 4 < deleted:
                stream.delete(ms, 1)
        return stream

    for edge in range(0, 402, 7):
        for by_id in (False, True):
            cut_one, other = made(), made()
            if by_id:
                cut = cut_one.cut_below(edge, 0)
                removed = cut_one.trim_below(edge, 0, False, 0, True)
                assert removed + entries_of(cut) == other.trim_below(edge, 0, False, 0, True)
            else:
                cut = cut_one.cut_to_length(edge)
                removed = cut_one.trim_to_length(edge, False, 0, True)
                assert removed + entries_of(cut) == other.trim_to_length(edge, False, 0, True)
            assert plain_stream(cut_one) == plain_stream(other)
    assert made().cut_to_length(390) is None
    frozen = made()
    FrozenStream(frozen).register()
    assert frozen.cut_to_length(0) is None


def entries_of(cut: Removed[Block] | None) -> int:
    return 0 if cut is None else cut.count
