"""Arrays against a dict, and what a copy shares."""

from __future__ import annotations

from random import Random

import pytest

from headrace.storage.array import GREATEST, SLOTS, Array, Order, Walk, elements
from headrace.storage.digest import Digest


def contents(
    array: Array, low: int = 0, high: int = GREATEST, reverse: bool = False
) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    walk = Walk(array, low, high, reverse)
    while walk.step():
        here = [
            (walk.base + slot, string)
            for slot, string in elements(walk.piece)
            if (walk.mask >> slot) & 1
        ]
        found += here[::-1] if reverse else here
    return found


def index_by_chance(chance: Random) -> int:
    kind = chance.randrange(4)
    if kind == 0:
        return chance.randrange(100)
    if kind == 1:
        return chance.randrange(20_000)
    if kind == 2:
        return chance.choice([GREATEST, 1 << 63, (1 << 63) - 1, 1 << 40]) - chance.randrange(40)
    return 1024 * chance.randrange(2000)


def test_against_a_dict() -> None:
    chance = Random(1)
    array = Array()
    model: dict[int, bytes] = {}
    kept: list[tuple[Array, dict[int, bytes]]] = []
    for number in range(12_000):
        index = index_by_chance(chance)
        kind = chance.randrange(10)
        if kind < 5:
            string = chance.randbytes(chance.choice([0, 1, 5, 9, 10, 200]))
            assert array.put(index, string) == (index not in model)
            model[index] = string
        elif kind < 8:
            assert array.remove(index) == (model.pop(index, None) is not None)
        elif kind == 8:
            high = min(GREATEST, index + chance.choice([0, 5, 40, 3000]))
            gone = [each for each in model if index <= each <= high]
            assert array.remove_range(index, high) == len(gone)
            for each in gone:
                del model[each]
        elif number % 7 == 0:
            kept.append((array.copy(), model.copy()))
        assert array.get(index) == model.get(index)
        assert array.size() == len(model)
        if number % 100 == 0:
            assert array.length() == max(model, default=-1) + 1
    kept.append((array, model))
    for copied, expected in kept:
        assert contents(copied) == sorted(expected.items())
        low, high = sorted([index_by_chance(chance), index_by_chance(chance)])
        within = [(index, expected[index]) for index in sorted(expected) if low <= index <= high]
        assert contents(copied, low, high) == within
        assert contents(copied, low, high, True) == within[::-1]
        assert copied.piece_count() == len({index // SLOTS for index in expected})
        assert copied.redis_slices() == sorted({index // 4096 for index in expected})


@pytest.mark.parametrize("most", [1, 2, 5])
def test_short_ones_against_a_dict(most: int) -> None:
    """Elements come and go in very few pieces, so that there is often one alone, or none."""
    chance = Random(most)
    indexes = [1, 30, *[0, 31, 32, 5000, GREATEST][:most]]
    array = Array()
    model: dict[int, bytes] = {}
    for number in range(3000):
        index = chance.choice(indexes)
        if chance.randrange(2):
            assert array.put(index, b"%d" % number) == (index not in model)
            model[index] = b"%d" % number
        else:
            assert array.remove(index) == (model.pop(index, None) is not None)
        copied = array.copy()
        for each in (array, copied):
            assert contents(each) == sorted(model.items())
            assert contents(each, reverse=True) == sorted(model.items(), reverse=True)
        assert copied.size() == len(model)
        assert copied.length() == max(model, default=-1) + 1
        assert copied.piece_count() == len({index // SLOTS for index in model})
        assert copied.redis_slices() == sorted({index // 4096 for index in model})
        assert copied.put(7, b"seven")  # which the other one does not see
        assert array.get(7) is None


@pytest.mark.parametrize("bound", [3, 3000])
def test_order_against_a_set(bound: int) -> None:
    chance = Random(2)
    order = Order()
    model: set[int] = set()
    for _ in range(6000):
        number = chance.randrange(bound)
        if number in model:
            model.remove(number)
            order.remove(number)
        else:
            model.add(number)
            order.add(number)
        wanted = chance.randrange(bound)
        assert order.at_or_after(wanted) == min((n for n in model if n >= wanted), default=-1)
        assert order.at_or_before(wanted) == max((n for n in model if n <= wanted), default=-1)
        assert order.last() == max(model, default=-1)
    assert order.copy().numbers() == order.numbers() == sorted(model)
    ascending = Order()
    for number in range(5000):
        ascending.add(number)
    assert ascending.numbers() == list(range(5000))


def test_it_is_freed_in_slices() -> None:
    array = Array()
    for slice_number in range(100):
        array.put(slice_number * 1024, b"v")
    copied = array.copy()
    assert array.effort() == 100
    assert not array.free_some(99)
    assert array.free_some(1)
    assert len(contents(copied)) == 100


def test_a_gap_of_any_length_has_a_digest() -> None:
    digests = set()
    for index in (0, 1, 5000, 1 << 40, GREATEST):
        array = Array()
        array.put(index, b"v")
        digest = Digest()
        array.add_to(digest)
        digests.add(digest.hexadecimal())
    assert len(digests) == 5


def test_memory_grows_with_what_is_there() -> None:
    array = Array()
    array.put(0, b"x" * 100)
    one = array.used_bytes(5)
    for index in range(10_000):
        array.put(index, b"x" * 100)
    assert 10_000 * 100 < array.used_bytes(5) < 10_000 * 130
    assert one < 300
