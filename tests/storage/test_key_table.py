"""Keys in slots: whatever comes and goes, each is found where it stands, and nothing else is."""

from __future__ import annotations

import random
from time import thread_time

import pytest

from headrace.storage.key_table import (
    COMPILED,
    MOST_AHEAD,
    NO_EXPIRY,
    NO_SLOT,
    KeyTable,
)
from headrace.storage.packed.table import SEED_BITS, set_seed
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Freeable

LARGE = 20_000 if COMPILED else 5_000


def check(table: KeyTable, model: dict[bytes, tuple[object, int, int]]) -> None:
    """All that can be asked of it says what the model says."""
    assert table.count == len(model)
    assert {table.key_at(slot) for slot in range(int(table.count))} == set(model)
    for key, (value, access_ms, deadline_ms) in model.items():
        slot = table.find(bytes(bytearray(key)))
        assert table.key_at(slot) == key
        assert table.value_at(slot) is value
        assert table.usage_of(slot) == access_ms
        assert table.deadline_ms(slot) == deadline_ms


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_come_and_go(seed: int) -> None:
    chance = random.Random(seed)
    table = KeyTable()
    model: dict[bytes, tuple[object, int, int]] = {}
    for round_number in range(6):
        grows = round_number % 2 == 0
        for _ in range(LARGE // 2):
            key = b"key:%012d" % chance.randrange(LARGE)
            now_ms = chance.randrange(1 << 41)
            slot = table.find(key)
            assert (slot != NO_SLOT) == (key in model)
            if slot == NO_SLOT:
                if grows:
                    table.add(key, key[4:], now_ms)
                    model[key] = (table.value_at(table.find(key)), now_ms, NO_EXPIRY)
            elif chance.random() < (0.1 if grows else 0.9):
                assert table.remove(slot) is model.pop(key)[0]
            elif chance.random() < 0.5:
                table.replace(slot, now_ms, now_ms)
                model[key] = (table.value_at(slot), now_ms, model[key][2])
            else:
                deadline_ms = chance.choice((NO_EXPIRY, 0, now_ms))
                table.expire_at(slot, deadline_ms)
                model[key] = (*model[key][:2], deadline_ms)
        check(table, model)
    for key in chance.sample(sorted(model), len(model)):
        table.remove(table.find(key))
    check(table, {})


@pytest.mark.skipif(not COMPILED, reason="the pure build has a dict")
def test_the_index_grows_evenly() -> None:
    """A split that leaves all on one side is soon followed by the next one, and so on."""
    set_seed(random.Random(2).getrandbits(SEED_BITS))
    table = KeyTable()
    for number in range(200_000):
        table.add(b"key:%012d" % number, 0, 0)
    assert table.index_bytes() < 200_000 * 8 * 3


def test_keys_of_all_lengths() -> None:
    table = KeyTable()
    model: dict[bytes, tuple[object, int, int]] = {}
    for size in range(300):
        for byte in b"\0a\xff":
            key = bytes([byte]) * size
            if key not in model:
                table.add(key, key, size)
                model[key] = (key, size, NO_EXPIRY)
    check(table, model)
    assert table.find(b"a" * 300) == NO_SLOT


def test_a_value_whose_deadline_has_passed_is_not_read() -> None:
    table = KeyTable()
    slot = table.add(b"k", b"v", 5)
    assert table.read(b"k", 7, True) == b"v"
    assert table.usage_of(slot) == 7
    table.expire_at(slot, 9)
    assert table.read(b"k", 9, False) == b"v"
    assert table.read(b"k", 10, True) is None
    assert table.usage_of(slot) == 7
    assert table.read(b"other", 0, True) is None
    table.touch(slot, 2**63 - 1)  # the time of a clock that is out of its mind
    assert table.usage_of(slot) >= 2**60
    assert table.deadline_ms(slot) == 9


def test_looking_ahead_changes_nothing() -> None:
    table = KeyTable()
    for number in range(5000):
        table.add(b"%d" % number, b"v" if number % 3 else number, number)
    requests = [[b"GET", b"%d" % number] for number in range(4990, 5022)]
    table.look_ahead(requests, 0, MOST_AHEAD)
    if COMPILED:
        assert table.is_scattered()
        for number, words in enumerate(requests):
            table.find_ahead(words[1], number)
            assert table.find(words[1]) == (4990 + number if number < 10 else NO_SLOT)
    table.look_ahead(requests, 3, 3)
    assert table.usage_of(table.find(b"4999")) == 4999
    assert table.find(b"5010") == NO_SLOT


def test_marks_go_with_their_keys() -> None:
    """A freezing takes each key once, wherever it has moved to meanwhile."""
    chance = random.Random(1)
    table = KeyTable()
    for epoch in (1, 2, 3):
        for number in range(3000):
            if table.find(b"%d" % number) == NO_SLOT:
                table.add(b"%d" % number, number, 0)
        marked: set[bytes] = set()
        for _ in range(2500):
            slot = chance.randrange(int(table.count))
            key = table.key_at(slot)
            assert table.is_marked(slot, epoch) == (key in marked)
            if chance.random() < 0.5:
                table.mark(slot, epoch)
                marked.add(key)
            else:
                table.remove(slot)
                marked.discard(key)
        for slot in range(int(table.count)):
            assert table.is_marked(slot, epoch) == (table.key_at(slot) in marked)


def test_freeing_comes_in_slices() -> None:
    table = KeyTable()
    unused: list[Freeable] = []
    large = Stream(100, 100)
    for number in range(3000):
        table.add(b"%d" % number, large if number == 7 else b"v", 0)
    assert not table.free_some(2990, unused)
    assert not unused
    assert table.free_some(11, unused)
    assert unused == [large]


@pytest.mark.skipif(not COMPILED, reason="the dict of the pure build moves all of its keys at once")
def test_no_key_is_held_up_while_the_index_grows() -> None:
    table = KeyTable()
    spent_s = []
    for start in range(0, 600_000, 100):
        names = [b"key:%012d" % number for number in range(start, start + 100)]
        before = thread_time()
        for name in names:
            table.add(name, name, 0)
        spent_s.append(thread_time() - before)
    # A hundred of 600,000 keys. A dict takes a fifth of all the time for some of them.
    assert max(spent_s) < sum(spent_s) / 20


def test_another_table_is_looked_into_without_a_search() -> None:
    """What is found there is right, however the keys of both come, go and move."""
    chance = random.Random(3)
    table = KeyTable()
    other = KeyTable()
    found = 0
    for _ in range(LARGE):
        key = b"%d" % chance.randrange(1500)
        slot = table.find(key)
        there = other.find(key)
        if slot == NO_SLOT:
            assert table.value_in(other, key) is None
            table.add(key, b"", 0)
        elif there == NO_SLOT:
            assert table.value_in(other, key) is None
            table.lead(slot, other, other.add(key, key, 0))
        elif chance.random() < 0.2:
            if chance.random() < 0.5:
                table.remove(slot)
            else:
                other.remove(there)
        else:
            value = table.value_in(other, key)
            assert value is None or value == key
            found += value is not None
    assert found > LARGE // 10
