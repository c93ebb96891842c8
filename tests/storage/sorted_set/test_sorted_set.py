"""Sorted sets beside a sorted Python list, under random changes and with copies in between."""

from __future__ import annotations

import bisect
import random
from math import inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.vecs import vec

from headrace.storage.collection import SmallLimits
from headrace.storage.digest import Digest
from headrace.storage.packed.strings import unpack
from headrace.storage.sorted_set.runs import is_sound_run
from headrace.storage.sorted_set.sorted_set import (
    HIGHEST,
    LOWEST,
    MEMBER,
    Large,
    LexBound,
    LexRange,
    SortedSet,
    pairs_of,
    sorted_set_of,
)
from headrace.storage.sorted_set.tree import NODE_RUNS, RUN_MEMBERS

SMALL = SmallLimits(1000, 64)
NONE_SMALL = SmallLimits(0, 64)
Pairs = list[tuple[float, bytes]]


class Model:
    """The same by a dict and a list that is kept in order."""

    def __init__(self) -> None:
        self.scores: dict[bytes, float] = {}
        self.order: Pairs = []

    def put(self, member: bytes, score: float) -> None:
        self.remove(member)
        self.scores[member] = score
        bisect.insort(self.order, (score, member))

    def remove(self, member: bytes) -> bool:
        if member not in self.scores:
            return False
        self.order.remove((self.scores.pop(member), member))
        return True

    def take(self, first: int, end: int) -> Pairs:
        taken = self.order[first:end]
        for _, member in taken:
            self.remove(member)
        return taken


def flat(runs: list[bytes]) -> Pairs:
    return [(score, member) for run in runs for member, score in pairs_of(run)]


def content(value: SortedSet) -> Pairs:
    """All members in order; what a large one consists of has to fit together."""
    rep = value.rep
    if isinstance(rep, Large):
        tree = rep.tree
        assert tree.size == rep.table.count == sum(node.size for node in tree.nodes)
        for node in tree.nodes:
            assert 0 < len(node.runs) <= NODE_RUNS + 1
            assert node.size == sum(node.sizes)
            for run, first, size in zip(node.runs, node.firsts, node.sizes, strict=True):
                assert is_sound_run(run)
                pairs = pairs_of(run)
                assert len(pairs) == int(size) <= RUN_MEMBERS
                assert pairs[0][1] == first
    return flat(value.runs(0, value.size()))


def chosen_score(chance: random.Random, kind: str) -> float:
    if kind == "equal":
        return 1.5
    if kind == "few":
        return chance.choice([-inf, -1.0, 0.0, 2.0, 2.5, inf])
    return chance.uniform(-100, 100)


def chosen_member(chance: random.Random, names: int) -> bytes:
    number = chance.randrange(names)
    shapes = [b"%d", b"member:%d", b"%d" + b"x" * (number % 64), bytes([number & 255]) + b"%d"]
    return shapes[number % 4] % number


@pytest.mark.parametrize("kind", ["equal", "few", "all"])
@pytest.mark.parametrize("limits", [SMALL, NONE_SMALL], ids=["small", "large"])
@pytest.mark.parametrize("seed", range(2))
def test_as_a_sorted_list_and_copies_stay(kind: str, limits: SmallLimits, seed: int) -> None:
    chance = random.Random(f"{kind} {seed}")
    value, model = SortedSet(), Model()
    kept: list[tuple[SortedSet, Pairs]] = []
    names = 400 if limits is SMALL else 4000
    for turn in range(3000):
        growing = turn % 1500 < 1000
        member = chosen_member(chance, names)
        if chance.random() < (0.85 if growing else 0.3):
            score = chosen_score(chance, kind)
            if member not in model.scores:
                assert value.score(member) != value.score(member)
                value.add(member, score, limits)
            elif model.scores[member] != score:
                assert value.score(member) == model.scores[member]
                value.change(member, model.scores[member], score)
            model.put(member, score)
        elif chance.random() < 0.9:
            assert value.remove(member) == model.remove(member)
        else:
            first = chance.randrange(len(model.order) + 1)
            end = min(len(model.order), first + chance.choice([1, 1, 5, 150]))
            assert flat(value.take(first, end)) == model.take(first, end)
        if turn % 250 == 249:
            assert content(value) == model.order
            kept.append((value.copy(), list(model.order)))
        ask(chance, value, model, kind)
    for copy, order in kept:
        assert content(copy) == order
    while model.order:
        _, member = chance.choice(model.order)
        assert value.remove(member)
        model.remove(member)
    assert value.is_empty()
    assert content(value) == []
    for copy, order in kept:
        assert content(copy) == order


