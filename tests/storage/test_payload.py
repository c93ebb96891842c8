"""The sealed form of blocks: what is read out of the middle is what was put in."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import MsgspecError, msgpack

from headrace.storage.stream.appending import append, open_block
from headrace.storage.stream.block import Block
from headrace.storage.stream.packing import pack
from headrace.storage.stream.payload import (
    SHARED_MOST,
    UNKNOWN,
    count_ids,
    number_of,
    unpack,
    unpack_some,
)
from headrace.storage.stream.run import Run

ID_MAX = 2**64 - 1
TEXTS = st.one_of(
    st.binary(max_size=6),
    st.integers(-(2**63), 2**64 - 1).map(lambda number: b"%d" % number),
    st.integers(-200, 70_000).map(lambda number: b"%d" % number),
    st.sampled_from([255, 256, 65_535, 65_536]).map(lambda size: b"x" * size),
)
LONG = st.sampled_from([1, 8, 127, 128, 255, 256]).flatmap(
    lambda size: st.lists(st.binary(min_size=size, max_size=size), min_size=1, max_size=5)
)
ALIKE = st.tuples(
    st.sampled_from([7, 8, 9, 127, 128, 300]).map(lambda size: b"h" * size), LONG
).map(lambda drawn: [drawn[0] + text for text in drawn[1]])
COLUMN = st.one_of(LONG, ALIKE, st.lists(TEXTS, min_size=1, max_size=5))
STEPS = st.tuples(
    st.sampled_from([0, 0, 0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32]),
    st.sampled_from([0, 1, 127, 128, 255, 256, 65_536, 2**32]),
)
SOME = [True, True, False, False] * 10
BOUNDS = st.tuples(st.integers(-2, 45), st.sampled_from([-1, 0, 1]))


def run_of(steps: list[tuple[int, int]], *columns: list[bytes]) -> Run:
    """A run with the IDs that these steps lead to, the values of each field taken in turn."""
    run = Run([b"name:%d" % number for number in range(len(columns))])
    ms, seq = 0, 0
    for number, (ms_step, seq_step) in enumerate(steps):
        ms, seq = (ms + ms_step, seq_step) if ms_step else (ms, seq + seq_step + 1)
        run.ms.append(ms)
        run.seq.append(seq)
        run.flat += [texts[number % len(texts)] for texts in columns]
    return run


def assert_shortest(packed: bytes) -> None:
    """Fail unless all that a part of a payload holds is written as briefly as msgpack allows."""
    assert msgpack.encode(msgpack.decode(packed)) == packed


def near(run: Run, bound: tuple[int, int]) -> tuple[int, int]:
    """An ID at an entry or beside it, or below all of them, or above."""
    number, aside = bound
    if number < 0:
        return 0, 0
    if number >= len(run.ms):
        return ID_MAX, ID_MAX
    return run.ms[number], max(0, run.seq[number] + aside)


@given(
    st.lists(STEPS, min_size=1, max_size=40),
    st.lists(COLUMN, min_size=1, max_size=4),
    BOUNDS,
    BOUNDS,
    st.integers(1, 45),
    st.booleans(),
    st.none() | st.lists(st.booleans(), min_size=40, max_size=40),
)
@example([(0, 0)] * 40, [[b"7"]], (3, 0), (45, 0), 10, False, None)
@example([(0, 0)] * 40, [[b"7"], [b"x"]], (-1, 0), (30, 0), 10, True, None)
@example([(0, 0)] * 40, [[b"7"], [b"x"]], (3, 0), (45, 0), 9, False, SOME)
@example([(0, 0)] * 40, [[b"7"], [b"x"]], (3, 0), (45, 0), 9, True, SOME)
@settings(max_examples=300)
def test_some_of_a_payload(
    steps: list[tuple[int, int]],
    columns: list[list[bytes]],
    first: tuple[int, int],
    last: tuple[int, int],
    most: int,
    reverse: bool,
    deleted: list[bool] | None,
) -> None:
    run = run_of(steps, *columns)
    payload, ids_bytes = pack(run)
    assert_shortest(payload[:ids_bytes])
    assert_shortest(payload[ids_bytes:])
    start, end = near(run, first), near(run, last)
    ids = list(zip(run.ms, run.seq, strict=True))
    dead = None if deleted is None else bytearray(deleted[: len(ids)])
    wanted = [number for number, found in enumerate(ids) if start <= found <= end]
    live = [number for number in wanted if dead is None or not dead[number]]
    if len(live) >= most:  # from one live entry to the other
        live = live[-most:] if reverse else live[:most]
        wanted = [n for n in wanted if (n >= live[0] if reverse else n <= live[-1])]
    some = unpack_some(payload, ids_bytes, start, end, most, reverse, dead)
    assert some is not None
    assert list(zip(some.ms, some.seq, strict=True)) == [ids[number] for number in wanted]
    assert not wanted or some.first == wanted[0]
    taken = [some.row(number) for number in range(len(some.ms))]
    assert taken == [run.row(number) for number in wanted]
    for wanted_id in (start, end, *ids[:3]):
        found = ids.index(wanted_id) if wanted_id in ids else -1
        assert number_of(payload, *wanted_id) == found
    whole = unpack(payload, ids_bytes)
    assert (whole.ms, whole.seq, whole.names, whole.flat) == (run.ms, run.seq, run.names, run.flat)
    assert count_ids(payload) == len(run.ms)


@pytest.mark.parametrize("width", [1, 16, 40, 70_000])
def test_many_names(width: int) -> None:
    run = run_of([(1, 0)] * 5, *([[b"1"], [b"a", b"bc"], [b"d"]] * width)[:width])
    some = unpack_some(*pack(run), (run.ms[1], 0), (run.ms[3], 0), 2, True)
    assert some is not None
    assert [some.row(0), some.row(1)] == [run.row(2), run.row(3)]


NAMED = [b"name:0", b"name:1", b"name:2"]


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        (([b"ab", b"cd"],), [NAMED[:1], [2], b"abcdab" + b"cdabcd", [], []]),
        (([b"ab", b""],), [NAMED[:1], [b"ab", b""] * 3]),
        (([b""],), [NAMED[:1], [b""] * 6]),
        (([b"7", b"8"],), [NAMED[:1], [7, 8] * 3, [0]]),
        (([b"7", b"x"],), [NAMED[:1], [1], b"7x7x7x", [], []]),
        (([b"7"],), [NAMED[:1], [-1, 0], b"7", [], []]),
        (([b"x" * 32],), [NAMED[:1], [-32, 0], b"x" * 32, [], []]),
        (([b"x" * 33], [b"y"]), [NAMED[:2], [-33, 0, -1, 0], b"x" * 33 + b"y", [], []]),
        (([b"x" * 129], [b"y"]), [NAMED[:2], [-129, 0, -1, 0], b"x" * 129 + b"y", [], []]),
        (
            ([b"ab", b"cd"], [b"x" * 10_000], [b"y", b"zz"]),
            [NAMED, [2, -10_000, 0, 0], b"x" * 10_000 + b"abcd" * 3, [b"y", b"zz"] * 3, []],
        ),
        (
            ([b"7", b"8"], [b"go"], [b"ab", b"cd"]),
            [NAMED, [0, -2, 0, 2], b"go" + b"abcd" * 3, [7, 8] * 3, [0]],
        ),
        (([b"shared: a", b"shared: b"],), [NAMED[:1], [-8, 1], b"shared: " + b"ab" * 3, [], []]),
        (
            ([b"shared: a12", b"shared: a13", b"shared: b14"], [b"x", b"yy"], [b"1", b"2"], [b"z"]),
            [
                [*NAMED, b"name:3"],
                [-8, 3, 0, 0, -1, 0],
                b"shared: " + b"z" + b"a12a13b14" * 2,
                [b"x", 1, b"yy", 2] * 3,
                [2],
            ],
        ),
        (([b"share: a", b"share: b"],), [NAMED[:1], [8], b"share: ashare: b" * 3, [], []]),
        (
            ([b"shared: " + b"a" * 24, b"shared: " + b"b" * 24],),
            [NAMED[:1], [-8, 24], b"shared: " + (b"a" * 24 + b"b" * 24) * 3, [], []],
        ),
        (
            ([b"shared: " + b"a" * 28, b"shared: " + b"b" * 28],),
            [NAMED[:1], [36], (b"shared: " + b"a" * 28 + b"shared: " + b"b" * 28) * 3, [], []],
        ),
        (
            ([b"20261124185010", b"20261124185011"], [b"2026-11-24T18", b"2026-11-24T19"]),
            [
                NAMED[:2],
                [0, -12, 1],
                b"2026-11-24T1" + b"89" * 3,
                [20261124185010, 20261124185011] * 3,
                [0],
            ],
        ),
        (([b"7", b"8"], [b"9"]), [NAMED[:2], [0, -1, 0], b"9", [7, 8] * 3, [0]]),
        (([b"x", b"yy"], [b"ab", b"cd"]), [NAMED[:2], [0, 2], b"abcd" * 3, [b"x", b"yy"] * 3, []]),
        (([b"7", b"8"], [b"ab", b"cd"]), [NAMED[:2], [0, 2], b"abcd" * 3, [7, 8] * 3, [0]]),
        (
            ([b"x", b"yy"], [b"ab", b"cd"], [b"-1", b"-2"]),
            [NAMED, [0, 2, 0], b"abcd" * 3, [b"x", -1, b"yy", -2] * 3, [2]],
        ),
        (
            ([b"%d" % 2**64, b"1"], [b"ab", b"cd"]),
            [NAMED[:2], [0, 2], b"abcd" * 3, [b"%d" % 2**64, b"1"] * 3, []],
        ),
    ],
)
def test_values_of_one_length_stand_apart(
    columns: tuple[list[bytes], ...], values: list[object]
) -> None:
    run = run_of([(1, 0)] * 6, *columns)
    payload, ids_bytes = pack(run)
    assert msgpack.decode(payload[ids_bytes:]) == values
    assert unpack(payload, ids_bytes).flat == run.flat


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_few_values_do_not(size: int) -> None:
    payload, ids_bytes = pack(run_of([(1, 0)] * size, [b"ab"], [b"cd", b"ef"]))
    assert len(msgpack.decode(payload[ids_bytes:])) == (2 if size < 4 else 5)


@pytest.mark.parametrize(
    "values",
    [
        [NAMED[:1], [2], b"abcdef", [], []],
        [NAMED[:1], [2], b"abcdefghi", [], []],
        [NAMED[:1], [-2], b"", [], []],
        [NAMED[:1], [-2, 0], b"abc", [], []],
        [NAMED[:1], [2, -2], b"abcdef", [], []],
        [NAMED[:1], [-2, -1], b"ab", [], []],
        [NAMED[:1], [-9, -2], b"a", [], []],
        [NAMED[:2], [2, -1, 0], b"abcdefgh", [], []],
        [NAMED[:2], [2, 0], b"abcdefgh", [b"x"] * 3, []],
        [NAMED[:2], [2, 0], b"abcdefgh", [b"x"] * 5, []],
        [NAMED[:2], [2], b"abcdefgh", [], []],
        [NAMED[:1], [2, 0], b"abcdefgh", [b"x"] * 4, []],
        [NAMED[:1], [-2, -2, 0], b"abab", [], []],
        [NAMED[:1], [-SHARED_MOST // 4 - 1, 0], b"x" * (SHARED_MOST // 4 + 1), [], []],
    ],
)
def test_texts_of_other_lengths_are_refused(values: list[object]) -> None:
    payload, ids_bytes = pack(run_of([(1, 0)] * 4, [b"ab"]))
    with pytest.raises((ValueError, IndexError)):
        unpack(payload[:ids_bytes] + msgpack.encode(values), ids_bytes)


def test_only_so_much_stands_once() -> None:
    """A payload that others made may not become a thousand times as large."""
    for most in (SHARED_MOST // 8, SHARED_MOST // 8 + 1):
        run = run_of([(1, 0)] * 8, [b"x" * (most - 2)], [b"up"])
        payload, ids_bytes = pack(run)
        stands_once = most == SHARED_MOST // 8
        assert (len(payload) < 2 * most) == stands_once
        assert unpack(payload, ids_bytes).flat == run.flat
        lengths = msgpack.decode(payload[ids_bytes:])[1]
        assert lengths == ([2 - most, 0, -2, 0] if stands_once else [most - 2, 2])


@pytest.mark.parametrize(
    "values", [[NAMED[:1], [-1, 0], b"x", [], []], [NAMED[:1], [0], b"", [], []]]
)
def test_entries_that_are_not_there_are_not_made_room_for(values: list[object]) -> None:
    ids = b"\xdd\xff\xff\xff\xfe"
    with pytest.raises(MsgspecError):
        unpack(ids + msgpack.encode(values), len(ids))


@pytest.mark.parametrize("great", [(2**61, 0), (5, 2**61), (2**63, 1), (ID_MAX, ID_MAX)])
def test_very_great_ids_are_left_to_the_whole(great: tuple[int, int]) -> None:
    run = run_of([(1, 0)] * 3, [b"a"])
    run.ms[2], run.seq[2] = great
    assert unpack_some(*pack(run), (0, 0), (ID_MAX, ID_MAX), 3, False) is None
    below = unpack_some(*pack(run), (0, 0), (ID_MAX, ID_MAX), 2, False)
    assert below is not None
    assert below.ms == run.ms[:2]
    assert number_of(pack(run)[0], run.ms[0], run.seq[0]) == 0
    assert number_of(pack(run)[0], *great) == UNKNOWN


def test_entries_with_names_of_their_own_are_left_to_the_whole() -> None:
    block = open_block(1, 0, [b"a", b"1"], 0)
    append(block, 1, 0, [b"a", b"1"], 0)
    append(block, 2, 0, [b"b", b"2"], 0)
    block.seal()
    assert unpack_some(block.payload, int(block.ids_bytes), (0, 0), (2, 0), 2, False) is None
    found = block.some((2, 0), (2, 0), 1, False)
    assert found.row(found.position(2, 0)) == [b"b", b"2"]


def block_of(count: int) -> Block:
    block = open_block(1, 0, [b"a", b"0"], 0)
    for number in range(count):
        append(block, 1 + number, 0, [b"a", b"%d" % number], 0)
    block.seal()
    return block


def test_a_block_is_decoded_whole_when_it_is_read_again_and_again() -> None:
    block = block_of(100)
    sizes = [len(block.some((50, 0), (60, 0), 5, False).ms) for _ in range(4)]
    assert sizes == [5, 5, 100, 100]
    for _ in range(8):  # others take its place
        block_of(10).some((2, 0), (2, 0), 1, False)
    assert block.run is None
    assert len(block.some((50, 0), (60, 0), 5, True).ms) == 5


@pytest.mark.parametrize("was_read", [False, True])
def test_a_block_stays_decoded_where_it_was_read_before_it_was_sealed(was_read: bool) -> None:
    block = open_block(1, 0, [b"a", b"0"], 0)
    for number in range(10):
        append(block, 1 + number, 0, [b"a", b"%d" % number], 0)
    block.bury(0)
    if was_read:
        block.some((2, 0), (3, 0), 1, False)
    block.seal()
    assert (block.run is not None) is was_read
    assert block.some((1, 0), (5, 0), 5, False).ms[0] == 2, "the dead ones are not packed"
    for _ in range(8):  # others take its place
        block_of(10).some((2, 0), (2, 0), 1, False)
    assert block.run is None
    assert block.some((1, 0), (5, 0), 5, False).row(1) == [b"a", b"2"]


def test_what_was_deleted_is_passed_over() -> None:
    block = block_of(100)
    for number in (0, 49, 51, 52):
        block.bury(number)
    run = block.some((50, 0), (60, 0), 5, False)
    assert run.ms == [50, 51, 52, 53, 54, 55, 56, 57]
    assert block.dead_of(run) == bytearray([1, 0, 1, 1, 0, 0, 0, 0])
    found = [block.number_in(run, ms, 0) for ms in (50, 51, 52, 53, 54)]
    assert found == [-1, 1, -1, -1, 4]


def test_an_entry_is_found_in_a_block_that_is_decoded_only_when_asked_often() -> None:
    block = block_of(100)
    block.bury(7)
    found = []
    for ms in (8, 9, 8, 100, 101):
        found.append((block.number_of(ms, 0), block.run is not None))
    assert found == [(-1, False), (8, False), (-1, True), (99, True), (-1, True)]


@pytest.mark.parametrize("size", [1, 7, 8, 32_767, 32_768])
@pytest.mark.parametrize("step", [(0, 0), (1, 3), (2**40, 0)])
def test_ids_of_many_entries(size: int, step: tuple[int, int]) -> None:
    run = run_of([step] * size, [b"v"])
    payload, ids_bytes = pack(run)
    assert_shortest(payload[:ids_bytes])
    assert count_ids(payload) == size
    read = unpack(payload, ids_bytes)
    assert (read.ms, read.seq) == (run.ms, run.seq)


def test_streams_with_the_same_names_share_them() -> None:
    first = open_block(1, 0, [b"a", b"1", b"b", b"2"], 0)
    second = open_block(1, 0, [b"XADD", b"a", b"3", b"b", b"4"], 1)
    other = open_block(1, 0, [b"a", b"1"], 0)
    assert first.run is not None
    assert second.run is not None
    assert other.run is not None
    assert second.run.names is first.run.names
    assert other.run.names == [b"a"]
    append(second, 1, 0, [b"a", b"3", b"b", b"4"], 0)
    append(second, 2, 0, [b"c", b"5"], 0)
    assert second.run.rows == [[b"a", b"3", b"b", b"4"], [b"c", b"5"]]
    assert first.run.names == [b"a", b"b"]
