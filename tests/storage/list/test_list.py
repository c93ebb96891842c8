"""Lists, beside Python's own, under changes by chance; copies are made on the way."""

from __future__ import annotations

from random import Random

import pytest

from headrace.persistence.forms.form import Unsound
from headrace.persistence.forms.list import ListForm
from headrace.storage.digest import Digest
from headrace.storage.list.list import LISTPACK, QUICKLIST, List, list_of
from headrace.storage.list.piece import NodeLimits
from headrace.storage.list.row import SLIM, Row, row_of
from headrace.storage.packed.strings import EMPTY_BYTES, are_short, pack, text_bytes, unpack

SIZES = [0, 1, 3, 9, 10, 30, 64, 100, 500]
LARGE = [4000, 9000, 70_000]


class Twin:
    """A list, and what it should be."""

    def __init__(self, chance: Random, fill: int) -> None:
        self.chance = chance
        self.limits = NodeLimits(fill)
        self.made = List()
        self.model: list[bytes] = []
        self.copies: list[tuple[List, list[bytes]]] = []
        self.pool = [b"", b"a", b"b", b"12", b"-7", b"$1\r\na\r\n", b"12345678901234567890"]

    def string(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.5:
            return chance.choice(self.pool)
        sizes = LARGE if chance.random() < 0.02 else SIZES
        return chance.randbytes(chance.choice(sizes))

    def index(self) -> int:
        size = len(self.model)
        near = min(size, 3)
        return self.chance.choice(
            [self.chance.randrange(size), self.chance.randrange(near), size - near]
        )

    def push(self, right: bool) -> None:
        most = self.chance.choice([1, 1, 1, 4, 40, 300])
        strings = [self.string() for _ in range(self.chance.randrange(1, most + 1))]
        self.made.push([b"name", b"key", *strings], 2, right, self.limits)
        self.model = self.model + strings if right else strings[::-1] + self.model

    def push_right(self) -> None:
        self.push(True)

    def push_left(self) -> None:
        self.push(False)

    def pop(self, right: bool) -> None:
        for _ in range(min(len(self.model), self.chance.choice([1, 1, 5, 200]))):
            expected = self.model.pop(-1 if right else 0)
            assert self.made.pop(right, self.limits) == expected

    def pop_right(self) -> None:
        self.pop(True)

    def pop_left(self) -> None:
        self.pop(False)

    def pop_some(self) -> None:
        right = self.chance.random() < 0.5
        count = self.chance.randrange(min(len(self.model), 150) + 1)
        expected = self.model[len(self.model) - count :][::-1] if right else self.model[:count]
        assert self.made.pop_some(count, right, self.limits) == expected
        self.model = self.model[: len(self.model) - count] if right else self.model[count:]

    def set(self) -> None:
        if self.model:
            index, string = self.index(), self.string()
            self.made.set(index, string, self.limits)
            self.model[index] = string

    def insert(self) -> None:
        if self.model:
            index, string, after = self.index(), self.string(), self.chance.random() < 0.5
            self.made.insert(index, string, after, self.limits)
            self.model.insert(index + after, string)

    def remove(self) -> None:
        string, most = self.chance.choice(self.pool), self.chance.choice([0, 1, 2, 30])
        forward = self.chance.random() < 0.5
        there = [number for number, each in enumerate(self.model) if each == string]
        gone = set((there[:most] if forward else there[-most:]) if most else there)
        assert self.made.remove(string, most, forward, self.limits) == len(gone)
        self.model = [each for number, each in enumerate(self.model) if number not in gone]

    def cut(self) -> None:
        most = self.chance.choice([2, 60, 400])
        first = self.chance.randrange(min(len(self.model), most) + 1)
        last = self.chance.randrange(min(len(self.model) - first, most) + 1)
        self.made.cut(first, last, self.limits)
        self.model = self.model[first : len(self.model) - last]

    def positions(self) -> None:
        string = self.chance.choice(self.pool)
        forward = self.chance.random() < 0.5
        limit = self.chance.choice([len(self.model), 1, 50])
        rank = self.chance.choice([1, 1, 2, 5])
        most = self.chance.choice([0, 1, 3])
        order = range(len(self.model)) if forward else range(len(self.model) - 1, -1, -1)
        found = [number for number in list(order)[:limit] if self.model[number] == string]
        expected = found[rank - 1 :][: most or None]
        assert self.made.positions(string, limit, forward, rank, most) == expected

    def read(self) -> None:
        if self.model:
            index = self.index()
            assert self.made.get(index) == self.model[index]
            count = self.chance.randrange(len(self.model) - index + 1)
            found = unpack(b"".join(self.made.packed(index, count)))
            assert found == self.model[index : index + count]

    def copy(self) -> None:
        self.copies.append((self.made, self.model.copy()))
        self.made = self.made.copy()

    def check(self) -> None:
        assert self.made.size() == len(self.model)
        rep = self.made.rep
        if not isinstance(rep, Row):
            return
        edges = [int(rep._start(place)) for place in range(int(rep.low), len(rep.pieces))]
        edges.append(int(rep.base + rep.count))
        assert len(edges) - 1 == rep.nodes()
        for number in range(rep.nodes()):
            low, high = edges[number] - edges[0], edges[number + 1] - edges[0]
            assert low < high or not self.model
            strings = self.model[low:high]
            size = rep.sizes[int(rep.low) + number]
            if size == -1:
                assert len(strings) <= 1
            else:
                assert size == EMPTY_BYTES + sum(text_bytes(string) for string in strings)
        assert rep.nodes() == 1 or not rep.is_listpack


@pytest.mark.parametrize("fill", [-2, -1, -5, 0, 1, 5, 128])
@pytest.mark.parametrize("seed", range(4))
def test_like_a_list_of_python(fill: int, seed: int) -> None:
    twin = Twin(Random(seed * 100 + fill), fill)
    changes = [
        *([twin.push_right, twin.push_left, twin.pop_right, twin.pop_left] * 3),
        *(twin.pop_some, twin.set, twin.set, twin.insert, twin.insert, twin.remove, twin.cut),
        *(twin.positions, twin.read, twin.read, twin.read, twin.copy),
    ]
    for step in range(1500):
        if not step % 100 or len(twin.model) > 4000:
            twin.model = []
            twin.made = List()
            calm = twin.chance.choice(changes)
        twin.chance.choice([*changes, calm])()
        twin.check()
        if not step % 10:
            assert twin.made.strings() == twin.model
        if len(twin.copies) > 5:
            for made, model in twin.copies:
                assert made.strings() == model
            twin.copies.clear()


@pytest.mark.parametrize("right", [False, True])
def test_a_queue_stays_a_queue(right: bool) -> None:
    """What is pushed at one end is popped at the other, at all lengths."""
    limits = NodeLimits(-2)
    made = List()
    sent = got = 0
    for length in [1, 3, 70, 2000, 5, 300, 0]:
        while sent - got < length:
            made.push([b"job-%d" % sent], 0, right, limits)
            sent += 1
        for _ in range(700):
            made.push([b"job-%d" % sent], 0, right, limits)
            sent += 1
            assert made.pop(not right, limits) == b"job-%d" % got
            got += 1
        while sent - got > length:
            assert made.pop(not right, limits) == b"job-%d" % got
            got += 1
    assert made.is_empty()


def test_it_turns_back_when_its_only_node_is_half_as_large_as_it_may_be() -> None:
    limits = NodeLimits(-2)
    made = List()
    made.push([b"%010d" % number for number in range(500)], 0, True, limits)
    assert made.encoding(b"k") == LISTPACK
    made.push([b"a" * 3000], 0, True, limits)
    assert made.encoding(b"k") == QUICKLIST
    made.cut(0, 160, limits)
    assert made.encoding(b"k") == QUICKLIST
    made.cut(0, 10, limits)
    assert made.encoding(b"k") == LISTPACK


def test_a_list_that_is_made_at_once_takes_the_smallest_form() -> None:
    limits = NodeLimits(-2)
    few = list_of([b"a", b"b"], limits)
    assert isinstance(few.rep, bytes)
    some = list_of([b"%010d" % number for number in range(200)], limits)
    assert some.encoding(b"k") == LISTPACK
    many = list_of([b"x%010d" % number for number in range(2000)], limits)
    assert many.encoding(b"k") == QUICKLIST
    assert many.strings() == [b"x%010d" % number for number in range(2000)]
    assert list_of([], limits).is_empty()


def test_equal_lists_have_equal_digests_whatever_their_form() -> None:
    limits = NodeLimits(-2)
    strings = [b"%d" % number for number in range(16)]
    small = list_of(strings, limits)
    large = list_of([*strings, b"x" * 9000], limits)
    assert large.pop(True, NodeLimits(1)) == b"x" * 9000
    assert isinstance(large.rep, Row)
    digests = []
    for each in (small, large):
        digest = Digest()
        each.add_to(digest)
        digests.append(digest.hexadecimal())
    assert digests[0] == digests[1]


def test_it_is_freed_in_slices() -> None:
    limits = NodeLimits(-2)
    made = list_of([b"x" * 100] * 20_000, limits)
    assert made.effort() > 100
    steps = 1
    while not made.free_some(100):
        steps += 1
    assert steps > 1
    assert list_of([b"x"] * 100, limits).effort() == 0


@pytest.mark.parametrize("size", [10, 100])
def test_the_memory_it_says(size: int) -> None:
    limits = NodeLimits(-2)
    made = list_of([b"x" * size] * 50_000, limits)
    used = made.used_bytes(0)
    assert 50_000 * (size + 7) <= used <= 50_000 * (size + 9)
    assert abs(made.used_bytes(5) - used) < used // 20


def test_an_index_is_found_again_in_a_piece_that_changes() -> None:
    """Places in a piece are remembered, and forgotten with it."""
    limits = NodeLimits(-2)
    twin = Twin(Random(3), -2)
    chance = twin.chance
    twin.pool = [b"%d" % chance.randrange(10 ** chance.randrange(1, 12)) for _ in range(40)]
    twin.model = [chance.choice(twin.pool) for _ in range(3000)]
    twin.made = made = list_of(twin.model, limits)
    at_ends = [twin.push_right, twin.push_left, twin.pop_right, twin.pop_left]
    within = [twin.set, twin.insert, twin.remove, twin.pop_some]
    for _ in range(3000):
        index = chance.randrange(len(twin.model))
        for near in (index, max(0, index - 70), min(len(twin.model) - 1, index + 200)):
            assert made.get(near) == twin.model[near]
        if chance.random() < 0.1:
            twin.model[index] = chance.randbytes(len(twin.model[index]))
            made.set(index, twin.model[index], limits)
        elif chance.random() < 0.2:
            chance.choice(at_ends if len(twin.model) > 2000 else [twin.push_left])()
        elif chance.random() < 0.1:
            chance.choice(within)()
    rep = made.rep
    assert isinstance(rep, Row)
    assert rep.nodes() > 3


@pytest.mark.parametrize("size", [0, 9, 10, 99, 100, 255, 256, 400])
def test_nodes_far_from_both_ends_are_slim_where_their_strings_are_short(size: int) -> None:
    made = List()
    limits = NodeLimits(-1)
    strings = [b"%04d" % number + b"x" * size for number in range(1500)]
    strings = [string[:size] for string in strings]
    for string in strings:
        made.push([string], 0, True, limits)
    row = made.rep
    assert isinstance(row, Row)
    row.seal()
    slim = [place for place in range(row.low, len(row.pieces)) if row.pieces[place][0] == SLIM]
    far = list(range(row.low + 4, len(row.pieces) - 4))
    assert slim == (far if size < 256 else [])
    assert unpack(b"".join(map(row.piece, range(row.low, len(row.pieces))))) == strings
    ListForm().check(made)


@pytest.mark.parametrize(
    "piece",
    [
        *(b"$*\r\n", b"$:\r\n0123456789\r\n", b"$05\r\nabcde\r\n", b"$1\r\na\r", b"$1\r\na\n\r"),
        *(b"#1\r\na\r\n", b"$1\rxa\r\n", b"$2\r\na\r\n", b"$", b"$12345\r\n", b"$-1\r\n", b"$1"),
    ],
)
def test_what_is_no_row_of_strings_does_not_become_slim(piece: bytes) -> None:
    sound = pack([b"a", b"bc"])
    assert are_short(sound, 0)
    for broken in (piece, piece + sound, sound + piece, piece * 50):
        assert not are_short(broken, 0)
    size = EMPTY_BYTES + 7
    made = List()
    made.rep = row_of(
        NodeLimits(-1), False, [sound] * 5 + [piece] + [sound] * 5, [2] * 11, [size] * 11
    )
    with pytest.raises(Unsound):
        ListForm().check(made)
