"""Keys in slots: whatever comes and goes, each is found where it stands, and nothing else is."""

from __future__ import annotations

import gc
import random
from time import thread_time

import pytest

from headrace.storage.collection import SmallLimits
from headrace.storage.digest import Digest
from headrace.storage.hash.hash import Hash
from headrace.storage.key_table import (
    COMPILED,
    MOST_AHEAD,
    NO_EXPIRY,
    NO_SLOT,
    KeyTable,
)
from headrace.storage.list.list import List
from headrace.storage.list.piece import NodeLimits
from headrace.storage.packed.table import SEED_BITS, set_seed
from headrace.storage.set.set import Set
from headrace.storage.set.small import SetLimits
from headrace.storage.sorted_set.sorted_set import SortedSet
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Freeable, Value

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
        values: list[object] = [number, b"v", bytearray(number % 2), Hash(), List()]
        table.add(b"%d" % number, values[number % 5], number)
    requests = [[b"GET", b"%d" % number] for number in range(4990, 5022)]
    table.look_ahead(requests, 0, MOST_AHEAD)
    if COMPILED:
        assert table.is_scattered()
        for number, words in enumerate(requests):
            table.find_ahead(words[1], number)
            assert table.find(words[1]) == (4990 + number if number < 10 else NO_SLOT)
    table.look_ahead([[b"MGET", b"k", words[1]] for words in requests], 0, MOST_AHEAD, 2)
    if COMPILED:
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
    gc.disable()  # a collection is no part of what is measured
    for start in range(0, 600_000, 100):
        names = [b"key:%012d" % number for number in range(start, start + 100)]
        before = thread_time()
        for name in names:
            table.add(name, name, 0)
        spent_s.append(thread_time() - before)
    gc.enable()
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


def _small_hash(chance: random.Random) -> Hash:
    made = Hash()
    for number in range(chance.choice((1, 5, 100))):
        made.put(b"f%d" % number, bytes(chance.choice((0, 5, 20, 64))), SmallLimits(512, 64))
    return made


def _small_set(chance: random.Random) -> Set:
    made = Set()
    for number in range(chance.choice((1, 5, 600))):
        member = b"%d" % number if chance.random() < 0.5 else b"m%d" % number
        made.add(member, SetLimits(512, 128, 64))
    return made


def _value(chance: random.Random) -> object:
    """A value of any kind that is folded, or is not."""
    kind = chance.randrange(8)
    if kind < 2:
        return chance.choice((b"", b"v", bytes(511), bytes(512), bytes(513), b"\0\r\n$1\r\n"))
    if kind == 2:
        return chance.choice((0, -1, 2**63 - 1, -(2**63), 7))
    if kind == 3:
        return bytearray(b"written into")
    if kind == 4:
        return _small_hash(chance)
    if kind == 5:
        return _small_set(chance)
    if kind == 6:
        row = List()
        row.push([b"x" * chance.choice((0, 9, 150, 300, 600))] * 1, 0, True, NodeLimits(-2))
        return row
    ranked = SortedSet()
    for number in range(chance.choice((1, 3, 200))):
        ranked.add(b"m%d" % number, number / 3, SmallLimits(128, 64))
    return ranked


def _read(value: object) -> object:
    """All that can be read of a value, to be compared."""
    if not isinstance(value, Value):
        return type(value), value
    digest = Digest()
    value.add_to(digest)
    return value.type_name(), value.encoding(b"k"), digest.value


@pytest.mark.parametrize("seed", range(6))
def test_folded_keys_are_what_they_were(seed: int) -> None:
    """Whatever is folded, and whatever happens to it then, the table says what the model says."""
    chance = random.Random(seed)
    table = KeyTable(None, True)
    table.fold_from = 0
    table.quiet_ms = chance.choice((0, 5))
    model: dict[bytes, tuple[object, int, int]] = {}
    now_ms = 1_000_000
    for _ in range(2000):
        now_ms += 1
        key = b"%d" % chance.randrange(300) * chance.choice((1, 1, 1, 100))
        slot = table.find(key)
        assert (slot != NO_SLOT) == (key in model)
        step = chance.randrange(9 if len(model) < 200 else 12)
        if slot == NO_SLOT:
            value = _value(chance)
            table.add(key, value, now_ms)
            model[key] = (value, now_ms, NO_EXPIRY)
        elif step < 2:
            value = _value(chance)
            table.replace(slot, value, now_ms)
            model[key] = (value, now_ms, model[key][2])
        elif step < 4:
            value = table.read(key, 0, False)
            assert value is not None
            assert _read(value) == _read(model[key][0])
            if isinstance(value, Hash):  # it is the one in the table, which is written into
                value.put(b"new%d" % now_ms, b"v", SmallLimits(512, 64))
                model[key] = (value, *model[key][1:])
        elif step == 4:
            table.expire_at(slot, now_ms)
            model[key] = (*model[key][:2], now_ms)
        elif step >= 8:
            assert _read(table.remove(slot)) == _read(model.pop(key)[0])
        if chance.random() < 0.02:
            table.fold_some(now_ms + chance.choice((0, 10)), chance.choice((1, 100, 10_000)))
        if chance.random() < 0.01:
            for key, (value, used_ms, deadline_ms) in model.items():
                slot = table.find(key)
                assert table.key_at(slot) == key
                assert _read(table.value_at(slot)) == _read(value)
                assert (table.usage_of(slot), table.deadline_ms(slot)) == (used_ms, deadline_ms)
    names = {table.key_at(slot) for slot in range(int(table.count))}
    assert names == set(model)
    unused: list[Freeable] = []
    while not table.free_some(50, unused):
        pass
    assert table.count == 0


