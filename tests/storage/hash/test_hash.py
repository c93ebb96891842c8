"""Hashes against a dict, with copies taken meanwhile."""

from __future__ import annotations

from random import Random

import pytest

from headrace.storage.collection import SmallLimits
from headrace.storage.digest import Digest
from headrace.storage.hash.hash import Hash, flaw
from headrace.storage.hash.small import BOTH, FIELDS, VALUES
from headrace.storage.hash.timed import NEVER, NO_FIELD, TimedPiece, TimedTable
from headrace.storage.packed.strings import unpack
from headrace.storage.packed.table import SEED_BITS, Table

FEW = SmallLimits(6, 20)
LIMITS = SmallLimits(512, 64)
LATER_MS = 1_000_000


def read(value: Hash, what: int, now_ms: int = NEVER) -> list[bytes]:
    found = value.read(what, now_ms)
    strings = [string for piece in found.pieces for string in unpack(piece)]
    assert len(strings) == (2 if what == BOTH else 1) * found.count
    return strings


def pairs_of(value: Hash, now_ms: int = NEVER) -> dict[bytes, bytes]:
    strings = read(value, BOTH, now_ms)
    return dict(zip(strings[::2], strings[1::2], strict=True))


def kept(value: Hash) -> object:
    return value.rep


class Model:
    """A dict beside a hash, and deadlines beside both."""

    def __init__(self, value: Hash) -> None:
        self.value = value
        self.pairs: dict[bytes, bytes] = {}
        self.deadlines: dict[bytes, int] = {}

    def check(self) -> None:
        value = self.value
        assert pairs_of(value) == self.pairs
        assert sorted(read(value, FIELDS)) == sorted(self.pairs)
        assert sorted(read(value, VALUES)) == sorted(self.pairs.values())
        assert value.size() == len(self.pairs)
        assert value.is_empty() == (not self.pairs)
        assert flaw(value) == ""
        first = min(self.deadlines.values(), default=NEVER)
        assert value.first_ms() == first
        for field in self.pairs:
            assert value.get(field) == self.pairs[field]
            assert value.length(field) == len(self.pairs[field])
            assert value.deadline_ms(field) == self.deadlines.get(field, NEVER)

    def twin(self) -> Model:
        other = Model(self.value.copy())
        other.pairs = dict(self.pairs)
        other.deadlines = dict(self.deadlines)
        return other

    def change(self, chance: Random, timed: bool, limits: SmallLimits) -> None:
        field = b"field-%d" % chance.randrange(120)
        what = chance.randrange(8 if timed else 5)
        if what < 3:
            text = b"v" * chance.choice((0, 1, 5, 11, 19))
            keeps = timed and chance.random() < 0.3
            assert self.value.put(field, text, limits, keeps) == (field not in self.pairs)
            self.pairs[field] = text
            if not keeps:
                self.deadlines.pop(field, None)
        elif what < 5:
            assert self.value.remove(field) == (field in self.pairs)
            self.pairs.pop(field, None)
            self.deadlines.pop(field, None)
        elif what == 5 and field in self.pairs:
            self.value.be_timed().expire_at(field, NEVER)
            self.deadlines.pop(field, None)
        elif what == 6 and field in self.pairs:
            deadline_ms = chance.randrange(1, 500)
            self.value.be_timed().expire_at(field, deadline_ms)
            self.deadlines[field] = deadline_ms
        elif what == 7 and chance.random() < 0.2:
            now_ms = chance.randrange(500)
            due = {each for each, moment_ms in self.deadlines.items() if moment_ms < now_ms}
            living = {each: self.pairs[each] for each in self.pairs if each not in due}
            assert pairs_of(self.value, now_ms) == living
            gone = self.value.take_due(now_ms, 3)
            moments = [self.deadlines[each] for each in gone]
            assert moments == sorted(self.deadlines[each] for each in due)[:3]
            for each in gone:
                del self.pairs[each], self.deadlines[each]
        expected = self.deadlines.get(field, NEVER) if field in self.pairs else NO_FIELD
        assert self.value.time_of(field) == expected


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("limits", [FEW, LIMITS, SmallLimits(0, 0)])
@pytest.mark.parametrize("seed", range(4))
def test_as_a_dict(seed: int, limits: SmallLimits, timed: bool) -> None:
    chance = Random(seed)
    models = [Model(Hash())]
    for turn in range(1500):
        model = chance.choice(models)
        model.change(chance, timed, limits)
        if turn % 100 == 99:
            for each in models:
                each.check()
            models = [*models[-2:], model.twin()]
    for each in models:
        each.check()


def test_order_of_a_small_one() -> None:
    value = Hash()
    for field in (b"c", b"a", b"b"):
        value.put(field, b"1", LIMITS)
    value.put(b"a", b"22", LIMITS)
    assert read(value, BOTH) == [b"c", b"1", b"a", b"22", b"b", b"1"]
    value.remove(b"c")
    value.put(b"c", b"3", LIMITS)
    assert read(value, FIELDS) == [b"a", b"b", b"c"]


