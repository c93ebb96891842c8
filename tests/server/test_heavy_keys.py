"""The table of the keys that weigh most: what it promises however many there are."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headrace.server.statistics.hot_keys import HeavyKeys

ROOM = 5

additions = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 50)), max_size=300)


def filled(added: list[tuple[int, int]]) -> tuple[HeavyKeys, Counter[bytes]]:
    table = HeavyKeys(ROOM)
    truth: Counter[bytes] = Counter()
    for number, weight in added:
        key = b"k%d" % number
        table.add(key, weight)
        truth[key] += weight
    return table, truth


@given(additions)
def test_what_is_heavy_is_found_and_nothing_is_exaggerated(added: list[tuple[int, int]]) -> None:
    table, truth = filled(added)
    found = dict(table.heaviest(len(truth) + 1))
    total = sum(truth.values())
    assert table.total == total
    assert len(found) <= 2 * ROOM
    for key, weight in found.items():
        assert 0 < weight <= truth[key]
    for key, weight in truth.items():
        if weight * ROOM > total:
            assert key in found, (key, weight, total)


@given(additions.filter(lambda added: len({number for number, _ in added}) <= 2 * ROOM))
def test_a_few_keys_are_weighed_exactly(added: list[tuple[int, int]]) -> None:
    table, truth = filled(added)
    found = table.heaviest(len(truth))
    assert dict(found) == {key: weight for key, weight in truth.items() if weight}
    weights = [weight for _, weight in found]
    assert weights == sorted(weights, reverse=True)


def test_hot_keys_are_found_among_a_hundred_thousand() -> None:
    """Each of ten has two of a hundred requests, and each of the others is met once or so."""
    chance = random.Random(1)
    table = HeavyKeys(100)
    for _ in range(100_000):
        hot = chance.random() < 0.2
        key = b"hot%d" % chance.randrange(10) if hot else b"%d" % chance.randrange(100_000)
        table.add(key, 30)
    found = table.heaviest(10)
    assert {key for key, _ in found} == {b"hot%d" % number for number in range(10)}
    assert min(weight for _, weight in found) > 30 * 1500
