"""Tables of packed buckets beside dicts, under random changes and with copies in between."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from headrace.storage.packed.strings import pack, string_at, unpack
from headrace.storage.packed.table import (
    MEMBERS,
    PAIRS,
    SCORES,
    SEED_BITS,
    Table,
    element_end,
    elements,
    find_element,
    keys_of,
    table_of,
)

SEED = 0x0123456789ABCDEF
KINDS = [MEMBERS, PAIRS, SCORES]
LENGTHS = (0, 1, 2, 3, 4, 5, 9, 10, 11, 99, 100, 101, 999, 1000)


def put(table: Table, key: bytes, value: object) -> bool:
    """Set what stands behind a key, whatever the kind; True for a new one."""
    if isinstance(value, bytes):
        return table.put(key, value)
    return table.put_score(key, value) if isinstance(value, float) else table.add(key)


def read(table: Table, key: bytes) -> object:
    """Return what stands behind a key; None without it."""
    if table.kind == PAIRS:
        return table.get(key)
    if table.kind == MEMBERS:
        return True if table.has(key) else None
    score = table.score(key)
    return None if score != score else score


def content(table: Table) -> dict[bytes, object]:
    """All that a table holds; nothing may be there twice."""
    found: dict[bytes, object] = {}
    for directory in table.directories:
        for bucket in directory:
            for key in keys_of(bucket, table.kind):
                assert key not in found
                found[key] = read(table, key)
    return found


def chosen_value(kind: int, chance: random.Random) -> object:
    if kind == MEMBERS:
        return True
    if kind == SCORES:
        return chance.choice([0.0, -1.5, float("inf"), chance.random()])
    return chance.randbytes(chance.choice([0, 1, 3, 9, 10, 40, 99, 100, 300, 1023, 1024, 5000]))


def chosen_key(chance: random.Random, names: int) -> bytes:
    number = chance.randrange(names)
    # Keys of all short lengths, and some that differ in one byte only.
    shape = number % 5
    if shape == 0:
        return b"%d" % number
    if shape == 1:
        return b"%d" % number + b"x" * (number % 31)
    if shape == 2:
        return b"$4\r\nab\r\n"[: number % 9] + b"%d" % number
    if shape == 3:
        return b"y" * (number % 130) + b"%d" % number
    return bytes([number & 255, number >> 8 & 255])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_table_is_as_a_dict_and_copies_stay_as_they_were(kind: int, seed: int) -> None:
    chance = random.Random(seed)
    table = Table(kind, chance.getrandbits(SEED_BITS))
    model: dict[bytes, object] = {}
    kept: list[tuple[Table, dict[bytes, object]]] = []
    for phase in range(12):
        names = chance.choice([50, 1000, 3000])
        growing = chance.random() < 0.6
        for _ in range(chance.choice([20, 500, 1500])):
            key = chosen_key(chance, names)
            if chance.random() < (0.8 if growing else 0.15):
                value = chosen_value(kind, chance)
                assert put(table, key, value) == (key not in model)
                model[key] = value
            else:
                assert table.remove(key) == (model.pop(key, None) is not None)
        if phase == 8:
            for key in list(model):
                assert table.remove(key)
            model.clear()
            assert table.buckets < 4
        assert table.count == len(model)
        assert content(table) == model
        assert not table.flaw()
        for key in [chosen_key(chance, names) for _ in range(200)]:
            assert read(table, key) == model.get(key)
            assert table.has(key) == (key in model)
        kept.append((table.copy(), dict(model)))
        if chance.random() < 0.5:  # go on with the copy, so that copies have copies
            table, kept[-1] = kept[-1][0], (table, kept[-1][1])
        for twin, expected in kept:
            assert content(twin) == expected
            assert not twin.flaw()


def test_buckets_hold_some_elements_or_some_bytes_on_average() -> None:
    table = Table(MEMBERS, SEED)
    for number in range(10_000):
        table.add(b"member:%08d" % number)
        assert 8 * table.buckets >= table.count > 8 * (table.buckets - 1)
    assert [len(each) for each in table.directories] == [256, 256, 256, 256, 1250 - 1024]
    for number in range(10_000):
        table.remove(b"member:%08d" % number)
        assert 3 * table.count >= 8 * (table.buckets - 1) - 24
    assert table.directories == [[b""]]
    assert table.content_bytes == 0
    table = Table(PAIRS, SEED)
    for number in range(200):
        table.put(b"%d" % number, b"v" * 300)
    assert table.buckets == 200
    for number in range(2000):
        table.put(b"%d" % number, b"v" * 30)
    assert table.content_bytes <= 256 * table.buckets <= table.content_bytes + 256


def test_buckets_of_members_as_short_as_numbers_hold_more() -> None:
    table = Table(MEMBERS, SEED)
    for number in range(2000):
        table.add(b"%013d" % number)
        assert 16 * table.buckets >= table.count > 16 * (table.buckets - 1)
    for number in range(4000):  # others join them, and then these are no longer short on average
        table.add(b"member:%08d" % number)
    assert 8 * table.buckets >= table.count > 8 * (table.buckets - 1)
    for number in range(2000):
        assert table.remove(b"%013d" % number)
    assert table.count == 4000
    assert not table.flaw()


def test_buckets_of_large_members_hold_more() -> None:
    table = Table(MEMBERS, SEED)
    for number in range(2000):
        table.add(b"%064d" % number)
        assert 16 * table.buckets >= table.count > 16 * (table.buckets - 1)
    for number in range(200):
        table.add(b"%01000d" % number)
    assert table.content_bytes <= 1200 * table.buckets <= table.content_bytes + 1200
    for number in range(2000):  # others alone are left
        table.remove(b"%064d" % number)
        table.add(b"member:%08d" % number)
    for number in range(200):
        table.remove(b"%01000d" % number)
    table.add(b"a")
    for number in range(300):
        table.add(b"member:%08d" % (2000 + number))
    assert 8 * table.buckets >= table.count
    assert not table.flaw()


def test_large_values_never_make_more_buckets_than_elements() -> None:
    table = Table(PAIRS, SEED)
    for number in range(50):
        table.put(b"%d" % number, b"v" * 100_000)
        for _ in range(10):
            table.put(b"0", b"v" * 100_000)
    assert table.buckets <= 51


@pytest.mark.parametrize("seed", range(6))
def test_a_scan_meets_all_that_stays_while_the_table_grows_and_shrinks(seed: int) -> None:
    chance = random.Random(seed)
    table = Table(MEMBERS, chance.getrandbits(SEED_BITS))
    stays = {b"stays:%d" % number for number in range(chance.choice([1, 100, 2000]))}
    comes = [b"comes:%d" % number for number in range(20_000)]
    for key in stays:
        table.add(key)
    there = set(comes) if chance.random() < 0.5 else set()
    for key in there:
        table.add(key)
    for _ in range(5):
        met: set[bytes] = set()
        cursor = 0
        steps = 0
        direction = chance.choice([0.1, 0.9])
        while True:
            found: list[bytes] = []
            cursor = table.scan(cursor, chance.choice([1, 10, 200]), found)
            for bucket in found:
                met.update(unpack(bucket))
            steps += 1
            if not cursor:
                break
            if chance.random() < 0.05:
                direction = 1 - direction
            for key in chance.sample(comes, 60):
                if chance.random() < direction:
                    table.add(key)
                else:
                    table.remove(key)
        assert stays <= met
        assert steps < 60_000


def test_a_scan_of_a_table_that_stays_meets_each_element_once() -> None:
    for count in (0, 1, 16, 17, 300, 3000):
        table = Table(PAIRS, SEED)
        for number in range(count):
            table.put(b"%d" % number, b"v")
        met: Counter[bytes] = Counter()
        cursor = 0
        while True:
            found: list[bytes] = []
            cursor = table.scan(cursor, 10, found)
            number_found = sum(elements(bucket, PAIRS) for bucket in found)
            assert number_found >= 10 or not cursor
            for bucket in found:
                met.update(keys_of(bucket, PAIRS))
            if not cursor:
                break
        assert met == Counter(b"%d" % number for number in range(count))


def test_a_scan_takes_any_cursor_and_looks_at_few_empty_buckets() -> None:
    table = Table(MEMBERS, SEED)
    for cursor in (1, 7, 2**32 - 1, 2**61):
        assert table.scan(cursor, 10, []) == 0
    for number in range(3000):
        table.add(b"%d" % number)
    for cursor in (1, 7, 2**32 - 1, 2**61):
        assert 0 <= table.scan(cursor, 10, []) < 2**32
    found: list[bytes] = []
    table.scan(0, 1, found)
    assert len(found) <= 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alike", [False, True])
def test_each_element_is_chosen_with_the_same_chance(kind: int, alike: bool) -> None:
    chance = random.Random(8)
    table = Table(kind, SEED)
    keys = [b"%03d" % number if alike else b"%d" % number for number in range(100)]
    for number, key in enumerate(keys):
        put(table, key, [True, b"v" * (0 if alike else number % 70), 1.5][kind - 1])
    for key in keys[60:]:
        table.remove(key)
    again = table_of(kind, SEED, table.count, table.fullest, table.copy().directories)
    assert again is not None
    for each in (table, table.copy(), again):
        counts = Counter(
            string_at(each.random(chance.getrandbits(SEED_BITS)), 0) for _ in range(60 * 400)
        )
        assert set(counts) == set(keys[:60])
        assert sum((count - 400) ** 2 / 400 for count in counts.values()) < 110  # 59 on average


def test_what_is_chosen_can_be_taken_until_nothing_is_left() -> None:
    chance = random.Random(9)
    table = Table(PAIRS, SEED)
    left = {b"%d" % number: b"value %d" % number for number in range(2000)}
    for key, value in left.items():
        table.put(key, value)
    while left:
        key, value = unpack(table.take_random(chance.getrandbits(SEED_BITS)))
        assert left.pop(key) == value
        assert table.count == len(left)
    assert table.directories == [[b""]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_made_again_of_what_it_held(kind: int) -> None:
    chance = random.Random(10)
    for count in (0, 1, 20, 5000):
        table = Table(kind, SEED)
        for number in range(count):
            put(table, b"%d" % number, chosen_value(kind, chance))
        pieces = [list(directory) for directory in table.directories]
        again = table_of(kind, SEED, table.count, table.fullest, pieces)
        assert again is not None
        assert not again.flaw()
        assert content(again) == content(table)
        for number in range(count + 50):
            put(again, b"%d" % number, chosen_value(kind, chance))
        assert again.count == count + 50
        assert not again.flaw()
        assert content(table) == content(table.copy())


def test_directories_that_cannot_be_are_refused() -> None:
    assert table_of(MEMBERS, SEED, 0, 0, []) is None
    assert table_of(MEMBERS, SEED, 0, 0, [[]]) is None
    assert table_of(MEMBERS, SEED, 0, 0, [[b""], [b""]]) is None
    assert table_of(MEMBERS, SEED, 0, 0, [[b""] * 257]) is None
    assert table_of(MEMBERS, SEED, -1, 0, [[b""]]) is None
    assert table_of(MEMBERS, SEED, 0, -1, [[b""]]) is None


def flaw_of(kind: int, count: int, fullest: int, directories: list[list[bytes]]) -> str:
    table = table_of(kind, SEED, count, fullest, directories)
    assert table is not None
    return table.flaw()


def test_flaws_are_found() -> None:
    table = Table(MEMBERS, SEED)
    for number in range(20):
        table.add(b"member:%08d" % number)
    buckets = list(table.directories[0])
    assert len(buckets) == 3
    fullest = table.fullest
    assert not flaw_of(MEMBERS, 20, fullest, [list(buckets)])
    assert "counted" in flaw_of(MEMBERS, 21, fullest, [list(buckets)])
    assert "more elements" in flaw_of(MEMBERS, 20, 3, [list(buckets)])
    assert "another one" in flaw_of(MEMBERS, 20, fullest, [[buckets[1], buckets[0], buckets[2]]])
    twice = [buckets[0], buckets[1], buckets[2] * 2]
    assert "twice" in flaw_of(MEMBERS, 20 + elements(buckets[2], MEMBERS), 50, [twice])
    for broken in (b"$3\r\nab\r\n", b"$-1\r\n", b"$03\r\nabc\r\n", b"x", b"$9999999\r\n"):
        assert "read" in flaw_of(MEMBERS, 1, 1, [[broken]])
    assert not flaw_of(PAIRS, 1, 1, [[pack([b"a", b"b"])]])
    assert "read" in flaw_of(PAIRS, 1, 1, [[pack([b"a", b"b", b"c"])]])
    assert "read" in flaw_of(SCORES, 1, 1, [[pack([b"a"]) + b"1234567"]])
    assert not flaw_of(SCORES, 1, 1, [[pack([b"a"]) + bytes(8)]])
    assert "read" in flaw_of(SCORES, 1, 1, [[pack([b"a"]) + b"\xff" * 8]])  # not a number


@pytest.mark.parametrize("kind", KINDS)
def test_an_element_ends_where_the_next_begins(kind: int) -> None:
    table = Table(kind, SEED)
    values: list[object] = [True, b"value", 1.5]
    for key in (b"a", b"bc", b"d" * 1500):
        put(table, key, values[kind - 1])
    [[bucket]] = [[b"".join(each) for each in table.directories]]
    place = 0
    found = []
    while place < len(bucket):
        found.append(string_at(bucket, place))
        place = element_end(bucket, place, kind)
    assert sorted(found) == [b"a", b"bc", b"d" * 1500]


def test_a_table_is_freed_in_slices() -> None:
    table = Table(MEMBERS, SEED)
    for number in range(50_000):
        table.add(b"member:%08d" % number)
    twin = table.copy()
    slices = 1
    while not table.free_some(16):
        slices += 1
    assert slices == 25  # directories
    assert twin.effort() == 6250 // 16 + 1
    assert not twin.flaw()


@pytest.mark.parametrize("kind", KINDS)
def test_an_element_is_found_beside_others_of_all_lengths(kind: int) -> None:
    chance = random.Random(2)
    between = {MEMBERS: [b""], PAIRS: [pack([b""]), pack([b"v" * 92]), pack([b"v" * 1000])]}
    rests = between.get(kind, [b"12345678"])
    for _ in range(100):
        keys = [bytes(chance.choices(b"$\r\n12", k=chance.choice(LENGTHS))) for _ in range(12)]
        bucket = b""
        places: dict[bytes, int] = {}
        for key in keys:
            places.setdefault(key, len(bucket))
            bucket += pack([key]) + chance.choice(rests)
        for key in keys:
            assert find_element(bucket, key, kind) == places[key]
            assert find_element(b"ab" + bucket, key, kind, 2) == places[key] + 2
        for key in (b"other", b"o" * 100, b"oth"):
            assert find_element(bucket, key, kind) == ~12


def test_keys_that_differ_in_one_byte_differ() -> None:
    for size in (*range(1, 40), 99, 100, 101):
        key = bytes(size)
        for place in range(size):
            other = bytearray(key)
            other[place] = 1
            assert find_element(pack([bytes(other)]), key, MEMBERS) == ~1


def test_what_was_looked_at_ahead_is_found_although_buckets_are_split() -> None:
    requests = [[b"SADD", b"k", b"%d" % number] for number in range(500)]
    table = Table(MEMBERS, SEED)
    table.look_ahead(requests, 100, 500, 2)
    for at in range(100, 500):
        member = requests[at][2]
        if at % 3:
            table.take_ahead(member, at - 100)
        assert table.add(member)
        assert table.has(requests[100][2])
    assert table.count == 400
    assert not table.flaw()