@pytest.mark.parametrize("kind", ["equal", "few", "all"])
@pytest.mark.parametrize("names", [40, 6000])
def test_many_at_once(kind: str, names: int) -> None:
    """As one after the other: members may be there twice, and copies keep what they have."""
    chance = random.Random(11)
    value, model = SortedSet(), Model()
    value.make_large()
    kept: list[tuple[SortedSet, Pairs]] = []
    for turn in range(300):
        count = chance.choice([1, 2, 16, 128])
        requests = [[b"", chosen_member(chance, names)] for _ in range(count + 3)]
        scores = [chosen_score(chance, kind) for _ in range(count)]
        olds = value.put_all(requests, 3, 1, vec[float](scores))
        for (_, member), score, old in zip(requests[3:], scores, olds, strict=True):
            had = model.scores.get(member)
            assert old == had if had is not None else isnan(old)
            model.put(member, score)
        for _, member in requests[: chance.choice([0, 0, 3])]:
            assert value.remove(member) == model.remove(member)
        if turn % 50 == 0:
            kept.append((value.copy(), list(model.order)))
    assert content(value) == model.order
    for copy, order in kept:
        assert content(copy) == order


def ask(chance: random.Random, value: SortedSet, model: Model, kind: str) -> None:
    """Ask for a rank, a range and bounds."""
    order = model.order
    assert value.size() == len(order)
    if order:
        score, member = chance.choice(order)
        assert value.rank(member, score) == bisect.bisect_left(order, (score, member))
    bound = chosen_score(chance, kind)
    assert value.above_score(bound, False) == bisect.bisect_left(order, (bound, b""))
    assert value.above_score(bound, True) == bisect.bisect_left(order, (bound, b"\xff" * 100))
    first = chance.randrange(len(order) + 1)
    end = min(len(order), first + chance.randrange(100))
    assert flat(value.runs(first, end)) == order[first:end]
    span = value.span(first, end)
    assert span.count == end - first
    assert unpack(b"".join(span.strings())) == [each for _, each in order[first:end]]
    other = chosen_score(chance, kind)
    above, inclusive = chance.random() < 0.5, chance.random() < 0.5
    start_at = bisect.bisect_left(order, (bound, b"\xff" * 100 if above else b""))
    end_at = bisect.bisect_left(order, (other, b"\xff" * 100 if inclusive else b""))
    skipped = chance.choice([0, 0, 1, 50, 400, 1 << 62])
    most = chance.choice([0, 1, 10, 500, 1 << 62])
    span = value.span_of_scores(bound, above, other, inclusive, skipped, most)
    wanted = order[start_at + skipped : max(start_at, end_at)][:most]
    assert flat(span.parts()) == wanted
    assert span.count == len(wanted)
    if kind == "equal":
        low, high = chosen_member(chance, 4000), chosen_member(chance, 4000)
        exclusive = chance.random() < 0.5
        names = LexRange(LexBound(MEMBER, low, exclusive), LexBound(MEMBER, high, exclusive))
        start, stop = value.lex_ranks(names, chance.random() < 0.5, 0)
        inside = [
            each
            for _, each in order
            if low <= each <= high and not (exclusive and each in (low, high))
        ]
        assert [each for _, each in flat(value.runs(start, stop))] == inside