def test_order_by_deadlines() -> None:
    value = Hash()
    for field in (b"a", b"b", b"c", b"d"):
        value.put(field, field, LIMITS)
    timed = value.be_timed()
    timed.expire_at(b"c", 200)
    timed.expire_at(b"b", 100)
    timed.expire_at(b"d", 200)
    assert read(value, FIELDS) == [b"b", b"d", b"c", b"a"]
    value.put(b"b", b"1", LIMITS)
    assert read(value, FIELDS) == [b"d", b"c", b"a", b"b"]
    value.put(b"d", b"1", LIMITS, keeps=True)
    assert read(value, FIELDS) == [b"d", b"c", b"a", b"b"]
    assert value.take_due(200, 10) == []
    assert value.take_due(201, 1) == [b"d"]
    assert read(value, FIELDS) == [b"c", b"a", b"b"]


@pytest.mark.parametrize(("entries", "length"), [(4, 64), (512, 3)])
def test_turns_large_and_keeps_deadlines(entries: int, length: int) -> None:
    value = Hash()
    limits = SmallLimits(entries, length)
    for number in range(4):
        value.put(b"%d" % number, b"abc", limits)
    assert value.encoding(b"") == b"listpack"
    value.be_timed().expire_at(b"2", 77)
    assert value.encoding(b"") == b"listpackex"
    assert isinstance(kept(value), TimedPiece)
    value.put(b"x", b"abcd", limits)
    assert value.encoding(b"") == b"hashtable"
    assert isinstance(kept(value), TimedTable)
    assert (value.deadline_ms(b"2"), value.deadline_ms(b"1"), value.first_ms()) == (77, NEVER, 77)
    assert len(pairs_of(value)) == 5


def test_fits_what_is_to_come() -> None:
    value = Hash()
    value.fit([b"HSET", b"k", b"f", b"v" * 64], 2, LIMITS)
    assert value.encoding(b"") == b"listpack"
    value.fit([b"HSET", b"k", b"f", b"v" * 65], 2, LIMITS)
    assert isinstance(kept(value), Table)
    value = Hash()
    value.fit([b"f", b"v"] * 7, 0, FEW)
    assert value.encoding(b"") == b"hashtable"


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("size", [3, 100, 3000])
def test_scan_and_chance(size: int, timed: bool) -> None:
    chance = Random(size)
    value = Hash()
    for number in range(size):
        value.put(b"%d" % number, b"v", LIMITS)
    if timed:
        value.be_timed().expire_at(b"1", 5)
    met: set[bytes] = set()
    cursor = 0
    while True:
        cursor, pieces = value.scan(cursor, 10, 10)
        met |= {field for piece in pieces for field in unpack(piece)[::2]}
        if not cursor:
            break
    assert met == set(pairs_of(value)) - ({b"1"} if timed else set())
    chosen = {unpack(value.random(chance.getrandbits(SEED_BITS)))[0] for _ in range(20 * size)}
    assert len(chosen) > 0.99 * size
    assert sorted(unpack(pair)[0] for pair in value.elements()) == sorted(pairs_of(value))


def test_digest_knows_no_order_but_deadlines() -> None:
    def digest(value: Hash) -> bytes:
        made = Digest()
        value.add_to(made)
        return made.hexadecimal()

    one, other, large = Hash(), Hash(), Hash()
    for at in range(4):
        one.put(b"%d" % at, b"v", LIMITS)
        other.put(b"%d" % (3 - at), b"v", LIMITS)
        large.put(b"%d" % at, b"v", SmallLimits(1, 1))
    assert digest(one) == digest(other) == digest(large)
    other.be_timed().expire_at(b"1", 5)
    assert digest(one) != digest(other)


@pytest.mark.parametrize("timed", [False, True])
def test_is_freed_in_slices(timed: bool) -> None:
    value = Hash()
    assert value.effort() == 0
    for number in range(20_000):
        value.put(b"%d" % number, b"v", LIMITS)
    if timed:
        value.be_timed().expire_at(b"1", 5)
    assert value.effort() > 50
    assert value.used_bytes(0) > 20_000 * 10
    slices = 0
    while not value.free_some(4):
        slices += 1
    assert slices > 1


def test_stale_deadlines_do_not_pile_up() -> None:
    value = Hash()
    for number in range(600):
        value.put(b"%d" % number, b"v", LIMITS)
    timed = value.be_timed()
    for moment_ms in range(1, 3000):
        timed.expire_at(b"%d" % (moment_ms % 10), LATER_MS + moment_ms)
    assert isinstance(timed, TimedTable)
    assert timed.used_bytes() - timed.table.used_bytes() - timed.times.used_bytes() < 200 * 70
    assert value.first_ms() == LATER_MS + 2990


def test_flaws_are_found() -> None:
    value = Hash()
    for field in (b"a", b"b"):
        value.put(field, b"1", LIMITS)
    whole = kept(value)
    assert isinstance(whole, bytes)
    for cut in range(2, len(whole)):
        value.rep = whole[:cut]
        assert flaw(value)
    value.rep = b"\3" + whole[1:]
    assert flaw(value)
    value.rep = whole
    value.be_timed().expire_at(b"b", 5)
    piece = kept(value)
    assert isinstance(piece, TimedPiece)
    sound = piece.piece
    for cut in range(2, len(sound)):
        piece.piece = sound[:cut]
        assert flaw(value)
    half = 2 + (len(sound) - 2) // 2
    piece.piece = sound[:2] + sound[half:] + sound[2:half]
    assert "without" in flaw(value)
