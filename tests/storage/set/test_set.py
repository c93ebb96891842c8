"""Sets beside sets of Python, in all of their forms, with copies in between."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from headrace.storage.digest import Digest
from headrace.storage.packed.strings import unpack
from headrace.storage.packed.table import SEED_BITS
from headrace.storage.set import set as combining
from headrace.storage.set.integers import integer_of, spells_integer, text_of
from headrace.storage.set.set import Set, flaw_of, new_set, set_of
from headrace.storage.set.small import SetLimits

LIMITS = SetLimits(512, 128, 64)
TIGHT = SetLimits(6, 4, 5)
INT64 = [-(2**63), -(2**63) + 1, -(2**31) - 1, -(2**31), -(2**15) - 1, -(2**15), -1, 0, 1]
INT64 += [-n - 1 for n in INT64]
NO_INTEGERS = [
    *(b"", b"-", b"-0", b"00", b"01", b"-01", b"+1", b" 1", b"1 ", b"1.0", b"0x1", b"1e3", b"a"),
    *(b"9223372036854775808", b"-9223372036854775809", b"99999999999999999999", b"1\x00", b"--1"),
    *(b"\xd9\xa1", b"1" * 30),
]


@pytest.mark.parametrize("number", sorted(set(INT64)))
def test_integers_are_known_by_their_spelling(number: int) -> None:
    text = b"%d" % number
    assert spells_integer(text)
    assert integer_of(text) == number
    assert text_of(number) == text


@pytest.mark.parametrize("text", NO_INTEGERS)
def test_what_is_spelled_otherwise_is_a_string(text: bytes) -> None:
    assert not spells_integer(text)
    value = new_set(text, 1, LIMITS)
    assert value.add(text, LIMITS)
    assert value.encoding(b"") == b"listpack"
    assert value.members() == [text]


def packed_members(value: Set) -> list[bytes]:
    return [member for piece in value.pieces() for member in unpack(piece)]


def expected_encoding(encoding: bytes, model: dict[bytes, None], limits: SetLimits) -> bytes:
    """Return what Redis turns a set into that had this encoding and has got these members."""
    if encoding == b"hashtable":
        return encoding
    strings = encoding == b"listpack" or not all(spells_integer(member) for member in model)
    if not strings:
        return b"intset" if len(model) <= limits.integers else b"hashtable"
    fits = len(model) <= limits.elements and all(len(m) <= limits.element_bytes for m in model)
    return b"listpack" if fits else b"hashtable"


@pytest.mark.parametrize("limits", [LIMITS, TIGHT, SetLimits(0, 0, 0), SetLimits(2**63 - 1, 0, 9)])
@pytest.mark.parametrize("seed", range(6))
def test_a_set_is_as_one_of_python_and_copies_stay(seed: int, limits: SetLimits) -> None:
    chance = random.Random(seed)
    sizes = [2, 10, 100, 1000]
    for _ in range(6):
        value = Set()
        model: dict[bytes, None] = {}
        kept: list[tuple[Set, list[bytes]]] = []
        strings = chance.choice([0.0, 0.0, 0.02, 0.5, 1.0])
        names = chance.choice(sizes)
        encoding = b"intset"
        for _ in range(chance.choice([5, 50, 700])):
            number = chance.choice([chance.randrange(names), chance.choice(INT64)])
            member = b"%d" % number
            if chance.random() < strings:
                member = chance.choice([b"m%d", b"%03d", b"x" * 70 + b"%d", b"%d\r\n"]) % number
            if chance.random() < 0.7:
                assert value.add(member, limits) == (member not in model)
                model[member] = None
                encoding = expected_encoding(encoding, model, limits)
            else:
                assert value.remove(member) == (member in model)
                model.pop(member, None)
            assert value.has(member) == (member in model)
            assert value.size() == len(model)
            assert value.encoding(b"") == encoding
            if chance.random() < 0.05:
                kept.append((value.copy(), sorted(model)))
        assert sorted(value.members()) == sorted(model)
        assert packed_members(value) == value.members()
        assert value.is_empty() == (not model)
        assert not flaw_of(value)
        for twin, expected in kept:
            assert sorted(twin.members()) == expected
            assert not flaw_of(twin)


def test_integers_come_in_their_order_and_strings_as_they_were_added() -> None:
    value = Set()
    for number in (5, -70000, 2**40, 3, 0):
        value.add(b"%d" % number, LIMITS)
    assert value.members() == [b"-70000", b"0", b"3", b"5", b"%d" % 2**40]
    value.add(b"z", LIMITS)
    value.add(b"a", LIMITS)
    value.add(b"1", LIMITS)
    value.remove(b"3")
    assert value.members() == [b"-70000", b"0", b"5", b"%d" % 2**40, b"z", b"a", b"1"]


def test_integers_take_as_many_bytes_as_the_largest_needs() -> None:
    value = Set()
    sizes = []
    for number in (1, -(2**15), 2**15, -(2**31), 2**31):
        value.add(b"%d" % number, LIMITS)
        assert isinstance(value.rep, bytes)
        sizes.append((len(value.rep) - 2) // value.size())
    assert sizes == [2, 2, 4, 4, 8]


@pytest.mark.parametrize(
    ("first", "count", "encoding"),
    [
        (b"1", 1, b"intset"),
        (b"1", 512, b"intset"),
        (b"1", 513, b"hashtable"),
        (b"a", 128, b"listpack"),
        (b"a", 129, b"hashtable"),
        (b"01", 129, b"hashtable"),
    ],
)
def test_a_new_set_is_as_large_as_what_comes(first: bytes, count: int, encoding: bytes) -> None:
    assert new_set(first, count, LIMITS).encoding(b"") == encoding
    value = Set()
    value.add(first, LIMITS)
    value.expect(count, LIMITS)
    assert value.encoding(b"") == encoding or (first, count) == (b"01", 128)
    assert value.members() == [first]


def test_what_is_made_anew_is_as_small_as_it_can_be() -> None:
    assert set_of([b"2", b"1"], LIMITS).members() == [b"1", b"2"]
    assert set_of([b"2", b"a", b"1"], LIMITS).members() == [b"2", b"a", b"1"]
    assert set_of([b"%d" % n for n in range(513)], LIMITS).encoding(b"") == b"hashtable"
    large = set_of([b"m%d" % n for n in range(500)], LIMITS)
    old = large.replaced_by([b"2", b"1"], LIMITS)
    assert (large.encoding(b""), large.members()) == (b"listpack", [b"2", b"1"])
    assert old.size() == 500


FORMS = [
    [b"%d" % number for number in range(40)],
    [b"m%d" % number for number in range(40)],
    [b"m%d" % number for number in range(200)],
]


@pytest.mark.parametrize("members", FORMS)
def test_each_member_comes_with_the_same_chance(members: list[bytes]) -> None:
    chance = random.Random(3)
    value = set_of(members, LIMITS)
    each = 100
    counts = Counter(
        value.random(chance.getrandbits(SEED_BITS)) for _ in range(each * len(members))
    )
    assert set(counts) == set(members)
    chi = sum((count - each) ** 2 / each for count in counts.values())
    assert chi < len(members) + 6 * (2 * len(members)) ** 0.5
    left = set(members)
    while left:
        left.remove(value.take_random(chance.getrandbits(SEED_BITS)))
        assert set(value.members()) == left


@pytest.mark.parametrize("members", FORMS)
def test_a_scan_finds_all_of_a_small_set_at_once(members: list[bytes]) -> None:
    value = set_of(members, LIMITS)
    found: list[bytes] = []
    cursor = 0
    steps = 0
    while True:
        cursor = value.scan(cursor, 10, found)
        steps += 1
        if not cursor:
            break
    assert sorted(member for piece in found for member in unpack(piece)) == sorted(members)
    assert (steps > 1) == (value.encoding(b"") == b"hashtable")


def digest_of(value: Set) -> int:
    digest = Digest()
    value.add_to(digest)
    return digest.value


def test_a_digest_knows_no_order_and_no_form() -> None:
    members = [b"%d" % number for number in range(5)]
    small = set_of(members, LIMITS)
    large = set_of(members[::-1], SetLimits(0, 0, 0))
    assert small.encoding(b"") != large.encoding(b"")
    assert digest_of(small) == digest_of(large)
    large.remove(b"3")
    assert digest_of(small) != digest_of(large)


def made(members: str) -> Set | None:
    """A set of the words of a text; none of no words."""
    return set_of([word.encode() for word in members.split()], LIMITS) if members else None


CASES = ["", "a", "a b c", "1 2 3", "3 c x", "1 2 3 4 5", " ".join(f"m{n}" for n in range(200))]


@pytest.mark.parametrize("first", CASES)
@pytest.mark.parametrize("second", CASES)
@pytest.mark.parametrize("third", ["", "1 a m7 3", CASES[-1] + " 1"])
def test_sets_are_combined_as_those_of_python(first: str, second: str, third: str) -> None:
    sets = [made(first), made(second), made(third)]
    one, two, three = (set(text.encode().split()) for text in (first, second, third))
    everything = 2**63 - 1
    assert set(combining.intersection(sets, everything)) == one & two & three
    assert set(combining.union(sets, everything)) == one | two | three
    assert set(combining.difference(sets)) == one - two - three
    assert set(combining.stored_difference(sets, LIMITS).members()) == one - two - three
    assert len(combining.intersection(sets, 1)) == min(1, len(one & two & three))
    assert len(combining.union(sets, 2)) >= min(2, len(one | two | three))


def test_a_difference_with_itself_is_empty() -> None:
    one = made("a b")
    assert combining.difference([one, None, one]) == []
    assert combining.stored_difference([one, one], LIMITS).is_empty()


def test_a_union_of_integers_is_in_order() -> None:
    assert combining.union([made("10 9 -1"), None, made("8 9")], 99) == [b"-1", b"8", b"9", b"10"]


@pytest.mark.parametrize(
    ("rep", "flaw"),
    [
        (b"\x01\x00$1\r\na\r\n", ""),
        (b"\x02\x00$1\r\na\r\n", "counted"),
        (b"\x01\x00$1\r\na\r", "read"),
        (b"\x02\x00$1\r\na\r\n$1\r\na\r\n", "twice"),
        (b"\xfd\xff\x01\x00\x02\x00", ""),
        (b"\xfd\xff\x02\x00\x01\x00", "order"),
        (b"\xfd\xff\x01\x00\x01\x00", "order"),
        (b"\xfd\xff\x01\x00\x01", "order"),
        (b"\xfc\xff\x01\x00", "order"),
        (b"\xff\xff" + (5).to_bytes(8, "little"), ""),
        (b"\xfe\xff" + (5).to_bytes(8, "little"), "order"),
    ],
)
def test_flaws_are_found(rep: bytes, flaw: str) -> None:
    found = flaw_of(Set(rep))
    assert flaw in found
    assert bool(flaw) == bool(found)


def test_large_sets_are_freed_in_slices_and_cost_what_they_hold() -> None:
    small = set_of([b"a"], LIMITS)
    assert small.effort() == 0
    assert small.free_some(1)
    large = set_of([b"member:%08d" % number for number in range(20_000)], LIMITS)
    assert 20 < large.used_bytes(5) / 20_000 < 40
    assert large.effort() > 50
    slices = 1
    while not large.free_some(16):
        slices += 1
    assert slices == 10
