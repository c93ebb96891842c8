"""A heap against a sorted list, and what its copies share."""

from __future__ import annotations

import random

from headrace.storage.due import Heap, heap_of, pair_of


def items_of(heap: Heap) -> list[bytes]:
    return [heap.at(place) for place in range(int(heap.size))]


def check(heap: Heap, model: list[bytes]) -> None:
    items = items_of(heap)
    assert sorted(items) == model
    assert all(items[(place - 1) // 2] <= items[place] for place in range(1, len(items)))
    assert heap.some(3) == items[:3]


def test_against_a_sorted_list() -> None:
    drawn = random.Random(1)
    heap = Heap()
    model: list[bytes] = []
    kept: list[tuple[Heap, list[bytes]]] = []
    for number in range(12_000):
        grows = number % 6000 < 4000
        if drawn.random() < (0.8 if grows else 0.2):
            item = pair_of(drawn.choice([0, 1, 2**31, 2**63 - 1]) or drawn.randrange(900), b"")
            item += b"%d" % drawn.randrange(50)
            heap.add(item)
            model.append(item)
            model.sort()
        elif model:
            place = drawn.choice([0, drawn.randrange(len(model))])
            item = heap.take(place)
            assert place or item == model[0]
            model.remove(item)
        if number % 1000 == 0:
            check(heap, model)
            kept.append((heap.copy(), model[:]))
    for copied, before in kept:
        check(copied, before)
        while before:
            assert copied.take(0) == before.pop(0)
        assert not copied.size
    check(heap, model)


def test_items_in_any_order_make_a_heap() -> None:
    drawn = random.Random(2)
    for count in (0, 1, 511, 512, 513, 3000):
        items = [pair_of(drawn.randrange(10_000), b"x") for _ in range(count)]
        check(heap_of(items[:]), sorted(items))


def test_it_is_freed_in_pieces_and_a_copy_stays() -> None:
    items = [pair_of(number, b"") for number in range(1200)]
    heap = heap_of(items)
    copied = heap.copy()
    left = 1200
    while not heap.free_some(100):
        left -= 100
        assert heap.size == left
    assert left == 100
    check(copied, items)