@pytest.mark.parametrize("step", [1, -1, 7919])
def test_members_in_order(step: int) -> None:
    """What comes in order leaves full runs behind."""
    value = SortedSet()
    numbers = [number * step % 20011 for number in range(20011)]
    if step == -1:
        numbers.append(numbers.pop(0))
    for number in numbers:
        value.add(b"%d" % number, float(number), NONE_SMALL)
    assert content(value) == [(float(number), b"%d" % number) for number in range(20011)]
    assert isinstance(value.rep, Large)
    runs = sum(len(node.runs) for node in value.rep.tree.nodes)
    if step != 7919:
        assert runs == -(-20011 // RUN_MEMBERS)
    for rank in (0, 1, 63, 64, 12345, 20010):
        assert value.rank(b"%d" % rank, float(rank)) == rank


def test_long_members() -> None:
    value, model = SortedSet(), Model()
    chance = random.Random(5)
    for _ in range(600):
        member = chance.randbytes(chance.choice([10, 900, 3000, 70_000]))
        score = float(chance.randrange(3))
        value.add(member, score, SMALL)
        model.put(member, score)
    assert content(value) == model.order
    assert isinstance(value.rep, Large)
    for node in value.rep.tree.nodes:
        for run in node.runs:
            assert len(run) < 3 * 70_000
    for _, member in list(model.order)[::2]:
        assert value.remove(member)
        model.remove(member)
    assert content(value) == model.order


def test_it_turns_large_by_its_limits_and_never_back() -> None:
    limits = SmallLimits(3, 5)
    value = SortedSet()
    for number in range(3):
        value.add(b"%d" % number, 1.0, limits)
    assert value.encoding(b"") == b"listpack"
    value.add(b"3", 1.0, limits)
    assert value.encoding(b"") == b"skiplist"
    value.remove(b"3")
    assert value.encoding(b"") == b"skiplist"
    value = SortedSet()
    value.add(b"12345", 1.0, limits)
    assert value.encoding(b"") == b"listpack"
    value.add(b"123456", 1.0, limits)
    assert value.encoding(b"") == b"skiplist"


@given(st.dictionaries(st.binary(max_size=12), st.floats(allow_nan=False), max_size=300))
def test_made_at_once_and_one_by_one(scores: dict[bytes, float]) -> None:
    pairs = sorted((score + 0.0, member) for member, score in scores.items())
    for limits in (SMALL, NONE_SMALL):
        made, grown = sorted_set_of(pairs, limits), SortedSet()
        for member, score in scores.items():
            grown.add(member, score + 0.0, limits)
        assert content(made) == content(grown) == pairs
        assert digest(made) == digest(grown)


def digest(value: SortedSet) -> int:
    made = Digest()
    value.add_to(made)
    return made.value


def test_a_scan_meets_what_stays() -> None:
    chance = random.Random(8)
    value = SortedSet()
    for number in range(5000):
        value.add(b"%d" % number, float(number), NONE_SMALL)
    met: set[bytes] = set()
    cursor, turns = 0, 0
    while True:
        cursor, found = value.scan(cursor, 20)
        met |= {member for member, score in found if score == float(member.split(b":")[-1])}
        for _ in range(40):
            number = chance.randrange(2500, 5000)
            if turns < 60:
                value.remove(b"%d" % number)
            elif value.score(b"new:%d" % number) != float(number):
                value.add(b"new:%d" % number, float(number), NONE_SMALL)
        turns += 1
        if cursor == 0:
            break
    assert {b"%d" % number for number in range(2500)} <= met


def test_names_across_scores_are_walked_as_by_redis() -> None:
    """Where scores differ, a small set is walked from the end that was asked for."""
    value = sorted_set_of([(1.0, b"d"), (2.0, b"b"), (3.0, b"c"), (4.0, b"e")], SMALL)
    low, high = LexBound(MEMBER, b"b", False), LexBound(MEMBER, b"c", False)
    assert value.lex_ranks(LexRange(low, high), False, 0) == (0, 0)  # the first one is above it
    everything = LexRange(LexBound(LOWEST, b"", True), LexBound(HIGHEST, b"", True))
    assert value.lex_ranks(everything, True, 0) == (0, 4)
    high = LexBound(MEMBER, b"d", False)
    assert value.lex_ranks(LexRange(low, high), False, 0) == (0, 3)
    assert value.lex_ranks(LexRange(low, high), True, 0) == (0, 3)
    assert value.lex_ranks(LexRange(low, high), True, 2) == (0, 1)


def test_memory_of_a_large_one_and_its_pieces() -> None:
    value = SortedSet()
    chance = random.Random(2)
    for number in range(30_000):
        value.add(b"member:%08d" % number, chance.random(), NONE_SMALL)
    assert 50 * 30_000 < value.used_bytes(0) < 75 * 30_000
    assert abs(value.used_bytes(5) - value.used_bytes(0)) < value.used_bytes(0) / 5
    assert value.effort() > 100
    copy = value.copy()
    steps = 0
    while not value.free_some(20):
        steps += 1
    assert steps > 10
    assert copy.size() == 30_000
    assert len(content(copy)) == 30_000