def folded(table: KeyTable) -> int:
    """Return how many values are folded: a new object is made of each that is asked for."""
    return sum(table.value_at(at) is not table.value_at(at) for at in range(int(table.count)))


def test_a_folded_value_is_one_object_once_it_may_be_written_into() -> None:
    table = KeyTable(None, True)
    table.fold_from = 0
    for number in range(64):
        made = Hash()
        made.put(b"f", b"v", SmallLimits(512, 64))
        table.add(b"%d" % number, made, 0)
    assert table.fold_some(10_000, 1000)
    assert table.value_at(3) is not table.value_at(3)
    value = table.read(b"3", 0, False)
    assert value is table.hold(3) is table.value_at(3)


def test_a_folded_string_that_is_read_again_soon_is_an_object() -> None:
    table = KeyTable(None, True)
    table.fold_from = 0
    for number in range(32):
        table.add(b"%d" % number, b"value", 0)
    assert table.fold_some(10_000, 1000)
    assert table.read(b"3", 10_000, True) is not table.value_at(3)
    assert folded(table) == 32
    assert table.read(b"3", 10_999, True) is table.value_at(3)
    assert folded(table) == 31


def test_few_keys_and_keys_in_use_are_not_folded() -> None:
    table = KeyTable(None, True)
    table.quiet_ms = 1000
    for number in range(4095):
        table.add(b"%d" % number, Hash(), 0)
    assert table.fold_some(1000, 100_000)
    assert folded(table) == 0
    table.add(b"4095", Hash(), 0)
    while not table.fold_some(1000, 100):
        pass
    assert folded(table) == 4096  # they have become full
    held = table.read(b"5", 1500, True)
    assert held is table.value_at(5)
    assert table.fold_some(1999, 100_000)  # no round is due
    assert table.fold_some(2000, 100_000)  # one is, but the key was used
    assert held is table.value_at(5)
    assert table.fold_some(3000, 100_000)
    assert folded(table) == 4096
    assert held is not table.value_at(5)


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_are_due_are_found(seed: int) -> None:
    """However deadlines change, and keys move into the slots of others."""
    chance = random.Random(seed)
    table = KeyTable()
    model: dict[bytes, int] = {}
    for number in range(5000):
        table.add(b"%d" % number, 0, 0)
        model[b"%d" % number] = NO_EXPIRY
    now_ms = 1000
    for _ in range(12):
        for key in chance.sample(sorted(model), 300):
            slot = table.find(key)
            if chance.random() < 0.1:
                table.remove(slot)
                del model[key]
            else:
                model[key] = chance.choice((NO_EXPIRY, now_ms, now_ms + chance.randrange(5000)))
                table.expire_at(slot, model[key])
        timed = {key: end for key, end in model.items() if end != NO_EXPIRY}
        assert table.due_ms <= min(timed.values())
        first = table.first_due()
        assert table.deadline_ms(first) == min(timed.values())
        some = table.next_with_deadline(chance.randrange(int(table.count)))
        assert table.key_at(some) in timed
        now_ms += chance.randrange(1500)
        gone: set[bytes] = set()
        while table.due_ms < now_ms:
            for key in table.take_due(now_ms, 7):
                gone.add(key)
                table.remove(table.find(key))
        assert gone == {key for key, end in timed.items() if end < now_ms}
        for key in gone:
            del model[key]


def test_a_table_without_deadlines_has_none() -> None:
    table = KeyTable()
    for number in range(3000):
        table.add(b"%d" % number, 0, 0)
    assert table.next_with_deadline(2999) == table.first_due() == NO_SLOT
    table.expire_at(1500, 5)
    assert table.next_with_deadline(2999) == table.next_with_deadline(0) == 1500
    assert table.take_due(6, 10) == [b"1500"]
    assert table.take_due(6, 10) == []  # the caller may let it stay
    table.expire_at(1500, NO_EXPIRY)
    assert table.next_with_deadline(1600) == table.first_due() == NO_SLOT


@pytest.mark.parametrize("number", [0, 31, 4000])
def test_what_keys_take_is_the_same_folded_or_not(number: int) -> None:
    """The sum falls by what a key takes when that goes, although another one moves."""
    table = KeyTable(None, True)
    for each in range(157 * 32):
        table.add(b"%04d" % each, b"value", 0)
    table.keep_sizes(True)
    while table.size_some(1000):
        pass
    before = table.bytes
    assert table.fold_some(10_000, 100_000)
    assert folded(table) == table.count
    assert table.bytes == table.all_bytes(table.count) == before
    table.remove(table.find(b"%04d" % number))
    assert table.bytes == table.all_bytes(table.count) == before - before // (157 * 32)
    assert table.fold_some(20_000, 100_000)
    assert folded(table) == table.count
    assert table.bytes == table.all_bytes(table.count) == before - before // (157 * 32)
