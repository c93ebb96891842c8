"""Packed replies: the bytes that are sent, and the plain values that they are read back as."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.packing import (
    NOT_SHOWN,
    Constant,
    PackedArray,
    Packer,
    SizeLimit,
    StreamsReply,
    all_unpacked,
    ids_in_sequence,
    packed_id,
    packed_replies,
    repeated,
    unpacked,
)
from headrace.protocol.replies import (
    NULL_ARRAY,
    OK,
    QUEUED,
    Attributed,
    BigNumber,
    Decimal,
    ErrorReply,
    Map,
    Packed,
    PackedReplies,
    Push,
    Replies,
    Set,
    Status,
    Verbatim,
    encode,
)
from headrace.protocol.sequences import SequenceTexts
from support.client import parse

ID_MAX = 2**64 - 1
Halves = st.integers(0, ID_MAX)
Edges = st.sampled_from([0, 1, 999, 1000, 1001, 1023, 1024, 2**62 - 1, 2**62, ID_MAX])
IDS = st.tuples(Halves | Edges, Halves | Edges)
WORDS = st.binary(max_size=12) | st.sampled_from([b"", b"\r\n", b"*1\r\n", b"x" * 1024])
BOTH = pytest.mark.parametrize("resp3", [False, True])

Plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(Map, st.lists(st.tuples(WORDS, inner), max_size=3))
        | st.builds(Set, st.lists(inner, max_size=3))
    ),
    max_leaves=12,
)


def id_text(place: tuple[int, int]) -> bytes:
    return b"%d-%d" % place


@given(st.lists(IDS, max_size=20))
def test_ids_are_bulk_strings(ids: list[tuple[int, int]]) -> None:
    out = Packer(False)
    for ms, seq in ids:
        out.id(ms, seq)
    assert all_unpacked(out.replies()) == [id_text(place) for place in ids]
    for ms, seq in ids:
        assert packed_id(ms, seq).wire == encode(id_text((ms, seq)))


@given(
    ms=Halves,
    first=st.integers(0, 1200) | Edges,
    count=st.integers(0, 300),
    step=st.sampled_from([1, 16]),
)
def test_ids_in_sequence_are_one_reply_each(ms: int, first: int, count: int, step: int) -> None:
    seqs = range(first, min(first + count * step, ID_MAX), step)
    found = ids_in_sequence(ms, first, len(seqs), step)
    assert found.wire == b"".join(encode(id_text((ms, seq))) for seq in seqs)
    assert all_unpacked(found) == [id_text((ms, seq)) for seq in seqs]


@given(value=Plain, resp3=st.booleans())
def test_what_is_read_back_is_written_alike(value: object, resp3: bool) -> None:
    wire = encode(value, resp3)
    assert encode(unpacked(Packed(wire)), resp3) == wire


@given(Plain)
def test_values_of_resp3_come_back_as_they_were(value: object) -> None:
    assert shape(unpacked(Packed(encode(value, True)))) == shape(value)


def shape(value: object) -> object:
    """``value`` in a form that compares."""
    if isinstance(value, Map):
        return ("map", [(shape(name), shape(each)) for name, each in value.pairs])
    if isinstance(value, Set):
        return ("set", [shape(item) for item in value.items])
    if isinstance(value, list):
        return [shape(item) for item in value]
    return (type(value), value)


@pytest.mark.parametrize(
    "value",
    [
        OK,
        ErrorReply(b"ERR no"),
        NULL_ARRAY,
        Decimal(b"1.5"),
        BigNumber(2**70),
        BigNumber(-(2**70)),
        Verbatim(b"# hi\r\n", b"mkd"),
        Push([b"a", None]),
        Attributed([(b"k", [1, 2])], [b"reply"]),
        [1.5, [Attributed([], None)]],
    ],
)
@BOTH
def test_rare_values_are_read_back(value: object, resp3: bool) -> None:
    wire = encode(value, resp3)
    found = unpacked(Packed(wire))
    assert encode(found, resp3) == wire
    assert resp3 or type(found) in (bytes, list, Status, ErrorReply, type(NULL_ARRAY))


@pytest.mark.parametrize(
    "hold",
    [
        lambda packed: [b"0-0", packed, []],
        lambda packed: (packed, 1),
        lambda packed: Map([(b"k", packed)]),
        lambda packed: Set([packed]),
        lambda packed: Push([b"message", packed]),
        lambda packed: Replies([packed, packed]),
        lambda packed: Attributed([(b"k", packed)], packed),
        lambda packed: PackedReplies(packed.wire + packed.wire),
    ],
)
@BOTH
def test_packed_parts_of_a_reply_are_read_back_where_they_stand(
    hold: Callable[[Packed], object], resp3: bool
) -> None:
    packed = Packed(encode([1, b"a"], resp3))
    held = hold(packed)
    found = unpacked(held)
    assert not isinstance(found, PackedReplies)
    assert encode(found, resp3) == encode(held, resp3)
    assert_plain(found)


def assert_plain(value: object) -> None:
    assert not isinstance(value, Packed | PackedReplies)
    if isinstance(value, list):
        items = value
    elif isinstance(value, Map):
        items = [each for pair in value.pairs for each in pair]
    elif isinstance(value, Set | Push | Replies):
        items = value.items
    elif isinstance(value, Attributed):
        items = [value.reply, *(each for pair in value.attributes for each in pair)]
    else:
        return
    for item in items:
        assert_plain(item)


def test_what_is_plain_stays_as_it_is() -> None:
    assert unpacked(5) == 5
    assert unpacked(NULL_ARRAY) is NULL_ARRAY


def test_numbers_have_their_own_digits() -> None:
    numbers = [*range(10_000), *range(9_995_000, 10_005_000)]
    numbers += [10**power + more for power in range(19) for more in (-1, 0, 1234, 90_000_000)]
    out = Packer(False)
    for number in numbers:
        out.number(number)
    assert out.replies().wire == b"".join([b":%d\r\n" % number for number in numbers])


@BOTH
def test_a_number_is_repeated(resp3: bool) -> None:
    out = Packer(resp3)
    for number, count in ((1, 3), (0, 0), (5000, 2)):
        out.numbers(number, count)
    assert all_unpacked(out.replies()) == [1, 1, 1, 5000, 5000]


@BOTH
def test_every_part_is_the_value_it_names(resp3: bool) -> None:
    out = Packer(resp3)
    out.array(7)
    out.text(b"")
    out.text(b"x" * 2000)
    out.number(0)
    out.number(-(2**63))
    out.null()
    out.null_array()
    out.map(2)
    out.id(5, 1)
    out.number(2**63 - 1)
    out.constant(Constant(b"lag"))
    out.number(2)
    wire = encode(
        [
            *(b"", b"x" * 2000, 0, -(2**63), None, NULL_ARRAY),
            Map([(b"5-1", 2**63 - 1), (b"lag", 2)]),
        ],
        resp3,
    )
    assert out.wire_bytes() == len(wire)
    assert out.packed().wire == wire
    twice = Packer(resp3)
    twice.add(out)
    twice.add(out)
    assert twice.replies().wire == wire + wire


class Run:
    """A run of entries, packed as storage keeps it, and the plain list that it stands for."""

    def __init__(self, ids: list[tuple[int, int]], rows: list[list[bytes]], shared: bool) -> None:
        self.ms = [ms for ms, _ in ids]
        self.seq = [seq for _, seq in ids]
        self.names = rows[0][::2] if shared else None
        self.values = [value for row in rows for value in row[1::2]] if shared else []
        self.rows = [] if shared else rows
        self.plain: list[object] = [
            [id_text(place), row] for place, row in zip(ids, rows, strict=True)
        ]


@st.composite
def runs(draw: Callable[[st.SearchStrategy[object]], object]) -> Run:
    ids = draw(st.lists(IDS, min_size=1, max_size=8))
    assert isinstance(ids, list)
    shared = draw(st.booleans())
    names = draw(st.lists(WORDS, min_size=1, max_size=3))
    assert isinstance(names, list)
    rows: list[list[bytes]] = []
    for _ in ids:
        if not shared:
            names = draw(st.lists(WORDS, min_size=1, max_size=3))
            assert isinstance(names, list)
        row: list[bytes] = []
        for name in names:
            value = draw(WORDS)
            assert isinstance(value, bytes)
            row += [name, value]
        rows.append(row)
    return Run(ids, rows, bool(shared))


def add_all(
    out: Packer, run: Run, dead: bytearray | None, reverse: bool, idle_ms: int, deliveries: int
) -> None:
    out.entries(
        run.ms,
        run.seq,
        run.names,
        run.values,
        run.rows,
        dead,
        0,
        len(run.ms),
        reverse,
        idle_ms,
        deliveries,
    )


@given(
    run=runs(),
    marks=st.none() | st.lists(st.booleans(), min_size=8, max_size=8),
    reverse=st.booleans(),
    told=st.none() | st.tuples(st.integers(0, 2**62), st.integers(0, 2000)),
)
def test_a_run_of_entries_is_a_list_of_ids_and_fields(
    run: Run, marks: list[bool] | None, reverse: bool, told: tuple[int, int] | None
) -> None:
    dead = None if marks is None else bytearray(marks)
    idle_ms, deliveries = (NOT_SHOWN, 0) if told is None else told
    out = Packer(False)
    add_all(out, run, dead, reverse, idle_ms, deliveries)
    wanted: list[object] = []
    for number, entry in enumerate(run.plain):
        if dead is None or not dead[number]:
            assert isinstance(entry, list)
            wanted.append(entry if told is None else [*entry, idle_ms, deliveries])
    if reverse:
        wanted.reverse()
    replies = out.replies()
    assert all_unpacked(replies) == wanted
    assert parse(b"*%d\r\n" % len(wanted) + replies.wire) == wanted
    assert replies.wire == b"".join(encode(entry) for entry in wanted)


def test_a_stretch_of_a_run_begins_and_ends_where_it_is_told_to() -> None:
    run = Run([(5, seq) for seq in range(6)], [[b"f", b"%d" % seq] for seq in range(6)], True)
    for low in range(7):
        for high in range(low, 7):
            for reverse in (False, True):
                out = Packer(False)
                shared = (run.ms, run.seq, run.names, run.values, run.rows, None)
                out.entries(*shared, low, high, reverse, NOT_SHOWN, 0)
                wanted = run.plain[low:high]
                assert all_unpacked(out.replies()) == (wanted[::-1] if reverse else wanted)


@pytest.mark.parametrize("count", [1, 2, 9, 10, 11, 300])
@BOTH
def test_streams_are_a_map_or_pairs(count: int, resp3: bool) -> None:
    run = Run([(5, 1), (5, 2)], [[b"f", b"a"], [b"f", b"b"]], True)
    reply = StreamsReply(resp3)
    for number in range(count):
        reply.begin(b"key%d" % number, 2)
        add_all(reply, run, None, False, NOT_SHOWN, 0)
    assert reply.streams == count
    pairs: list[tuple[object, object]] = [(b"key%d" % at, run.plain) for at in range(count)]
    wanted: object = Map(pairs) if resp3 else [list(pair) for pair in pairs]
    whole = reply.whole()
    assert whole.wire == encode(wanted, resp3)
    assert shape(unpacked(whole)) == shape(wanted)
    assert parse(whole.wire) == (dict(pairs) if resp3 else wanted)


@BOTH
def test_a_size_limit_counts_all_but_the_outermost_header(resp3: bool) -> None:
    run = Run([(5, 1)], [[b"f", b"a" * 50]], False)
    reply = StreamsReply(resp3)
    entry = Packer(resp3)
    add_all(entry, run, None, False, 0, 3)
    for key in (b"k", b"key" * 20):
        reply.begin(key, 1)
        reply.add(entry)
    length = len(reply.whole().wire) - len(b"*2\r\n")
    for most, reached in ((length, True), (length + 1, False)):
        limit = SizeLimit(most, resp3)
        assert not limit.is_reached()
        for key in (b"k", b"key" * 20):
            limit.begin(key)
            limit.give(entry.wire_bytes())
            limit.end(1)
        assert limit.is_reached() is reached


def test_one_entry_is_given_in_any_case() -> None:
    limit = SizeLimit(1, False)
    limit.begin(b"key")
    assert not limit.is_reached()
    limit.give(10)
    assert limit.is_reached()


@BOTH
def test_an_array_of_replies_takes_each_as_it_is_now(resp3: bool) -> None:
    changing: list[object] = [b"before"]
    replies = PackedArray(5)
    replies.add(changing, resp3)
    changing[0] = b"after"
    replies.add(Packed(encode([1, None], resp3)), resp3)
    replies.add_all(ids_in_sequence(5, 1, 2))
    replies.add(ErrorReply(b"ERR no"), resp3)
    found = replies.packed()
    wanted = [[b"before"], [1, None], b"5-1", b"5-2", ErrorReply(b"ERR no")]
    assert found.wire == encode(wanted, resp3)
    assert parse(found.wire) == parse(encode(wanted, resp3))


@BOTH
def test_replies_to_several_requests(resp3: bool) -> None:
    found = packed_replies([None, [1], b"a"], resp3)
    assert all_unpacked(found) == [None, [1], b"a"]
    assert found.wire == b"".join(encode(each, resp3) for each in (None, [1], b"a"))
    assert repeated(QUEUED, 3).wire == encode(QUEUED) * 3


@given(st.integers(0, 20_000), st.integers(0, 400), st.sampled_from([1, 16]))
def test_texts_of_sequences_are_what_they_stand_for(first: int, count: int, step: int) -> None:
    texts = SequenceTexts(b"!")
    wanted = [b"-%d!" % seq for seq in range(first, first + count * step, step)]
    assert texts.some(first, first + count * step, step) == wanted
    assert texts.far(first) == b"-%d!" % first
